"""Rivals' times that are kept as data: found by all that they depend on, a sample of them simulated anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from palmette_lab.simulate import kept
from palmette_lab.simulate.simgrid import SimulationResult

from . import rivals


def asked(**changed: Any) -> kept.SimulationKey:
    values: dict[str, Any] = {
        "simgrid": "3.32", "platform": "<p/>", "hosts": "h0\n", "settings": ["a"], "arguments": ["--sizes", "8"],
        "program": "", "topology": "", "environment": {},
    }  # fmt: skip
    return kept.SimulationKey(**(values | changed))


class Simulator:
    """Counts what it is asked, and answers always the same."""

    def __init__(self, output: str = "took 0.5\n", trouble: str = "") -> None:
        self.output, self.trouble, self.count = output, trouble, 0

    def __call__(self, _smpirun: str, _asked: kept.SimulationKey, _limit: int) -> tuple[SimulationResult, None]:
        self.count += 1
        return SimulationResult(self.output, "", self.trouble), None


def wanted(sampled: bool, first: int = 0) -> kept.SimulationKey:
    """Something that is in the sample, or isn't."""
    many = (asked(platform=f"<p{n}/>") for n in range(first, first + 1000))
    return next(one for one in many if (int(rivals.key_of(one)[:8], 16) % rivals.SAMPLE == 0) == sampled)


def test_what_was_recorded_is_found_again(tmp_path: Path) -> None:
    file, one, two = tmp_path / "new" / "rivals.json", wanted(sampled=False), wanted(sampled=False, first=1000)
    first = rivals.Rivals(Simulator(), "record", file)
    assert first("", one, 60)[0].output == "took 0.5\n"
    first.write()
    other = rivals.Rivals(Simulator("took 7\n"), "record", file)
    other("", two, 60)
    other.write()
    simulator = Simulator("took 9\n")
    again = rivals.Rivals(simulator, "", file)
    assert again("", one, 60) == (SimulationResult("took 0.5\n", "", ""), None)
    assert again("", two, 60)[0].output == "took 7\n"
    assert again("", asked(hosts="h2\n"), 60)[0].output == "took 9\n", "simulated, since it isn't there"


def test_a_sample_is_simulated_anew_and_must_agree(tmp_path: Path) -> None:
    file, one = tmp_path / "rivals.json", wanted(sampled=True)
    first = rivals.Rivals(Simulator(), "record", file)
    first("", one, 60)
    first.write()
    rivals.Rivals(Simulator("took 0.50000000001\n"), "", file)("", one, 60)
    with pytest.raises(AssertionError, match="other times"):
        rivals.Rivals(Simulator("took 0.6\n"), "", file)("", one, 60)
    with pytest.raises(AssertionError, match="other times"):
        rivals.Rivals(Simulator("failed 0.5\n"), "anew", file)("", one, 60)
    assert rivals.Rivals(Simulator("", "too long"), "", file)("", one, 60)[0].trouble == "too long"


def test_palmette_and_short_limits_are_always_simulated(tmp_path: Path) -> None:
    file, one = tmp_path / "rivals.json", wanted(sampled=False)
    first = rivals.Rivals(Simulator(), "record", file)
    first("", one, 60)
    first("", asked(program="palmette"), 60)
    first.write()
    simulator = Simulator()
    again = rivals.Rivals(simulator, "", file)
    again("", one, 1)
    again("", asked(program="palmette"), 60)
    assert simulator.count == 2
    again("", one, 60)
    assert simulator.count == 2


def test_nothing_is_believed_once_the_program_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, one = tmp_path / "rivals.json", wanted(sampled=False)
    first = rivals.Rivals(Simulator(), "record", file)
    first("", one, 60)
    first.write()
    monkeypatch.setattr(rivals, "programs_digest", lambda: "another")
    simulator = Simulator()
    rivals.Rivals(simulator, "", file)("", one, 60)
    assert simulator.count == 1
