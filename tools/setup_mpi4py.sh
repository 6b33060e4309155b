#!/usr/bin/env bash
# Brings mpi4py's own tests, from its source distribution into .venv/mpi4py/VERSION: those of .venv's mpi4py, and of
# Debian's where that is installed. Never fails: what can't be had is reported in one line, and its tests are skipped
# with a reason.
#
# Usage: setup_mpi4py.sh
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
exit 0
