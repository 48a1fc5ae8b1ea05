# The image that pipelines, trainers and Beam's workers run: the current stack on Debian 13, exact versions by hash.
#
#   docker build -t shardwright .                                    for CPUs
#   docker build -t shardwright --build-arg ACCELERATOR=gpu .        with CUDA, for GPUs of NVIDIA
#   docker build -t shardwright --build-arg ACCELERATOR=tpu .        with libtpu, for a TPU node pool
#
# Other build arguments: BASE, a Debian 13 image; BEAM_SDK, the image whose worker launcher is taken along for Dataflow
# (its Python plays no part); UV_DEFAULT_INDEX, another package index; REVISION, for the label. A tag can move: for builds
# that can be repeated, give BASE and BEAM_SDK by digest, e.g. BASE=debian@sha256:...; `docker buildx imagetools inspect
# debian:trixie-slim` prints it.
ARG BASE=debian:trixie-slim
ARG BEAM_SDK=apache/beam_python3.13_sdk:2.77.0

FROM ${BEAM_SDK} AS beam

FROM ${BASE} AS system
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 1000 --user-group --create-home shardwright \
    && mkdir /workspace && chown shardwright:shardwright /workspace

FROM system AS packages
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install -y --no-install-recommends curl g++ python3-dev unzip \
    && rm -rf /var/lib/apt/lists/*
ARG ACCELERATOR=cpu
ARG UV_DEFAULT_INDEX=
WORKDIR /build
COPY requirements/image*.lock requirements/
COPY tools/lib/ tools/lib/
COPY tools/supply/sbom.py tools/supply/
COPY tools/image/install tools/image/
RUN tools/image/install packages "${ACCELERATOR}"

FROM packages AS code
COPY pyproject.toml setup.py README.md LICENSE ./
COPY shardwright/ shardwright/
COPY components/ components/
COPY pipelines/ pipelines/
COPY schemas/ schemas/
COPY docs/ docs/
COPY tools/image/entrypoint tools/image/
# In a clone with a strict umask, only its owner may run the files.
RUN tools/image/install shardwright /opt/code && install -m 755 tools/image/entrypoint /opt/code/entrypoint

# The packages change with the lock only, the code with every commit: gigabytes that registries and nodes have already,
# and a few megabytes that they have not.
FROM system
# COPY would read all packages twice at every build, for their checksum. Buildah does not see that what is mounted has
# changed: it sees a new stamp.
COPY --from=packages /opt/shardwright/stamp /opt/shardwright/
RUN --mount=type=bind,from=packages,source=/opt/shardwright,target=/mnt cp -a /mnt/. /opt/shardwright/
COPY --from=beam /opt/apache/beam/ /opt/apache/beam/
COPY --from=code /opt/code /opt/shardwright
ARG REVISION=unknown
ARG ACCELERATOR=cpu
# `shardwright compile` compares the last label with the machine that trains.
LABEL org.opencontainers.image.title="shardwright" \
    org.opencontainers.image.description="Images and segmentation CSVs into TFRecord datasets, and training on them" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.revision="${REVISION}" \
    shardwright.accelerator="${ACCELERATOR}"
# Beam's launcher would otherwise make an environment of its own, where this user may not and without these packages.
ENV PATH=/opt/shardwright/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1
# Pipelines put their own command in the place of this; what is mounted or written goes below an empty folder.
# A number: Kubernetes cannot tell that a name is not root (`runAsNonRoot: true`).
USER 1000:1000
WORKDIR /workspace
ENTRYPOINT ["/opt/shardwright/entrypoint"]
CMD ["shardwright", "--help"]
