"""Loads of links: what a link carries, what isn't known of it, and where ranks sit on links of unknown rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from palmette import _core
from palmette.cli.report_terminal import _link_lines
from palmette.record.columns import packed, unpacked
from palmette.record.full_links import fullest_link
from palmette.record.links import Link, Links, carried, to_json
from palmette.record.machine import Group, Seats

SPAN_S = 4.0
RATE = 100.0


def links(out: list[float], *, rate: float = RATE, uncounted: int = 0, of_profile: bool = False) -> Links:
    """One link, into which nothing goes."""
    link = Link(Group("leaf0", 0, -1, rate), np.array(out), np.zeros(len(out)))
    return Links([link], len(out), SPAN_S, 0.0, uncounted, of_profile)


def seats(form: str) -> Seats:
    machine = _core.Machine.synthetic(form)
    return Seats(_core.Job(machine, "block", 0), [name != "core" for name in machine.levels].count(True), is_known=True)


def test_what_does_not_fit_is_carried_later_and_no_link_carries_more_than_it_can() -> None:
    assert carried(np.array([180.0, 10, 0, 50]), 100.0).tolist() == [100, 90, 0, 50]
    assert carried(np.array([0.0, 0, 0, 250]), 100.0).tolist() == [0, 0, 0, 100], "the rest after the end"
    for sent in ([180.0, 10, 0, 50], [0.0, 0, 0, 900], [900.0, 900, 900, 900]):
        found = links(sent)
        text = "\n".join(_link_lines(found, seats("2leaf@1GB/s:2node@1GB/s")))
        assert "out of leaf0 (leaf)" in text
        percents = [int(word.rstrip("%")) for word in text.replace(",", "").split() if word.endswith("%")]
        assert len(percents) == 2 and all(0 < one <= 100 for one in percents), text
        full = fullest_link(found)
        assert full is not None and full.fill <= 1 and full.seconds <= SPAN_S
        (node,) = to_json(found, ["leaf"], packed)["nodes"]
        assert node["up_bytes"] == sum(sent), "bytes are those that were sent"
        assert unpacked(node["up"], "f4").max() <= RATE * SPAN_S / 4


def test_of_a_link_without_a_rate_what_was_sent_is_drawn() -> None:
    (node,) = to_json(links([180.0, 0, 0, 0], rate=0.0), ["leaf"], packed)["nodes"]
    assert node["rate_Bps"] is None and unpacked(node["up"], "f4").tolist() == [180, 0, 0, 0]


@pytest.mark.parametrize("how", [{"uncounted": 3}, {"of_profile": True}])
def test_bytes_that_may_have_crossed_are_unknown_not_none(how: dict[str, Any]) -> None:
    (node,) = to_json(links([180.0, 0], **how), ["leaf"], packed)["nodes"]
    assert (node["up_bytes"], node["down_bytes"]) == (180, None)
    (known,) = to_json(links([180.0, 0]), ["leaf"], packed)["nodes"]
    assert known["down_bytes"] == 0
    assert ("of a profile, collectives of the MPI" in links([1.0], **how).counted) == ("of_profile" in how)


@pytest.mark.parametrize(
    ("form", "missing", "spans"),
    [
        ("2leaf@1GB/s:2node@1GB/s:2core", [], True), ("2leaf:2node@1GB/s:2core", ["leaf"], True),
        ("2leaf:2node:2core", ["leaf", "node"], True), ("1leaf:2node@1GB/s", [], True), ("1node:4core", [], False),
    ],
)  # fmt: skip
def test_rates_are_known_where_all_links_between_ranks_have_one(form: str, missing: list[str], spans: bool) -> None:
    found = seats(form)
    assert (found.without_rates, found.has_rates, found.spans_links) == (missing, not missing, spans)
    unknown = Seats(found.job, found.network_levels, is_known=False)
    assert not unknown.has_rates and unknown.has_whole_bounds == (not spans)
