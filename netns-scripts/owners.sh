# Senders that belong to somebody: users, cgroups of our own. Sourced by scenarios about owners, not run.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # lib.sh sets the rest

# The first mount of cgroup2 that is no other one's part.
cgroup_root=$(awk '$4 == "/" && / - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
own_slice=shapertest$$.slice

at_end() { remove_cgroups; }

remove_cgroups() {
    local folder pid try
    [ -d "$cgroup_root/$own_slice" ] || return 0
    for try in {1..20}; do
        while read -r pid; do kill -9 "$pid" 2>/dev/null || true; done \
            < <(find "$cgroup_root/$own_slice" -name cgroup.procs -exec cat {} + 2>/dev/null)
        find "$cgroup_root/$own_slice" -depth -type d -exec rmdir {} + 2>/dev/null && return 0
        sleep 0.1
    done
    echo "cgroups are left: $cgroup_root/$own_slice ($try tries)" >&2
}

make_cgroup() { # PATH below our slice
    [ -n "$cgroup_root" ] || fail 'no cgroup2 is mounted here'
    mkdir -p "$cgroup_root/$own_slice/$1"
}

# A prefix for commands: they are in the cgroup before they make a socket.
cat >"$temporary/in_cgroup" <<'EOF'
#!/bin/bash
echo $$ >"$1/cgroup.procs" && shift && exec "$@"
EOF
chmod 755 "$temporary/in_cgroup"
in_cgroup() { echo "$temporary/in_cgroup" "$cgroup_root/$own_slice/$1"; } # PATH below our slice

as_user() { echo setpriv --reuid "$1" --regid "$2" --clear-groups; } # UID GID

# A receiver on a port of its own, and the firewall of n2 counts what arrives there; the port is left in `port`.
receiver() {
    port=$((next_port += 1))
    ip netns exec "$server" timeout 120 iperf3 -s -1 -p "$port" >/dev/null 2>&1 </dev/null &
    background+=($!)
    wait_for "iperf3 on port $port" listens -t "$port"
    watch_port "$port"
}

# A receiver of any number of connections.
sink() {
    port=$((next_port += 1))
    ip netns exec "$server" timeout 100 "$scripts/short_connections.py" serve "$port" >/dev/null 2>&1 </dev/null &
    background+=($!)
    wait_for "a receiver on port $port" listens -t "$port"
    watch_port "$port"
}

watch_port() { # PORT
    local family
    for family in iptables ip6tables; do
        n2 $family -w 5 -t raw -A PREROUTING -p tcp --dport "$1"
        n2 $family -w 5 -t raw -A PREROUTING -p udp --dport "$1"
    done
}

# TCP to the port from now on, sent by whoever the prefix makes.
sends() { # PORT ADDRESS [PREFIX WORD...]
    nsenter --net="/run/netns/$client" timeout 100 "${@:3}" "${iperf:-iperf3}" -c "$2" -p "$1" -t 100 -C reno \
        --connect-timeout 5000 >"$temporary/bulk-$1" 2>&1 </dev/null &
    background+=($!)
    bulk+=($!)
}

# Frames and bytes that have come for each port, as `port bytes` on the wire.
arrived() {
    { n2 iptables -w 5 -t raw -nvxL PREROUTING && n2 ip6tables -w 5 -t raw -nvxL PREROUTING; } |
        awk '/dpt:/ { sub(/.*dpt:/, "", $NF); bytes[$NF] += $2 + 14 * $1 } END { for (p in bytes) print p, bytes[p] }'
}

# Leaves the wire rate of each port over so many seconds in `rate_of`.
declare -A rate_of
look() { # SECONDS
    local before after since now port bytes
    declare -A before_of=()
    since=$(date +%s%N)
    before=$(arrived)
    sleep "$1"
    now=$(date +%s%N)
    after=$(arrived)
    while read -r port bytes; do before_of[$port]=$bytes; done <<<"$before"
    while read -r port bytes; do rate_of[$port]=$(((bytes - ${before_of[$port]:-0}) * 8000000 / ((now - since) / 1000))); done <<<"$after"
    bulk_runs || fail "bulk traffic ended: $(tail -n 1 "$temporary"/bulk-*)"
}

# Within 2 % of the rate that the policy says.
keeps() { # WHO MBIT BPS
    check "$1: $(mbit "$3") of $2" within_percent 2 "$3" "$(awk -v mbit="$2" 'BEGIN { print mbit * 1e6 }')"
}
