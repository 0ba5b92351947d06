# A terminal for full-screen programs in the shaped namespace, by tmux: typed into, and read from. Sourced, not run.
# shellcheck shell=bash
# shellcheck disable=SC2154 # lib.sh sets the rest

in_tmux() { ip netns exec "$shaped" env -u TMUX TMUX_TMPDIR="$temporary" LC_ALL=C.UTF-8 tmux -f /dev/null "$@"; }

# A shell in a terminal of that size; at_end must call close_terminal.
open_terminal() { # COLUMNS ROWS
    in_tmux new-session -d -s t -x "$1" -y "$2" \
        "env PS1='prompt> ' SHAPER='$build_folder/shaper' LC_ALL=C.UTF-8 TERM=screen-256color bash --norc --noprofile"
    in_tmux set-option -t t status off
    in_tmux resize-window -t t -x "$1" -y "$2"
    wait_for 'the shell' shows 'prompt>'
}
close_terminal() { in_tmux kill-server 2>/dev/null || true; }

keys() { in_tmux send-keys -t t "$@"; }
# Words, letter by letter, and Enter.
enter() {
    in_tmux send-keys -t t -l "$1"
    in_tmux send-keys -t t Enter
}
resize() { in_tmux resize-window -t t -x "$1" -y "$2"; } # COLUMNS ROWS

screen() { in_tmux capture-pane -p -t t; }
shows() { screen | grep -Eq -- "$1"; } # REGEX
# The process of that name.
in_terminal() { pgrep -t "$(in_tmux display-message -p -t t '#{pane_tty}' | sed 's|^/dev/||')" -x "$1"; }
full_screen() { [ "$(in_tmux display-message -p -t t '#{alternate_on}')" = 1 ]; }

# Within 20 s.
sees() { # SENTENCE REGEX
    local try
    for try in {1..200}; do
        if shows "$2"; then break; fi
        sleep 0.1
    done
    check "$1" shows "$2" || true
    shows "$2" || { printf 'no /%s/ after %d looks at:\n' "$2" "$try" && screen; }
}
