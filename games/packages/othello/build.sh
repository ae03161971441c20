#!/bin/sh
# Builds the rules as a WebAssembly module, without a C library. Needs clang and lld.
set -e
clang --target=wasm32 -mcpu=mvp -mbulk-memory -std=c11 -O2 -Wall -Wextra -ffreestanding -nostdlib \
    -Wl,--no-entry -Wl,--strip-all -o rules.wasm.new src/*.c
mv -f rules.wasm.new rules.wasm
