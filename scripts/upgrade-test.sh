#!/usr/bin/env bash
# Upgrades running clusters from the version before to this one (tests/rolling.rs).
#
#   scripts/upgrade-test.sh
#
# Which version that is `previous-version` beside this says: the commit of the last release. It is
# built below target/ the first time, which takes as long as the first build did;
# ARBITER_PREVIOUS=PATH names a program that is built already.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${ARBITER_PREVIOUS:-}" ]; then
    commit=$(cat scripts/previous-version)
    if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
        echo "left out: the version before, $commit, is not in this clone (git fetch --unshallow)" >&2
        exit 0
    fi
    target=${CARGO_TARGET_DIR:-$PWD/target}
    tree=$target/previous/$commit
    ARBITER_PREVIOUS=$tree/target/debug/arbiter
    if [ ! -x "$ARBITER_PREVIOUS" ]; then
        rm -rf "$tree"
        mkdir -p "$tree"
        git archive "$commit" | tar -x -C "$tree"
        CARGO_TARGET_DIR=$tree/target cargo build --locked --bin arbiter --manifest-path "$tree/Cargo.toml"
    fi
fi
export ARBITER_PREVIOUS
cargo test --workspace --test rolling -- --nocapture
