#!/usr/bin/env bash
# Plays a tournament under the eyes of a real Prometheus, and asks it everything that the dashboard
# and the alerts in deploy/observe ask. Takes half a minute. Further words: the program
# (target/debug/arbiter).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prepare.sh
need prometheus prometheus
need promtool prometheus
install_missing
arbiter=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/debug/arbiter}")
python3 scripts/observe-test.py "$arbiter"
