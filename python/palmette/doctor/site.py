"""`palmette doctor --site`: what differs between the hosts of an allocation, and what to mend."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.mpi.abi import ABIS, LIBRARIES, PROGRAMS
from palmette.mpi.errors import RunError
from palmette.mpi.installed import usable
from palmette.topology.found import some_names

NODE_CHECK = PROGRAMS / "palmette-node-check"
MARK = "palmette-node "
TIMEOUT_S = 300.0


class SiteError(ValueError):
    """The hosts can't be asked; the text says why and what to do."""


@dataclass(frozen=True)
class HostValue:
    """A value and the hosts that have it."""

    value: str
    hosts: list[str]


@dataclass(frozen=True)
class Difference:
    """Something that isn't the same on all hosts. `serious`: jobs go wrong, or without palmette."""

    what: str
    held: list[HostValue]
    serious: bool
    mend: str


@dataclass(frozen=True)
class Problem:
    """Something that is wrong on some hosts, whether or not it differs."""

    what: str
    hosts: list[str]
    serious: bool
    mend: str


@dataclass(frozen=True)
class SiteFindings:
    """What the hosts of an allocation have told."""

    hosts: list[str]
    palmette: str
    topology: str
    differences: list[Difference] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing serious was found."""
        return not (any(one.serious for one in self.differences) or any(one.serious for one in self.problems))

    def to_json(self) -> dict[str, object]:
        """Return everything as JSON values."""
        return {**asdict(self), "ok": self.ok}


def ask(launcher: Sequence[str], timeout_s: float = TIMEOUT_S) -> list[dict[str, Any]]:
    """Start the check by `launcher`, which says on which hosts, and return what each process told. Raises SiteError."""
    if not NODE_CHECK.is_file():
        raise SiteError(f"{NODE_CHECK.name} is not built; install palmette again, or `make build` in a checkout")
    if shutil.which(launcher[0]) is None:
        raise SiteError(f"{launcher[0]}: no such launcher; correct the name or PATH")
    try:
        program = usable(NODE_CHECK)
        libraries = [str(usable(path)) for abi in ABIS if (path := LIBRARIES / f"libpalmette_{abi}.so").is_file()]
    except RunError as error:
        raise SiteError(str(error)) from None
    try:
        ran = subprocess.run(
            [*launcher, str(program), *libraries], capture_output=True, text=True, errors="replace",
            timeout=timeout_s, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise SiteError(
            f"{launcher[0]} took longer than {timeout_s:g} s; try `{' '.join(launcher)} hostname` alone"
        ) from None
    except OSError as error:
        raise SiteError(f"{launcher[0]}: {error.strerror}; correct the name or its permissions") from None
    told = list(read(ran.stdout))
    if not told:
        words = next((line for line in ran.stderr.splitlines() if any(map(str.isalnum, line))), "nothing was printed")
        raise SiteError(
            f"{launcher[0]} ended with status {ran.returncode} and no host has answered: {words.strip()}; {NODE_CHECK}"
            " must be there on every host, under the same path"
        )
    return told


def read(text: str) -> Iterator[dict[str, Any]]:
    """Yield what hosts told, from a launcher's output, which may put words before a line."""
    for line in text.splitlines():
        at = line.find(MARK)
        if at < 0:
            continue
        try:
            value, _ = json.JSONDecoder().raw_decode(line, at + len(MARK))
        except json.JSONDecodeError:
            continue
        if isinstance(value, dict) and isinstance(value.get("host"), str):
            yield value


