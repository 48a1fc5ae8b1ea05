#!/usr/bin/env bash
# bare.sh [PYTHON]: installs the wheel into an empty environment, as `pip install shardwright` does, and runs the commands that
# need no extra. Prints how many packages that takes and how large they are.
set -euo pipefail

tools="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
checkout="$(dirname "$tools")"
# shellcheck source=tools/lib/messages.sh
. "$tools/lib/messages.sh"
# shellcheck source=tools/lib/uv.sh
. "$tools/lib/uv.sh"
need_uv

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
python="${1:-$checkout/.venv/bin/python}"
# Built from an sdist, as an index serves it.
(
    cd "$checkout"
    "$UV" build --quiet --no-build-isolation --python "$checkout/.venv/bin/python" --out-dir "$scratch/dist" .
)
"$UV" venv --quiet --python "$python" "$scratch/venv"
before="$(du -sm "$scratch/venv" | cut -f 1)"
"$UV" pip install --quiet --python "$scratch/venv/bin/python" "$scratch"/dist/*.whl
packages="$("$UV" pip list --quiet --python "$scratch/venv/bin/python" --format freeze | wc -l)"
megabytes="$(($(du -sm "$scratch/venv" | cut -f 1) - before))"

cd "$scratch"
run() { # ARGUMENTS...: a command that must succeed
    "$scratch/venv/bin/shardwright" "$@" >"$scratch/log" 2>&1 || {
        cat "$scratch/log"
        fail 1 "shardwright $1 does not run on the base installation"
    }
}
run sample data --images 24 --height 96 --width 128
cat >c.yaml <<'END'
task: segmentation
input:
  images: data/train_images
  labels: {path: data/train.csv}
  classes: [Fish, Flower, Gravel, Sugar]
images: {verify: full}
END
run ingest c.yaml --out dataset
run verify dataset --deep
run stats dataset
run report dataset --out report.html
run inspect dataset
key="$("$scratch/venv/bin/python" -c 'import shardwright; print(shardwright.ImageDataset.open("dataset").keys("train")[0])')"
run get dataset "$key"
run drift dataset data/train_images
run export dataset --out files
run subset dataset --count 5 --out five
run reshard dataset --shard-count 2 --out two
run merge five --out merged
run diff dataset two
printf '%s\n' "$key" >keys
run forget dataset --keys keys --out without
run relabel dataset data/train.csv --out relabelled
run lineage dataset
# Without the extra, one line says what to install.
for call in 'run c.yaml' 'ingest gs.yaml --out other'; do
    sed 's|data/train_images|gs://bucket/images|' c.yaml >gs.yaml
    # shellcheck disable=SC2086 # words of a call
    if "$scratch/venv/bin/shardwright" $call >"$scratch/log" 2>&1 || ! grep -q "pip install 'shardwright\[" "$scratch/log"; then
        cat "$scratch/log"
        fail 1 "shardwright $call does not name the extra that it needs"
    fi
done
printf '%s: %s packages, %s MB\n' "$("$scratch/venv/bin/python" --version)" "$packages" "$megabytes"
[ "$packages" -le 12 ] && [ "$megabytes" -le 150 ] || fail 1 "the base installation may take 12 packages and 150 MB"
