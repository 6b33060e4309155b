#!/usr/bin/env bash
# Configures and builds a preset quietly: its warnings and errors show, and one line at the end.
# For `release` the package in python/ gets what was compiled.
#
# Usage: build.sh PRESET [JOBS]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
jobs=${2:-2}
export PATH="$PWD/.venv/bin:$PATH"
dir=build/$preset
log=$dir/configure.log

mkdir -p "$dir"
if [ ! -f "$dir/build.ninja" ] || [ CMakePresets.json -nt "$dir/build.ninja" ]; then
  if ! cmake --preset "$preset" -DPython_EXECUTABLE="$PWD/.venv/bin/python" >"$log" 2>&1; then
    cat "$log" >&2
    echo "build: configuring $preset failed, see above and $log" >&2
    exit 1
  fi
  grep -E 'MPI ABI .* skipped|GoogleTest is missing' "$log" || true
fi
# Ninja's and CMake's progress is left out; a command that fails shows as a line FAILED.
cmake --build "$dir" --parallel "$jobs" -- --quiet 2>&1 | { grep -vE '^(-- |The following files were|  [+-]/)' || true; } || {
  echo "build: $preset failed, see above" >&2
  exit 1
}
if [ "$preset" = release ]; then
  cmake --install "$dir" --prefix "$PWD/python" --component python >"$dir/install.log" || {
    cat "$dir/install.log" >&2
    exit 1
  }
fi
