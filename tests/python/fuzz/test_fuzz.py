"""Damaged input of every kind, for every command: no traceback, no signal, no hang, nothing that takes all memory."""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).with_name("harness.py")


def fuzz(tmp_path: Path, seed: int, cases: int) -> None:
    # In a process of its own: workers are forked, and what they load stays out of the other tests.
    words = [
        sys.executable,
        str(HARNESS),
        "--seed",
        str(seed),
        "--cases",
        str(cases),
        "--folder",
        str(tmp_path / "work"),
    ]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, f"{shlex.join(words[:5])}\n{done.stdout[-6000:]}{done.stderr[-2000:]}"


def test_each_line_of_the_corpus_is_accepted_as_it_is(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(HARNESS), "--undamaged", "--folder", str(tmp_path / "work")],
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_damaged_input_ends_in_a_line(tmp_path: Path) -> None:
    fuzz(tmp_path, 20261127, 1700)


def test_deep_input_ends_in_a_line(tmp_path: Path) -> None:
    fuzz(tmp_path, 10**9, 300)


@pytest.mark.long
@pytest.mark.parametrize("seed", [*range(1, 6), 10**9 + 1])
def test_ten_thousand_damaged_inputs(tmp_path: Path, seed: int) -> None:
    fuzz(tmp_path, seed, 2000)


def test_what_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The judge itself: each kind of bad end is one."""
    monkeypatch.syspath_prepend(str(HARNESS.parent))
    spec = importlib.util.spec_from_file_location("fuzz_harness", HARNESS)
    assert spec is not None and spec.loader is not None
    harness = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fuzz_harness", harness)
    spec.loader.exec_module(harness)

    def judged(status: int | None, err: str = "palmette: no\n", **figures: float) -> str:
        outcome = harness.Outcome(0, harness.Case(["show"]), status, err)
        outcome.cpu_s, outcome.peak = figures.get("cpu_s", 0.1), int(figures.get("peak", 1))
        return str(harness.judge(outcome, err))

    assert judged(2) == judged(0, "") == judged(None, "") == judged(1) == ""
    assert judged(1, "Traceback (most recent call last):\n") == "a traceback"
    assert judged(70) == "status 70"
    assert judged(2, "") == "status 2 without a word"
    assert judged(2, "palmette: \x1b[2J\n") == "control characters"
    assert judged(2, "x" * 5000) == "a line of more than 4,000 characters"
    assert judged(0, "", cpu_s=11) == "11.0 s"
    assert judged(0, "", peak=2 << 30) == "2048 MB"
    assert judged(2, cpu_s=3) == "3.0 s for what is refused"
    assert judged(2, peak=400 << 20) == "400 MB for what is refused"

    def touched(*words: str) -> str:
        return str(harness.touched(harness.Case(list(words)), tmp_path, {"a.json": b"1"}))

    (tmp_path / "a.json").write_bytes(b"1")
    assert touched("show", "a.json") == ""
    (tmp_path / "b.svg").touch()
    assert touched("show", "a.json", "--svg", "b.svg") == touched("show", "--svg=b.svg") == ""
    assert touched("show", "a.json") == "made b.svg"
    (tmp_path / "a.json").write_bytes(b"2")
    assert touched("show", "-o", "b.svg") == "changed a.json"
    (tmp_path / "a.json").unlink()
    assert touched("show", "-o", "b.svg") == "changed a.json"
