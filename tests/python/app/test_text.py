"""What `palmette bench app` prints of links."""

from __future__ import annotations

import re

from palmette.app.measure import Comparisons, RunProfile, Variant, VariantRuns
from palmette.app.output import LINES_MERGED, Comparison
from palmette.app.text import lines, page, to_json


def comparisons(uncounted: int) -> Comparisons:
    recorded = RunProfile(1.0, {"MPI_Alltoallw": 1.0}, {"MPI_Alltoallw": 12}, "leaf0", 3.5e6, uncounted)
    variants = [VariantRuns(Variant("alone", None), [2.0, 2.1], [], recorded)]
    variants.append(VariantRuns(Variant("palmette", {}), [1.0, 1.1], [], recorded))
    return Comparisons("app", variants, 1, 0)


def test_irregular_collectives_that_arent_counted_on_links_are_told() -> None:
    shown = "\n".join(lines(comparisons(2496)))
    assert "busiest link, alone: leaf0, 3.34M bytes\n  (and 2,496 irregular collectives, not counted)" in shown
    assert max(map(len, shown.splitlines())) <= 80
    (ours,) = [line for line in shown.splitlines() if line.startswith("palmette  ")]
    assert re.search(r"  0\.51 0\.\d\d-0\.\d\d, \w+  ", ours), "an interval as in tables of calls, without brackets"
    assert to_json(comparisons(2496))["variants"][0]["busiest_without_calls"] == 2496
    assert "not counted" not in "\n".join(lines(comparisons(0)))


def test_a_sentence_says_what_the_ratio_means() -> None:
    found = comparisons(0)
    assert "2 runs of each are too few to tell" in " ".join(lines(found))
    for of_alone, told in ((0.5, "faster with palmette: 50% less time"), (2.0, "slower with palmette: 100% more time"),
                           (1.0, "as fast with palmette as by the MPI alone")):  # fmt: skip
        found.variants[0].seconds = [2.0, 2.001, 2.002, 2.0, 2.001, 2.0]
        found.variants[1].seconds = [of_alone * seconds for seconds in found.variants[0].seconds]
        assert told in "\n".join(lines(found))
        assert told in page(found, "")
    found.variants[1].seconds = [1.3, 2.6, 2.0, 1.9, 2.4, 1.4]
    told = " ".join(lines(found)).split("can't tell")[1]
    assert "less and" in told and "more time; more runs: palmette bench app --rounds 24 -- ..." in told
    assert all(len(line) <= 80 for line in lines(found))


def test_another_order_and_an_odd_first_run_are_told() -> None:
    found = comparisons(0)
    found.variants[1].outputs = [Comparison(True, order=LINES_MERGED)]
    found.first_run = "the first run took 3 s, later ones at most 1 s: does the program keep something?"
    shown = "\n".join(lines(found))
    assert f"palmette: {LINES_MERGED}" in shown.replace("\n", " ") and "the first run took 3 s" in shown
    assert re.search(r"^palmette .* order$", shown, re.MULTILINE)
    told = to_json(found)
    assert told["variants"][1]["same_output"] is True and told["variants"][1]["other_order"] == LINES_MERGED
    assert told["first_run"] == found.first_run and all(len(line) <= 80 for line in shown.splitlines())


def test_more_ranks_than_processors_are_told() -> None:
    recorded = RunProfile(1.0, {}, {}, oversubscribed="4 ranks on 2 processors")
    variants = [VariantRuns(Variant("alone", None), [2.0, 2.1], [], recorded)]
    found = Comparisons("app", variants, 1, 0)
    assert any(line.startswith("4 ranks on 2 processors: ") for line in lines(found))
    assert all(len(line) <= 80 for line in lines(found))
    variants[0].recorded = RunProfile(1.0, {}, {})
    assert not any("processors" in line for line in lines(found))
