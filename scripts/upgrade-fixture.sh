#!/usr/bin/env bash
# Dumps a database in the middle of two tournaments, for tests/upgrade.rs. Run it once for each
# release with a migration, and commit its files.
#
#   ARBITER_DATABASE_URL=postgres:///empty scripts/upgrade-fixture.sh target/debug/arbiter 0002
#
# The database must be empty, and the name is that of the newest migration. tests/upgrade/NAME.sql.zst
# is the database when both tournaments are half played and the program was killed. NAME.json holds
# the leaderboards after the same program has finished them.
set -euo pipefail
arbiter=$(realpath "${1:?usage: upgrade-fixture.sh ARBITER NAME}")
name=${2:?usage: upgrade-fixture.sh ARBITER NAME}
cd "$(dirname "$0")/.."
: "${ARBITER_DATABASE_URL:?names an empty database}"
work=$(mktemp -d)
running=
leave() {
    if [ -n "$running" ]; then
        kill "$running" 2>/dev/null || true
        wait "$running" || true
    fi
    rm -rf "$work"
}
trap leave EXIT

ask() { psql --no-psqlrc --tuples-only --no-align --command "$1" "$ARBITER_DATABASE_URL"; }

start() {
    # The log of the program before would end the wait too early.
    rm -f "$work/log"
    "$arbiter" up --data "$work/data" --grpc 127.0.0.1:0 --http 127.0.0.1:0 --slots 1 >"$work/log" 2>&1 &
    running=$!
    until grep -qs '^serving at' "$work/log"; do kill -0 "$running"; sleep 0.1; done
    ARBITER_SERVER=$(sed -n 's/^serving at \([^;]*\);.*/\1/p' "$work/log")
    ARBITER_TOKEN=$(cat "$work/data/admin.token")
    export ARBITER_SERVER ARBITER_TOKEN
}

start
"$arbiter" tournament create tests/upgrade/gomoku.toml
"$arbiter" tournament create tests/upgrade/blackjack.toml
# Of each pair of twins one is a house bot and one a player's.
player=$("$arbiter" token create --role player --name ada)
enter() {
    "$arbiter" submit "$1" "bots/$1/$2" --house --name "$2-1"
    ARBITER_TOKEN=$player "$arbiter" submit "$1" "bots/$1/$2" --name "$2-2"
}
for bot in shapes center; do enter gomoku "$bot"; done
for bot in basic lim17; do enter blackjack "$bot"; done
"$arbiter" tournament start gomoku
"$arbiter" tournament start blackjack
until [ "$(ask 'SELECT min(c) FROM (SELECT count(r.number) AS c FROM tournaments t LEFT JOIN results r ON r.tournament = t.id GROUP BY t.id) AS s')" -ge 4 ]; do sleep 0.1; done
kill -KILL "$running"
wait "$running" || true
[ "$(ask "SELECT count(*) FROM editions WHERE state = 'running'")" = 2 ] || { echo "error: a tournament is already over" >&2; exit 1; }
pg_dump --inserts --rows-per-insert=200 --no-owner --no-privileges "$ARBITER_DATABASE_URL" |
    sed '/^\\/d' | zstd -q -19 -f -o "tests/upgrade/$name.sql.zst"

start
"$arbiter" tournament watch gomoku
"$arbiter" tournament watch blackjack
for t in gomoku blackjack; do "$arbiter" ranking "$t" --format json; done >"tests/upgrade/$name.json"
kill -TERM "$running"
wait "$running"
