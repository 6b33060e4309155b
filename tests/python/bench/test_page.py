"""The page: well-formed, self-contained, complete."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from palmette.bench.evaluate import evaluate
from palmette.bench.results import Run
from palmette.bench_page.content import command_line
from palmette.bench_page.page import render

MakeRun = Callable[..., Run]
VOID = {"meta", "br", "link", "img", "hr", "input"}


class PageParser(HTMLParser):
    """Checks that tags nest, and collects texts, classes and links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attributes if name in ("src", "href", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]} at {self.getpos()}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def page_of(run: Run) -> tuple[str, PageParser]:
    text = render(run, evaluate(run))
    return text, PageParser(text)


def test_tags_nest_and_nothing_is_loaded_from_elsewhere(made_run: MakeRun) -> None:
    text, parsed = page_of(made_run(mpis=("mpich", "openmpi")))
    assert parsed.links == []
    assert "@import" not in text and "url(" not in text
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) == []


def test_the_page_tells_machine_versions_and_every_cell(made_run: MakeRun) -> None:
    run = made_run(lambda *_: 0.5)
    text, parsed = page_of(run)
    for words in (
        "A processor <with> signs & more, 2 cores",
        "Linux 6.1",
        "MPICH 1.2",
        "commit 0123456789ab",
        "lab 3leaf@",
    ):
        assert words in parsed.text
    assert parsed.text.count("−50 %") + parsed.text.count("−51 %") + parsed.text.count("−49 %") >= 10
    cells = json.loads(text.split('id="cells">')[1].split("</script>")[0])
    assert len(cells) == 12
    assert {cell["verdict"] for cell in cells} == {"faster"}


def test_the_page_shows_tree_seats_curves_algorithms_and_what_was_left_to_the_mpi(made_run: MakeRun) -> None:
    text, parsed = page_of(made_run(sizes=(64, 1024, 16384)))
    assert parsed.tags.count("figure") == 1 + 4
    assert text.count('<svg class="chart"') == 4
    for words in ("leaf0", "Where the ranks are", "0 1", "by_topology:node=linear,leaf=k_nomial.4", "small & <odd>"):
        assert words in parsed.text


def test_foreign_text_is_escaped(made_run: MakeRun) -> None:
    run = made_run()
    run.place = "<script>alert(1)</script>"
    run.jobs[0].error = "</section><b>"
    run.jobs[0].report = {
        "calls": [{"function": "<i>", "algorithm": "</script>", "min_bytes": 1, "max_bytes": 1, "calls": 1}]
    }
    text, parsed = page_of(run)
    assert parsed.tags.count("script") == 1
    assert "<i>" not in text


@pytest.mark.parametrize("missing", ["report", "topology", "bounds", "cells", "preload"])
def test_the_page_can_do_without(made_run: MakeRun, missing: str) -> None:
    run = made_run()
    if missing == "topology":
        run.topology = None
    if missing == "preload":
        run.settings["preload"] = False
    for job in run.jobs:
        if missing in ("report", "preload"):
            job.report = None
        if missing == "cells":
            job.cells, job.error = [], "it did not start"
        for cell in job.cells:
            if missing in ("bounds", "topology"):
                cell.bound = None
    _, parsed = page_of(run)
    expected = {
        "report": "wrote no report",
        "topology": "0 same",
        "bounds": "0 same",
        "cells": "it did not start",
        "preload": "Nothing was preloaded",
    }
    assert expected[missing] in parsed.text
    assert ("The machine" in parsed.text) is (missing != "topology")


def test_a_size_alone_is_a_point_and_no_line(made_run: MakeRun) -> None:
    text, _ = page_of(made_run(sizes=(64,), placements=("block",), collectives=("gather",)))
    (drawn,) = re.findall(r'<svg class="chart".*?</svg>', text, re.DOTALL)
    assert "polygon" not in drawn
    assert drawn.count("<title>") == 3


def test_the_page_tells_the_command_that_measures_the_same_again(made_run: MakeRun) -> None:
    run = made_run(mpis=("mpich",), sizes=(64, 16384))
    run.settings |= {"repeat": 3, "env": {"A": "b c"}, "floor": True}
    assert command_line(run) == (
        "palmette-lab bench gather,allgather --sizes 64,16K --mpi mpich"
        " --lab 3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core --placement block,random:1 --repeat 3 --env 'A=b c' --floor"
    )
