#!/usr/bin/env bash
# Makes an environment of its own for oMLX and prints its Python interpreter on stdout; all else goes to stderr.
# oMLX itself comes from git, for Macs alone. The PyPI package flyto-mlx is a fork that ships the same package `omlx`
# (0.7.0) and serves small models on a CPU, so it is what the tests run. Every version is pinned; what serving text
# does not import is left out. Kept by version outside the clone (SPECMATRIX_CACHE, else ~/.cache/specmatrix), so a
# missing cache costs time only: about a minute, and 400 MB.
set -euo pipefail
fork="flyto-mlx==0.7.0"
edition=1 # raise it with every change of the list below
cache=${SPECMATRIX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/specmatrix}
python=${PYTHON:-python3}
tag=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
home="$cache/omlx-${fork#*==}-py$tag-$edition"
if [ -f "$home/complete" ] && "$home/bin/python" -I -c "import mlx.core" >/dev/null 2>&1; then
  echo "$home/bin/python"
  exit 0
fi
packages=(
  "$fork" mlx==0.32.3 mlx-lm==0.31.3 mlx-vlm==0.6.3
  transformers==5.12.1 tokenizers==0.22.2 huggingface-hub==1.33.0 hf-xet==1.8.0 safetensors==0.8.0 numpy==2.3.5
  fastapi==0.165.0 starlette==1.10.0 uvicorn==0.54.0 h11==0.16.0 click==8.5.1 python-multipart==0.0.34
  itsdangerous==2.2.0 httpx==0.28.1 httpcore==1.0.9 anyio==4.16.0 idna==3.20 certifi==2026.10.19.post1
  requests==2.34.2 urllib3==2.8.0 charset-normalizer==3.5.3 pydantic==2.14.4 pydantic-core==2.50.5
  annotated-types==0.8.0 annotated-doc==0.0.7 typing-extensions==4.16.0 typing-inspection==0.4.5
  jinja2==3.1.6 markupsafe==3.0.4 jsonschema==4.26.0 jsonschema-specifications==2025.9.1 referencing==0.37.0
  rpds-py==2026.9.1 attrs==26.1.0 openai-harmony==0.0.8 pillow==13.0.0 protobuf==7.36.2 psutil==7.2.2
  pyyaml==6.0.4 regex==2026.11.19 tabulate==0.10.0 tqdm==4.70.1 filelock==4.3.1 fsspec==2026.9.0
  packaging==26.4 typer==0.29.2 shellingham==1.5.4 rich==15.0.0 markdown-it-py==4.3.0 mdurl==0.1.2
  pygments==2.21.0 opentelemetry-api==1.45.2
)
[ "$(uname)" = Darwin ] || packages+=(mlx-cpu==0.32.3)
mkdir -p "$cache"
# A virtual environment cannot be moved, so it is made in its place; the file `complete` comes last, and without it
# (an attempt that was cut off) the place is cleared. The lock keeps two builds from clearing each other's.
lock="$home.lock"
until mkdir "$lock" 2>/dev/null; do
  owner=$(cat "$lock/pid" 2>/dev/null || true)
  if [ -n "$owner" ] && kill -0 "$owner" 2>/dev/null; then
    sleep 1
  elif [ -n "$owner" ] || [ -n "$(find "$lock" -maxdepth 0 -mmin +1 2>/dev/null)" ]; then
    rm -rf "$lock" # its owner was killed
  else
    sleep 1
  fi
done
echo $$ >"$lock/pid"
trap 'rm -rf "$lock"' EXIT
if [ ! -f "$home/complete" ]; then
  {
    rm -rf "$home"
    "$python" -m venv "$home"
    "$home/bin/python" -m pip install --quiet --no-deps --no-compile --only-binary :all: "${packages[@]}"
    "$home/bin/python" -I -c "import omlx.cli, omlx.server"
    "$home/bin/python" -m pip uninstall --quiet --yes pip
    touch "$home/complete"
  } >&2
fi
echo "$home/bin/python"
