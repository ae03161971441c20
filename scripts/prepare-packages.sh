# Sourced by ./test after prepare.sh: installs what builds and runs the shipped game packages.
# shellcheck shell=bash

need clang clang
need wasm-ld lld
need node nodejs
install_missing
missing=()