def compare(told: Sequence[Mapping[str, Any]]) -> SiteFindings:
    """Return what differs between the hosts, and what is wrong on some."""
    hosts = sorted({str(one["host"]) for one in told})
    facts: dict[str, dict[str, list[str]]] = {}
    rows = [(str(one["host"]), dict(_facts(one))) for one in told]
    for name in dict.fromkeys(name for _, row in rows for name in row):
        for host, row in rows:
            value = row.get(name, "default" if name.startswith("PALMETTE_") else "not looked for")
            known = facts.setdefault(name, {}).setdefault(value, [])
            if host not in known:
                known.append(host)
    differences = [
        Difference(name, [HostValue(value, sorted(where)) for value, where in by_value.items()], *_judged(name))
        for name, by_value in facts.items()
        if len(by_value) > 1
    ]
    topology = _topology(told[0])
    problems = [*_wrong(facts, {one.what for one in differences}), *_mistakes(told), *_unknown(topology, hosts)]
    return SiteFindings(hosts, str(told[0].get("palmette", "")), topology, differences, problems)


def _facts(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is compared, as name and text."""
    yield "palmette", str(one.get("palmette"))
    for name, value in one.get("settings", {}).items():
        yield name, str(value.get("value", ""))
    for path, mark in one.get("files", {}).items():
        yield path, str(mark)
    for name, value in one.get("system", {}).items():
        yield name, str(value)
    for name, value in one.get("limits", {}).items():
        yield f"limit of {name}", str(value)


def _judged(name: str) -> tuple[bool, str]:
    """Return whether a difference of that kind is serious, and what to do."""
    if name == "palmette":
        return True, "install one version on all hosts; ranks of two versions serve nothing"
    if name.startswith("PALMETTE_"):
        return True, "give all hosts the same environment and the same files; where settings differ nothing is served"
    if name.startswith("/"):
        what = "copy the file to all hosts, or put it on a shared file system"
        if Path(name).name.startswith("libpalmette_"):
            return True, f"{what}; ranks without the library serve nothing"
        return True, what
    if name in ("memfd", "single copy", "XPMEM", "ptrace_scope", "shared memory bytes"):
        return False, "correct, but slower on some hosts; set the kernel up alike"
    if name == "glibc":
        return False, "correct where palmette was built for the oldest of them"
    if name == "architecture":
        return True, "jobs over both aren't served; keep them apart by a partition"
    if name.startswith("limit of "):
        return False, "set limits.conf, or the batch system's daemon's limits, alike"
    return False, "no harm by itself"


def _wrong(facts: Mapping[str, Mapping[str, list[str]]], different: set[str]) -> Iterator[Problem]:
    """What no host should have."""
    for name, by_value in facts.items():
        for value, hosts in by_value.items():
            if name in ("memfd", "single copy") and value != "yes":
                how = "shared memory" if name == "memfd" else "reading other ranks' memory"
                yield Problem(
                    f"{how}: {value}",
                    sorted(hosts),
                    False,
                    "a container's seccomp profile or the kernel forbids it; ranks of a node take a slower way",
                )
            elif name.startswith("/") and value in ("missing", "can't be read") and name not in different:
                yield Problem(f"{name}: {value}", sorted(hosts), True, "correct the path or its permissions")


def _mistakes(told: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    by_mistake: dict[str, set[str]] = {}
    for one in told:
        for mistake in one.get("mistakes", []):
            by_mistake.setdefault(str(mistake), set()).add(str(one["host"]))
    for mistake, hosts in by_mistake.items():
        what, _, mend = mistake.rpartition("; ")
        yield Problem(what or mistake, sorted(hosts), True, mend)


def _topology(one: Mapping[str, Any]) -> str:
    return str(one.get("settings", {}).get("PALMETTE_TOPOLOGY", {}).get("value", ""))


def _unknown(path: str, hosts: Sequence[str]) -> Iterator[Problem]:
    """Hosts that the topology doesn't have."""
    if not path or not Path(path).is_file():
        return
    try:
        machine = _core.Machine.from_file(path)
    except _core.Error as error:
        again = f"palmette discover --refresh {shlex.quote(str(path))}"
        yield Problem(str(error), list(hosts), True, f"write it again: {again}")
        return
    unknown = [host for host in hosts if machine.find_host(host) is None]
    if unknown:
        yield Problem(
            f"{path} doesn't have {some_names(unknown)}",
            unknown,
            False,
            f"jobs there are served, but know no switches; palmette discover --refresh "
            f"{shlex.quote(str(path))} reads its sources again",
        )
