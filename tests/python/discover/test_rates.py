"""Effective data rates of links."""

from __future__ import annotations

import pytest

from palmette.discover.rates import link_bytes_per_s, speed_name


@pytest.mark.parametrize(
    ("speed", "gbit_per_s"),
    [("SDR", 8), ("DDR", 16), ("QDR", 32), ("FDR10", 40), ("EDR", 100), ("HDR", 200), ("NDR", 400), ("XDR", 800)],
)
def test_four_lanes_carry_what_is_left_after_encoding(speed: str, gbit_per_s: float) -> None:
    assert link_bytes_per_s(4, speed) == pytest.approx(gbit_per_s * 1e9 / 8)


def test_fdr_is_14_0625_gbit_with_64b66b() -> None:
    assert link_bytes_per_s(1, "FDR") == pytest.approx(14.0625e9 * 64 / 66 / 8)


def test_signalling_rates_stand_for_names_and_question_marks_for_nothing() -> None:
    assert speed_name("25.78125") == "EDR"
    assert speed_name("edr") == "EDR"
    assert speed_name("???") is None
