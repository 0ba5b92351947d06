# Three hosts that share limits on a real Redis, and what can be asked of them. Sourced, not run.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # variables of and for the scenarios; lib.sh sets the rest
#
#   h1, h2, h3, each:  up0 ── dn1, dn2, dn3 of n2, where bulk goes and the total is judged
#                      re0 ── rd1, rd2, rd3 of n3, where Redis runs
# shellcheck source=netns-scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

hosts=(shaper-$$-h1 shaper-$$-h2 shaper-$$-h3)
rate=30000000 limit_rate=30mbit
same_name='' # of all hosts
redis_pid='' redis_port=6379

make_cluster() {
    local i
    make_namespace "$server"
    make_namespace "$router"
    for i in 1 2 3; do
        make_namespace "${hosts[i - 1]}"
        make_cable "${hosts[i - 1]}" up0 02:77:00:00:2$i:01 "$server" dn$i 02:77:00:00:2$i:02 2$i
        make_cable "${hosts[i - 1]}" re0 02:77:00:00:3$i:01 "$router" rd$i 02:77:00:00:3$i:02 3$i
    done
    need_queue "${hosts[0]}"
}

start_redis() {
    ip netns exec "$router" timeout 600 redis-server --port 6379 --bind 0.0.0.0 --protected-mode no --save '' \
        --appendonly no --maxmemory-policy noeviction >/dev/null 2>&1 </dev/null &
    background+=($!)
    wait_for 'Redis' redis PING
    redis_pid=$(ip netns pids "$router" | while read -r pid; do
        [ "$(cat "/proc/$pid/comm")" != redis-server ] || echo "$pid"; done)
}
redis() { ip netns exec "$router" timeout 5 redis-cli "$@"; }
end_redis() { kill -9 "$redis_pid"; wait_for 'the end of Redis' redis_is_gone; }
redis_is_gone() { ! kill -0 "$redis_pid" 2>/dev/null; }

on() { shaped=${hosts[$1 - 1]}; client=$shaped; } # NUMBER of the host that the next commands are for

cluster_policy() { # NUMBER [LINE of the limit...]
    local file=$temporary/host$1.toml
    printf '%s\n' 'version = 1' '[cluster]' "redis = \"redis://10.77.3$1.2:$redis_port\"" \
        "host = \"${same_name:-h$1}\"" 'hosts = 3' \
        '[[link]]' 'name = "uplink"' 'interface = "up0"' \
        '[[limit]]' 'name = "tenant"' "rate = \"$limit_rate\"" 'scope = "cluster"' "${@:2}" \
        '[[class]]' 'name = "all"' 'link = "uplink"' 'default = true' 'limits = ["tenant"]' 'ceil = "link"' >"$file"
    echo "$file"
}

start_hosts() { # [LINE of the limit...]
    local i
    for i in 1 2 3; do
        on $i
        start_shaper "$(cluster_policy $i "$@")"
    done
}
stop_hosts() {
    local i
    for i in 1 2 3; do on $i; stop_shaper; done
}
at_end() {
    local i
    for i in 1 2 3; do on "$i"; shaper down >/dev/null 2>&1; done
    shaper_runs=no
}

bulk_from() { on "$1"; tcp_bulk cubic "10.77.2$1.2"; bulk_of[$1]=$!; }
declare -A bulk_of
end_bulk_of() { kill "${bulk_of[$1]}" 2>/dev/null; wait "${bulk_of[$1]}" 2>/dev/null || true; }

total() { # SECONDS: sets rate_bps
    read -r rate_bps _ _ _ < <(n2 "$scripts/../bench/judge.py" "$1" --interface dn1 dn2 dn3)
}
one() { # NUMBER SECONDS: sets rate_bps
    read -r rate_bps _ _ _ < <(n2 "$scripts/../bench/judge.py" "$2" --interface "dn$1")
}
state_of() { on "$1"; shaper status --json | jq -r '.limits[0].state'; }
is_leased() { [ "$(state_of "$1")" = leased ]; }
all_are() { [ "$(state_of 1)/$(state_of 2)/$(state_of 3)" = "$1/$1/$1" ]; } # STATE

# A bad way to Redis, at port 6380.
way() { echo "$*" >"$temporary/mode"; } # WORD... of redis_proxy.py
start_proxy() {
    way delay=0
    ip netns exec "$router" timeout 300 "$scripts/redis_proxy.py" 6380 6379 "$temporary/mode" >/dev/null 2>&1 </dev/null &
    background+=($!)
}
