#!/usr/bin/env bash
# Installs what `make build` has made into PREFIX: libraries, headers, CMake and pkg-config files, manual pages and
# completions in the GNU directories, and the commands in a virtual environment of their own,
# PREFIX/libexec/palmette, linked into PREFIX/bin.
#
# Usage: [DESTDIR=...] install.sh PREFIX      with DESTDIR, for packagers, the command is left out
set -euo pipefail
cd "$(dirname "$0")/.."
prefix=${1:-}
case $prefix in
  /*) ;;
  *) echo "install: name an absolute directory: make install PREFIX=/opt/palmette" >&2; exit 2 ;;
esac
if ! mkdir -p "${DESTDIR:-}$prefix" 2>/dev/null || [ ! -w "${DESTDIR:-}$prefix" ]; then
  echo "install: you may not write to ${DESTDIR:-}$prefix; take another PREFIX, or do it as its owner" >&2
  exit 2
fi
build=build/release
log=$build/install.log
quietly() { "$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; echo "install: $1 failed, see above" >&2; exit 1; }; }

echo "install: libraries, headers and manual pages into ${DESTDIR:-}$prefix"
quietly .venv/bin/cmake --install $build --prefix "$prefix"
if [ -n "${DESTDIR:-}" ]; then
  echo "install: the commands are left out with DESTDIR: pip install --root \"\$DESTDIR\" --prefix PREFIX ."
  exit 0
fi

echo "install: the commands into $prefix/libexec/palmette, linked into $prefix/bin"
environment=$prefix/libexec/palmette
# Of the Python that the extension was made for, and not of its virtual environment.
python=$(.venv/bin/python -c 'import os, sys; print(os.path.realpath(sys.executable))')
closed() {  # a folder above the file $1 that others can't enter
  local folder=$1
  while folder=$(dirname "$folder"); [ "$folder" != / ]; do
    [ -z "$(find "$folder" -maxdepth 0 -not -perm -o=x)" ] || { echo "$folder"; return 0; }
  done
  return 0
}
hidden=$(closed "$python")
if [ -n "$hidden" ]; then
  echo "install: only you can run it, for its Python is $python, and $hidden is closed to others"
  echo "install: for everybody: make distclean, then make install PYTHON=/usr/bin/python3 PREFIX=$prefix"
fi
# One that is there goes on serving jobs while it is renewed, unless it is another Python's.
fresh=()
[ "$(realpath -q "$environment/bin/python" || true)" = "$python" ] || fresh=(--clear)
quietly "$python" -m venv "${fresh[@]}" "$environment"
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
# The Python files alone; what is compiled comes from the build.
PALMETTE_PYTHON_FILES_ALONE=1 quietly .venv/bin/pip wheel --disable-pip-version-check --no-deps \
  --no-build-isolation -C wheel.cmake=false --wheel-dir "$wheels" .
quietly "$environment/bin/pip" install --disable-pip-version-check "$wheels"/*.whl
quietly "$environment/bin/pip" install --disable-pip-version-check --no-deps --force-reinstall "$wheels"/*.whl
packages=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
quietly tools/publish.sh $build python "$packages"
mkdir -p "$prefix/bin"
for program in palmette palmette-aggregator palmette-lab; do
  ln -sfn "../libexec/palmette/bin/$program" "$prefix/bin/$program"
done
"$prefix/bin/palmette" --version
