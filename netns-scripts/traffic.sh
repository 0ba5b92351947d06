# Traffic from n1 to n2 and its judges: bulk by iperf3, small requests by echo.py. Sourced by lib.sh, not run.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # results are left in variables for the scenarios; lib.sh sets the rest

listens() { [ -n "$(n2 ss -Hln "$1" "sport = :$2")" ]; } # -t|-u PORT

# Starts one iperf3 with a server of its own, from n1 to n2, until end_bulk; its port is left in `port`.
start_bulk() { # ADDRESS [CLIENT OPTION...]
    port=$((next_port += 1))
    ip netns exec "$server" timeout 120 iperf3 -s -1 -p "$port" >/dev/null 2>&1 </dev/null &
    background+=($!)
    wait_for "iperf3 on port $port" listens -t "$port"
    ip netns exec "$client" timeout 120 iperf3 -c "$1" -p "$port" -t 100 --connect-timeout 5000 "${@:2}" \
        >"$temporary/bulk-$port" 2>&1 </dev/null &
    background+=($!)
    bulk+=($!)
}

tcp_bulk() { # CONGESTION_CONTROL [ADDRESS] [OPTION...]
    n1 sysctl -qn net.ipv4.tcp_available_congestion_control | grep -qw "$1" || modprobe "tcp_$1" 2>/dev/null ||
        fail "this kernel has no TCP $1"
    start_bulk "${2:-$server4}" -C "$1" "${@:3}"
}

udp_bulk() { # BITS_PER_SECOND [ADDRESS] [OPTION...]
    start_bulk "${2:-$server4}" -u -b "$1" -l 1400 "${@:3}"
}

# Unpaced datagrams, for rates that iperf3 cannot fill; n2 counts them at dn0 and drops them there.
udp_flood() { # [ADDRESS] [PAYLOAD_BYTES] [PER_SECOND] [SEGMENT_BYTES]
    local family=iptables
    [[ ${1:-} != *:* ]] || family=ip6tables
    [ -x "$build_folder/bench/flood" ] || fail "no flood in $build_folder/bench: build it first (tests/run does)"
    n2 $family -w 5 -t raw -C PREROUTING -p udp --dport 9 -j DROP 2>/dev/null ||
        n2 $family -w 5 -t raw -A PREROUTING -p udp --dport 9 -j DROP
    ip netns exec "$client" timeout 120 "$build_folder/bench/flood" "${1:-$server4}" 9 "${2:-1400}" "${@:3}" </dev/null &
    background+=($!)
    bulk+=($!)
}

