#!/bin/sh
# Builds the rules. Arbiter runs this when a source is newer than the program.
set -eu
cd "$(dirname "$0")"
if ! command -v cargo >/dev/null; then
    echo "cargo is missing: install Rust from https://rustup.rs" >&2
    exit 1
fi
cargo build --quiet --release --target-dir target
cp target/release/{{name}} rules
