"""What `palmette doctor` finds and says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.doctor import examine
from palmette.mpi.abi import ABIS
from palmette.run.sharp import GUARDS

Build = Callable[..., Path]
GATHER = "int MPI_Gather(void) { return 0; }"


def test_preload_libraries_are_told_built_missing_and_damaged(build: Build, tmp_path: Path) -> None:
    folder = tmp_path / "lib"
    build("libpalmette_mpich.so", library=True, where=folder, source=GATHER)
    (folder / "libpalmette_ompi.so").write_bytes(b"\x7fELF no more")
    findings = examine({}, folder)
    assert [check.ok for check in findings.preloads] == [True, False, False]
    assert "MPICH" in findings.preloads[0].detail
    assert "damaged" in findings.preloads[1].detail
    assert "not built" in findings.preloads[2].detail
    assert findings.can_run


def test_without_any_preload_library_nothing_can_run(tmp_path: Path) -> None:
    assert not examine({}, tmp_path).can_run


def test_the_topology_in_force_is_told(tmp_path: Path) -> None:
    path = tmp_path / "topology.json"
    machine = _core.Machine.synthetic("2leaf:3node:4core").to_json()
    path.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}), encoding="utf-8")

    def check(value: str) -> tuple[bool, str]:
        found = next(c for c in examine({"PALMETTE_TOPOLOGY": value}, tmp_path).checks if c.name == "topology")
        return found.ok, found.detail

    ok, detail = check(str(path))
    assert ok
    assert "6 hosts, levels leaf, node, core; this host, " in detail
    assert f"is not in it: `palmette discover --refresh {path}`" in detail
    ok, detail = check(str(tmp_path / "none.json"))
    assert not ok
    assert "no such file" in detail


@pytest.mark.parametrize(
    ("reduces", "functions", "setting", "ok", "told"),
    [
        (True, (), "/none/libsharp_coll.so.5", False, "no /none/libsharp_coll.so.5: switches don't reduce, hosts do"),
        (True, GUARDS, "off", False, "PALMETTE_SHARP=off: switches don't reduce"),
        (True, GUARDS[:1], None, False, "has no sharp_coll_caps_query: it is older than SHARP 3"),
        (False, GUARDS, None, False, "but no switch of the topology can reduce"),
        (True, GUARDS, None, True, "that can reduce"),
    ],
)
def test_why_switches_do_not_reduce_is_told(
    build: Build, tmp_path: Path, reduces: bool, functions: tuple[str, ...], setting: str | None, ok: bool, told: str
) -> None:
    path = tmp_path / "topology.json"
    machine = _core.Machine.synthetic("2leaf:3node:4core").to_json()
    for node in (machine["tree"], *machine["tree"]["children"]):
        node["can_reduce"] = reduces
    path.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}), encoding="utf-8")
    source = "".join(f"int {name}(void) {{ return 0; }}\n" for name in functions)
    library = build(
        "libsharp_coll.so.5", library=True, where=tmp_path / "lib", source=source or "int x;",
        options=["-Wl,-soname,libsharp_coll.so.5"],
    )  # fmt: skip
    environment = {"PALMETTE_TOPOLOGY": str(path), "PALMETTE_SHARP": setting or str(library)}
    found = next(check for check in examine(environment, tmp_path).checks if check.name == "SHARP")
    assert (found.ok, found.detail[-len(told) :]) == (ok, told)


def test_a_library_of_another_version_is_no_switches_library(build: Build, tmp_path: Path) -> None:
    """The doctor refuses the library as the runtime does."""
    source = "".join(f"int {name}(void) {{ return 0; }}\n" for name in GUARDS)
    library = build("old.so", library=True, source=source, options=["-Wl,-soname,libsharp_coll.so.4"])
    found = next(check for check in examine({"PALMETTE_SHARP": str(library)}, tmp_path).checks if check.name == "SHARP")
    assert (found.ok, "calls itself 'libsharp_coll.so.4'" in found.detail) == (False, True)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PALMETTE_TOPLOGY", "x", "no setting has that name"),
        ("PALMETTE_VERBOSE", "9", "expected 0, 1 or 2"),
        ("PALMETTE_TABLE", "/none.json", "no such file"),
    ],
)
def test_settings_that_do_not_work_are_told(build: Build, tmp_path: Path, name: str, value: str, message: str) -> None:
    build("libpalmette_mpich.so", library=True, where=tmp_path, source=GATHER)
    findings = examine({name: value}, tmp_path)
    assert len(findings.mistakes) == 1
    assert name in findings.mistakes[0]
    assert message in findings.mistakes[0]
    assert not findings.can_run


def test_the_command_prints_and_gives_json(palmette: Callable[..., Any]) -> None:
    text = palmette("doctor")
    assert text.status in (0, 1)
    assert text.err == ""
    assert all(len(line) <= 80 for line in text.out.splitlines())
    found = json.loads(palmette("doctor", "--json").out)
    assert [mpi["name"] for mpi in found["mpis"]] == ["mpich", "openmpi", "impi"]
    assert len(found["preloads"]) == len(ABIS)
    assert {check["name"] for check in found["checks"]} == {
        "topology",
        "hwloc",
        "shared memory",
        "single copy",
        "XPMEM",
        "SHARP",
    }


def test_the_ways_into_other_ranks_memory_are_told(tmp_path: Path) -> None:
    checks = {check.name: check for check in examine({}, tmp_path).checks}
    assert checks["shared memory"].ok
    assert "process_vm_readv" in checks["single copy"].detail or not checks["single copy"].ok
    assert checks["XPMEM"].ok == Path("/dev/xpmem").exists()
    if not checks["XPMEM"].ok:
        assert "module is not loaded" in checks["XPMEM"].detail