bulk_runs() { # every sender still lives
    local pid
    [ ${#bulk[@]} -gt 0 ] || return 1
    for pid in "${bulk[@]}"; do
        kill -0 "$pid" 2>/dev/null || return 1
    done
}

end_bulk() {
    [ ${#bulk[@]} -eq 0 ] || { kill "${bulk[@]}" 2>/dev/null; wait "${bulk[@]}" 2>/dev/null; } || true
    bulk=()
}

# Judges at dn0; leaves rate_bps, excess_bytes and slice_bytes (0 without a rate) and packets_per_second.
judge() { # SECONDS [RATE_BPS]
    rate_bps='' excess_bytes='' slice_bytes='' packets_per_second=''
    read -r rate_bps excess_bytes slice_bytes packets_per_second \
        < <(n2 "$scripts/../bench/judge.py" "$1" --interface dn0 --rate "${2:-0}") || fail 'the judge failed'
}

# A crash looks like a huge rate and an idle link like a fine echo: so bulk must have run, and a shaper that was started
# must still be there.
measure() { # SECONDS [RATE_BPS]
    judge "$@"
    bulk_runs || fail "bulk traffic ended: $(tail -n 1 "$temporary"/bulk-*)"
    [ "$shaper_runs" = no ] || shaper_is_up || fail 'the shaper is gone, or its rules are'
}

# Never above depth + rate x t in slices of 100 ms. The most over all windows is printed beside it: a daemon that is
# interrupted between reading the clock and sending shows there by what passes in that time.
check_depth() { # WHAT DEPTH_BYTES
    check "$1: at most $slice_bytes of $2 bytes above the rate in 100 ms (in any window $excess_bytes)" \
        [ "$slice_bytes" -le "$2" ]
}

wire_rate() { # SECONDS: prints bit/s
    measure "$1"
    echo "$rate_bps"
}

# Bytes that a class of this rate may send at once: one full frame and 4 ms (CONTRACT, burst).
depth() { # RATE_BPS [BURST_MS]
    echo $((1514 + $1 * ${2:-4} / 8000))
}

start_echo_server() {
    ip netns exec "$server" timeout 3000 "$scripts/echo.py" serve 7777 >/dev/null 2>&1 </dev/null &
    background+=($!)
    wait_for 'the echo server' listens -t 7777
}

# Leaves p50_us, p99_us, max_us, samples and lost of small requests from n1 to n2; fails when no answer came.
ask_echo() { # [OPTION of echo.py...]
    local answer
    answer=$(n1 timeout 100 "$scripts/echo.py" ask "$server4" 7777 "$@") || return 1
    read -r p50_us p99_us max_us samples lost \
        < <(jq -r '"\(.p50_us) \(.p99_us) \(.max_us) \(.samples) \(.lost)"' <<<"$answer")
}

echo_probe() { # [OPTION of echo.py...]
    ask_echo "$@" || fail 'the echo probe got no answer'
    [ "$lost" -eq 0 ] || fail "the echo probe lost $lost requests"
}

milliseconds() { awk -v us="$1" 'BEGIN { printf "%.2f ms", us / 1000 }'; }

# The packets that n2 got out of order (TcpExtTCPOFOQueue).
out_of_order() { n2 nstat -asz TcpExtTCPOFOQueue | awk '$1 == "TcpExtTCPOFOQueue" { print $2 }'; }

# What the receivers in n2 got in payload: leaves rates (by port), total_bps and jain.
goodput() { # [--at TIME] SECONDS PORT...
    local answer
    answer=$(n2 "$scripts/goodput.py" "$@") || fail 'the receivers could not be read'
    bulk_runs || fail 'bulk traffic ended'
    shaper_is_up || fail 'the shaper is gone, or its rules are'
    mapfile -t rates < <(jq '.bps[]' <<<"$answer")
    read -r total_bps jain < <(jq -r '"\(.total_bps) \(.jain)"' <<<"$answer")
}

# The rate on the wire of a TCP's payload: 1448 bytes of each frame of 1514.
on_wire() { echo $(($1 * 1514 / 1448)); } # PAYLOAD_BPS

within_percent() { # PERCENT VALUE WANTED
    awk -v percent="$1" -v value="$2" -v wanted="$3" \
        'BEGIN { d = value - wanted; exit !((d < 0 ? -d : d) <= wanted * percent / 100) }'
}

# A numbered datagram stream; received, doubled, reordered, span_us (first to last arrival) and gap_us (longest between
# two) are left by wait_datagrams.
start_datagrams() { # COUNT [OPTION of datagrams.py send...]
    port=$((next_port += 1))
    ip netns exec "$server" timeout 60 "$scripts/datagrams.py" receive "$port" >"$temporary/datagrams" </dev/null &
    receiver=$!
    background+=("$receiver")
    wait_for 'the datagram receiver' listens -u "$port"
    ip netns exec "$client" timeout 60 "$scripts/datagrams.py" send "$server4" "$port" "$@" </dev/null &
    sender=$!
    background+=("$sender")
}

wait_datagrams() {
    wait "$sender" || fail 'the datagram sender failed'
    wait "$receiver" || fail 'the datagram receiver failed'
    read -r received doubled reordered span_us gap_us \
        < <(jq -r '"\(.received) \(.doubled) \(.out_of_order) \(.span_us) \(.gap_us)"' "$temporary/datagrams")
}

# The bare loop that accepts everything (bench/accept_all.cpp): what this machine carries through a packet queue at all.
start_accept_all() {
    local family queue=77
    [ -x "$build_folder/bench/accept_all" ] ||
        fail "no accept_all in $build_folder/bench: build it first (tests/run does)"
    ip netns exec "$shaped" timeout 120 "$build_folder/bench/accept_all" $queue </dev/null &
    loop=$!
    background+=("$loop")
    wait_for 'the accept-all loop' grep -q "^ *$queue " "/proc/$loop/net/netfilter/nfnetlink_queue"
    for family in iptables ip6tables; do
        ip netns exec "$shaped" $family -w 5 -t mangle -A POSTROUTING -o up0 -j NFQUEUE --queue-num $queue
    done
}

stop_accept_all() {
    local family
    kill -0 "$loop" 2>/dev/null || fail 'the accept-all loop died'
    for family in iptables ip6tables; do ip netns exec "$shaped" $family -w 5 -t mangle -F POSTROUTING; done
    kill "$loop"
    wait "$loop" 2>/dev/null || true
}

# The event log of the running daemon, into a file until end_log.
start_log() { # FILE
    ip netns exec "$shaped" timeout 120 "$build_folder/shaper" events >"$1" 2>"$temporary/why" </dev/null &
    log=$!
    background+=("$log")
    wait_for 'the event log' grep -q '^start ' "$1"
}

end_log() {
    sleep 0.5 # the last lines are on their way
    kill "$log" 2>/dev/null || true
    wait "$log" 2>/dev/null || true
}

# A log from the start of the daemon on: the same verdicts in a replay, which writes the same text.
log_replays() { # FILE: leaves the answer in `answer`
    answer=$("$build_folder/shaper" replay "$1" --events "$1.again" 2>&1) && cmp "$1" "$1.again"
}
