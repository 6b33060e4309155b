"""A whole tuning on a site whose times are made up."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.cli.tune_show import result_json, result_lines
from palmette.tune.decide import FEWEST_ROUNDS
from palmette.tune.job import Question, RoundOptions, Watcher
from palmette.tune.plan import SitePlan, cells_of, plan_site
from palmette.tune.results import MPI, TABLE
from palmette.tune.session import Outcome, Session
from palmette.tune.store import open_tunings

LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
Times = Callable[[str, str, int], float]
"""Seconds of (function, specification, bytes)."""


class MadeUpSite:
    """Answers like the tune program; `jobs` are the cells that each job was asked for."""

    description, mpi, placement, spins, folder = "made up", "mpich", "block", True, None

    def __init__(self, topology: Path, hosts: list[str], times: Times, *, interrupt_at: int | None = None) -> None:
        self.topology_path: Path | None = topology
        self.hosts: list[str] | None = hosts
        self.times, self.interrupt_at = times, interrupt_at
        self.jobs: list[list[list[str]]] = []

    def run(
        self, arguments: Sequence[str], variables: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        given = dict(zip(arguments[::2], arguments[1::2], strict=True))
        cells = [line.split() for line in Path(given["--cells"]).read_text(encoding="utf-8").splitlines()]
        self.jobs.append(cells)
        lines: list[dict[str, Any]] = [
            {"event": "job", "version": 1, "mpi": "MPICH Version: 5", "hosts": self.hosts, "palmette_on_ranks": 16}
        ]
        for number, (function, size, root, *specs) in enumerate(cells):
            if number == self.interrupt_at and len(self.jobs) == 1:
                self._write(given["--output"], lines)
                raise KeyboardInterrupt
            found = [self._candidate(function, spec, int(size)) for spec in specs]
            lines.append(
                {"event": "cell", "collective": function, "size_bytes": int(size), "root": int(root), "elapsed_s": 1.0,
                 "candidates": found}
            )  # fmt: skip
        self._write(given["--output"], [*lines, {"event": "end", "wrong": False}])
        return subprocess.CompletedProcess(list(arguments), 0, "", "")

    def _candidate(self, function: str, spec: str, size: int) -> dict[str, Any]:
        seconds = self.times(function, spec, size)
        return {
            "spec": spec, "served": spec not in (TABLE, MPI), "wrong_ranks": 0, "kept": True, "refused": None,
            "time_s": [seconds * (1 + 0.001 * i) for i in range(2 * FEWEST_ROUNDS)],
            "late_s": [0.0] * (2 * FEWEST_ROUNDS),
        }  # fmt: skip

    @staticmethod
    def _write(path: str, lines: Sequence[dict[str, Any]]) -> None:
        Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.fixture
def tuned(tmp_path: Path) -> Callable[..., tuple[MadeUpSite, SitePlan, Outcome]]:
    """Return a function that tunes a function at some sizes with made-up times."""
    machine = _core.Machine.synthetic(LAB)
    topology = tmp_path / "topology.json"
    topology.write_text(
        json.dumps({"format": "palmette-topology", "version": 1, "machine": machine.to_json()}), encoding="utf-8"
    )
    hosts = [host for host in machine.hosts for _ in range(2)]

    def tune(
        function: str, sizes: Sequence[int], times: Times, interrupt_at: int | None = None, unconfirmed: bool = False
    ) -> tuple[MadeUpSite, SitePlan, Outcome]:
        site = MadeUpSite(topology, hosts, times, interrupt_at=interrupt_at)
        plan = plan_site(site, cells_of((function,), sizes, 0), None, 600.0, 12)
        # Whatever the model thinks of them.
        specs = ("recursive_doubling", "direct", "rabenseifner", "all", "recursive_multiplying")
        plan.questions = [Question(one.cell, dict.fromkeys(specs, 1e-3)) for one in plan.questions]
        with open_tunings(tmp_path / "tuning.sqlite", create=True) as store:
            store.begin("2026-11-21T10:00:00Z", {}, "made up", None, {})
            outcome = Session([plan], 600.0, RoundOptions(), store, Watcher(), unconfirmed=unconfirmed).run()
        return site, plan, outcome

    return tune


def test_a_choice_that_wins_everywhere_is_one_confirmed_row(tuned: Callable[..., Any]) -> None:
    site, plan, outcome = tuned("allreduce", (256, 1024), lambda f, spec, n: 1.0 if spec.startswith("direct") else 2.0)
    (row,) = outcome.rows
    assert row["algorithm"].startswith("direct")
    assert (row["min_bytes"], row["max_bytes"]) == (256, 1024)
    assert "not confirmed" not in row["why"]
    assert len(site.jobs) == 2, "search and confirm; neighbours agree, so nothing is refined"
    assert all(cell[3:5] == [TABLE, MPI] for job in site.jobs for cell in job)
    assert len(site.jobs[1][0]) < len(site.jobs[0][0]), "fewer candidates are confirmed than searched"
    assert [one.verdict.spec for _, one in outcome.verdicts] == [row["algorithm"]] * 2
    assert plan.present[next(iter(plan.present))] != row["algorithm"]


def test_sizes_where_the_choice_changes_are_refined_by_bisection(tuned: Callable[..., Any]) -> None:
    border = 5000

    def times(function: str, spec: str, size: int) -> float:
        return 1.0 if (spec == "direct") == (size < border) and spec in ("direct", "rabenseifner") else 2.0

    site, _, outcome = tuned("allreduce", (1024, 65536), times)
    first, second = sorted(outcome.rows, key=lambda row: int(row["min_bytes"]))
    assert (first["algorithm"], second["algorithm"]) == ("direct", "rabenseifner")
    assert first["max_bytes"] + 1 == second["min_bytes"]
    assert border / 2 <= first["max_bytes"] <= border * 2
    refined = sorted({int(cell[1]) for job in site.jobs[2:] for cell in job})
    assert refined
    assert all(1024 < size < 65536 for size in refined)


def test_a_winner_of_the_search_that_doesnt_win_again_gets_no_row(tuned: Callable[..., Any]) -> None:
    calls: dict[str, int] = {}

    def times(function: str, spec: str, size: int) -> float:
        calls[spec] = calls.get(spec, 0) + 1
        return 1.0 if spec == "direct" and calls[spec] == 1 else 2.0

    _, _, outcome = tuned("allreduce", (1024,), times)
    assert outcome.rows == []
    assert [one.verdict.outcome for _, one in outcome.verdicts] == ["present"]


def test_where_the_mpi_alone_wins_the_row_leaves_calls_to_it_for_this_size_of_job(tuned: Callable[..., Any]) -> None:
    _, _, outcome = tuned("allreduce", (1024,), lambda f, spec, n: 1.0 if spec == MPI else 2.0)
    (row,) = outcome.rows
    assert row["algorithm"] == "mpi"
    assert (row["min_ranks"], row["max_ranks"], row["min_nodes"], row["max_nodes"]) == (16, 16, 8, 8)


def test_an_interrupted_tuning_keeps_what_it_has(tuned: Callable[..., Any], tmp_path: Path) -> None:
    site, _, outcome = tuned("allreduce", (64, 1024), lambda f, spec, n: 1.0 if spec == "direct" else 2.0, 1)
    assert outcome.interrupted
    assert len(site.jobs) == 1
    assert outcome.rows == [], "nothing was confirmed"
    text = "\n".join(result_lines(outcome, Path("tuning.json"), Path("tuning.sqlite")))
    assert "1 cell better in the search alone: no row without --unconfirmed" in text
    _, _, outcome = tuned("allreduce", (64, 1024), lambda f, spec, n: 1.0 if spec == "direct" else 2.0, 1, True)
    (row,) = outcome.rows
    assert (row["min_bytes"], row["max_bytes"]) == (64, 64)
    assert "(not confirmed)" in row["why"]
    with open_tunings(tmp_path / "tuning.sqlite", create=False) as store:
        assert store.candidates("allreduce", 64)
        assert not store.candidates("allreduce", 1024)


def test_what_is_told_fits_80_columns_and_the_json_form_has_all_cells(tuned: Callable[..., Any]) -> None:
    _, plan, outcome = tuned("allreduce", (64, 1024), lambda f, spec, n: 1.0 if spec == "direct" else 2.0)
    lines = result_lines(outcome, Path("tuning.json"), Path("tuning.sqlite"))
    assert max(map(len, lines)) <= 80
    (multiple,) = [
        line.split()[-2] for line in lines
        if line.split()[:8] == ["allreduce", "64", "2.01", "s", "2.01", "s", "1", "s"] and line.endswith("  better")
    ]  # fmt: skip
    assert "      direct" in lines
    cells = result_json(outcome, Path("tuning.json"), Path("tuning.sqlite"))["cells"]
    assert multiple == f"{cells[0]['time_s'] / cells[0]['bound_s']:.0f}"
    assert [(cell["size_bytes"], cell["spec"]) for cell in cells] == [(64, "direct"), (1024, "direct")]
    assert cells[0]["present"] == plan.present[plan.questions[0].cell]


def test_what_is_told_of_a_choice_that_stays_fits_80_columns_too(tuned: Callable[..., Any]) -> None:
    _, _, outcome = tuned("allreduce", (1024,), lambda f, spec, n: 2.0)
    lines = result_lines(outcome, Path("tuning.json"), Path("tuning.sqlite"))
    assert any(line.endswith("  present stays") for line in lines)
    assert max(map(len, lines)) <= 80
