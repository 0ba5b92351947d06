# `shaper serve` in the shaped namespace, and requests to it. Sourced behind lib.sh, not run.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # results are left in variables for the scenarios; lib.sh sets the rest

address=127.0.0.1:9469
url=http://$address

serve() { # FILE [OPTION...]: as root, until the end; its process is left in `served`
    ip netns exec "$shaped" timeout 200 "$build_folder/shaper" serve "${@:2}" >"$1" 2>&1 </dev/null &
    server_job=$!
    background+=("$server_job")
    wait_for 'shaper serve' grep -q '^serving ' "$1"
    served=$(pgrep -P "$server_job" -f 'shaper serve')
}
end_serve() {
    kill "$served"
    wait "$server_job" || true
}
get() { n1 curl -sS --max-time 5 "$@"; }
code() { get -o /dev/null -w '%{http_code}' "$@"; }
says() { local body; body=$(get "${@:2}") && grep -q -- "$1" <<<"$body"; } # PATTERN CURL_OPTION...
answers() { [ "$(code "${@:2}")" = "$1" ]; } # CODE CURL_OPTION...
