# What makes a root folder with Debian 12. Sourced by the tests of this folder, not run; `stop SENTENCE` is theirs.
# shellcheck shell=bash

install_tools() { # PACKAGE...
    local package missing=()
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null)" = 'install ok installed' ] || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] ||
        DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null
}

# Where this machine has Debian 12 from, as lines of a sources.list.
package_sources() {
    apt-get indextargets --format "\$(ORIGIN) \$(CODENAME) deb \$(REPO_URI) \$(RELEASE) \$(COMPONENT)" 'Created-By: Packages' |
        sed -En 's/^Debian bookworm[^ ]* (deb .*)/\1/p' | sort -u
}

# What a package depends on: the first of alternatives, without versions.
dependencies() { # PACKAGE
    dpkg-deb --field "$1" Depends | tr ',' '\n' | sed 's/[|(].*//; s/ //g'
}

make_root() { # FOLDER LOG PACKAGE...
    local sources packages=("${@:3}")
    sources=$(package_sources)
    [ -n "$sources" ] || stop "apt knows no source of Debian 12 (bookworm): run 'apt-get update', or see /etc/apt"
    mmdebstrap --quiet --variant=minbase --include="$(IFS=,; echo "${packages[*]}")" bookworm "$1" - <<<"$sources" >"$2" 2>&1 ||
        { tail -n 20 "$2"; stop "no Debian 12 in $1"; }
}
