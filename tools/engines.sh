#!/usr/bin/env bash
# Builds the programs that our documents are made for, from their Go modules, and runs the tests on them: `make engines`.
#
#   engines.sh build [PART...]   the programs only (some of: manifests etcd kubernetes jobset kueue kserve prism boot; by default all); prints their folder
#   engines.sh [ARGUMENTS...]    the tests of tests/cluster on the real control plane, with more arguments for pytest; then Prism
#
# It needs Go 1.26 and a module proxy. On two idle cores the first build takes about twenty minutes and 9 GB of Go's caches; the programs
# have 0.5 GB. What is built stays in the cache folder. Without Go it says so, and tests nothing: `make cluster-test` has an older server.
set -euo pipefail

tools="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
# shellcheck source=tools/lib/messages.sh
. "$tools/lib/messages.sh"
# shellcheck source=tools/lib/cache.sh
. "$tools/lib/cache.sh"

# The versions that docs/trust/limits.md names.
kubernetes=1.34.4 etcd=v3.6.6 jobset=v0.12.0 kueue=v0.17.0 kserve=v0.17.0 beam=v2.77.0
parts=(manifests etcd jobset kubernetes kueue kserve prism boot)
programs="$cache/engines"
export GOFLAGS="-mod=mod -trimpath" CGO_ENABLED=0

# Each program has a module of its own, since their requirements contradict each other.
module() { # NAME [REQUIREMENT]
    mkdir -p "$programs/modules/$1"
    cd "$programs/modules/$1"
    [ -f go.mod ] || go mod init "engines/$1" 2>/dev/null
    [ $# = 1 ] || go get "$2" 2>/dev/null
}

# A program is built once for each version.
build() { # NAME VERSION PACKAGE [OPTION...]
    local name="$1" stamp="$programs/.$1-$2" package="$3"
    shift 3
    [ ! -e "$stamp" ] || return 0
    say "engines: building $name"
    go build -ldflags "-s -w" "$@" -o "$programs/$name" "$package"
    rm -f "$programs/.$name"-*
    touch "$stamp"
}

folder_of() { # MODULE@VERSION
    (module downloads && go mod download -json "$1") | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'
}

build_manifests() {
    local name from
    for name in "jobset sigs.k8s.io/jobset@$jobset" "kueue sigs.k8s.io/kueue@$kueue"; do
        from="$(folder_of "${name#* }")/config/components"
        install -m 644 -D -t "$programs/manifests/${name%% *}" "$from"/crd/bases/*.yaml "$from/webhook/manifests.yaml"
    done
    from="$(folder_of "github.com/kserve/kserve@$kserve")/config"
    install -m 644 -D -t "$programs/manifests/kserve" "$from"/crd/full/*.kserve.io_*.yaml "$from"/crd/full/clusterstoragecontainer/*.kserve.io_*.yaml \
        "$from/webhook/manifests.yaml"
    install -m 644 -D -t "$programs/manifests/kserve/objects" "$from/configmap/inferenceservice.yaml" "$from/storagecontainers/default.yaml" \
        "$from/runtimes/kserve-tensorflow-serving.yaml"
}

build_etcd() {
    module etcd "go.etcd.io/etcd/server/v3@$etcd"
    build etcd "$etcd" go.etcd.io/etcd/server/v3
}

build_jobset() {
    module jobset "sigs.k8s.io/jobset@$jobset"
    build jobset-controller "$jobset" sigs.k8s.io/jobset
}

build_kubernetes() {
    [ ! -e "$programs/.kubectl-$kubernetes" ] || return 0
    local name names from version=k8s.io/component-base/version
    from="$(folder_of "k8s.io/kubernetes@v$kubernetes")"
    module kubernetes
    # It requires its own parts at v0.0.0, from folders that no module has; each is a module, too.
    mapfile -t names < <(sed -n 's#^\t\(k8s\.io/[a-z0-9-]*\) v0\.0\.0\( //.*\)\?$#\1#p' "$from/go.mod")
    for name in "${names[@]}"; do
        go mod edit -replace "$name=$name@v0.${kubernetes#1.}"
    done
    go get "k8s.io/kubernetes@v$kubernetes" 2>/dev/null
    for name in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
        build "$name" "$kubernetes" "k8s.io/kubernetes/cmd/$name" \
            -ldflags "-s -w -X $version.gitVersion=v$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=$(cut -d. -f2 <<<"$kubernetes")"
    done
}

build_kueue() {
    [ ! -e "$programs/.kueue-controller-$kueue" ] || return 0
    module kueue "sigs.k8s.io/kueue@$kueue"
    mkdir -p manager
    # It reads the certificate of its metrics from a folder of /etc, even where metrics are off.
    sed "s#\"/etc/kueue/metrics/certs\"#\"tls\"#" "$(folder_of "sigs.k8s.io/kueue@$kueue")/cmd/kueue/main.go" >manager/main.go
    build kueue-controller "$kueue" ./manager
}

# In its own module: what it replaces would not hold in another one.
build_kserve() {
    [ ! -e "$programs/.kserve-controller-$kserve" ] || return 0
    rm -rf "$programs/modules/kserve"
    mkdir -p "$programs/modules"
    cp -r --no-preserve=mode "$(folder_of "github.com/kserve/kserve@$kserve")" "$programs/modules/kserve"
    cd "$programs/modules/kserve"
    build kserve-controller "$kserve" ./cmd/manager
}

build_prism() {
    module prism "github.com/apache/beam/sdks/v2/go/cmd/prism@$beam"
    build prism "$beam" github.com/apache/beam/sdks/v2/go/cmd/prism
}

# Beam's launcher of workers: tools/image.sh takes it in place of its stand-in.
build_boot() {
    module boot "github.com/apache/beam/sdks/v2/python/container@$beam"
    build boot "$beam" github.com/apache/beam/sdks/v2/python/container
}

if ! command -v go >/dev/null; then
    say "engines: there is no Go, so the control plane (Kubernetes $kubernetes, JobSet, Kueue, KServe's definitions), Prism and Beam's launcher are not built and not tested"
    exit 0
fi
mkdir -p "$programs"
only=()
if [ "${1:-}" = build ]; then
    shift
    only=("${@:-${parts[@]}}")
fi
for part in "${only[@]:-${parts[@]}}"; do
    build_"$part"
done
if [ ${#only[@]} != 0 ]; then
    printf '%s\n' "$programs"
    exit 0
fi
"$tools/cluster.sh" --durations 5 -rs "$@"
exec "$tools/flink.sh" --prism "$programs/prism"
