# Sourced by ./demo and ./test: installs missing packages if allowed, and otherwise says exactly what
# to install. Only Rust (https://rustup.rs) must be installed before.
# shellcheck shell=bash

# need PROGRAM PACKAGE…: adds the packages to the list if the program is missing.
missing=()
need() {
    command -v "$1" >/dev/null 2>&1 || missing+=("${@:2}")
}

install_missing() {
    [ ${#missing[@]} -eq 0 ] && return 0
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! sudo -n true 2>/dev/null; then
            echo "error: please install these packages and run this again: ${missing[*]}" >&2
            exit 2
        fi
        as_root=(sudo -n)
    fi
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "error: no apt-get here; please install the equivalents of: ${missing[*]}" >&2
        exit 2
    fi
    echo "installing ${missing[*]}"
    "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${missing[@]}"
}

if ! command -v cargo >/dev/null 2>&1; then
    echo "error: Rust is missing; install it from https://rustup.rs and run this again" >&2
    exit 2
fi
need cc gcc libc6-dev
need python3 python3
need perl perl
need ip iproute2
need curl curl
if ! command -v initdb >/dev/null 2>&1 && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    missing+=(postgresql)
fi
install_missing
