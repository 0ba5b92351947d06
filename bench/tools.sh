# The shapers that are compared: ours, tbf and htb, each set the way that serves it best. Sourced by the benchmarks.
# shellcheck shell=bash
# shellcheck source=netns-scripts/lib.sh
. "$(dirname "$0")/../netns-scripts/lib.sh"

burst_for() { # RATE_BPS: bytes of 4 ms, 5 kB at least
    local bytes=$(($1 * 4 / 8000))
    echo $((bytes > 5000 ? bytes : 5000))
}

shape() { # TOOL RATE_BPS
    local burst
    burst=$(burst_for "$2")
    case $1 in
        shaper) start_shaper "$(one_class "${2}bit")" ;;
        tbf) tc -n "$shaped" qdisc replace dev up0 root tbf rate "${2}bit" burst "$burst" latency 50ms ;;
        htb)
            tc -n "$shaped" qdisc replace dev up0 root handle 1: htb default 1
            # Its default burst costs 11 % at 5 Gbit/s.
            tc -n "$shaped" class replace dev up0 parent 1: classid 1:1 htb rate "${2}bit" burst "$burst" cburst "$burst"
            ;;
    esac
}

# That the tool really shapes, before a figure is printed (measure checks ours).
shape_holds() { # TOOL
    [ "$1" = shaper ] && shaper_is_up && return
    tc -n "$shaped" qdisc show dev up0 root | grep -q "qdisc $1"
}

unshape() { # TOOL
    end_bulk
    case $1 in
        shaper) stop_shaper ;;
        tbf | htb) tc -n "$shaped" qdisc delete dev up0 root ;;
    esac
}
