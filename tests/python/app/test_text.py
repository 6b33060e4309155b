"""What `palmette bench app` prints of links."""

from __future__ import annotations

import re

from palmette.app.measure import Comparisons, Measured, Recorded, Variant
from palmette.app.text import lines, to_json


def comparisons(uncounted: int) -> Comparisons:
    recorded = Recorded(1.0, {"MPI_Alltoallw": 1.0}, {"MPI_Alltoallw": 12}, "leaf0", 3.5e6, uncounted)
    variants = [Measured(Variant("alone", None), [2.0, 2.1], [], recorded)]
    variants.append(Measured(Variant("palmette", {}), [1.0, 1.1], [], recorded))
    return Comparisons("app", variants, 1, 0)


def test_irregular_collectives_that_arent_counted_on_links_are_told() -> None:
    shown = "\n".join(lines(comparisons(2496)))
    assert "busiest link, alone: leaf0, 3.34M bytes\n  (and 2,496 irregular collectives, not counted)" in shown
    assert max(map(len, shown.splitlines())) <= 80
    (ours,) = [line for line in shown.splitlines() if line.startswith("palmette")]
    assert re.search(r"  0\.51 0\.\d\d-0\.\d\d, \w+  ", ours), "an interval as in tables of calls, without brackets"
    assert to_json(comparisons(2496))["variants"][0]["busiest_without_calls"] == 2496
    assert "not counted" not in "\n".join(lines(comparisons(0)))


def test_more_ranks_than_processors_are_told() -> None:
    recorded = Recorded(1.0, {}, {}, oversubscribed="4 ranks on 2 processors")
    variants = [Measured(Variant("alone", None), [2.0, 2.1], [], recorded)]
    found = Comparisons("app", variants, 1, 0)
    assert any(line.startswith("4 ranks on 2 processors: ") for line in lines(found))
    assert all(len(line) <= 80 for line in lines(found))
    variants[0].recorded = Recorded(1.0, {}, {})
    assert not any("processors" in line for line in lines(found))
