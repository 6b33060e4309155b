#!/usr/bin/env bash
# Brings what a build has made to where jobs find it: a component of `cmake --install`, by way of a folder of the build.
# Each file that has changed is renamed into its place, so that whoever opens it meanwhile sees the old one or the new
# one, whole. With `python`, the component that has them all, libraries of MPIs that have gone are removed at the end.
#
# Usage: publish.sh BUILD COMPONENT DESTINATION
set -euo pipefail
cd "$(dirname "$0")/.."
build=$PWD/${1#"$PWD"/}
component=$2
destination=$3
staged=$build/package

# CMake takes a file for installed whose time is within a second of the installed one.
CMAKE_INSTALL_ALWAYS=1 PATH="$PWD/.venv/bin:$PATH" cmake --install "$build" --prefix "$staged" --component "$component" >"$build/install.log" || {
  cat "$build/install.log" >&2
  exit 1
}
mapfile -t files <"$build/install_manifest_$component.txt"
for file in "${files[@]}"; do
  to=$destination/${file#"$staged"/}
  cmp -s "$file" "$to" && continue
  new=${to%/*}/.new-${to##*/}
  mkdir -p "${to%/*}"
  cp -p "$file" "$new"
  mv -f "$new" "$to"
done
[ "$component" = python ] || exit 0
known=" ${files[*]#"$staged"/} "
for file in "$destination"/palmette/lib/*.so* "$destination"/palmette/lib/*/*.so*; do
  [[ "$known" == *" ${file#"$destination"/} "* ]] || rm -f "$file"
done
