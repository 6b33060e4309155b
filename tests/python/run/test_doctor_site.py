"""`palmette doctor --site`: what differs between hosts, and the verdict of `palmette doctor`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.doctor.here import FoundLauncher, FoundMpi, examine, find_launchers
from palmette.doctor.site import NODE_CHECK, compare, read

Build = Callable[..., Path]


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    """A launcher that starts its program on three hosts, which this machine pretends to be."""
    if not NODE_CHECK.is_file():
        pytest.skip(f"no {NODE_CHECK.name}: make build")
    path = tmp_path / "start"
    path.write_text(
        "#!/bin/sh\nfor host in n1 n2 n3; do\n"
        f'    XDG_CONFIG_HOME={tmp_path}/$host PALMETTE_FAKE_HOST=$host "$@" | sed "s/^/[$host] /"\ndone\n'
    )
    path.chmod(0o755)
    return path


def test_alike_hosts_are_ready(palmette: Callable[..., Any], launcher: Path) -> None:
    result = palmette("doctor", "--site", "--", launcher)
    assert result.status == 0, result.out
    assert "3 hosts: n1, n2, n3; palmette" in result.out
    assert result.out.endswith("ready: nothing keeps jobs on these 3 hosts from being served\n")


def test_what_differs_is_told_with_hosts_and_what_to_mend(
    palmette: Callable[..., Any], launcher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = _core.Machine.synthetic("1leaf:2node").to_json()
    topology = tmp_path / "topology.json"
    topology.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}))
    monkeypatch.setenv("PALMETTE_TOPOLOGY", str(topology))
    for host, line in (("n1", "PALMETTE_WAIT=poll"), ("n2", "PALMETTE_WAIT=poll"), ("n3", "PALMETTE_WAIT=never")):
        (tmp_path / host / "palmette").mkdir(parents=True)
        (tmp_path / host / "palmette" / "settings").write_text(line + "\n")
    result = palmette("doctor", "--site", "--", launcher)
    assert result.status == 1
    assert all(len(line) <= 80 for line in result.out.splitlines())
    dense = "".join(result.out.split())  # long paths are broken anywhere
    for sentence in (
        "PALMETTE_WAIT poll: n1, n2 default: n3 -> give all hosts the same environment",
        "settings:1: PALMETTE_WAIT=never: expected auto, mpi or poll (on n3) -> correct or remove",
        f"{topology} doesn't have n1, n2, n3",
        "not ready: mend what is listed first",
    ):
        assert "".join(sentence.split()) in dense
    found = json.loads(palmette("doctor", "--site", "--json", "--", launcher).out)
    (wait,) = [one for one in found["differences"] if one["what"] == "PALMETTE_WAIT"]
    assert wait["held"] == [{"value": "poll", "hosts": ["n1", "n2"]}, {"value": "default", "hosts": ["n3"]}]
    assert wait["serious"] and not found["ok"]


def told(host: str, **changed: Any) -> dict[str, Any]:
    one = {
        "host": host,
        "palmette": "0.1.0",
        "settings": {},
        "mistakes": [],
        "files": {"/opt/lib/libpalmette_mpich.so": "a1"},
        "system": {"glibc": "2.36", "memfd": "yes", "single copy": "yes"},
        "limits": {"locked memory": "unlimited"},
    }
    return {**one, **changed}


@pytest.mark.parametrize(
    ("changed", "what", "serious"),
    [
        ({"palmette": "0.2.0"}, "palmette", True),
        ({"files": {"/opt/lib/libpalmette_mpich.so": "missing"}}, "/opt/lib/libpalmette_mpich.so", True),
        ({"settings": {"PALMETTE_WAIT": {"value": "mpi", "where": "environment"}}}, "PALMETTE_WAIT", True),
        ({"system": {"glibc": "2.31", "memfd": "yes", "single copy": "yes"}}, "glibc", False),
        ({"limits": {"locked memory": 65536}}, "limit of locked memory", False),
    ],
)
def test_each_kind_of_difference_is_judged(changed: dict[str, Any], what: str, serious: bool) -> None:
    found = compare([told("a"), told("b"), told("c", **changed)])
    assert [(one.what, one.serious, one.held[0].hosts, one.held[1].hosts) for one in found.differences] == [
        (what, serious, ["a", "b"], ["c"])
    ]
    assert found.ok != serious
    assert compare([told("a"), told("b"), told("b")]).ok


def test_a_host_that_forbids_reading_memory_is_told() -> None:
    found = compare([told("a", system={"memfd": "yes", "single copy": "Operation not permitted"})])
    assert [(one.what, one.hosts) for one in found.problems] == [
        ("reading other ranks' memory: Operation not permitted", ["a"])
    ]
    assert found.ok


def test_launchers_may_print_around_a_line() -> None:
    text = 'hello\n[1,0]<stdout>:palmette-node {"host": "a"} \npalmette-node {"host"\npalmette-node 3\n'
    assert list(read(text)) == [{"host": "a"}]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--site",), "--site needs the line that starts a job"),
        (("--site", "--", "no-such-launcher"), "no-such-launcher: no such launcher"),
        (("--site", "--", "false"), "false ended with status 1 and no host has answered"),
        (("--", "mpiexec"), "only --site starts something"),
    ],
)
def test_what_can_not_be_asked_is_one_line(palmette: Callable[..., Any], words: tuple[str, ...], message: str) -> None:
    result = palmette("doctor", *words)
    assert result.status == 2
    assert message in result.err
    assert len(result.err.splitlines()) == 1


def test_the_verdict_names_what_runs_here_and_what_is_next(build: Build, tmp_path: Path) -> None:
    build("libpalmette_mpich.so", library=True, where=tmp_path, source="int MPI_Gather(void) { return 0; }")
    here = replace(examine({}, tmp_path), mistakes=[])
    mpich = FoundMpi("mpich", "5", "/opt", "/opt/bin/mpiexec", ("mpich",))
    open_mpi = FoundLauncher("mpirun", "prrte", "4.1.4", "/usr/bin/mpirun")
    hydra = FoundLauncher("mpiexec", "hydra", "4.0", "/usr/bin/mpiexec")

    def verdict(mpis: list[FoundMpi], launchers: list[FoundLauncher]) -> str:
        return replace(here, mpis=mpis, launchers=launchers).verdict

    assert replace(here, preloads=[replace(one, ok=False) for one in here.preloads]).verdict.startswith(
        "not ready: no preload library is built"
    )
    assert replace(here, mistakes=["PALMETTE_X is set"]).verdict.startswith("not ready: a setting is wrong; `palmette")
    assert replace(here, mistakes=["one", "two"]).verdict.startswith("not ready: 2 settings are wrong; `palmette")
    assert verdict([], []).startswith("no MPI is here")
    assert verdict([], [open_mpi]).startswith("no MPI is here")  # no library for its ABI
    assert verdict([], [hydra]) == "ready for MPICH; next: palmette run --report mpiexec -n 4 ./app"
    assert verdict([mpich], []) == "ready for MPICH; next: palmette run --report /opt/bin/mpiexec -n 4 ./app"


def test_launchers_of_path_are_told_once_each(tmp_path: Path, launchers: dict[str, str]) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for word in ("mpiexec", "mpirun"):
        (folder / word).symlink_to(launchers["hydra"])
    (folder / "srun").symlink_to(launchers["srun"])
    found = find_launchers(str(folder))
    assert [(one.word, one.kind) for one in found] == [("mpiexec", "hydra"), ("srun", "srun")]
