# The shapers that are compared: ours, tbf and htb, each set the way that serves it best. Sourced by the benchmarks.
# shellcheck shell=bash
# shellcheck source=netns-scripts/lib.sh
. "$(dirname "$0")/../netns-scripts/lib.sh"

# What this kernel has, after a topology was made: leaves tools.
find_tools() {
    tools=(shaper shaper+fifo tbf htb)
    shape htb 1000000
    if tc -n "$shaped" qdisc replace dev up0 parent 1:1 fq_codel 2>/dev/null; then
        tools+=(htb+fq_codel)
    else
        echo 'htb with fq_codel is not compared: this kernel has no fq_codel.'
    fi
    unshape htb
}

ours() { # TOOL
    [ "${1%%+*}" = shaper ]
}

burst_for() { # RATE_BPS: bytes of 4 ms, 5 kB at least
    local bytes=$(($1 * 4 / 8000))
    echo $((bytes > 5000 ? bytes : 5000))
}

shape() { # TOOL RATE_BPS
    local burst
    burst=$(burst_for "$2")
    case $1 in
        shaper) start_shaper "$(one_link "${2}bit")" ;;
        shaper+fifo)
            sed 's/^version = 1/&\nrealtime = true/' "$(one_link "${2}bit")" >"$temporary/fifo.toml"
            start_shaper "$temporary/fifo.toml"
            ;;
        tbf) tc -n "$shaped" qdisc replace dev up0 root tbf rate "${2}bit" burst "$burst" latency 50ms ;;
        htb | htb+fq_codel)
            tc -n "$shaped" qdisc replace dev up0 root handle 1: htb default 1
            # Its default burst costs 11 % at 5 Gbit/s; the quantum says nothing where there is one class.
            tc -n "$shaped" class replace dev up0 parent 1: classid 1:1 htb rate "${2}bit" burst "$burst" \
                cburst "$burst" quantum 1514
            [ "$1" = htb ] || tc -n "$shaped" qdisc replace dev up0 parent 1:1 fq_codel
            ;;
    esac
}

# That the tool really shapes, before a figure is printed.
shape_holds() { # TOOL
    if ours "$1"; then
        shaper_is_up
    else
        tc -n "$shaped" qdisc show dev up0 root | grep -q "qdisc ${1%%+*}"
    fi
}

unshape() { # TOOL
    end_bulk
    if ours "$1"; then stop_shaper; else tc -n "$shaped" qdisc delete dev up0 root; fi
}
