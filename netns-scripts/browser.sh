# A headless Chromium in the shaped namespace, and questions to the page that it shows. Sourced behind lib.sh, not run.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # results are left in variables for the scenarios; lib.sh sets the rest

# The browser and its driver, in their own folder of what they leave.
start_browser() {
    mkdir -p "$temporary/browser"
    coproc browser {
        exec ip netns exec "$shaped" timeout -k 5 200 env HOME="$temporary/browser" TMPDIR="$temporary/browser" \
            "$scripts/browser.py" 2>"$temporary/browser-errors"
    }
    background+=("$browser_PID")
    exec {to_browser}>&"${browser[1]}" {from_browser}<&"${browser[0]}" # those of a coprocess are not for subshells
    browser_answer
    [ "$answer" = '"ready"' ] || fail "no browser: $(tail -n 2 "$temporary/browser-errors")"
}

end_browser() {
    local pid=$browser_PID
    exec {to_browser}>&- {from_browser}<&-
    eval "exec ${browser[1]}>&-"
    wait "$pid" 2>/dev/null || true
}

browser_answer() {
    read -r -t 60 -u "$from_browser" answer || fail "the browser does not answer: $(tail -n 2 "$temporary/browser-errors")"
}

# Does what browser.py knows; the value is left in `answer`, as JSON.
browse() { # COMMAND [WORD...]
    printf '%s\n' "$*" >&"$to_browser"
    browser_answer
    [[ $answer != '{"error"'* ]] || fail "the browser, asked to $*: ${answer:0:300}"
}

page_says() { # EXPRESSION: it is true in the page
    browse js "$1"
    [ "$answer" = true ]
}

page_text() { browse js "document.querySelector('$1').textContent"; jq -r . <<<"$answer"; } # SELECTOR
