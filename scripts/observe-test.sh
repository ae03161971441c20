#!/usr/bin/env bash
# Plays a tournament while a real Prometheus collects metrics, and runs every query of the dashboard
# and the alerts in deploy/observe. Takes half a minute. Argument: the program (default:
# target/debug/arbiter).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prepare.sh
need prometheus prometheus
need promtool prometheus
install_missing
arbiter=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/debug/arbiter}")
python3 scripts/observe-test.py "$arbiter"
