# Network namespaces with traffic in them, and the checks that scenarios make. Sourced, not run.
# shellcheck shell=bash
# shellcheck disable=SC2034 # many results are left in variables for the scenarios
#
#   make_direct:     n1 client               n2 server
#                   ┌─────────┐  veth pair  ┌─────────┐
#                   │    up0  ├─────────────┤ dn0     │
#                   └─────────┘             └─────────┘
#           10.77.2.1 fd77:2::1             10.77.2.2 fd77:2::2
#
#   make_forwarded:  n1 client               n3 router                n2 server
#                   ┌─────────┐             ┌─────────┐             ┌─────────┐
#                   │   eth0  ├─────────────┤ in0 up0 ├─────────────┤ dn0     │
#                   └─────────┘             └─────────┘             └─────────┘
#           10.77.1.1 fd77:1::1      10.77.1.2    10.77.2.1         10.77.2.2 fd77:2::2
#
# The shaper runs where up0 is, and bulk goes from n1 to n2; so the wire is always judged at dn0. Everything is named by
# the process id and removed by one trap. A scenario prints a line for each check and ends with `finish`.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build_folder=${SHAPER_BUILD:-$scripts/../build/release}
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
        { echo 'no root: network namespaces need it; run this as root or install sudo' >&2; exit 1; }
    exec sudo env SHAPER_BUILD="$build_folder" "$0" "$@"
fi

scenario=$(basename "$0")
client=shaper-$$-n1 server=shaper-$$-n2 router=shaper-$$-n3
shaped=$client
server4=10.77.2.2 server6=fd77:2::2
server_mac=02:77:00:00:02:02 uplink_mac=02:77:00:00:02:01
namespaces=() background=() bulk=()
shaper_runs=no
passed=0 failed=0 next_port=5200
temporary=$(mktemp -d)
chmod 755 "$temporary"

n1() { ip netns exec "$client" "$@"; }
n2() { ip netns exec "$server" "$@"; }
n3() { ip netns exec "$router" "$@"; }
shaper() { ip netns exec "$shaped" "$build_folder/shaper" "$@"; }

# A script redefines this to undo what it did to the machine outside its namespaces.
at_end() { :; }

