# shellcheck shell=bash disable=SC2154 # reads variables of the script that sources it
# Finds uv, or fetches a pinned one into .tools/ and checks its hash. Sourced; wants $checkout and messages.sh.

uv_pinned=0.13.8
uv_wheel="uv-$uv_pinned-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
uv_sha256=e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984
uv_oldest=0.8.0 # the oldest that understands the options used here (`uv venv --clear`)

# need_uv: sets UV, and where it keeps packages if its usual place cannot be written to.
need_uv() {
    find_uv
    local kept
    kept="$("$UV" cache dir 2>/dev/null)" || kept=""
    { [ -n "$kept" ] && mkdir -p "$kept" 2>/dev/null && [ -w "$kept" ]; } || export UV_CACHE_DIR="$checkout/.tools/uv-cache"
}

# A uv on PATH is taken when it runs and is not too old: a version manager's shim may do neither.
find_uv() {
    local home="$checkout/.tools/uv-$uv_pinned" version
    [ -z "${UV_DEFAULT_INDEX:-}" ] && [ -n "${PIP_INDEX_URL:-}" ] && export UV_DEFAULT_INDEX="$PIP_INDEX_URL"
    version="$(uv --version 2>/dev/null | cut -d ' ' -f 2)" || version=""
    if [ -n "$version" ] && at_least "$version" "$uv_oldest"; then
        UV="$(command -v uv)"
        return
    fi
    UV="$home/uv"
    [ -x "$UV" ] && return
    say "set-up: no uv $uv_oldest or newer on PATH: fetching uv $uv_pinned into .tools/"
    rm -rf "$home.part"
    mkdir -p "$home.part"
    download_uv "$home.part/$uv_wheel"
    unpack_uv "$home.part/$uv_wheel" "$home.part/uv"
    rm "$home.part/$uv_wheel"
    mkdir -p "$home"
    mv "$home.part/uv" "$UV"
    rmdir "$home.part"
}

# fetch URL FILE: with curl, else with any Python 3 (its standard library is enough).
fetch() {
    if command -v curl >/dev/null; then
        curl --fail --silent --show-error --location --retry 3 --output "$2" "$1"
    elif python3 -c '' 2>/dev/null; then
        python3 -c '
import shutil, sys, urllib.request
with urllib.request.urlopen(sys.argv[1], timeout=60) as answer, open(sys.argv[2], "wb") as file:
    shutil.copyfileobj(answer, file)' "$1" "$2"
    else
        fail 2 "neither curl nor a python3 is there to fetch uv with. Get one and run it again:" \
            "    $(install_command curl curl)"
    fi
}

download_uv() { # FILE
    local index="${UV_DEFAULT_INDEX:-https://pypi.org/simple}" link
    index="${index%/}"
    fetch "$index/uv/" "$1.html" || fail 1 "the package index $index does not answer. Check the network, or name another: UV_DEFAULT_INDEX=URL."
    # The simple index links every file; where the link leads is the index's business (PEP 503), the hash is ours.
    link="$(tr '<' '\n' <"$1.html" | sed -n "s/.*href=[\"']\([^\"'#]*$uv_wheel\).*/\1/p" | head -n 1)"
    rm "$1.html"
    case "$link" in
        "") fail 1 "the package index $index has no $uv_wheel. Install uv $uv_oldest or newer yourself, or name another index: UV_DEFAULT_INDEX=URL." ;;
        *://*) ;;
        //*) link="${index%%//*}$link" ;;
        /*) link="$(printf '%s' "$index" | sed 's|^\([a-z]*://[^/]*\).*|\1|')$link" ;;
        *) link="$index/uv/$link" ;;
    esac
    fetch "$link" "$1" || fail 1 "$link cannot be fetched. Check the network, or name another index: UV_DEFAULT_INDEX=URL."
    printf '%s  %s\n' "$uv_sha256" "$1" | sha256sum --check --status ||
        fail 1 "$link does not have the sha256 $uv_sha256 that this checkout pins. Do not use that index."
}

# unpack_uv WHEEL FILE: a wheel is a zip; python3, unzip or perl (which git brings) takes the one program out of it.
unpack_uv() {
    local member="uv-$uv_pinned.data/scripts/uv"
    if python3 -c 'import zipfile' 2>/dev/null; then
        python3 -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))' "$1" "$member" >"$2"
    elif command -v unzip >/dev/null; then
        unzip -p "$1" "$member" >"$2"
    elif perl -MIO::Uncompress::Unzip -e '' 2>/dev/null; then
        perl -MIO::Uncompress::Unzip=unzip,\$UnzipError -e 'unzip $ARGV[0] => $ARGV[2], Name => $ARGV[1] or die $UnzipError' "$1" "$member" "$2"
    else
        fail 2 "nothing is there to unpack uv with. Get one and run it again:" "    $(install_command unzip unzip)"
    fi
    chmod +x "$2"
    "$2" --version >/dev/null || fail 1 "the unpacked $2 does not run."
}
