#!/usr/bin/env bash
# Brings mpi4py's own tests, from its source distribution into .venv/mpi4py/VERSION: those of .venv's mpi4py, and of
# Debian's where that is installed. Never fails: what can't be had is reported in one line, and its tests are skipped
# with a reason. With `abi` also an mpi4py for the standard's ABI into .venv/mpi4py/abi, compiled here (some minutes)
# with MPICH's mpicc_abi: PyPI's wheels have none.
#
# Usage: setup_mpi4py.sh [abi]
set -u
cd "$(dirname "$0")/.."
version_of() { "$1" -c 'import mpi4py; print(mpi4py.__version__)' 2>/dev/null; }
for version in $(version_of .venv/bin/python) $(version_of /usr/bin/python3); do
  folder=.venv/mpi4py/$version
  [ -f "$folder/.installed" ] && continue
  echo "setup: tests of mpi4py $version into $folder"
  work=$(mktemp -d)
  if .venv/bin/pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
    --dest "$work" "mpi4py==$version" >"$work/log" 2>&1 \
    && mkdir -p "$folder" && tar -xf "$work"/mpi4py-*.tar.gz -C "$folder" --strip-components=1 2>>"$work/log"; then
    touch "$folder/.installed"
  else
    echo "setup: mpi4py's tests aren't there, they are skipped ($(tail -n 1 "$work/log")); again: tools/setup_mpi4py.sh"
  fi
  rm -rf "$work"
done
if [ "${1:-}" = abi ] && [ ! -f .venv/mpi4py/abi/.installed ] && [ -x .mpi/mpich/bin/mpicc_abi ]; then
  echo "setup: mpi4py for the standard's ABI into .venv/mpi4py/abi (some minutes)"
  log=$(mktemp)
  if .venv/bin/python -m venv .venv/mpi4py/abi >"$log" 2>&1 \
    && CFLAGS="-O1 -g0" MPICC="$PWD/.mpi/mpich/bin/mpicc_abi" .venv/mpi4py/abi/bin/pip install --quiet \
      --disable-pip-version-check --no-binary mpi4py numpy "mpi4py==$(version_of .venv/bin/python)" >>"$log" 2>&1; then
    touch .venv/mpi4py/abi/.installed
  else
    echo "setup: no mpi4py for the standard's ABI, its tests are skipped ($(tail -n 1 "$log"))"
  fi
  rm -f "$log"
fi
exit 0
