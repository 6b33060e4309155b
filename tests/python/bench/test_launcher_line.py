"""`palmette bench COLLECTIVES -- LAUNCHER`: the jobs of a benchmark under a launcher's line of the user's own."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.bench.evaluate import evaluate
from palmette.bench.results import Run
from palmette.bench.store import open_store
from palmette.bench.text import summary_lines
from palmette.bench_page.content import command_line
from palmette.measure.errors import BenchError
from palmette.measure.lines import Line
from palmette.mpi import install as mpi_install
from palmette.mpi.install import Installation
from palmette.topology.file import load
from palmette_lab.lab import Lab

Palmette = Callable[..., Any]
QUICK = ("--sizes", "64", "--seconds", "0", "--min-iterations", "3", "--max-iterations", "3")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def found(name: str) -> Installation:
    try:
        return mpi_install.find(name)
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))


def script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(("#!/bin/sh", *lines)) + "\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def srun(tmp_path: Path) -> Path:
    """Something that takes srun's words and is an mpiexec of MPICH: `--export=ALL,NAME=VALUE` and a program."""
    return script(
        tmp_path / "srun",
        'case "$1" in --version) echo "slurm 23.11.4"; exit 0;; --help) exit 0;; esac',
        'case "$1" in --export=ALL,LD_PRELOAD=*) preload="-genv LD_PRELOAD ${1#--export=ALL,LD_PRELOAD=}";; esac',
        "shift",
        f'exec {found("mpich").mpiexec} -n 2 $preload "$@"',
    )


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_a_launchers_line_is_measured_as_a_lab_is(palmette: Palmette, name: str) -> None:
    words = [str(found(name).mpiexec), *(["--allow-run-as-root"] if name == "openmpi" else []), "-n", "2"]
    result = palmette("bench", "allreduce", *QUICK, "--page", "page.html", "--json", "--", *words)
    assert result.status == 0, result.err
    told = json.loads(result.out)
    (job,) = told["jobs"]
    assert (job["mpi"], job["placement"], job["error"]) == (name, "as launched", None)
    assert job["mpi_version"] == found(name).version
    (cell,) = told["cells"]
    assert (cell["collective"], cell["size_bytes"], cell["wrong"]) == ("allreduce", 64, False)
    assert told["settings"]["place"] == ["--", *words]
    with open_store(Path("runs.sqlite"), create=False) as store:
        run = store.load("last")
    assert run.jobs[0].cells[0].palmette_s
    assert run.jobs[0].palmette_ranks == 2
    again = shlex.split(command_line(run))
    assert again[again.index("--") :] == ["--", *words]
    assert not {"--mpi", "--placement"} & set(again)
    assert "as launched" in Path("page.html").read_text(encoding="utf-8")
    assert not list(Path.cwd().glob("palmette-*")), "files of jobs are gone"


@pytest.mark.mpi
def test_srun_needs_the_abi_and_passes_the_preload(palmette: Palmette, srun: Path) -> None:
    refused = palmette("bench", "bcast", *QUICK, "--", srun)
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "starts programs of any MPI; say which with --abi" in refused.err
    result = palmette("bench", "bcast", *QUICK, "--abi", "mpich", "--json", "--", srun)
    assert result.status == 0, result.err
    assert [job["mpi"] for job in json.loads(result.out)["jobs"]] == ["mpich"]


@pytest.mark.mpi
def test_without_preload_nothing_of_palmette_is_in_the_ranks(palmette_lab: Palmette) -> None:
    mpiexec = found("mpich").mpiexec
    result = palmette_lab("bench", "bcast", *QUICK, "--no-preload", "--json", "--", mpiexec, "-n", "2")
    assert result.status == 0, result.err
    with open_store(Path("runs.sqlite"), create=False) as store:
        assert store.load("last").jobs[0].palmette_ranks == 0


