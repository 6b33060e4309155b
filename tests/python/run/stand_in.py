"""A launcher's interface without its machines: reads the options that its manual has, and starts the ranks here.

As `flux`, `aprun` or PALS's `mpiexec`, by the first word. Prints for each rank a line of JSON: its number, and the
variables that its program sees. What the manual doesn't have is refused, as the launcher would.
"""

from __future__ import annotations

import argparse
import json
import os
import string
import sys

VERSION = {
    "flux": "commands:    \t\t0.61.2\nlibflux-core:\t\t0.61.2\nbuild-options:\t\t+systemd+hwloc==2.9.0+zmq==4.3.4",
    "aprun": "aprun (ALPS) 5.2.4",
    "pals": "mpiexec version 1.2.12 revision 9a7a7a1",
}


def options(kind: str) -> argparse.ArgumentParser:
    """Return the parser of the options that are tried here."""
    parser = argparse.ArgumentParser(prog=kind, allow_abbrev=False)
    if kind == "flux":
        parser.add_argument("-n", "--ntasks", type=int, default=1)
        parser.add_argument("-N", "--nodes", type=int)
        parser.add_argument("-c", "--cores-per-task", type=int)
        parser.add_argument("-l", "--label-io", action="store_true")
        parser.add_argument("-o", "--setopt", action="append")
        parser.add_argument("--requires")
        parser.add_argument("--taskmap")
        parser.add_argument("--env", action="append", default=[])
    elif kind == "aprun":
        parser.add_argument("-n", dest="ntasks", type=int, default=1)
        parser.add_argument("-N", type=int)
        parser.add_argument("-d", type=int)
        parser.add_argument("-L")
        parser.add_argument("-cc")
        parser.add_argument("-q", action="store_true")
        parser.add_argument("-e", dest="env", action="append", default=[])
    else:
        parser.add_argument("-n", "--np", dest="ntasks", type=int, default=1)
        parser.add_argument("--ppn", "-ppn", type=int)
        parser.add_argument("--hosts", "-hosts")
        parser.add_argument("--cpu-bind")
        parser.add_argument("--envall", action="store_true")
        parser.add_argument("--env", "-env", action="append", default=[])
    parser.add_argument("program", nargs=argparse.REMAINDER)
    return parser


def changed(kind: str, rules: list[str]) -> dict[str, str]:
    """Return the environment of the ranks."""
    environment = dict(os.environ)
    for rule in rules:
        name, equals, value = rule.partition("=")
        if equals:
            environment[name] = string.Template(value).substitute(environment) if kind == "flux" else value
        elif rule == "-*":
            environment.clear()
    return environment


def main(kind: str, words: list[str]) -> int:
    """Start the ranks of each part of the line."""
    if words == ["--version"]:
        print(VERSION[kind])
        return 0
    if kind == "flux":
        if words[:1] != ["run"]:
            print(f"flux: {words[:1]} isn't tried here", file=sys.stderr)
            return 2
        words = words[1:]
    first = 0
    while words:
        end = words.index(":") if ":" in words and kind != "flux" else len(words)
        read = options(kind).parse_args(words[:end])
        environment = changed(kind, read.env)
        for rank in range(first, first + read.ntasks):
            seen = {name: value for name, value in environment.items() if name.startswith(("LD_PRELOAD", "PALMETTE_"))}
            print(json.dumps({"rank": rank, "program": read.program, "sees": seen}))
        first += read.ntasks
        words = words[end + 1 :]
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
