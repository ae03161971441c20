#!/bin/sh
# Builds the rules and copies the program to the place that game.toml names.
set -e
cargo build --release --locked --target-dir target
cp -f target/release/rules rules
