#!/usr/bin/env bash
# same_bytes.sh FOLDER COMMAND...: ingests the same images on this checkout's stack and, through COMMAND, on that of the
# copy in FOLDER. Shards, index, ledger and manifest must be the same bytes; build.json and lineage.json may differ.
set -euo pipefail

shardwright="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)/.venv/bin/shardwright"
copy="$1"
shift

config() { # TASK
    if [ "$1" = segmentation ]; then
        printf '%s\n' 'task: segmentation' 'input:' '  images: two-stacks/segmentation/train_images' \
            '  labels: {path: two-stacks/segmentation/train.csv}'
    else
        printf '%s\n' 'task: classification' 'input:' '  images: two-stacks/classification'
    fi
    printf '%s\n' 'shards: {count: 2}'
}

cd "$copy"
mkdir -p two-stacks/classification/even two-stacks/classification/odd
"$shardwright" sample --out two-stacks/segmentation --count 48 --height 175 --width 263
even=0
for image in two-stacks/segmentation/train_images/*.jpg; do
    even=$((1 - even))
    cp "$image" "two-stacks/classification/$([ "$even" = 1 ] && echo even || echo odd)/"
done
for task in segmentation classification; do
    config "$task" >"two-stacks/$task.yaml"
    "$shardwright" ingest "two-stacks/$task.yaml" --out "two-stacks/$task-here"
    "$@" .venv/bin/shardwright ingest "two-stacks/$task.yaml" --out "two-stacks/$task-there"
    diff -r --exclude build.json --exclude lineage.json "two-stacks/$task-here" "two-stacks/$task-there"
    shards="$(find "two-stacks/$task-here" -name '*.tfrecord' -size +0 | wc -l)"
    [ "$shards" -gt 0 ] || { printf '%s: there was nothing to compare\n' "$task" && exit 1; }
    printf '%s: manifest, ledger, index and %s shards are the same bytes on both stacks\n' "$task" "$shards"
done
