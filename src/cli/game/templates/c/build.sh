#!/bin/sh
# Builds the rules as a WebAssembly module. Arbiter runs this when a source is newer than it.
set -eu
cd "$(dirname "$0")"
if ! command -v clang >/dev/null || ! command -v wasm-ld >/dev/null; then
    echo "clang or its linker is missing: apt-get install clang lld" >&2
    exit 1
fi
clang --target=wasm32 -mcpu=mvp -O2 -Wall -nostdlib -fno-builtin -Wl,--no-entry \
    -o rules.wasm rules.c
