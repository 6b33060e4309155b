#!/usr/bin/env bash
# Installs the Debian packages that tests and the lab use, where that is possible. Never fails the build: what is
# missing is reported in one line, and what needs it is skipped with a reason.
#
# Usage: setup_debian.sh [PACKAGE...]      default: everything that tests and the lab use
set -u

packages=("$@")
if [ ${#packages[@]} -eq 0 ]; then
  # ccache: fast rebuilds. libgtest-dev, libgmock-dev: C++ tests. iproute2: the lab. hwloc: the inside of hosts. The
  # rest: ibnetdiscover against a simulated fabric.
  packages=(ccache libgtest-dev libgmock-dev iproute2 infiniband-diags ibsim-utils opensm hwloc)
fi

installed() { dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }

missing=()
if command -v dpkg-query >/dev/null; then
  for package in "${packages[@]}"; do
    installed "$package" || missing+=("$package")
  done
else
  echo "setup: this is no Debian; install the likes of ${packages[*]} by hand for all tests to run"
  exit 0
fi
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "setup: not root, so these are not installed: ${missing[*]} (apt-get install ${missing[*]})"
  exit 0
fi

export DEBIAN_FRONTEND=noninteractive
echo "setup: Debian packages ${missing[*]}"
apt_log=$(mktemp)
trap 'rm -f "$apt_log"' EXIT
apt-get update -q >"$apt_log" 2>&1 || true
# One by one when all together fails, so that one unknown package doesn't prevent the others.
if ! apt-get install -q -y --no-install-recommends "${missing[@]}" >>"$apt_log" 2>&1; then
  for package in "${missing[@]}"; do
    apt-get install -q -y --no-install-recommends "$package" >>"$apt_log" 2>&1 \
      || echo "setup: apt-get install $package failed: $(grep -m1 '^E:' "$apt_log" || tail -n 1 "$apt_log")"
  done
fi
exit 0
