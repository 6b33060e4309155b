"""Settings in files: which counts, and that the preload library's reader and the command line's agree."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from palmette import settings, settings_files
from palmette.doctor.site import NODE_CHECK, read
from palmette.run import Choices, variables
from palmette.settings_files import installation_prefix, read_files, site_folders, values, with_files


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The site's folder and the user's, in force."""
    site, user = tmp_path / "site", tmp_path / "config" / "palmette"
    site.mkdir()
    user.mkdir(parents=True)
    monkeypatch.setenv("PALMETTE_SITE", str(site))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(user.parent))
    return site, user


def in_force(environment: Mapping[str, str] | None = None) -> dict[str, tuple[str, str, str]]:
    return {
        value.setting.key: (value.text, value.origin, value.where)
        for value in values({**os.environ, **(environment or {})})
        if value.origin != "default"
    }


def test_the_environment_counts_over_the_users_file_and_that_over_the_sites(folders: tuple[Path, Path]) -> None:
    site, user = folders
    (site / "settings").write_text("# all\n\nPALMETTE_COMPARE = 2%\nPALMETTE_WAIT=poll\nPALMETTE_SHARED=0\n")
    (user / "settings").write_text("PALMETTE_COMPARE=3%\nPALMETTE_SHARED=\n")
    found = in_force({"PALMETTE_WAIT": "mpi"})
    assert found["compare"] == ("3%", "user", f"{user}/settings:1")
    assert found["wait"] == ("mpi", "environment", "")
    assert "shared" not in found  # empty: the default again
    assert in_force({"PALMETTE_COMPARE": ""})["wait"] == ("poll", "site", f"{site}/settings:4")
    assert "compare" not in in_force({"PALMETTE_COMPARE": ""})
    assert not in_force({"PALMETTE_SITE": "0"}).keys() - {"site"}


def test_a_topology_and_a_table_count_by_being_there(folders: tuple[Path, Path]) -> None:
    site, user = folders
    for name in ("topology.json", "table.json"):
        (site / name).write_text("{}")
    assert in_force()["topology"] == (f"{site}/topology.json", "site", f"{site}/topology.json")
    assert in_force()["table"][0] == f"{site}/table.json"
    (site / "settings").write_text("PALMETTE_TOPOLOGY=/else/where.json\n")
    assert in_force()["topology"] == ("/else/where.json", "site", f"{site}/settings:1")
    (user / "settings").write_text("PALMETTE_TOPOLOGY=\n")
    assert "topology" not in in_force()


BAD = """\
PALMETTE_CHECK=1
what
=3
PALMETTE_TABEL=/x
HOME=/x
palmette_check=1
PALMETTE_VERBOSE=7
PALMETTE_COMPARE=51%
PALMETTE_COMPARE=0.5%
PALMETTE_COMPARE=1.%
PALMETTE_SERVE_AFTER=-1
PALMETTE_TABLE=table.json
PALMETTE_REPORT=out.json
PALMETTE_REPORT=/out/r.json
PALMETTE_DEVICE=ipc,no-mpi
PALMETTE_TRACE=/x
PALMETTE_SITE=/x
PALMETTE_GIVE_UP_SUMS=1
PALMETTE_CHECK=0
PALMETTE_JOBLOG=syslog:/run/log
PALMETTE_JOBLOG=somewhere
 \tPALMETTE_WAIT =\tpoll \r
PALMETTE_DEVICE=yes
PALMETTE_FORCE=bcast=binomial
#PALMETTE_ENABLE=0
PALMETTE_REORDER=
PALMETTE_ALLREDUCE=ring
PALMETTE_FORCE=gather=linear;=ring
PALMETTE_FORCE=gather=;gather=linear
"""
KEPT = {
    "PALMETTE_CHECK": "1",
    "PALMETTE_COMPARE": "0.5%",
    "PALMETTE_REPORT": "/out/r.json",
    "PALMETTE_DEVICE": "ipc,no-mpi",
    "PALMETTE_JOBLOG": "syslog:/run/log",
    "PALMETTE_WAIT": "poll",
    "PALMETTE_FORCE": "bcast=binomial",
    "PALMETTE_REORDER": "",
}


def test_a_bad_line_is_told_with_its_place_and_has_no_effect(folders: tuple[Path, Path]) -> None:
    path = folders[0] / "settings"
    path.write_text(BAD)
    found = read_files()
    assert {name: value.text for name, value in found.values.items()} == KEPT
    told = dict(mistake.split(": ", 1) for mistake in found.mistakes)
    bad = {2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 18, 19, 21, 23, 27, 28, 29}
    assert set(told) == {f"{path}:{line}" for line in bad}
    assert told[f"{path}:2"] == "expected NAME=VALUE; correct or remove the line"
    assert told[f"{path}:7"] == "PALMETTE_VERBOSE=7: expected 0, 1 or 2; correct or remove the line"
    assert told[f"{path}:12"].startswith("PALMETTE_TABLE=table.json: expected a path that begins with /")
    assert told[f"{path}:18"].startswith("PALMETTE_GIVE_UP_SUMS is what always happens now")
    assert told[f"{path}:19"] == "PALMETTE_CHECK stands in line 1 already; remove one of them"


