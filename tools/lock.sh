#!/usr/bin/env bash
# Resolves requirements/*.in into the locks, with hashes. Pins that still fit stay; `--upgrade` takes the newest.
set -euo pipefail
checkout="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
# shellcheck source=tools/lib/messages.sh
. "$checkout/tools/lib/messages.sh"
# shellcheck source=tools/lib/stack.sh
. "$checkout/tools/lib/stack.sh"
# shellcheck source=tools/lib/uv.sh
. "$checkout/tools/lib/uv.sh"
need_uv
cd "$checkout/requirements"

resolve() { # NAME OPTIONS...
    local name="$1"
    shift
    "$UV" pip compile --quiet --generate-hashes --custom-compile-command 'make lock' "$@" --output-file "$name.lock" "$name.in"
    say "requirements/$name.lock: $(grep -c '^[a-z0-9].*==' "$name.lock") packages"
}

resolve current --universal --python-version 3.11 "$@"
# The same versions without the development tools; these plus CUDA; these plus libtpu.
resolve image --universal --python-version 3.11 --constraints current.lock "$@"
resolve image-gpu --universal --python-version 3.11 --constraints current.lock "$@"
resolve image-tpu --universal --python-version 3.11 --constraints current.lock "$@"
# The site of the documentation.
resolve docs --universal --python-version 3.10 "$@"
resolve fallback --python-version 3.10 --python-platform x86_64-manylinux_2_28 "$@"
