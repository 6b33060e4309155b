#!/usr/bin/env bash
# Makes .venv with what the build, the package and the checks need.
#
# Usage: setup_venv.sh [PYTHON [LIST...]]      default: all lists of tools/requirements.py
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3}
lists=("${@:2}")

command -v "$python" >/dev/null || { echo "setup: $python is missing; install Python 3.10 or later" >&2; exit 1; }
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
  echo "setup: $("$python" --version) is too old; palmette needs 3.10 or later: make build PYTHON=python3.12" >&2
  exit 1
}
echo "setup: Python packages into .venv (about a minute the first time)"
if [ ! -x .venv/bin/pip ]; then
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    tools/setup_debian.sh python3-venv python3-dev
  fi
  "$python" -m venv .venv || {
    echo "setup: $python can't make a virtual environment; install python3-venv" >&2
    exit 1
  }
fi
# Made by root of a Python below a home that only root enters, it is of use to nobody else.
below=$(.venv/bin/python -c 'import sys; print(sys.base_prefix)')
while [ "$(id -u)" -eq 0 ] && [ "$below" != / ] && [ -n "$below" ]; do
  case $(stat -c %A "$below") in
    *[xt]) below=$(dirname "$below") ;;
    *)
      echo "setup: warning: other users can't enter $below, where this Python lies, so .venv is root's alone;" \
        "take another: make distclean; make build PYTHON=/usr/bin/python3" >&2
      break
      ;;
  esac
done
# The pip that comes with older Pythons can't pass settings on to a build.
.venv/bin/pip install --quiet --disable-pip-version-check 'pip>=23.1'
# From pyproject.toml, so that a dependency is named once.
requirements=$(.venv/bin/python tools/requirements.py "${lists[@]}")
# shellcheck disable=SC2086  # one requirement a word
.venv/bin/pip install --quiet --disable-pip-version-check $requirements
