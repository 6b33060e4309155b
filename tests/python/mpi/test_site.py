"""Files of the site and the user in jobs without `palmette run`, and the line that a job leaves."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from palmette.run import Choices, variables
from palmette.settings_files import read_files, with_files

from .conftest import PRELOADS, TIMEOUT_S, Cluster, Mpi, ProgramResult, _run

pytestmark = pytest.mark.mpi


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The site's folder; the user's is beside it, config/palmette."""
    (tmp_path / "site").mkdir()
    (tmp_path / "config" / "palmette").mkdir(parents=True)
    return tmp_path / "site"


def preloaded(
    mpi: Mpi, site: Path, more: Mapping[str, str] | None = None, ranks: int = 2, cases: int = 40
) -> ProgramResult:
    """Run a program with nothing but LD_PRELOAD, as under a module file or Slurm's prolog."""
    environment = {
        **mpi.environment(),
        "PALMETTE_SITE": str(site),
        "XDG_CONFIG_HOME": str(site.parent / "config"),
        **(more or {}),
    }
    words = [*filter(None, environment.get("LD_PRELOAD", "").split(":")), str(PRELOADS / f"libpalmette_{mpi.abi}.so")]
    environment["LD_PRELOAD"] = ":".join(words)
    words = [*mpi.launch(ranks), str(mpi.program("random_arguments")), "--cases", str(cases)]
    return _run(words, environment, site.parent / "report.json", TIMEOUT_S)


def test_files_are_in_force_alike_with_and_without_palmette_run(mpi: Mpi, site: Path, cluster: Cluster) -> None:
    report = site.parent / "report.json"
    (site / "settings").write_text(f"PALMETTE_REPORT={report}\nPALMETTE_FORCE=bcast=linear;reduce=linear\n")
    (site / "topology.json").write_text(cluster.path.read_text())
    (site.parent / "config" / "palmette" / "settings").write_text("PALMETTE_FORCE=bcast=linear;reduce=mpi\n")
    hosts = {"PALMETTE_FAKE_HOSTS": f"{cluster.hosts[0]},{cluster.hosts[-1]}"}
    bare = preloaded(mpi, site, hosts, ranks=4, cases=120)
    bare.assert_right()
    assert set(bare.served()["bcast"]) == {"linear"}
    assert "reduce" not in bare.served()
    assert "chosen" in bare.fallbacks()["reduce"]
    assert bare.report is not None
    assert "leaf" in json.dumps(bare.report["job"])

    told = {"PALMETTE_SITE": str(site), "XDG_CONFIG_HOME": str(site.parent / "config")}
    files = with_files({"PALMETTE_SERVE_AFTER": "0", **hosts}, read_files(told))
    report.unlink()
    mpi.run(4, "random_arguments", "--cases", 120, settings=variables(Choices(), files)).assert_right()
    run = json.loads(report.read_text())
    assert run["job"] == bare.report["job"]
    assert {row["algorithm"] for row in run["calls"] if row["function"] == "bcast"} - {"none"} == {"linear"}


def test_a_bad_line_is_told_once_and_the_others_count(mpi: Mpi, site: Path) -> None:
    report = site.parent / "report.json"
    path = site / "settings"
    path.write_text(f"PALMETTE_VERBOSE=7\nPALMETTE_REPORT={report}\nPALMETTE_FORCE=bcast=no_such\n")
    ran = preloaded(mpi, site)
    ran.assert_right()
    told = f"{path}:1: PALMETTE_VERBOSE=7: expected 0, 1 or 2; correct or remove the line"
    assert ran.err.count(told) == 1, ran.text
    assert ran.report is not None
    assert any(told in note for note in ran.report["notes"])
    assert f"{path}:3: PALMETTE_FORCE: " in ran.err
    assert preloaded(mpi, site, {"PALMETTE_SITE": "0"}).err.count("palmette") == 0


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_job_leaves_a_line_in_a_file(mpi: Mpi, site: Path) -> None:
    log = site.parent / "jobs.jsonl"
    (site / "settings").write_text(f"PALMETTE_JOBLOG={log}\n")
    preloaded(mpi, site, {"SLURM_JOB_ID": "4711"}).assert_right()
    preloaded(mpi, site, {"PALMETTE_ENABLE": "0"}, ranks=3).assert_right()
    served, off = lines_of(log)
    assert (served["job"], served["ranks"], served["nodes"], served["program"]) == (
        "4711",
        2,
        1,
        f"random_arguments.{mpi.abi}",
    )
    assert served["mpi"] == mpi.name
    assert served["calls_served"] > 0
    assert 0 < served["served_seconds"] < served["seconds"]
    assert "off" not in served
    line = log.read_text().splitlines()[0]
    assert all(len(digits.replace(".", "").lstrip("0")) <= 6 for digits in re.findall(r"seconds\": ([0-9.]+)", line))
    assert (off["ranks"], off["calls_served"], off["off"]) == (3, 0, "palmette is switched off")


def test_a_folder_gets_a_file_for_each_job(mpi_called: Callable[[str], Mpi], site: Path) -> None:
    mpi = mpi_called("mpich")
    folder = site.parent / "jobs"
    folder.mkdir()
    for job in ("1", "2"):
        preloaded(mpi, site, {"PALMETTE_JOBLOG": str(folder), "SLURM_JOB_ID": job}).assert_right()
    files = sorted(folder.iterdir())
    assert [file.name.split("-")[0] for file in files] == ["1", "2"]
    assert [lines_of(file)[0]["job"] for file in files] == ["1", "2"]


def test_syslog_gets_the_line(mpi_called: Callable[[str], Mpi], site: Path) -> None:
    mpi = mpi_called("mpich")
    path = site.parent / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(path))
        listening.settimeout(20)
        preloaded(mpi, site, {"PALMETTE_JOBLOG": f"syslog:{path}"}).assert_right()
        text = listening.recv(65536).decode()
    assert text.startswith("<14>palmette[")
    assert len(text) < 1024  # what each syslog daemon takes
    assert json.loads(text.partition(": ")[2])["ranks"] == 2


@pytest.mark.parametrize("target", ["/none/jobs.jsonl", "syslog:/none/log", "pipe"])
def test_a_log_that_is_not_there_disturbs_no_job(mpi_called: Callable[[str], Mpi], site: Path, target: str) -> None:
    mpi = mpi_called("mpich")
    if target == "pipe":
        target = str(site.parent / "pipe")
        os.mkfifo(target)
    ran = preloaded(mpi, site, {"PALMETTE_JOBLOG": target, "PALMETTE_VERBOSE": "1"})
    ran.assert_right()
    assert ran.err.count(f"PALMETTE_JOBLOG={target}: the line of this job can't be written") == 1
    if target == "/none/jobs.jsonl":
        assert "palmette" not in preloaded(mpi, site, {"PALMETTE_JOBLOG": target}).err
