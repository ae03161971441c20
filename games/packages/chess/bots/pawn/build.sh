#!/bin/sh
set -e
cargo build --release --locked --target-dir ../../target
cp -f ../../target/release/pawn engine
