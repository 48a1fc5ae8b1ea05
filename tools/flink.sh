#!/usr/bin/env bash
# Runs a whole pipeline on a Flink cluster of this machine, kills one of its two task managers, and compares the results with a local run.
# `--help` lists the options.
set -euo pipefail
tools="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
# shellcheck source=tools/lib/cache.sh
. "$tools/lib/cache.sh"
exec "$tools/../.venv/bin/python" "$tools/flink/compare.py" --cache "$cache/flink" "$@"