# Ends what we started, by process id, and removes what we made.
clean_up() {
    local status=$? namespace pid
    trap - EXIT INT TERM
    set +e
    at_end
    [ "$shaper_runs" = no ] || shaper down >/dev/null 2>&1
    [ ${#background[@]} -eq 0 ] || kill "${background[@]}" 2>/dev/null
    for namespace in "${namespaces[@]}"; do
        for pid in $(ip netns pids "$namespace" 2>/dev/null); do kill -9 "$pid" 2>/dev/null; done
        ip netns delete "$namespace" 2>/dev/null
    done
    wait 2>/dev/null
    rm -rf "$temporary"
    exit $status
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# --- results ---------------------------------------------------------------------------------------------------------

fail() { # SENTENCE: what cannot go on
    failed=$((failed + 1))
    printf '  FAILED  %s\n' "$1"
    finish
}

check() { # SENTENCE COMMAND...
    local sentence=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        printf '  ok      %s\n' "$sentence"
    else
        failed=$((failed + 1))
        printf '  FAILED  %s\n' "$sentence"
    fi
}

finish() {
    printf '%s: %d passed, %d failed (%d s)\n' "$scenario" "$passed" "$failed" "$SECONDS"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ] && exit 0
    exit 1
}

exits() { # CODE COMMAND...
    local code=$1 status=0
    shift
    "$@" >"$temporary/output" 2>"$temporary/errors" || status=$?
    [ "$status" -eq "$code" ]
}

mbit() { awk -v bps="$1" 'BEGIN { printf "%.3f Mbit/s", bps / 1e6 }'; }
at_least_percent() { [ "$2" -ge $(($3 * $1 / 100)) ]; } # PERCENT VALUE WHOLE

# --- topology --------------------------------------------------------------------------------------------------------

# The judge counts frames at a veth. With TSO on, a veth counts a super-packet once, with one header; with TSO off and GSO
# on the shaper still sees super-packets and the veth counts what a wire would carry. GRO would glue them again.
set_offloads() { # NAMESPACE INTERFACE
    ip netns exec "$1" ethtool -K "$2" tso off tx-udp-segmentation off gso on gro off >/dev/null 2>&1 || true
    ip netns exec "$1" ethtool -k "$2" >"$temporary/offloads"
    if grep -Eq '^(tcp-segmentation-offload|generic-receive-offload): on' "$temporary/offloads"; then
        fail "offloads of $2 cannot be set: the judge would count wrongly"
    fi
}

make_namespace() { # NAME
    ip netns add "$1" 2>"$temporary/why" || fail "no network namespaces here: $(<"$temporary/why")"
    namespaces+=("$1")
    ip -n "$1" link set lo up
    # No memory of earlier connections. Congestion control is chosen for each bulk connection.
    ip netns exec "$1" sysctl -qw net.ipv4.tcp_no_metrics_save=1 net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
}

make_cable() { # NAMESPACE INTERFACE MAC NAMESPACE INTERFACE MAC NETWORK: x.1 and x.2, with neighbours that need no asking
    ip -n "$1" link add "$2" address "$3" type veth peer name "$5" address "$6" netns "$4"
    ip -n "$1" address add "10.77.$7.1/24" dev "$2"
    ip -n "$1" address add "fd77:$7::1/64" dev "$2" nodad
    ip -n "$4" address add "10.77.$7.2/24" dev "$5"
    ip -n "$4" address add "fd77:$7::2/64" dev "$5" nodad
    ip -n "$1" link set "$2" up
    ip -n "$4" link set "$5" up
    ip -n "$1" neighbour replace "10.77.$7.2" lladdr "$6" dev "$2" nud permanent
    ip -n "$1" neighbour replace "fd77:$7::2" lladdr "$6" dev "$2" nud permanent
    ip -n "$4" neighbour replace "10.77.$7.1" lladdr "$3" dev "$5" nud permanent
    ip -n "$4" neighbour replace "fd77:$7::1" lladdr "$3" dev "$5" nud permanent
    set_offloads "$1" "$2"
    set_offloads "$4" "$5"
}

need_queue() { # what a scenario cannot do without: the NFQUEUE target, in a namespace that nobody else uses
    ip netns exec "$1" iptables -w 5 -t mangle -A POSTROUTING -o lo -j NFQUEUE --queue-num 1 --queue-bypass \
        2>"$temporary/why" || fail "no NFQUEUE here: $(tail -n 1 "$temporary/why")"
    ip netns exec "$1" iptables -w 5 -t mangle -F POSTROUTING
}

make_direct() {
    make_namespace "$client"
    make_namespace "$server"
    make_cable "$client" up0 "$uplink_mac" "$server" dn0 "$server_mac" 2
    need_queue "$shaped"
    wait_for 'the link to come up' n1 ping -c 1 -W 1 "$server6"
}

make_forwarded() {
    shaped=$router
    make_namespace "$client"
    make_namespace "$router"
    make_namespace "$server"
    make_cable "$client" eth0 02:77:00:00:01:01 "$router" in0 02:77:00:00:01:02 1
    make_cable "$router" up0 "$uplink_mac" "$server" dn0 "$server_mac" 2
    ip -n "$client" route add default via 10.77.1.2
    ip -n "$client" route add default via fd77:1::2
    ip -n "$server" route add default via 10.77.2.1
    ip -n "$server" route add default via fd77:2::1
    need_queue "$shaped"
    wait_for 'the link to come up' n1 ping -c 1 -W 1 "$server6"
}

wait_for() { # WHAT COMMAND...: for 10 s
    local what=$1 try
    shift
    for try in {1..100}; do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.1
    done
    fail "waited 10 s for $what ($try tries)"
}

# --- the shaper ------------------------------------------------------------------------------------------------------

# Writes a policy for up0 with one default class. Further lines of the class may follow.
one_class() { # RATE [LINE...]
    printf '%s\n' 'version = 1' '[[link]]' 'name = "uplink"' 'interface = "up0"' \
        '[[class]]' 'name = "all"' 'link = "uplink"' 'default = true' "rate = \"$1\"" "${@:2}" >"$temporary/policy.toml"
    echo "$temporary/policy.toml"
}

# Writes the policy that stands on standard input.
policy() {
    cat >"$temporary/policy.toml"
    echo "$temporary/policy.toml"
}

# Writes a policy for up0 with a rate for the whole link and one class without a rate of its own.
one_link() { # RATE
    policy <<EOF
version = 1
[[link]]
name = "uplink"
interface = "up0"
rate = "$1"
[[class]]
name = "all"
link = "uplink"
default = true
EOF
}

start_shaper() { # POLICY [OPTION...]
    [ -x "$build_folder/shaper" ] || fail "no shaper in $build_folder: build it first (tests/run does)"
    shaper_runs=yes
    shaper up "$@" >"$temporary/up" 2>&1 || fail "shaper up: $(tail -n 3 "$temporary/up")"
    shaper_is_up || fail 'shaper up succeeded, but no daemon shapes here'
}

# A daemon answers, shapes, and finds its rules.
shaper_is_up() {
    shaper status --json 2>/dev/null | jq -e '.mode == "shaping" and .rules == "present"' >/dev/null
}

stop_shaper() {
    shaper down >"$temporary/down" 2>&1 || fail "shaper down: $(tail -n 3 "$temporary/down")"
    shaper_runs=no
}

# Process ids of every daemon process in the shaped namespace, the supervisor first: none of them is its parent. Numbers
# begin anew at 32768, so the lowest one may be anybody's.
daemon_pids() {
    local pid comm parent rank
    for pid in $(ip netns pids "$shaped"); do
        comm=$(cat "/proc/$pid/comm" 2>/dev/null) || continue
        [ "$comm" = shaperd ] || continue
        parent=$(awk '{ print $4 }' "/proc/$pid/stat" 2>/dev/null) || continue
        rank=1
        [ "$(cat "/proc/$parent/comm" 2>/dev/null)" != shaperd ] || rank=2
        echo "$rank $pid"
    done | sort -n | cut -d ' ' -f 2
}

supervisor_pid() {
    local pids
    mapfile -t pids < <(daemon_pids)
    echo "${pids[0]:?no daemon runs}"
}
worker_pid() { pgrep -P "$(supervisor_pid)" -f -- '^shaperd --worker '; }

daemon_is_gone() { [ -z "$(daemon_pids)" ]; }

# Our chains in both families and both back ends, as text; empty when nothing of ours is left.
rules_left() {
    local save
    for save in iptables-nft-save ip6tables-nft-save iptables-legacy-save ip6tables-legacy-save; do
        ip netns exec "$shaped" "$save" 2>/dev/null | grep shaper || true
    done
}

# A field of one class in status: class_field FIELD [CLASS]
class_field() {
    shaper status --json | jq -r --arg name "${2:-all}" ".classes[] | select(.name == \$name) | $1"
}

backlog_is_above() { # PACKETS [CLASS]
    [ "$(class_field .backlog_packets "${2:-all}")" -gt "$1" ]
}

# shellcheck source=netns-scripts/traffic.sh
. "$scripts/traffic.sh"
