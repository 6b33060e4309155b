#!/usr/bin/env bash
# Brings other tools' own readers of what `palmette convert` writes, for its tests: speedscope from npm into
# .venv/speedscope (1 MB). With `long` also Hatchet and Thicket into .venv/thicket, a virtual environment of their own:
# they bring half a gigabyte of other packages, in versions that needn't be ours. Never fails: what can't be had is
# reported in one line, and its tests are skipped with a reason.
#
# Usage: setup_readers.sh [long]
set -u
cd "$(dirname "$0")/.."
speedscope=1.25.0
thicket=(llnl-hatchet==2026.2.0 llnl-thicket==2026.1.1)

log=$(mktemp)
trap 'rm -f "$log"' EXIT
skip() { echo "setup: $1 isn't there, its tests are skipped ($2)"; }

if [ "$(cat .venv/speedscope/.installed 2>/dev/null)" != "$speedscope" ]; then
  if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
    skip speedscope "node and npm are missing"
  else
    echo "setup: speedscope into .venv/speedscope"
    mkdir -p .venv/speedscope
    if npm install --silent --no-audit --no-fund --ignore-scripts --prefix .venv/speedscope "speedscope@$speedscope" \
      >"$log" 2>&1; then
      echo "$speedscope" >.venv/speedscope/.installed
    else
      skip speedscope "npm: $(tail -n 1 "$log"); again: tools/setup_readers.sh"
    fi
  fi
fi

[ "${1:-}" = long ] || exit 0
[ "$(cat .venv/thicket/.installed 2>/dev/null)" = "${thicket[*]}" ] && exit 0
echo "setup: Hatchet and Thicket into .venv/thicket (about a minute)"
if .venv/bin/python -m venv .venv/thicket >"$log" 2>&1 \
  && .venv/thicket/bin/pip install --quiet --disable-pip-version-check "${thicket[@]}" >>"$log" 2>&1; then
  echo "${thicket[*]}" >.venv/thicket/.installed
else
  skip Thicket "$(grep -m1 -i error "$log" || tail -n 1 "$log"); again: tools/setup_readers.sh long"
fi
exit 0
