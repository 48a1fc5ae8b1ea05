# shellcheck shell=bash disable=SC2034,SC2154 # sets and reads variables of the script that sources it
# Which stack this machine can run, and with which interpreter. Sourced; wants $checkout, messages.sh and uv.sh.
#
# ml-metadata and TFDV of the current stack ship wheels for glibc 2.39 only; older hosts get the fallback stack, whose
# newest Python is 3.10. Interpreters are looked for on PATH, under pyenv, and then with uv, which may download one.

current_glibc=2.39
fallback_glibc=2.28 # requirements/fallback.lock is resolved for it
current_pythons="3.13 3.12 3.11"
fallback_pythons="3.10"

at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; } # VERSION MINIMUM

glibc_version() { { getconf GNU_LIBC_VERSION 2>/dev/null || true; } | sed -n 's/^glibc //p'; } # nothing where it is another libc

require_platform() {
    local machine glibc
    machine="$(uname -s)/$(uname -m)"
    glibc="$(glibc_version)"
    [ "$machine" = Linux/x86_64 ] ||
        fail 2 "this is $machine; TFX has packages for Linux on x86_64 only. Use such a machine, or a container of it."
    if [ -z "$glibc" ] || ! at_least "$glibc" "$fallback_glibc"; then
        fail 2 "this system has glibc ${glibc:-none}; TFX needs $fallback_glibc or newer. Use a newer system, or a container of it."
    fi
}

require_build_tools() {
    local tool missing=""
    for tool in g++ make; do
        command -v "$tool" >/dev/null || missing="$missing $tool"
    done
    [ -z "$missing" ] ||
        fail 2 "missing:$missing. Some packages of TFX are compiled during the installation. Get it and run it again:" \
            "    $(install_command "g++ make" "gcc-c++ make")"
}

# choose_stack: sets STACK, PYTHON and REASON, or ends with the commands that get an interpreter.
choose_stack() {
    local glibc wanted="${SHARDWRIGHT_STACK:-}" why
    glibc="$(glibc_version)"
    HEADERLESS=""
    case "$wanted" in
        "" | current | fallback) ;;
        *) fail 2 "SHARDWRIGHT_STACK is '$wanted'. Use current or fallback, or leave it out." ;;
    esac
    if ! at_least "$glibc" "$current_glibc"; then
        [ "$wanted" != current ] ||
            fail 2 "SHARDWRIGHT_STACK=current needs glibc $current_glibc; this system has $glibc. Use fallback, or a newer system."
        why="glibc $glibc is older than the $current_glibc that the current stack needs"
    elif [ "$wanted" = fallback ]; then
        why="SHARDWRIGHT_STACK asks for it"
    else
        if find_python "$current_pythons"; then
            STACK=current REASON="glibc $glibc is $current_glibc or newer, and this Python is one of $current_pythons"
            return
        fi
        [ -z "$wanted" ] || no_python "$current_pythons"
        why="glibc $glibc would do for the current stack, but no Python of $current_pythons with headers was found"
    fi
    find_python "$fallback_pythons" || no_python "$(at_least "$glibc" "$current_glibc" && [ -z "$wanted" ] && printf '%s ' "$current_pythons")$fallback_pythons"
    STACK=fallback REASON="$why"
}

# find_python VERSIONS: sets PYTHON to the first usable interpreter of them, in their order.
find_python() {
    local version candidate
    for version in $1; do
        while IFS= read -r candidate; do
            usable "$candidate" "$version" && return
        done < <(
            type -aP "python$version" python3 || true
            for candidate in "${PYENV_ROOT:-${HOME:-}/.pyenv}/versions/$version".*/bin/python "$checkout/.tools/python/cpython-$version".*/bin/python3; do
                [ -x "$candidate" ] && printf '%s\n' "$candidate"
            done
        )
    done
    need_uv
    for version in $1; do
        candidate="$("$UV" python find --quiet --no-project --no-python-downloads "$version" 2>/dev/null)" &&
            usable "$candidate" "$version" && return
    done
    for version in $1; do
        say "set-up: no Python $version with headers here: trying to have uv install one into .tools/python"
        UV_PYTHON_INSTALL_DIR="$checkout/.tools/python" "$UV" python install --no-bin "$version" &&
            candidate="$(UV_PYTHON_INSTALL_DIR="$checkout/.tools/python" "$UV" python find --quiet --no-project --managed-python "$version")" &&
            usable "$candidate" "$version" && return
        break # what keeps uv from fetching one version keeps it from the others too
    done
    return 1
}

# usable CANDIDATE VERSION: runs it, and sets PYTHON to the interpreter behind it (behind a shim or an activated environment).
usable() {
    local answer
    answer="$("$1" -I -c '
import os, sys, sysconfig
fits = "%d.%d" % sys.version_info[:2] == sys.argv[1] and sys.implementation.name == "cpython" and sys.maxsize > 2**32
fits = fits and not sysconfig.get_config_var("Py_GIL_DISABLED")
headers = os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
print("no" if not fits else "usable" if headers else "headerless", getattr(sys, "_base_executable", sys.executable))' "$2" 2>/dev/null)" || return 1
    case "$answer" in
        "usable "*) PYTHON="${answer#usable }" ;;
        "headerless "*)
            HEADERLESS="$HEADERLESS${HEADERLESS:+, }${answer#headerless } ($2)"
            return 1
            ;;
        *) return 1 ;;
    esac
}

no_python() { # VERSIONS
    local newest="${1%% *}" lines=()
    [ -z "$HEADERLESS" ] || lines+=("Found without the headers (Python.h) that some packages need to be compiled: $HEADERLESS. They come with:" \
        "    $(install_command python3-dev python3-devel)        for the system's own python3")
    fail 2 "no usable Python. Needed: CPython $(printf '%s' "$1" | sed 's/ /, /g'), with its headers, on PATH, under pyenv or known to uv." \
        ${lines[@]+"${lines[@]}"} \
        "Any one of these gets one (then run it again):" \
        "    \"$UV\" python install $newest" \
        "    pyenv install $newest" \
        "    $(install_command "python$newest-dev" "python$newest-devel")        where the distribution has it"
}
