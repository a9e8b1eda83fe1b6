#!/usr/bin/env bash
# Sets up and runs the default matrix on real engines; arguments go to `specmatrix run`.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/setup.sh
exec .venv/bin/specmatrix run "$@"
