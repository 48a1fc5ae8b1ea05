# shellcheck shell=bash disable=SC2034,SC2154 # sets a variable of the script that sources it, and reads others
# A bare Debian 13, from which tools/debian13 and tools/image.sh start. Sourced; wants cache.sh, messages.sh and packages.sh.

# need_debian: sets debian_base, an archive with Debian's smallest system and the certificates. It is kept in the cache folder.
need_debian() {
    debian_base="$cache/debian13-base.tar"
    [ ! -e "$debian_base" ] || return 0
    [ "$(id -u)" = 0 ] || fail 2 "a Debian 13 system can only be made by root. Run it as root, or leave make test-full to CI."
    need_packages debootstrap debian-archive-keyring
    say "making a Debian 13 system to start from (half a minute)"
    local part
    part="$(mktemp -d)"
    # trixie's recipe is sid's; older hosts have it under that name only.
    debootstrap --variant=minbase --include=ca-certificates --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
        trixie "$part" http://deb.debian.org/debian sid >"$cache/debootstrap.log" ||
        fail 1 "debootstrap failed; see $cache/debootstrap.log."
    tar --directory "$part" --exclude './var/cache/apt/archives/*.deb' -cf "$debian_base.part" .
    mv "$debian_base.part" "$debian_base"
    rm -rf --one-file-system "$part"
}
