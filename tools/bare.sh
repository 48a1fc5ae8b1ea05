#!/usr/bin/env bash
# Tests the base installation: the wheel in empty environments, with the newest and with the oldest versions that setup.py
# admits. In each, every command that needs no extra runs on a small dataset, and the others name the extra that they need.
#
#   bare.sh [PYTHON]          test with this interpreter (default: that of .venv)
#   bare.sh sizes [PYTHON]    print packages and megabytes of every extra, for docs/get-started/installation.md (downloads 10 GB)
set -euo pipefail

tools="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
checkout="$(dirname "$tools")"
# shellcheck source=tools/lib/messages.sh
. "$tools/lib/messages.sh"
# shellcheck source=tools/lib/stack.sh
. "$tools/lib/stack.sh"
# shellcheck source=tools/lib/uv.sh
. "$tools/lib/uv.sh"
need_uv

sizes=""
if [ "${1:-}" = sizes ]; then
    sizes=yes
    shift
fi
python="${1:-$checkout/.venv/bin/python}"
export PYTHONDONTWRITEBYTECODE="" # two dozen processes would each compile the same modules
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
# Built from an sdist, as an index serves it.
(cd "$checkout" && "$UV" build --quiet --no-build-isolation --python "$checkout/.venv/bin/python" --out-dir "$scratch/dist" .)
wheel="$(echo "$scratch"/dist/*.whl)"

