#!/usr/bin/env bash
# Checks what the program is made of against deny.toml: licences, banned crates, sources, and known
# holes (advisories) where their database can be reached.
#
# The tool is installed once below target/, from the registry; that takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.20.2
root=${ARBITER_TOOLS:-target/tools}
deny=$root/bin/cargo-deny

if [ "$("$deny" --version 2>/dev/null)" != "cargo-deny $version" ]; then
    # It runs for a moment, so time is best saved where it is built.
    cargo install --locked --quiet --debug --version "$version" --root "$root" cargo-deny
fi

"$deny" --locked check --hide-inclusion-graph licenses bans sources

# The database of advisories is a repository of its own. A machine without a way to it has not
# looked, and says so; that a hole was found fails.
db=$("$deny" --locked fetch db 2>&1) && reached=yes || reached=no
if [ "$reached" = yes ]; then
    "$deny" --locked check --hide-inclusion-graph --disable-fetch advisories
else
    printf 'left out: advisories, because their database cannot be reached:\n%s\n' "${db##*$'\n'}"
fi
