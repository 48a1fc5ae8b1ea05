#!/usr/bin/env bash
# Tests this checkout on the stack that .venv does not have: set-up, the tests of `make test`, and the same data sets
# ingested on both stacks, compared byte by byte.
#
# The current stack runs in a Debian 13 system (tools/debian13), the fallback stack next to this one. Each has a copy of the
# working tree that keeps its .venv from call to call.
set -euo pipefail

tools="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
checkout="$(dirname "$tools")"
# shellcheck source=tools/lib/cache.sh
. "$tools/lib/cache.sh"

this="$(sed -n 's/^stack=//p' "$checkout/.venv/shardwright.stamp")"
if [ "$this" = fallback ]; then
    other=current
    copy="$("$tools/debian13" --path)"
    inside=("$tools/debian13")
else
    other=fallback
    copy="$cache/fallback"
    mkdir -p "$copy"
    inside=(env --chdir "$copy")
fi
export SHARDWRIGHT_STACK="$other"

step() { # NAME COMMAND...
    local name="$1"
    shift
    "$tools/timed" "$other stack: $name" "$@"
}

# The files of the working tree, without what git ignores; of a checkout that came without git, without what set-up and tests make.
list_files() {
    if [ -e "$checkout/.git" ]; then
        git -C "$checkout" -c safe.directory='*' ls-files -z --cached --others --exclude-standard
    else
        (cd "$checkout" && find . \( -name __pycache__ -o -name '*.egg-info' -o -path ./.venv -o -path ./.tools -o -path './.*_cache' \
            -o -path ./.hypothesis -o -path ./build -o -path ./dist -o -path ./demo-data -o -path ./shardwright-runs \) \
            -prune -o ! -type d -print0)
    fi
}

# .venv and .tools of an earlier call stay.
copy_tree() {
    find "$copy" -mindepth 1 -maxdepth 1 ! -name .venv ! -name .tools -exec rm -rf {} +
    list_files |
        (cd "$checkout" && while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done) |
        tar --create --null --no-recursion --directory "$checkout" --files-from - | tar --extract --no-same-owner --directory "$copy"
}

copy_tree
step set-up "${inside[@]}" tools/setup.sh
step 'base installation' "${inside[@]}" tools/bare.sh
step 'tests' "${inside[@]}" tools/run_tests other
step 'same bytes on both' "$tools/same_bytes.sh" "$copy" "${inside[@]}"
