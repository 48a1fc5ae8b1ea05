# shellcheck shell=bash
# How the scripts in tools/ speak. Sourced.

say() { printf '%s\n' "$*" >&2; }

# fail CODE LINE...: one message, then the end.
fail() {
    local code="$1"
    shift
    printf 'shardwright: ' >&2
    printf '%s\n' "$@" >&2
    exit "$code"
}

# install_command DEBIAN FEDORA: how this machine's package manager installs one or the other list of packages.
install_command() {
    if command -v apt-get >/dev/null; then
        printf 'apt-get install -y %s' "$1"
    elif command -v dnf >/dev/null; then
        printf 'dnf install -y %s' "$2"
    else
        printf 'install with your package manager: %s' "$1"
    fi
}