@pytest.mark.mpi
@pytest.mark.root
def test_hosts_of_a_cluster_are_found_and_have_clocks_of_their_own(
    palmette_lab: Palmette, make_lab: Callable[[str, str], Lab], tmp_path: Path
) -> None:
    lab = make_lab("2leaf@100Mbit/s:1node@100Mbit/s:1core", "launched")
    words = lab.command("mpich", ["h0", "h1"], ["./app"])
    agent = next(at for at, word in enumerate(words) if word == "-launcher-exec")
    launcher = script(
        tmp_path / "mpiexec",
        f'[ "$1" = --version ] && exec {found("mpich").mpiexec} --version',
        f'exec {shlex.join(words[: agent + 2])} "$@"',
    )
    line = (launcher, "-hosts", "h0,h1", "-n", "2", "-genv", "FI_PROVIDER", "tcp", "-genv", "FI_TCP_IFACE", "eth0")
    told = palmette_lab("bench", "bcast", *QUICK, "--topology", lab.topology_path, "--json", "--", *line)
    assert told.status == 0, told.err
    found_cells = json.loads(told.out)
    assert found_cells["settings"]["clock"] == "barrier"
    assert "2 ranks on 2 hosts" in found_cells["place"]
    assert found_cells["cells"][0]["bound_s"] > 0
    assert not found_cells["cells"][0]["trusted"], "times from a barrier on are too low for a bound"
    assert found_cells["cells"][0]["algorithm"], "the preload's report came back"
    text = palmette_lab("bench", "bcast", *QUICK, "--topology", lab.topology_path, "--", *line).out
    assert "Hosts have clocks of their own" in text
    assert load(lab.topology_path).machine.tree.hosts()
    unknown = palmette_lab("bench", "bcast", *QUICK, "--topology", _other(tmp_path), "--", *line)
    assert (unknown.status, unknown.err.splitlines()[-1].startswith("palmette-lab bench collectives: ")) == (2, True), (
        unknown.err
    )


def _other(folder: Path) -> Path:
    from palmette.discover.run import discover

    path = folder / "other.json"
    discover([("synthetic", "2leaf:3node:1core")]).save(path)
    document = path.read_text(encoding="utf-8").replace('"h0"', '"elsewhere"')
    path.write_text(document, encoding="utf-8")
    return path


@pytest.mark.mpi
def test_other_measuring_commands_take_the_line_in_the_same_way(palmette: Palmette) -> None:
    line = ("--", found("mpich").mpiexec, "-n", "2")
    composed = palmette(
        "bench", "compose", "broadcast", "--sizes", "1K", "--seconds", "0", "--min-iterations", "3",
        "--factoring", "method=ring", "--json", *line,
    )  # fmt: skip
    assert composed.status == 0, composed.err
    assert [cell["composition"] for cell in json.loads(composed.out)] == ["broadcast"]
    # Both start the job and find that it is on one host, which the topology lacks.
    discovered = palmette("discover", "--from", "measurement", *line)
    assert (discovered.status, "all 2 ranks are on" in discovered.err) == (2, True), discovered.err
    calibrated = palmette("calibrate", "--topology", _other(Path.cwd()), *line)
    assert (calibrated.status, "of rank 0 is not in" in calibrated.err) == (2, True), calibrated.err


@pytest.mark.parametrize(
    "command", ["calibrate", "discover", "tune", "bench collectives", "bench pattern", "bench compose"]
)
def test_the_usage_shows_the_line_and_one_option_for_labs(palmette_lab: Palmette, command: str) -> None:
    text = palmette_lab(*command.split(), "--help").out
    assert "[-- LAUNCHER...]" in " ".join(text[: text.index("\n\n")].split())
    assert "--lab NAME|SPEC" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gather", "--"), "nothing follows --; give the line that starts your jobs"),
        (("gather", "--", "nompiexec", "-n", "2"), "nompiexec: no such program; give the line that starts"),
        (("gather", "--", "ls", "-n", "2"), "ls: no launcher that palmette knows"),
        (("gather", "-n", "2", "--", "mpiexec", "-n", "2"), "--local and -- mpiexec -n 2 name different places"),
        (("gather", "--mpi", "mpich", "--", "mpiexec", "-n", "2"), "--mpi and a launcher line both say where to run"),
        (("gather", "--floor", "--", "mpiexec", "-n", "2"), "--floor and a launcher line"),
        (("gather", "--set", "one-node", "--", "mpiexec", "-n", "2"), "has a place of its own"),
        (("gather", "-n", "2", "--topology", "t.json"), "--topology belongs to a launcher line"),
    ],
)
def test_bad_input_gets_one_line_and_status_2(palmette_lab: Palmette, arguments: tuple[str, ...], message: str) -> None:
    result = palmette_lab("bench", *arguments)
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith("palmette-lab bench collectives: ")
    assert message in result.err


def test_a_line_with_a_program_is_refused() -> None:
    with pytest.raises(BenchError, match="the line names the program ls; leave it out"):
        Line.read([str(found("mpich").mpiexec), "-n", "2", "ls"])


def test_cells_of_hosts_with_own_clocks_are_not_held_against_the_bound(made_run: Callable[..., Run]) -> None:
    run = made_run(sizes=(262144,))
    assert all(row.trusted for row in evaluate(run))
    run.settings["clock"] = "barrier"
    rows = evaluate(run)
    assert not any(row.trusted for row in rows)
    assert rows[0].bound is not None
    assert any("clocks of their own" in line for line in summary_lines(run, rows))
