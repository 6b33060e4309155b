#!/usr/bin/env bash
# Unpacks UCC into .mpi/ucc, for the tests that let it read what `palmette export` writes: Debian's packages of release
# forky, with the C library that they need, into a prefix of their own. Nothing is installed. Never fails: where UCC is
# unavailable, that is reported in one line, and its tests are skipped with a reason.
#
# Usage: setup_ucc.sh
set -u
cd "$(dirname "$0")/.."
skip() {
  echo "setup: UCC isn't there, its tests are skipped ($1)"
  exit 0
}
release=forky
packages=(libucc1 libucc-dev libucx0 libibverbs1 libnl-3-200 libnl-route-3-200 libc6 libgcc-s1)
[ "$(cat .mpi/ucc/.installed 2>/dev/null)" = "$release ${packages[*]}" ] && exit 0
for tool in apt-get dpkg-deb; do
  command -v "$tool" >/dev/null || skip "$tool is missing: this is no Debian"
done
# Where this machine's own packages come from.
mirror=$(apt-get indextargets --format '$(SITE)' | grep -m1 '/debian/\?$')
[ -n "$mirror" ] || skip "apt knows no mirror of Debian: apt-get update"
echo "setup: UCC into .mpi/ucc"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/debs"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main" >"$work/sources"
: >"$work/status"
options=(-q -o "Dir::State=$work/state" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache"
  -o "Dir::Etc::sourcelist=$work/sources" -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferencesparts=/dev/null
  -o Acquire::Languages=none -o APT::Sandbox::User="$(id -un)")
fetch() { apt-get "${options[@]}" update && cd "$work/debs" && apt-get "${options[@]}" download "${packages[@]}"; }
if ! (fetch) >"$work/log" 2>&1 || grep -q '^E:' "$work/log"; then
  skip "$(grep -m1 '^[EW]:' "$work/log" || tail -n 1 "$work/log"); again: tools/setup_ucc.sh"
fi
rm -rf .mpi/ucc
mkdir -p .mpi/ucc
for package in "$work"/debs/*.deb; do
  dpkg-deb -x "$package" .mpi/ucc && continue
  rm -rf .mpi/ucc
  skip "$(basename "$package") can't be unpacked; again: tools/setup_ucc.sh"
done
echo "$release ${packages[*]}" >.mpi/ucc/.installed
