#!/usr/bin/env bash
# Upgrades running clusters from the previous version to this one (tests/rolling.rs).
#
#   scripts/upgrade-test.sh
#
# The file `previous-version` holds the commit of the previous version: the last release or, before
# the first one, the commit of the baseline tables. The script builds it below target/ the first
# time, which takes as long as the first build of this version. ARBITER_PREVIOUS=PATH names a program
# that is already built.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${ARBITER_PREVIOUS:-}" ]; then
    commit=$(cat scripts/previous-version)
    if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
        echo "skipped: the previous version, $commit, is not in this clone (run: git fetch --unshallow)" >&2
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
