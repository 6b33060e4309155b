#!/usr/bin/env bash
# Builds the preload libraries and the MPI test programs under AddressSanitizer and UndefinedBehaviorSanitizer
# (build/asan-ubsan-mpi, about four minutes on two cores) and runs the MPI tests with them on MPICH and Open MPI.
# Leaks aren't looked for: the MPIs keep what they have until the process ends.
#
# Usage: tests/mpi/sanitize.sh [PYTEST OPTIONS]
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$PWD/.venv/bin:$PATH"
dir=build/asan-ubsan-mpi

# UndefinedBehaviorSanitizer by the compiler's flags: with both in PALMETTE_SANITIZE the comma ends up in an expression
# of CMake's that takes one word.
cmake --preset asan-ubsan -B "$dir" -DPALMETTE_BUILD_MPI=ON -DPALMETTE_BUILD_MPI_TESTS=ON -DPALMETTE_BUILD_TESTS=OFF \
  -DPALMETTE_SANITIZE=address -DCMAKE_CXX_FLAGS=-fsanitize=undefined -DPALMETTE_MPI_ABI= \
  -DPython_EXECUTABLE="$PWD/.venv/bin/python" >"$dir.log" 2>&1 || { cat "$dir.log" >&2; exit 1; }
ninja -C "$dir" -j2 --quiet

# The sanitizer's library must be the first of a process, and the launcher's own programs aren't built with it.
PALMETTE_TEST_BUILD="$PWD/$dir" PALMETTE_TEST_FIRST_PRELOAD="$(gcc -print-file-name=libasan.so)" \
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
  .venv/bin/python -m pytest -q tests/python/mpi/test_arguments.py tests/python/mpi/test_surroundings.py \
  -k "(mpich or openmpi) and not abi and not three_thousand and not stay" "$@"
