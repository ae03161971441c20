#!/usr/bin/env bash
# Fuzzes the API of a running coordinator with schemathesis, from its OpenAPI description, with valid
# and invalid requests, without a token and as an administrator. No response may be a server error or
# differ from the description. Takes about two minutes. Reports are in the build directory, below
# `fuzz-api`.
# Argument: the program (default: target/debug/arbiter).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prepare.sh
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
install_missing

built=$(realpath "${CARGO_TARGET_DIR:-target}")
arbiter=$(realpath "${1:-$built/debug/arbiter}")
[ -x "$arbiter" ] || { echo "error: $arbiter is missing; run cargo build" >&2; exit 2; }
tools=$built/fuzz-api-tools
wanted='schemathesis==4.32.5'
if [ "$(cat "$tools/wanted" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$tools"
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check "$wanted"
    echo "$wanted" >"$tools/wanted"
fi
reports=$built/fuzz-api
rm -rf "$reports"
mkdir -p "$reports"

scratch=$(mktemp -d)
# As root, Postgres runs as another user, who must have access.
chmod a+x "$scratch"
server=
leave() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" || true
    fi
    rm -rf "$scratch"
}
trap leave EXIT

read -r http grpc < <(python3 -c '
import socket
ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(f"127.0.0.1:{port.getsockname()[1]}" for port in ports))')
"$arbiter" up --data "$scratch/up" --http "$http" --grpc "$grpc" --slots 1 --sandbox off \
    >"$reports/up.log" 2>&1 &
server=$!
for _ in $(seq 600); do
    curl -sf "http://$http/readyz" >/dev/null && break
    kill -0 "$server" || { cat "$reports/up.log" >&2; exit 1; }
    sleep 0.2
done
ARBITER_SERVER=http://$grpc
ARBITER_TOKEN=$(cat "$scratch/up/admin.token")
export ARBITER_SERVER ARBITER_TOKEN

cat >"$scratch/cup.toml" <<EOF
name = "cup"
game = "gomoku"
seed = "fuzz"
[schedule]
kind = "round_robin"
sides = "both"
[house]
bots = ["$PWD/bots/gomoku/house", "$PWD/bots/gomoku/center", "$PWD/bots/gomoku/shapes"]
EOF
"$arbiter" tournament create "$scratch/cup.toml"
"$arbiter" tournament start cup
"$arbiter" tournament watch cup >/dev/null

# Data to request; without it most responses would be 404.
cat >"$scratch/known.toml" <<EOF
[parameters]
"path.tournament" = "cup"
"path.bot" = "center"
"path.version" = 1
"path.number" = 2
"path.edition" = 1
EOF
: >"$scratch/unknown.toml"

# Not errors: 409 if there is no record or edition, 429 for too many requests.
cat >"$scratch/checks.toml" <<EOF
[cache]
enabled = false
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "304", "401", "403", "404", "409", "429"]
EOF

failed=0
ask() {
    local name=$1 config=$2
    echo "as $name"
    cat "$scratch/checks.toml" "$scratch/$config.toml" >"$scratch/$name.toml"
    "$tools/bin/schemathesis" --config-file "$scratch/$name.toml" run \
        "http://$http/api/v1/openapi.json" --url "http://$http" \
        --phases examples,coverage,fuzzing --max-examples "$3" --seed 1 --workers 2 \
        --generation-database none --suppress-health-check all --request-timeout 30 \
        --continue-on-failure --warnings off --no-color \
        --report junit,ndjson --report-dir "$reports/$name" "${@:4}" \
        >"$reports/$name.log" 2>&1 || { failed=1; tail -n 60 "$reports/$name.log"; }
}
ask public known 25
ask administrator known 25 --header "Authorization: Bearer $ARBITER_TOKEN" \
    --exclude-checks ignored_auth
ask stranger unknown 15 --header "Authorization: Bearer $ARBITER_TOKEN" \
    --exclude-checks ignored_auth

kill -0 "$server" || { echo "error: the server exited during the test" >&2; exit 1; }
grep -hE "^ +[0-9]+ .*(passed|generated)|Test cases|No issues" "$reports"/*.log || true
[ "$failed" -eq 0 ] || { echo "error: see $reports" >&2; exit 1; }