@pytest.mark.parametrize("case", ["bad", "good", "bytes", "folder", "large", "none", "no site"])
def test_the_library_reads_the_same_as_the_command_line(folders: tuple[Path, Path], case: str) -> None:
    if not NODE_CHECK.is_file():
        pytest.skip(f"no {NODE_CHECK.name}: make build")
    site, user = folders
    (user / "settings").write_text("PALMETTE_COMPARE=3%\nPALMETTE_VERBOSE=one\n")
    (site / "topology.json").write_text("{}")
    if case == "bad":
        (site / "settings").write_text(BAD)
    elif case == "bytes":
        (site / "settings").write_bytes(
            b"\xef\xbb\xbfPALMETTE_CHECK=1\n\xff\nPALMETTE_NCCL=/a\0b\n"
            b"PALMETTE_WAIT=\x1b[31m\nPALMETTE_NCCL=/\xc3\xa9/h\n"
        )
    elif case == "good":
        lines = [f"{setting.name}={setting.default}" for setting in settings.declared()]
        (site / "settings").write_text("\n".join(lines))
    elif case == "folder":
        (site / "settings").mkdir()
    elif case == "large":
        (site / "settings").write_text("PALMETTE_CHECK=1\n" * 5000)
    environment = {**os.environ, **({"PALMETTE_SITE": str(site / "nowhere")} if case == "no site" else {})}
    out = subprocess.run([NODE_CHECK], env=environment, capture_output=True, text=True, check=True).stdout
    (theirs,) = read(out)
    ours = read_files(environment)
    assert theirs["mistakes"] == list(ours.mistakes)
    assert ours.mistakes
    said = {
        name: (value["value"], value["where"])
        for name, value in theirs["settings"].items()
        if value["where"] != "environment"
    }
    assert said == {name: (value.text, value.where) for name, value in ours.values.items()}
    assert set(theirs["files"]) >= set(ours.files)


@pytest.mark.parametrize(
    ("library", "prefix"),
    [
        ("/opt/p/0.1.0/lib/libpalmette_mpich.so", "/opt/p/0.1.0"),
        ("/opt/p/lib64/libpalmette_mpich.so", "/opt/p"),
        ("/opt/p/libexec/palmette/lib/python3.11/site-packages/palmette/lib/libpalmette_mpich.so", "/opt/p"),
        ("/home/u/venv/lib/python3.12/site-packages/palmette/lib/libpalmette_mpich.so", "/home/u/venv"),
        ("/usr/lib/x86_64-linux-gnu/libpalmette_ompi.so", "/usr"),
        ("/usr/lib/python3/dist-packages/palmette/lib/libpalmette_ompi.so", "/usr"),
        ("/somewhere/libpalmette_ompi.so", ""),
        ("libpalmette_ompi.so", ""),
    ],
)
def test_the_prefix_is_known_by_the_librarys_place(library: str, prefix: str) -> None:
    assert installation_prefix(library) == prefix
    own = [] if prefix in ("", "/usr") else [f"{prefix}/etc/palmette"]
    assert site_folders({}, library) == [*own, "/etc/palmette"]


def test_a_file_below_the_prefix_counts_in_both_readers(tmp_path: Path) -> None:
    folder = tmp_path / "etc" / "palmette"
    folder.mkdir(parents=True)
    (folder / "settings").write_text("PALMETTE_WAIT=poll\n")
    library = str(tmp_path / "lib" / "libpalmette_mpich.so")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    assert read_files(environment, library).values["PALMETTE_WAIT"].where == f"{folder}/settings:1"
    if NODE_CHECK.is_file():
        out = subprocess.run([NODE_CHECK, library], env=environment, capture_output=True, text=True, check=True).stdout
        (theirs,) = read(out)
        assert theirs["settings"]["PALMETTE_WAIT"] == {"value": "poll", "where": f"{folder}/settings:1"}


def test_a_run_gets_what_files_say_and_its_ranks_read_no_other_files(folders: tuple[Path, Path]) -> None:
    (folders[0] / "settings").write_text("PALMETTE_WAIT=poll\nPALMETTE_COMPARE=2%\n")
    passed = variables(Choices(), with_files({"PALMETTE_COMPARE": "1%"}, read_files()))
    assert passed == {"PALMETTE_WAIT": "poll", "PALMETTE_COMPARE": "1%", "PALMETTE_SITE": "0"}
    (folders[0] / "settings").unlink()
    assert variables(Choices(), with_files({}, read_files())) == {}
    nowhere = {"PALMETTE_SITE": str(folders[0] / "nowhere"), "HOME": str(folders[0])}
    files = read_files(nowhere)
    assert len(files.mistakes) == 1
    assert with_files(nowhere, files)["PALMETTE_SITE"] == "0", "a rank would tell it again"


def test_the_commands_tell_file_and_line(
    folders: tuple[Path, Path], palmette: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folders[0] / "settings"
    path.write_text("PALMETTE_WAIT=poll\nPALMETTE_VERBOSE=one\n")
    monkeypatch.setenv("PALMETTE_CHECK", "1")
    text = palmette("settings")
    assert text.status == 0
    assert f"PALMETTE_WAIT=poll\n    (from {path}:1)" in text.out or f"PALMETTE_WAIT=poll  (from {path}:1)" in text.out
    assert "PALMETTE_CHECK=1  (from the environment)" in text.out
    assert f"{path}:2: PALMETTE_VERBOSE=one: expected 0, 1 or 2" in "".join(text.err.split("\n"))
    found = {row["name"]: row for row in json.loads(palmette("settings", "--json").out)["settings"]}
    assert (found["PALMETTE_WAIT"]["origin"], found["PALMETTE_WAIT"]["where"]) == ("site", f"{path}:1")
    doctor = json.loads(palmette("doctor", "--json").out)
    assert {"name": "PALMETTE_WAIT", "ok": True, "detail": f"poll ({path}:1)"} in doctor["settings"]
    assert doctor["mistakes"] and doctor["verdict"].startswith("not ready")
    assert doctor["can_run"] is False
    said = " ".join(palmette("doctor").out.split())
    assert said.count("expected 0, 1 or 2") == said.count("correct or remove the line") == 1
    assert "correct that" not in said
    assert settings_files.value_in_force("PALMETTE_WAIT") == "poll"
