#!/usr/bin/env bash
# Builds the container image as a registry-less machine can, and tries it: the sample set through the whole
# pipeline, a compiled one's first task, what is in it and how large it is. Needs root (buildah, podman and runc, without a
# daemon). The tests ran on the other stack, with the same packages.
#
# The Debian 13 that it builds upon is made by tools/lib/debian.sh and kept in the cache folder. Beam's launcher for Dataflow comes
# from a registry's image. Without one it is that which tools/engines.sh has built; without Go tools/image/boot stands in for it, and
# takes the steps that depend on the image.
#
#   image.sh build     the image localhost/shardwright
#   image.sh try       build, then try it
#
# ACCELERATOR=gpu and ACCELERATOR=tpu build localhost/shardwright-gpu and -tpu, and try what can be tried without a device:
# everything imports, and a run that asks for the accelerator ends at once with a message that names what is missing.
# BEAM_SDK=docker.io/apache/beam_python3.13_sdk:2.77.0 builds with Beam's own launcher, where a registry can be reached, and
# BASE=docker.io/library/debian:trixie-slim upon a registry's Debian 13. A release needs both by digest.
set -euo pipefail

tools="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
checkout="$(dirname "$tools")"
# shellcheck source=tools/lib/messages.sh
. "$tools/lib/messages.sh"
# shellcheck source=tools/lib/cache.sh
. "$tools/lib/cache.sh"
# shellcheck source=tools/lib/packages.sh
. "$tools/lib/packages.sh"
# shellcheck source=tools/lib/debian.sh
. "$tools/lib/debian.sh"

certificates="${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}"
store=(--root "$cache/images" --runroot "$cache/images-run" --storage-driver overlay)
accelerator="${ACCELERATOR:-cpu}"
image=localhost/shardwright
[ "$accelerator" = cpu ] || image="localhost/shardwright-$accelerator"
base="${BASE:-localhost/debian13}"

build() {
    [ "$(id -u)" = 0 ] || fail 2 "the image can only be built by root here. Run it as root, use a Docker engine, or leave it to CI."
    need_packages buildah podman runc
    # The folder's database knows only containers, and none is kept. One that was made with other options refuses ours.
    podman "${store[@]}" info >/dev/null 2>&1 || rm -rf "$cache/images/libpod"
    local scratch
    scratch="$(mktemp -d)"
    trap 'rm -rf "$scratch"' RETURN
    if [ -z "${BASE:-}" ] && ! buildah "${store[@]}" inspect --type image "$base" >/dev/null 2>&1; then
        need_debian
        ln "$debian_base" "$scratch/base.tar" 2>/dev/null || cp "$debian_base" "$scratch/base.tar"
        printf 'FROM scratch\nADD base.tar /\n' >"$scratch/Dockerfile"
        buildah "${store[@]}" build --quiet --isolation chroot -t "$base" "$scratch" >/dev/null
        rm "$scratch/base.tar"
    fi
    if [ -z "${BEAM_SDK:-}" ]; then
        local launcher="$cache/engines/boot"
        [ -x "$launcher" ] || launcher="$tools/image/boot"
        install -D -m 755 "$launcher" "$scratch/beam/apache/boot"
        printf 'FROM scratch\nADD apache /opt/apache/beam/\n' >"$scratch/beam/Dockerfile"
        buildah "${store[@]}" build --quiet --isolation chroot -t localhost/beam-stand-in "$scratch/beam" >/dev/null
    fi
    local arguments=(--build-arg "ACCELERATOR=$accelerator" --build-arg "BASE=$base" --build-arg "BEAM_SDK=${BEAM_SDK:-localhost/beam-stand-in}")
    arguments+=(--build-arg "REVISION=$(git -C "$checkout" -c safe.directory='*' rev-parse HEAD 2>/dev/null || echo unknown)")
    [ -z "${UV_DEFAULT_INDEX:-${PIP_INDEX_URL:-}}" ] ||
        arguments+=(--build-arg "UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$PIP_INDEX_URL}")
    arguments+=(--quiet --layers --isolation chroot --volume "$certificates:/etc/ssl/certs/ca-certificates.crt:ro")
    # The other stack has fetched and compiled the same packages for the same system. uv compares their hashes with the lock.
    # /root/.cache/uv is uv's own folder for root, within the Debian of that stack and within the image while it is built.
    local packages="$cache/debian13/root/.cache/uv"
    [ -d "$packages" ] || packages="$cache/image-uv"
    mkdir -p "$packages"
    arguments+=(--volume "$packages:/root/.cache/uv")
    # With a separate name, the stage of the packages is kept: packages are installed again only when the lock changes.
    buildah "${store[@]}" build "${arguments[@]}" --target packages -t "$image-packages" "$checkout" >/dev/null
    buildah "${store[@]}" build "${arguments[@]}" -t "$image" "$checkout" >/dev/null
    # An image of every earlier code, and the containers of builds that were broken off, would each stay for good.
    buildah "${store[@]}" rm --all >/dev/null
    podman "${store[@]}" image prune --force >/dev/null
    podman "${store[@]}" image list --format '{{.Repository}} {{.Size}}' "$image"
    # The newest layer first; what only sets a variable or a label takes no room.
    podman "${store[@]}" history --no-trunc --format '{{.Size}} {{.CreatedBy}}' "$image" | grep -v '^0 B ' | cut -c 1-100
}

