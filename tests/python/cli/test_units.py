"""Durations, sizes and plurals: one form in all commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import pytest

from palmette.cli.duration import Seconds, duration
from palmette.units import DurationError, bytes_text, parse_duration, plural, span_text
from programs import MAINS, calling, commands

Call = Callable[..., Any]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5ms", 5e-3), ("2us", 2e-6), ("1.5 s", 1.5), ("10ns", 1e-8), ("90s", 90), ("20m", 1200), ("20min", 1200),
        ("1h", 3600), ("1h30m", 5400), (" 2d ", 172_800),
    ],
)  # fmt: skip
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["5", "", "soon", "2hours", "5ms or so", "-1s", "1h30"])
def test_what_is_no_duration_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(DurationError, match=r"5ms, 90s, 20m or 1h \(ns, us, ms, s, m or min, h, d\)"):
        parse_duration(text)


def options() -> list[click.Option]:
    return [option for one in commands() for option in one.params if isinstance(option, click.Option)]


TIMES = ("seconds", "timeout", "budget", "lifetime", "expires", "every", "limit", "delay", "until")


def test_every_option_that_takes_a_time_takes_a_duration() -> None:
    asked = [option for option in options() if any(word in option.opts[0].split("-") for word in TIMES)]
    assert len(asked) > 12
    for option in asked:
        taken = option.callback is duration or isinstance(option.type, Seconds)
        assert taken or option.opts == ["--budget"], option.opts  # tune's has a least one, too


@pytest.mark.parametrize(
    "words",
    [
        ("palmette-lab", "up", "2node", "--lifetime", "soon"),
        ("bench", "--timeout", "soon"), ("bench", "--seconds", "soon"),
        ("tune", "--budget", "soon"), ("calibrate", "--budget", "soon", "-n", "2"), ("top", "x", "--every", "soon"),
        ("palmette-lab", "simulate", "--cpu-limit", "soon"), ("bench", "app", "--timeout", "soon", "--", "true"),
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_an_error_names_the_forms_in_one_line(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    program, *rest = words if words[0] in MAINS else ("palmette", *words)
    result = calling(MAINS[program], capsys)(*rest)
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "'soon' is not a duration" in result.err
    assert "20m or 1h" in result.err


def test_seconds_take_a_number_too() -> None:
    read = Seconds(0.1)
    assert (read.convert("2", None, None), read.convert("250ms", None, None)) == (2.0, 0.25)
    assert Seconds(1, whole=True).convert("1500ms", None, None) == 2
    for text in ("0.01", "nan", "inf", "-1"):
        with pytest.raises(click.BadParameter):
            read.convert(text, None, None)


def test_sizes_count_in_powers_of_1024() -> None:
    sizes = (0, 1000, 1024, 65536.4, 2.5 * 2**20, 3 * 2**40, -1.0, float("inf"))
    assert [bytes_text(size) for size in sizes] == ["0", "1000", "1K", "64K", "2560K", "3072G", "-1", "inf"]


def test_spans_have_two_units_at_most() -> None:
    spans = (-3, 0.4, 45, 99.9, 600, 3599, 7197, 7200, 90_061, 273_600)
    texts = ["0 s", "0 s", "45 s", "100 s", "10 min", "1 h", "2 h", "2 h", "25 h 1 min", "3 d 4 h"]
    assert [span_text(one) for one in spans] == texts
    assert span_text(7150) == "1 h 59 min"


def test_plurals() -> None:
    texts = [plural(count, word) for count, word in ((1, "cell"), (2, "cell"), (2, "leaf"), (2, "switch"), (0, "rank"))]
    assert texts == ["1 cell", "2 cells", "2 leaves", "2 switches", "0 ranks"]
