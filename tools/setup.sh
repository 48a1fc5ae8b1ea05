#!/usr/bin/env bash
# Makes .venv in this checkout: picks the stack this machine can run, reports which and why, installs its complete lock.
#
#   tools/setup.sh            make .venv, or report that it is up to date
#   tools/setup.sh --which    only print: stack, interpreter and reason, separated by tabs
#
# SHARDWRIGHT_STACK=current|fallback forces a stack. UV_DEFAULT_INDEX or PIP_INDEX_URL name another package index.
# Exit codes: 0 done; 1 an installation failed; 2 this machine lacks something that the message names.
set -euo pipefail

tools="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
checkout="$(dirname "$tools")"
venv="$checkout/.venv"
stamp="$venv/shardwright.stamp"
recipe=1 # raise it when the steps below change, so that existing environments are made again

# shellcheck source=tools/lib/messages.sh
. "$tools/lib/messages.sh"
# shellcheck source=tools/lib/uv.sh
. "$tools/lib/uv.sh"
# shellcheck source=tools/lib/stack.sh
. "$tools/lib/stack.sh"

# What .venv was made from. The checkout's path is part of it: console scripts hold it, so a moved checkout needs a new one.
stamp_for() { # STACK
    printf 'stack=%s\nrecipe=%s\nglibc=%s\ncheckout=%s\ninputs=%s\n' "$1" "$recipe" "$(glibc_version)" "$checkout" \
        "$(cat "$checkout/requirements/$1.lock" "$checkout/setup.py" | sha256sum | cut -d ' ' -f 1)"
}

up_to_date() {
    local made
    [ -f "$stamp" ] || return 1
    made="$(sed -n 's/^stack=//p' "$stamp")"
    [ "${SHARDWRIGHT_STACK:-$made}" = "$made" ] || return 1
    [ -f "$checkout/requirements/$made.lock" ] && [ "$(stamp_for "$made")" = "$(cat "$stamp")" ] || return 1
    "$venv/bin/python" -c '' 2>/dev/null && [ -x "$venv/bin/shardwright" ]
}

install() {
    # Build requirements of the few packages without a wheel are held to the lock too, hashes included. Compiling all
    # bytecode here takes some 20 s once, and saves 14 s at the first import of TFX in every tool that writes no bytecode.
    "$UV" venv --quiet --clear --python "$PYTHON" "$venv" &&
        "$UV" pip install --quiet --python "$venv/bin/python" --compile-bytecode --require-hashes \
            --build-constraints "$checkout/requirements/$STACK.lock" -r "$checkout/requirements/$STACK.lock" &&
        "$UV" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --editable "$checkout"
}

if [ "${1:-}" = --which ]; then
    require_platform
    choose_stack
    printf '%s\t%s\t%s\n' "$STACK" "$PYTHON" "$REASON"
    exit 0
fi

if up_to_date; then
    say "set-up: .venv is up to date ($(sed -n 's/^stack=//p' "$stamp") stack)"
    exit 0
fi

# uv would clear the environment behind the link, which may be that of another checkout.
[ ! -L "$venv" ] || fail 2 "$venv is a link to an environment that was not made for this checkout. Remove the link."

require_platform
require_build_tools
choose_stack
need_uv
say "stack: $STACK, with $PYTHON: $REASON"
say "set-up: installing $(grep -c '^[a-z0-9].*==' "$checkout/requirements/$STACK.lock") locked packages into .venv (a minute or two)"
started=$SECONDS
rm -f "$stamp" # from here to its return, .venv is unfinished, and a call after an interruption starts again
install || fail 1 "the installation did not finish (see above). Mend the cause and run it again: nothing half-made is kept."
stamp_for "$STACK" >"$stamp.new" && mv "$stamp.new" "$stamp"
say "set-up: done in $((SECONDS - started)) s; the command is .venv/bin/shardwright"
