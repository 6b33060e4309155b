#!/usr/bin/env bash
# Installs SimGrid (Debian's libsimgrid-dev, as root) and builds what `palmette-lab simulate` runs: a build of the runtime
# for SimGrid's MPI. Doesn't fail where SimGrid is unavailable: that is reported in one line, and what needs it is
# skipped with a reason.
#
# Usage: setup_simgrid.sh [JOBS]      after `make build`
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-2}
export PATH="$PWD/.venv/bin:$PATH"
tools/setup_debian.sh libsimgrid-dev
if ! command -v smpirun >/dev/null; then
  echo "setup: SimGrid isn't there, \`palmette-lab simulate\` and its tests are left out (apt-get install libsimgrid-dev)"
  exit 0
fi
tools/build.sh release "$jobs" simbench
