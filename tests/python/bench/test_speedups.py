"""The chart of speed-ups: bars in proportion, the best first, none for wrong results."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace

import pytest

from palmette.bench.evaluate import evaluate
from palmette.bench.results import Run
from palmette.bench_page.speedups import speedups
from palmette.measure.errors import BenchError

MakeRun = Callable[..., Run]
SVG = "{http://www.w3.org/2000/svg}"


def factor(mpi: str, _placement: str, collective: str, _size: int) -> float:
    return {"gather": 1.0, "allgather": 0.25}[collective] * (2 if mpi == "openmpi" else 1)


def test_bars_are_as_long_as_calls_are_faster(made_run: MakeRun) -> None:
    run = made_run(factor, mpis=("mpich", "openmpi"), placements=("random:1",), sizes=(65536,), noise=0.001)
    picture = ElementTree.fromstring(speedups(run, evaluate(run)))
    bars = [one for one in picture.iter(f"{SVG}rect") if one.get("height") == "11"]
    widths = [float(bar.get("width", "0")) for bar in bars]
    # allgather 4 and 2 times as fast, gather as fast and half as fast.
    assert widths == pytest.approx([4 * widths[2], 2 * widths[2], widths[2], widths[2] / 2], rel=0.02)
    words = [one.text or "" for one in picture.iter(f"{SVG}text")]
    assert [word for word in words if "gather" in word] == ["allgather 64K", "gather 64K"]
    assert [word for word in words if re.fullmatch(r"[\d.]+x", word)][-4:] == ["4.0x", "2.0x", "1.0x", "0.5x"]
    assert any("emulated cluster, lab 3leaf@50Mbit/s" in word for word in words), words


def test_wrong_results_are_not_drawn(made_run: MakeRun) -> None:
    run = made_run(placements=("block",), sizes=(65536,))
    rows = [replace(row, wrong=row.collective == "gather") for row in evaluate(run)]
    assert ">gather" not in speedups(run, rows)
    with pytest.raises(BenchError, match="no cell with right results"):
        speedups(run, [replace(row, wrong=True) for row in rows])
