"""The command `palmette show`: text, picture and JSON."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.discover.run import discover
from palmette.present.picture import clip, text_width
from palmette.show.fold import Folder
from palmette.show.svg import svg
from palmette.show.svg_layout import Card, layout
from palmette.show.text import tree_text
from palmette.topology.model import Topology
from palmette.units import plural, rate_text

FIXTURE = Path(__file__).resolve().parents[2] / "data" / "fabrics" / "fat-tree.txt"
Palmette = Callable[..., Any]

FORMS = [
    "1node",
    "2leaf:4node:2socket:4core",
    "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core",
    "4tier3@1TB/s:8pod@400GB/s:8leaf@100GB/s:18node@12.5GB/s",
    "24pod:24leaf:18node",
    "40leaf@1GB/s:1+2+3+4+5+6+7+8+9+10+11+12+13+14+15+16+17+18+19+20node",
]


def synthetic(form: str) -> Topology:
    return discover([("synthetic", form)])


@pytest.mark.parametrize("form", FORMS)
def test_the_tree_fits_a_screen_of_80_columns(form: str) -> None:
    lines = tree_text(synthetic(form))
    assert max(len(line) for line in lines) <= 80
    assert len(lines) <= 24


def test_equal_groups_are_folded_with_their_number_and_names() -> None:
    text = "\n".join(tree_text(synthetic("31leaf@1GB/s:4node@500MB/s")))
    assert re.search(r"31 x leaf  leaf\[0-30\] +4 each +1 GB/s", text)
    assert re.search(r"4 x node  h\[0-123\] +500 MB/s", text)


def test_groups_that_differ_are_not_folded_together() -> None:
    text = "\n".join(tree_text(synthetic("3leaf:3+3+2node")))
    assert "2 x leaf  leaf[0-1]" in text
    assert "leaf  leaf2" in text


def test_aggregators_stand_at_their_switches() -> None:
    topology = synthetic("aggregator@400Mbit/s:3leaf@50Mbit/s+aggregator+aggregator:2node")
    folded, everything = ("\n".join(tree_text(topology, every)) for every in (False, True))
    assert "fabric, aggregator at 50 MB/s " in folded
    assert re.search(r"3 x leaf  leaf\[0-2\], 2 aggregators +2 each", folded)
    assert "leaf  leaf1, 2 aggregators" in everything
    assert Folder(topology.machine.tree).fold().to_json()["aggregators"] == [50e6]
    mixed = synthetic("2leaf@50Mbit/s+aggregator:2node")
    mixed.machine.tree.children[0].aggregators.clear()
    assert "leaf  leaf0 " in "\n".join(tree_text(mixed)), "leaves that differ are not folded"


def test_all_lists_every_group_and_host() -> None:
    lines = tree_text(synthetic("3leaf:3+3+2node"), everything=True)
    assert sum("node  h" in line for line in lines) == 8
    assert sum("leaf  leaf" in line for line in lines) == 3


def test_show_reads_what_discover_wrote(palmette: Palmette, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    assert palmette("discover", "--from", "ibnetdiscover", FIXTURE, "-o", path).status == 0
    result = palmette("show", path, "--svg", tmp_path / "t.svg")
    assert result.status == 0
    assert re.search(r"2 x pod \(2 switches\)  pod\[1-2\] +9 each +16 GB/s", result.out)
    assert "wrote" in result.out
    ElementTree.parse(tmp_path / "t.svg")
    answer = json.loads(palmette("show", path, "--json").out)
    assert answer["hosts"] == 18
    assert answer["tree"]["children"][0]["count"] == [2, 2]
    assert answer["tree"]["children"][0]["children"][0]["up_bytes_per_s"] == [8e9, 8e9]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.json"], "none.json: no such file"),
        (["bad.json"], "$.format"),
        (["good.json", "--svg", "/nowhere/x.svg"], "can't write"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    palmette: Palmette, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text("{}")
    synthetic("2leaf:2node").save("good.json")
    result = palmette("show", *words)
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert message in result.err


def cards(topology: Topology) -> list[Card]:
    return layout(topology).walk()


def shapes(topology: Topology) -> list[tuple[float, float, float, float]]:
    """Boxes of all cards and of the capacity labels above them."""
    boxes = []
    for card in cards(topology):
        boxes.append((card.x, card.y, card.x + card.width, card.y + card.height))
        if card.rate:
            half = (text_width(card.rate, 11) + 12) / 2
            middle = card.x + card.width / 2
            boxes.append((middle - half, card.y - 33, middle + half, card.y - 16))
    return boxes


@pytest.mark.parametrize("form", FORMS)
def test_no_card_and_no_label_overlaps_another(form: str) -> None:
    boxes = shapes(synthetic(form))
    for index, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[index + 1 :]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top, (boxes[index], other)


@pytest.mark.parametrize("form", FORMS)
def test_all_text_of_a_card_fits_into_it(form: str) -> None:
    for card in cards(synthetic(form)):
        assert text_width(card.title, 13) <= card.width
        assert all(text_width(line, 11) <= card.width for line in card.lines)


@pytest.mark.parametrize("form", FORMS)
def test_a_picture_is_readable_however_large_the_machine_is(form: str) -> None:
    root = ElementTree.fromstring(svg(synthetic(form)))
    assert float(root.get("width", "0")) <= 2400
    assert float(root.get("height", "0")) <= 1600
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "Capacity of a link, each direction, parallel cables summed" in texts
    assert "host" in texts, "the legend names the symbols"


def test_a_picture_tells_every_capacity() -> None:
    text = svg(synthetic("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"))
    assert text.count(">6.25 MB/s</text>") == 4, "three links and the legend"
    assert ">12.5 MB/s each</text>" in text


def test_unknown_capacities_are_dashed_and_in_the_legend() -> None:
    text = svg(synthetic("2leaf:2node"))
    assert "capacity unknown" in text
    assert "stroke-dasharray" in text


def test_names_are_escaped_in_the_picture() -> None:
    topology = synthetic("2leaf:2node")
    topology.machine.tree.children[0].name = "<leaf> & co"
    ElementTree.fromstring(svg(topology))


def test_long_names_lose_their_middle() -> None:
    text = clip("A09-P1-IBLEAF-01-01 +2", 13, 120)
    assert text.startswith("A09")
    assert text.endswith("+2")
    assert text_width(text, 13) <= 120


def test_folding_counts_the_hosts_of_every_group() -> None:
    folder = Folder(synthetic("4leaf:2+3node").machine.tree)
    folded = folder.fold()
    assert [(child.count, child.hosts_each) for child in folded.children] == [(2, (2, 2)), (2, (3, 3))]
    together = folder.fold(by_level_above=1)
    assert [(child.count, child.hosts_each, child.alike) for child in together.children] == [(4, (2, 3), False)]


def test_uneven_groups_that_are_drawn_once_say_how_uneven() -> None:
    text = "\n".join(tree_text(synthetic(FORMS[-1])))
    assert "40 x leaf" in text
    assert "1 to 20 x node" in text


def test_numbers_for_people() -> None:
    assert [rate_text(rate) for rate in (12.5e9, 999.9e6, 1e3, 12.0, None)] == [
        "12.5 GB/s", "1 GB/s", "1 kB/s", "12 B/s", "unknown"
    ]  # fmt: skip
    assert (plural(1, "leaf"), plural(2, "leaf"), plural(1000, "switch")) == ("1 leaf", "2 leaves", "1,000 switches")
