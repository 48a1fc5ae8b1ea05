#!/usr/bin/env bash
# same_bytes.sh FOLDER COMMAND...: ingests the same images on this checkout's stack and, through COMMAND, on that of the
# copy in FOLDER. All of a data set but build.json (which says what made it) must be the same bytes.
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
    printf '%s\n' 'shards: {count: 3}'
}

cd "$copy"
mkdir -p two-stacks/classification/even two-stacks/classification/odd
"$shardwright" sample two-stacks/segmentation --images 48 --height 175 --width 263
even=0
for image in two-stacks/segmentation/train_images/*.jpg; do
    even=$((1 - even))
    cp "$image" "two-stacks/classification/$([ "$even" = 1 ] && echo even || echo odd)/"
done
for task in segmentation classification; do
    config "$task" >"two-stacks/$task.yaml"
    "$shardwright" ingest "two-stacks/$task.yaml" --out "two-stacks/$task-here"
    "$@" .venv/bin/shardwright ingest "two-stacks/$task.yaml" --out "two-stacks/$task-there"
    diff -r --exclude build.json "two-stacks/$task-here" "two-stacks/$task-there"
    printf '%s: %s files are the same bytes on both stacks\n' "$task" \
        "$(find "two-stacks/$task-here" -type f ! -name build.json | wc -l)"
done
