#!/usr/bin/env bash
# Stores records in a real S3 server (coordinator/tests/record_store.rs): moto, from PyPI, in an
# environment below target/.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prepare.sh
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
install_missing
target=${CARGO_TARGET_DIR:-$PWD/target}
venv=$target/moto
log=$target/moto.log
if [ ! -x "$venv/bin/moto_server" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet 'moto[s3]==5.*' flask flask-cors
fi
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$venv/bin/moto_server" --host 127.0.0.1 --port "$port" >"$log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" || true' EXIT
export AWS_ACCESS_KEY_ID=arbiter AWS_SECRET_ACCESS_KEY=arbiter AWS_REGION=us-east-1
export AWS_ENDPOINT_URL=http://127.0.0.1:$port AWS_ALLOW_HTTP=true
# Wait for the server's first response (a second), then create the bucket.
until curl --silent --fail --output /dev/null --request PUT "$AWS_ENDPOINT_URL/arbiter"; do
    kill -0 "$server" || { cat "$log" >&2; exit 1; }
    sleep 0.2
done
ARBITER_TRY_S3=s3://arbiter/some/records cargo test --workspace --test record_store
puts=$(grep -c 'PUT /arbiter/some/records/' "$log")
gets=$(grep -c 'GET /arbiter/some/records/' "$log")
echo "requests to the server: $puts record objects written, $gets records read"
[ "$puts" -gt 0 ] && [ "$gets" -gt 0 ]