requirements() { # EXTRA: what the wheel asks for, one requirement a line; `none` for no extra
    "$checkout/.venv/bin/python" - "$wheel" "$1" <<'PYTHON'
import email, sys, zipfile
from packaging.requirements import Requirement
with zipfile.ZipFile(sys.argv[1]) as wheel:
    text = wheel.read(next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")))
for line in email.message_from_bytes(text).get_all("Requires-Dist"):
    if "extra ==" not in line or Requirement(line).marker.evaluate({"extra": sys.argv[2]}):
        print(line.split(";")[0])
PYTHON
}

environment() { # NAME OPTIONS...: an environment with the wheel and what `uv pip install OPTIONS` brings
    local name="$1"
    shift
    "$UV" venv --quiet --python "$python" "$scratch/$name"
    before="$(du -sm "$scratch/$name" | cut -f 1)"
    "$UV" pip install --quiet --python "$scratch/$name/bin/python" --only-binary :all: "$@"
    "$UV" pip install --quiet --python "$scratch/$name/bin/python" --no-deps "$wheel"
    packages="$("$UV" pip list --quiet --python "$scratch/$name/bin/python" --format freeze | wc -l)"
    megabytes="$(($(du -sm "$scratch/$name" | cut -f 1) - before))"
}

if [ -n "$sizes" ]; then
    for extra in none gcs s3 parquet tf tfx kubeflow vertex all gpu tpu; do
        "$UV" venv --quiet --python "$python" "$scratch/sizes"
        before="$(du -sm "$scratch/sizes" | cut -f 1)"
        # For a glibc that TFX has packages for: nothing of it is started here.
        "$UV" pip install --quiet --python "$scratch/sizes/bin/python" --python-platform x86_64-manylinux_2_40 "shardwright[$([ $extra = none ] || echo $extra)] @ file://$wheel"
        printf '%-9s %4s packages %6s MB\n' "$extra" "$("$UV" pip list --quiet --python "$scratch/sizes/bin/python" --format freeze | wc -l)" \
            "$(($(du -sm "$scratch/sizes" | cut -f 1) - before))"
        rm -rf "$scratch/sizes"
    done
    exit 0
fi

run() { # ARGUMENTS...: a command that must succeed
    "$bin/shardwright" "$@" >"$scratch/log" 2>&1 || {
        cat "$scratch/log"
        fail 1 "shardwright $1 does not run on the base installation ($label)"
    }
    ran="$ran $1"
}

names() { # EXTRA ARGUMENTS...: a command that must fail, and name the extra that it needs
    local extra="$1"
    shift
    if "$bin/shardwright" "$@" >"$scratch/log" 2>&1 || ! grep -qF "pip install 'shardwright[$extra]'" "$scratch/log"; then
        cat "$scratch/log"
        fail 1 "shardwright $* does not name the extra $extra"
    fi
}

commands() { # every command of the base
    run sample --out data --count 24 --height 96 --width 128
    run init data/train_images data/train.csv --out init.yaml
    run init-pipeline project
    run docs reference/messages paths
    printf '%s\n' 'task: segmentation' 'input:' '  images: data/train_images' '  labels: {path: data/train.csv}' \
        '  classes: [Fish, Flower, Gravel, Sugar]' '  unlisted_images: empty' 'images: {verify: full}' >c.yaml
    run validate c.yaml --data
    run ingest c.yaml --out dataset
    run verify dataset --deep
    run stats dataset
    run report dataset --out report.html
    run card dataset --out card.md
    run inspect dataset
    local key image
    key="$("$bin/python" -c 'import shardwright; print(shardwright.ImageDataset.open("dataset").keys("train")[0])')"
    run get dataset "$key"
    run drift dataset data/train_images
    run export dataset --out files
    run subset dataset --count 5 --out five
    run reshard dataset --shard-count 2 --out two
    run merge five --out merged
    run diff dataset two
    printf '%s\n' "$key" >keys
    run forget dataset --keys keys --out without
    run relabel dataset data/train.csv --out relabeled
    run lineage dataset
    run doctor --json
    echo 'core_hour: 0.04' > prices.yaml
    run estimate c.yaml --target vertex --prices prices.yaml
    # A damaged file is rejected, then replaced by a whole one.
    image="$(find data/train_images -name '*.jpg' | sort | tail -n 1)"
    printf damaged >data/train_images/damaged.jpg
    { cat c.yaml && echo 'rejects: {max_fraction: 0.05}'; } >some.yaml
    run ingest some.yaml --out rejecting
    cp "$image" data/train_images/damaged.jpg
    run retry-rejects some.yaml rejecting --out complete
}

for versions in highest lowest; do
    label="$versions versions of $("$python" --version)"
    options=(--resolution "$versions")
    # Only what setup.py names is lowered: the ranges of other packages are not ours.
    [ "$versions" = highest ] || options=(--resolution lowest-direct)
    requirements none >"$scratch/base.txt"
    environment "$versions" "${options[@]}" --requirement "$scratch/base.txt"
    bin="$scratch/$versions/bin" ran=""
    mkdir "$scratch/work-$versions"
    cd "$scratch/work-$versions"
    "$bin/python" -W error -c 'import google_crc32c; assert google_crc32c.implementation == "c", "crc32c runs without its compiled part"'
    commands
    say "$label: $packages packages, $megabytes MB; ran$ran"
    if [ "$versions" = highest ]; then
        [ "$packages" -le 13 ] && [ "$megabytes" -le 150 ] || fail 1 "the base installation may take 12 packages besides Shardwright, and 150 MB"
        sed 's|data/train_images|gs://bucket/images|' c.yaml >gs.yaml
        sed 's|data/train_images|s3://bucket/images|' c.yaml >s3.yaml
        names gcs ingest gs.yaml --out other
        names s3 ingest s3.yaml --out other
        names parquet export dataset --to parquet --out parquet
        names tf bench loader dataset
        names tf preflight c.yaml --tpu v5e-2x4
        names tfx run c.yaml
        names tfx schema infer dataset --out schema.pbtxt
        names vertex compile c.yaml --target vertex --out pipeline.json
        names kubeflow compile c.yaml --target kubeflow --out pipeline.yaml
    else
        # The stores' clients, too, as far as they can be tested without a store.
        { requirements gcs && requirements s3; } | sort -u >"$scratch/stores.txt"
        "$UV" pip install --quiet --python "$bin/python" --only-binary :all: "${options[@]}" --requirement "$scratch/stores.txt"
        "$bin/python" -c 'import shardwright.storage.gcs, shardwright.storage.s3'
    fi
    cd "$scratch"
done
