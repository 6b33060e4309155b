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

# Configure anew where CMake can't see by itself that it must: the presets, the MPIs or GoogleTest have come or gone.
stale() {
  [ ! -f "$dir/build.ninja" ] || [ CMakePresets.json -nt "$log" ] || [ .mpi/.stamp -nt "$log" ] ||
    grep -q 'GoogleTest is missing' "$log"
}

mkdir -p "$dir"
if stale; then
  forget=()
  # What an MPI left behind that isn't there any more would still be found.
  [ "$preset" = release ] && rm -rf python/palmette/lib
  [ .mpi/.stamp -nt "$log" ] && forget=(-U 'PALMETTE_MPI_*')
  if ! cmake --preset "$preset" -DPython_EXECUTABLE="$PWD/.venv/bin/python" "${forget[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$dir/build.ninja"
    echo "build: configuring $preset failed, see above" >&2
    exit 1
  fi
  grep -E 'MPI ABI .* skipped' "$log" | sed 's/^-- /build: /' || true
  if grep -q 'GoogleTest is missing' "$log"; then
    echo "build: GoogleTest is missing, the C++ tests are skipped: apt-get install libgtest-dev libgmock-dev"
  fi
fi
# On a terminal ninja shows one line that counts; elsewhere one line says that something long is under way.
quiet=--quiet
[ -t 1 ] && quiet=
echo "build: $preset (some minutes the first time)"
if [ -z "$quiet" ]; then
  cmake --build "$dir" --parallel "$jobs" || { echo "build: $preset failed, see above" >&2; exit 1; }
else
  cmake --build "$dir" --parallel "$jobs" -- --quiet 2>&1 | { grep -vE '^(-- |The following files were|  [+-]/)' || true; } || {
    echo "build: $preset failed, see above" >&2
    exit 1
  }
fi
if [ "$preset" = release ]; then
  cmake --install "$dir" --prefix "$PWD/python" --component python >"$dir/install.log" || {
    cat "$dir/install.log" >&2
    exit 1
  }
fi