readable() { # DIR: a copy of what is tried, for a user who may not read a checkout of a strict umask
    tar -C "$checkout" --exclude __pycache__ -cf - tests/support tools/image | tar -C "$1" -xf -
    chmod -R a+rX "$1"
}

inside() { # COMMAND...: in the image, with no network, as its own user
    podman "${store[@]}" --cgroup-manager cgroupfs --runtime "$(command -v runc)" run --rm --network none \
        --ulimit nofile=20000:20000 --ulimit nproc=4096:4096 --volume "$copy:/checkout:ro" "$image" "$@"
}

# shellcheck disable=SC2016 # the shell inside expands it
try() {
    local copy
    copy="$(mktemp -d)"
    trap 'rm -rf "$copy"' RETURN
    readable "$copy"
    inside sh -c '
        set -eu
        test "$(id -u):$(id -g)" = 1000:1000
        test -z "$(ls -A /workspace)"
        for tool in gcc g++ cc curl uv pytest mypy ruff; do
            if command -v "$tool"; then echo "$tool was left in the image"; exit 1; fi
        done
        python -m pip show --quiet apache-beam
        python -c "import json; assert len(json.load(open(\"/opt/shardwright/sbom.cdx.json\"))[\"components\"]) > 150"
        timeout 300 python /checkout/tools/image/workers.py /opt/shardwright/entrypoint
        shardwright doctor
        shardwright sample --out data --count 60 --height 96 --width 128
        cp /checkout/tools/image/small.yaml .
        shardwright run small.yaml
        shardwright compile small.yaml --target kubeflow --out small-pipeline.yaml
        python /checkout/tools/image/one_task.py small-pipeline.yaml /workspace/data'
}

# shellcheck disable=SC2016 # the shell inside expands it
try_device() {
    local copy
    copy="$(mktemp -d)"
    trap 'rm -rf "$copy"' RETURN
    readable "$copy"
    inside sh -c '
        set -eu
        shardwright doctor
        shardwright sample --out data --count 60 --height 96 --width 128
        sed "s/^trainer: {/&accelerator: $1, /" /checkout/tools/image/small.yaml >small.yaml
        if shardwright run small.yaml >log 2>&1; then echo "a run on a $1 went on without one"; exit 1; fi
        tail -n 1 log
        grep -q "trainer.accelerator: .$1., but this machine has none" log
        # The library of the TPU is whole, and JAX loads it: only the device is missing.
        [ "$1" != tpu ] || python -c "
import jax, libtpu
try:
    jax.devices(\"tpu\")
except RuntimeError as error:
    assert \"No jellyfish device found\" in str(error), error
print(\"libtpu\", libtpu.__version__, \"starts, and finds no TPU\")"' sh "$accelerator"
}

case "${1:-}" in
    build) build ;;
    # Not `build && try`: there the shell would go on within a build that fails, and an older image would be tried.
    try)
        build
        if [ "$accelerator" = cpu ]; then try; else try_device; fi
        ;;
    *) fail 2 "image.sh: give build or try" ;;
esac
