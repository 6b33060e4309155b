"""What commands say about results that are weak: errors of a calibration, complaints of a job, whom to believe."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from palmette.calibrate.text import overrun_line, unsure_lines
from palmette.measure.errors import CalibrateError
from palmette.measure.session import Session

Call = Callable[..., Any]
FAST = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


def level(name: str | None, latency: float, overhead: float, stream: float) -> Any:
    errors = [SimpleNamespace(error=error) for error in (latency, overhead, stream)]
    keys = ("latency", "overhead", "stream")
    return SimpleNamespace(plan=SimpleNamespace(name=name), steps=[1], **dict(zip(keys, errors, strict=True)))


def test_a_calibration_names_what_it_hardly_knows() -> None:
    levels = [level("leaf", 0.96, 2.19, 0.02), level("node", 0.1, 0.5, 0.2), level(None, 0.1, 0.1, float("inf"))]
    memory = SimpleNamespace(copy=SimpleNamespace(error=0.3), reduce=SimpleNamespace(error=2.76))
    lines = unsure_lines(SimpleNamespace(levels=levels, memory=memory))  # type: ignore[arg-type]
    assert [line.partition(", written")[0] for line in lines] == [
        "leaf: latency ±96%, overhead ±219%",
        "same host: stream rate ±?",
        "memory: reductions ±276%",
    ]


def test_a_budget_that_cant_be_kept_is_told_after_the_first_round() -> None:
    effort = SimpleNamespace(budget_s=8.0)
    first = SimpleNamespace(rounds=1, seconds=18.7, effort=effort)
    assert "need about 56 s here, more than the 8 s" in str(overrun_line(first))  # type: ignore[arg-type]
    for rounds, seconds in ((1, 2.0), (2, 30.0)):
        later = SimpleNamespace(rounds=rounds, seconds=seconds, effort=effort)
        assert overrun_line(later) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (["-" * 70, "mpirun has detected an attempt to run as", "root.", "-" * 70],
         ": mpirun has detected an attempt to run as root."),
        (["warning: x", "an Error came up in y."], ": an Error came up in y."),
        (["noise", "calibrate: two ranks at least", "more"], ": calibrate: two ranks at least"),
        (["-----"], "answered"),
    ],
)  # fmt: skip
def test_a_job_that_doesnt_start_shows_words_and_no_dashes(printed: list[str], told: str) -> None:
    code = f"import sys; print({chr(10).join(printed)!r}, file=sys.stderr); sys.exit(1)"
    with pytest.raises(CalibrateError) as raised, Session([sys.executable, "-c", code]):
        pass
    assert str(raised.value).endswith(told)


def test_explain_says_whom_to_believe_and_how_to_measure_this_cell(palmette: Call, tmp_path: Any) -> None:
    table = tmp_path / "table.json"
    row = {"function": "allgather", "algorithm": "linear", "why": "slow on purpose"}
    for why, whom in (("slow on purpose", "on another machine"), ("tuned 2026-11-21 on 16 ranks", "measured here")):
        document = {"format": "palmette-table", "version": 1, "rows": [row | {"why": why}]}
        table.write_text(json.dumps(document), encoding="utf-8")
        result = palmette("explain", "allgather", "64K", "--machine", FAST, "--table", table)
        assert result.status == 0, result.err
        text = " ".join(result.out.split())
        assert "times faster than the chosen one. Believe the row" in text
        assert whom in text
        assert "palmette tune allgather --sizes 64K -- mpiexec -n 16" in text


def test_background_bytes_count_messages_under_way(palmette: Call) -> None:
    words = (
        "plan",
        "--flow",
        "allgather",
        "--machine",
        "2leaf@1GB/s:4node@1GB/s:2core",
        "--traffic",
        "alltoall",
        "--json",
    )
    words += ("--algorithm", "ring")
    loaded = json.loads(palmette(*words).out)["loaded"]
    assert loaded["background_messages"] == 0
    sent = [link for link in loaded["links"] if link["level"] == "leaf" and link["direction"] == "out"]
    assert loaded["background_bytes"] == pytest.approx(sum(link["carried_bytes"] - link["bytes"] for link in sent))
    assert loaded["background_bytes"] > 10_000
