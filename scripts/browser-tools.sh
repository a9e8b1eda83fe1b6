#!/usr/bin/env bash
# Makes Chromium, a Korean font and axe-core available for the browser tests; prints the path of axe.min.js.
# As root on Debian missing packages are installed; axe-core goes into a cache folder by version, outside this clone.
set -euo pipefail
version=4.14.1
need=()
command -v chromium >/dev/null || command -v google-chrome >/dev/null || need+=(chromium)
[ -n "$(fc-list ':lang=ko' 2>/dev/null)" ] || need+=(fontconfig fonts-noto-cjk)
command -v npm >/dev/null || need+=(npm)
if [ "${#need[@]}" -gt 0 ]; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing: ${need[*]}; install them to run the browser tests" >&2
    exit 3
  fi
  { apt-get update -q; DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${need[@]}"; } >&2
fi
folder=${SPECMATRIX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/specmatrix}/axe-core-$version
if [ ! -f "$folder/node_modules/axe-core/axe.min.js" ]; then
  npm install --no-audit --no-fund --silent --prefix "$folder" "axe-core@$version" >&2
fi
echo "$folder/node_modules/axe-core/axe.min.js"
