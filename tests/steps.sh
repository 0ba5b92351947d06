# Shared by tests/run, .ci/run and the demo: who runs what, and how long each stage took. Sourced, not run.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
stage_names=() stage_results=() stage_seconds=()

# Runs a command as the owner of the checkout, so that root leaves no files of its own in it.
as_owner() {
    local owner group
    owner=$(stat -c %u "$root")
    group=$(stat -c %g "$root")
    if [ "$(id -u)" -eq 0 ] && [ "$owner" -ne 0 ]; then
        setpriv --reuid "$owner" --regid "$group" --clear-groups "$@"
    else
        "$@"
    fi
}

# Runs a command as root.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo 'no root: network namespaces and NFQUEUE need it; run this as root or install sudo' >&2
        return 1
    fi
}

# Configures and builds one preset (see CMakePresets.json); options go to the configuration.
build() { # PRESET [OPTION...]
    (cd "$root" && as_owner cmake --preset "$@" && as_owner cmake --build --preset "$1" --parallel "$(nproc)")
}

# Runs a command as a stage: prints its seconds, remembers whether it failed, and goes on.
stage() { # NAME COMMAND...
    local name=$1 begin=$EPOCHREALTIME result=ok
    shift
    printf -- '--- %s\n' "$name"
    "$@" || result=FAILED
    stage_names+=("$name")
    stage_results+=("$result")
    stage_seconds+=("$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')")
    printf -- '--- %s: %s, %s s\n' "$name" "$result" "${stage_seconds[-1]}"
    [ "$result" = ok ]
}

# The table at the end.
print_stages() {
    local i
    printf '\n%-28s %-7s %s\n' stage result seconds
    for i in "${!stage_names[@]}"; do
        printf '%-28s %-7s %7s\n' "${stage_names[i]}" "${stage_results[i]}" "${stage_seconds[i]}"
    done
}
