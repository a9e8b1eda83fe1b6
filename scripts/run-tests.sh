#!/usr/bin/env bash
# Sets up and runs every check: style, types, floors, tests. Arguments go to pytest.
# With SPECMATRIX_LLAMA_SERVER=/path/to/llama-server the tests of that engine path run too
# (scripts/build-llama-server.sh builds one and prints its path), with SPECMATRIX_OMLX=/path/to/python those of oMLX
# (scripts/build-omlx-env.sh makes an environment and prints its interpreter).
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/setup.sh --dev
export PATH="$PWD/.venv/bin:$PATH"
ruff check .
ruff format --check .
mypy
lint-imports --no-logo 2>/dev/null || lint-imports
# In the order of the folders, so that the small files of tests/unit come last and keep both workers busy to the end.
exec pytest -n 2 --dist loadfile --no-loadscope-reorder "$@"
