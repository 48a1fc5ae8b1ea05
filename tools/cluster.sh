#!/usr/bin/env bash
# Runs the tests of tests/cluster with a real Kubernetes API server and etcd on this machine. What tools/engines.sh has built is taken: a current
# server with the controllers. Without it, root builds an old one, once, in about ten minutes of two cores, and the tests of the controllers are skipped.
#
# The newest API server whose whole source a Debian release has is 1.20.2, in Debian 12; later releases have the sources of kubectl alone. It is built
# there with Debian's Go, from the source package and nothing else. The programs are kept in the cache folder.
#
#   cluster.sh build            the programs only; prints their folder
#   cluster.sh [ARGUMENTS...]   the tests, with more arguments for pytest
#
# SHARDWRIGHT_CRDS is a folder with the definitions of JobSet and KServe, which are not part of this project: config/components/crd/bases of
# kubernetes-sigs/jobset, and config/crd/full of kserve/kserve. Without it, the fields of those two are not checked.
set -euo pipefail

tools="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
# shellcheck source=tools/lib/messages.sh
. "$tools/lib/messages.sh"
# shellcheck source=tools/lib/cache.sh
. "$tools/lib/cache.sh"
# shellcheck source=tools/lib/packages.sh
. "$tools/lib/packages.sh"

programs="$cache/cluster"
kubernetes=1.20.5+really1.20.2-1.1+deb12u1

if [ -x "$cache/engines/kube-apiserver" ] && [ -x "$cache/engines/etcd" ]; then
    programs="$cache/engines"
    export SHARDWRIGHT_CRDS="${SHARDWRIGHT_CRDS:-$programs/manifests}"
fi

build() {
    [ ! -x "$programs/kube-apiserver" ] || return 0
    [ "$(id -u)" = 0 ] || fail 2 "the API server can only be built by root. Run \`make cluster-test\` as root, once."
    need_packages debootstrap debian-archive-keyring bubblewrap
    say "cluster: building a Kubernetes API server in a Debian 12 system (ten minutes on two cores; log: $cache/cluster.log)"
    local system="$cache/cluster-system" name
    local options=(--bind "$system" / --dev /dev --proc /proc --ro-bind /etc/resolv.conf /etc/resolv.conf --ro-bind-try /etc/hosts /etc/hosts
        --unshare-pid --die-with-parent --clearenv --setenv PATH /usr/sbin:/usr/bin:/sbin:/bin --setenv HOME /root --setenv LANG C.UTF-8
        --setenv DEBIAN_FRONTEND noninteractive)
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
        [ -z "${!name:-}" ] || options+=(--setenv "$name" "${!name}")
    done
    rm -rf --one-file-system "$system"
    debootstrap --variant=minbase --keyring=/usr/share/keyrings/debian-archive-keyring.gpg bookworm "$system" http://deb.debian.org/debian \
        >"$cache/cluster.log" || fail 1 "debootstrap failed; see $cache/cluster.log."
    # shellcheck disable=SC2016 # the shell inside expands it
    bwrap "${options[@]}" sh -euc '
        sed "s/^deb /deb-src /" /etc/apt/sources.list >/etc/apt/sources.list.d/source.list
        apt-get -o APT::Sandbox::User=root update -qq
        apt-get -o APT::Sandbox::User=root install -y -qq --no-install-recommends dpkg-dev etcd-server golang-go \
            golang-github-modern-go-reflect2-dev
        mkdir -p /go/src/k8s.io && cd /go/src/k8s.io
        apt-get -o APT::Sandbox::User=root source -qq "kubernetes=$1"
        mv kubernetes-*/ kubernetes && cd kubernetes
        # The copy of 2018 in the source breaks maps with a Go from 1.18 on.
        rm -r vendor/github.com/modern-go/reflect2
        cp -r /usr/share/gocode/src/github.com/modern-go/reflect2 vendor/github.com/modern-go/
        export GOPATH=/go GO111MODULE=off GOPROXY=off CGO_ENABLED=0
        # As `make generated_files` does, for this server alone.
        go build -o /openapi-gen ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
        inputs="$(grep -rl --include="*.go" "+k8s:openapi-gen=" pkg staging/src/k8s.io | grep -v -e code-generator -e sample-apiserver -e zz_generated |
            xargs -n 1 dirname | sort -u | sed "s#^staging/src/#vendor/#; s#^#k8s.io/kubernetes/#" | paste -s -d ,)"
        /openapi-gen -i "$inputs" -p k8s.io/kubernetes/pkg/generated/openapi -O zz_generated.openapi \
            -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt -r /violations
        version=k8s.io/kubernetes/vendor/k8s.io/component-base/version
        go build -ldflags "-s -w -X $version.gitVersion=v1.20.2 -X $version.gitMajor=1 -X $version.gitMinor=20" -o /kube-apiserver ./cmd/kube-apiserver
    ' sh "$kubernetes" >>"$cache/cluster.log" 2>&1 || fail 1 "the API server could not be built; see $cache/cluster.log."
    mkdir -p "$programs"
    install "$system/usr/bin/etcd" "$programs/etcd"
    install "$system/kube-apiserver" "$programs/kube-apiserver"
    rm -rf --one-file-system "$system"
}

build
if [ "${1:-}" = build ]; then
    printf '%s\n' "$programs"
    exit 0
fi
cd "$tools/.."
export SHARDWRIGHT_CLUSTER="$programs"
exec .venv/bin/python -m pytest -q -m cluster tests/cluster "$@"
