# shellcheck shell=bash
# Debian packages that a script of tools/ needs. Sourced.

need_packages() { # DEBIAN PACKAGES
    dpkg -s "$@" >/dev/null 2>&1 && return
    command -v apt-get >/dev/null || fail 2 "missing: some of $*. Install them with your package manager."
    DEBIAN_FRONTEND=noninteractive apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
