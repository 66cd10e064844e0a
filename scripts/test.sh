#!/usr/bin/env bash
# The whole test suite in two halves side by side: both wait for processes, disks and clocks most of the time.
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
.venv/bin/pytest tests/integration/lab > "$log" 2>&1 &
laboratory=$!
status=0
.venv/bin/pytest --ignore=tests/integration/lab || status=$?
wait "$laboratory" || status=$?
cat "$log"
exit "$status"
