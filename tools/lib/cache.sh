# shellcheck shell=bash disable=SC2034 # sets a variable of the script that sources it
# Where what is expensive to make survives from one run of the tests to the next. Sourced; sets $cache.

cache="${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/shardwright"
mkdir -p "$cache"
