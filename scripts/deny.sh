#!/usr/bin/env bash
# Checks the dependencies against deny.toml: licences, banned crates, sources, and security advisories
# if their database is reachable.
#
# Installs the tool below target/ once, from the registry, which takes some minutes. So `.ci/run`
# starts this only if Cargo.lock or deny.toml differ from what was checked last. This writes their
# hashes to .ci/checked-dependencies; commit it with them.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.20.2
root=${ARBITER_TOOLS:-target/tools}
deny=$root/bin/cargo-deny

if [ "$("$deny" --version 2>/dev/null)" != "cargo-deny $version" ]; then
    # It runs briefly, so optimise its build time.
    cargo install --locked --quiet --debug --version "$version" --root "$root" cargo-deny
fi

"$deny" --locked check --hide-inclusion-graph licenses bans sources

# The advisories are in a separate repository. If it is not reachable, say so and skip the check. A
# found advisory fails.
db=$("$deny" --locked fetch db 2>&1) && reached=yes || reached=no
if [ "$reached" = yes ]; then
    "$deny" --locked check --hide-inclusion-graph --disable-fetch advisories
else
    printf 'left out: advisories, because their database cannot be reached:\n%s\n' "${db##*$'\n'}"
fi

sha256sum Cargo.lock deny.toml >.ci/checked-dependencies
