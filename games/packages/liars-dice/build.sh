#!/bin/sh
# Builds the rules and copies the program to the place that game.toml names. Without a network,
# cargo uses the libraries that it fetched before.
set -e
if cargo fetch --locked; then offline=; else offline=--offline; fi
cargo build --release --locked $offline --target-dir target
cp -f target/release/rules rules
