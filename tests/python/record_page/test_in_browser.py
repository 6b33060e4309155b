"""The page of a recording in a real browser, on a phone's width and on a desk's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palmette.record.page.write import render

from . import synthetic
from .browser import Browser

PageOf = Callable[[str], Path]
PAGES = ("small", "many", "profile")
CANVASES = (
    "timeline-canvas", "timeline-strip", "matrix-canvas", "links-canvas", "links-chart", "flame-canvas",
    "sampled-canvas",
)  # fmt: skip
HAS_DRAWN = "[...document.querySelectorAll('canvas')].every(one => one.width !== 300)"
"""300 is the width of a canvas that nobody has drawn on."""
COLORS = """((id) => {
  const canvas = document.getElementById(id);
  const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return new Set(pixels).size;
})"""
DIGEST = """((id) => {
  const canvas = document.getElementById(id);
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  return data.reduce((sum, value) => (sum * 31 + value) % 4294967291, 7);
})"""


def opened(chromium: Browser, page: Path, width: int = 1400, *, motion: bool = False) -> None:
    chromium.open(page, width, motion=motion)
    chromium.wait_for(HAS_DRAWN)


def text_of(chromium: Browser, selector: str) -> str:
    return str(chromium.value(f"document.querySelector({selector!r}).textContent"))


def click(chromium: Browser, selector: str) -> None:
    chromium.value(f"document.querySelector({selector!r}).click()")


def view_settles(chromium: Browser) -> str:
    """Wait until everything is drawn that was asked for, and return what the timeline says about itself."""
    chromium.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))")
    return text_of(chromium, "#timeline-status")


def place_of(chromium: Browser, identity: str) -> tuple[float, float]:
    """Scroll a canvas into view, and return where its upper left corner is."""
    left, top = chromium.value(
        f"(() => {{ const one = document.getElementById('{identity}'); one.scrollIntoView({{block: 'center'}});"
        "const box = one.getBoundingClientRect(); return [box.left, box.top]; })()"
    )
    view_settles(chromium)  # scrolling hides what the pointer shows
    return left, top


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("name", PAGES)
def test_everything_is_drawn_and_nothing_sticks_out(chromium: Browser, page_of: PageOf, name: str, width: int) -> None:
    opened(chromium, page_of(name), width)
    assert chromium.errors == []
    assert chromium.value("document.scrollingElement.scrollWidth <= innerWidth")
    assert chromium.value("document.getElementById('findings').getBoundingClientRect().top < innerHeight / 3")
    for identity in CANVASES:
        if chromium.value(f"document.getElementById('{identity}') !== null"):
            assert chromium.value(f"{COLORS}('{identity}')") > 3, identity
    assert chromium.value("document.querySelectorAll('#paths-table tbody tr').length") == 6
    assert chromium.value("document.querySelectorAll('main .alarm').length") == 0


def test_the_first_finding_is_on_the_first_screen_of_a_phone(chromium: Browser, page_of: PageOf) -> None:
    opened(chromium, page_of("small"), 400)
    assert chromium.value("document.querySelector('.findings li').getBoundingClientRect().bottom < innerHeight")


def test_a_finding_is_shown_in_the_timeline(chromium: Browser, page_of: PageOf) -> None:
    opened(chromium, page_of("small"), motion=True)
    whole, before = text_of(chromium, "#timeline-status"), chromium.value(f"{DIGEST}('timeline-canvas')")
    assert whole.startswith("The whole run, ")
    click(chromium, "[data-window]")
    chromium.wait_for("document.getElementById('timeline-status').textContent.includes('(6.6 ms)')")
    zoomed = view_settles(chromium)
    assert "one by one" in zoomed and "messages as lines" in zoomed
    assert chromium.value(f"{DIGEST}('timeline-canvas')") != before
    click(chromium, "[data-zoom=all]")
    chromium.wait_for(f"document.getElementById('timeline-status').textContent === {json.dumps(whole)}")


def test_the_critical_path_is_drawn_where_it_is_wanted(chromium: Browser, page_of: PageOf) -> None:
    opened(chromium, page_of("small"))
    view_settles(chromium)
    whole = chromium.value(f"{DIGEST}('timeline-canvas')")
    for drawn in (True, False):
        click(chromium, "[data-option=critical]")
        view_settles(chromium)
        assert (chromium.value(f"{DIGEST}('timeline-canvas')") != whole) == drawn
    assert chromium.errors == []


DARK = """((rows) => {
  const canvas = document.getElementById('timeline-canvas');
  const scale = canvas.height / canvas.clientHeight;
  const [top, left] = [24 * scale, 110 * scale];
  const height = Math.round(rows * 30 * scale);
  const { data } = canvas.getContext('2d').getImageData(left, top, canvas.width - left, height);
  const ink = getComputedStyle(document.documentElement).getPropertyValue('--ink').trim();
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(ink.slice(at, at + 2), 16));
  let dark = 0;
  for (let i = 0; i < data.length; i += 4)
    dark += Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 60;
  return dark / (data.length / 4);
})(8)"""


def test_a_critical_path_that_changes_all_the_time_hides_no_calls(chromium: Browser, tmp_path: Path) -> None:
    document = synthetic.document(steps=20)
    for stretches, most in ((8000, 0.02), (40, 0.1)):
        times = np.arange(stretches + 1) / stretches * (synthetic.UNITS - 1)
        document["timeline"]["critical"] = {
            "count": stretches, "total": stretches, "row": synthetic.packed(np.arange(stretches) * 5 % 8, "<u2"),
            "begin": synthetic.packed(times[:-1], "<u4"), "end": synthetic.packed(times[1:], "<u4"),
        }  # fmt: skip
        document["timeline"]["messages"] |= {"count": 0}
        page = tmp_path / f"{stretches}.html"
        page.write_text(render(document), encoding="utf-8")
        opened(chromium, page)
        status = view_settles(chromium)
        assert ("it stands as shares of time; zoom in" in status) == (stretches > 1000), status
        assert chromium.value(DARK) < most
        lines = chromium.value(f"{DIGEST}('timeline-canvas')")
        click(chromium, "[data-option=critical]")
        view_settles(chromium)
        assert chromium.value(f"{DIGEST}('timeline-canvas')") != lines, "it is there"
        assert chromium.errors == []


def test_what_is_not_known_has_no_figure(chromium: Browser, tmp_path: Path) -> None:
    document = synthetic.document(steps=8)
    heads = "[...document.querySelectorAll('#paths-table th')].map(one => one.textContent)"
    cells = (
        "Object.fromEntries([...document.querySelectorAll('#paths-table tbody tr')].map(row => "
        "[row.cells[0].textContent, [...row.cells].map(one => one.textContent)]))"
    )
    for bounded in (True, False):
        if not bounded:
            document["paths"] = [{**path, "bound_s": None, "excess_s": None} for path in document["paths"]]
        page = tmp_path / f"{bounded}.html"
        page.write_text(render(document), encoding="utf-8")
        opened(chromium, page)
        titles = chromium.value(heads)
        assert "in the call" in titles and ("bound" in titles) == bounded and ("excess" in titles) == bounded
        if bounded:
            rows, at = chromium.value(cells), titles.index("bound")
            assert (rows["MPI_Waitall"][at], rows["MPI_Waitall"][at + 1]) == ("–", "–")
            assert rows["MPI_Allreduce"][at].endswith("s") and rows["MPI_Allreduce"][at + 2] == "–"


def test_links_carry_no_more_than_they_can_and_what_is_unknown_is_empty(chromium: Browser, tmp_path: Path) -> None:
    document = synthetic.document(steps=8)
    for number, node in enumerate(document["links"]["nodes"]):
        if node["parent"] >= 0:
            node["rate_Bps"] = 1e4  # far less than is sent
            if number % 2:
                node |= {"up_bytes": None, "up": None}
    page = tmp_path / "full.html"
    page.write_text(render(document), encoding="utf-8")
    opened(chromium, page)
    text = text_of(chromium, "#links-table tbody")
    assert [float(one) for one in re.findall(r"([\d.]+)%", text) if float(one) > 100] == []
    assert "100%" in text and "–" in text
    assert chromium.errors == []


def test_many_ranks_are_shares_until_calls_are_wide(chromium: Browser, page_of: PageOf) -> None:
    opened(chromium, page_of("many"))
    assert "Shares of time; zoom in" in text_of(chromium, "#timeline-status")
    assert "the 60,000 longest of" in text_of(chromium, "#timeline-status")
    for _ in range(5):
        click(chromium, "[data-zoom=in]")
    assert "one by one, of the 60,000 longest" in view_settles(chromium)


def test_a_call_is_told_under_the_pointer_and_by_keys(chromium: Browser, page_of: PageOf) -> None:
    opened(chromium, page_of("small"))
    click(chromium, "[data-window]")
    view_settles(chromium)
    left, top = place_of(chromium, "timeline-canvas")
    where = {"x": left + 480, "y": top + 24 + 15}
    chromium.mouse("mouseMoved", **where)
    chromium.wait_for("!document.getElementById('tip').hidden")
    assert "MPI_Allreduce at residual.cpp:57" in text_of(chromium, "#tip")
    assert "for rank 5" in text_of(chromium, "#tip")
    for kind in ("mousePressed", "mouseReleased"):
        chromium.mouse(kind, **where, button="left", clickCount=1)
    first = text_of(chromium, "#timeline-detail")
    assert "MPI_Allreduce" in first and "rank 0" in first
    chromium.value("document.getElementById('timeline-canvas').dispatchEvent("
                   "new KeyboardEvent('keydown', {key: 'ArrowRight', shiftKey: true}))")  # fmt: skip
    assert text_of(chromium, "#timeline-detail") != first


def test_the_timeline_moves_by_wheel_drag_and_keys(chromium: Browser, page_of: PageOf) -> None:
    opened(chromium, page_of("small"))
    left, top = place_of(chromium, "timeline-canvas")
    seen = [text_of(chromium, "#timeline-status")]

    def changed() -> None:
        now = view_settles(chromium)
        assert now not in seen
        seen.append(now)

    chromium.value("document.getElementById('timeline-canvas').focus()")
    chromium.mouse("mouseWheel", left + 600, top + 100, deltaX=0, deltaY=-300)
    changed()
    chromium.mouse("mousePressed", left + 600, top + 100, button="left", clickCount=1)
    chromium.mouse("mouseMoved", left + 400, top + 100, button="left", buttons=1)
    chromium.mouse("mouseReleased", left + 400, top + 100, button="left", clickCount=1)
    changed()
    chromium.key("+", "+")
    changed()
    chromium.key("ArrowLeft")
    changed()
    chromium.key("0", "0")
    assert view_settles(chromium) == seen[0]


def test_fingers_pinch_and_tap(chromium: Browser, page_of: PageOf) -> None:
    chromium.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    try:
        opened(chromium, page_of("small"), 400)
        left, top = place_of(chromium, "timeline-canvas")
        for step in range(9):
            fingers = [
                {"x": left + x, "y": top + 100, "id": one} for one, x in ((0, 180 - 10 * step), (1, 200 + 10 * step))
            ]
            chromium.call("Input.dispatchTouchEvent", type="touchMove" if step else "touchStart", touchPoints=fingers)
        chromium.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        assert " ms to " in view_settles(chromium)
        chromium.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": left + 200, "y": top + 40}])
        chromium.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        detail = "document.getElementById('timeline-detail').textContent"
        chromium.wait_for(f"{detail}.startsWith('rank 0') || {detail}.includes('· rank 0 on')")
    finally:
        chromium.call("Emulation.setTouchEmulationEnabled", enabled=False)


def test_the_wheel_scrolls_the_page_where_the_timeline_was_not_clicked(chromium: Browser, page_of: PageOf) -> None:
    opened(chromium, page_of("small"))
    left, top = place_of(chromium, "timeline-canvas")
    chromium.mouse("mouseWheel", left + 600, top + 100, deltaX=0, deltaY=-100)
    assert view_settles(chromium).startswith("The whole run, ")


def test_the_table_sorts_and_filters(chromium: Browser, page_of: PageOf) -> None:
    opened(chromium, page_of("small"))
    column = "[...document.querySelectorAll('#paths-table tbody tr')].map(row => row.cells[0].textContent)"
    assert chromium.value(column)[0] == "MPI_Allreduce"
    click(chromium, "#paths-table th button")
    assert chromium.value(column) == sorted(synthetic.FUNCTIONS)
    click(chromium, "#paths-table th button")
    assert chromium.value(column) == sorted(synthetic.FUNCTIONS, reverse=True)
    assert chromium.value("document.querySelector('#paths-table th').getAttribute('aria-sort')") == "descending"
    chromium.value("(() => { const box = document.getElementById('paths-filter'); box.value = 'halo isend';"
                   "box.dispatchEvent(new Event('input')); })()")  # fmt: skip
    assert chromium.value(column) == ["MPI_Isend"]


def test_the_flame_graph_zooms_searches_and_resets(chromium: Browser, page_of: PageOf) -> None:
    opened(chromium, page_of("small"))
    before = chromium.value(f"{DIGEST}('flame-canvas')")
    left, top = place_of(chromium, "flame-canvas")
    for kind in ("mousePressed", "mouseReleased"):
        chromium.mouse(kind, left + 1000, top + 3.5 * 22, button="left", clickCount=1)
    chromium.wait_for("!document.getElementById('flame-reset').hidden")
    assert text_of(chromium, "#flame-detail").startswith("Halo::exchange(Field&, int)")
    click(chromium, "#flame-reset")
    chromium.wait_for("document.getElementById('flame-reset').hidden")
    assert chromium.value(f"{DIGEST}('flame-canvas')") == before
    chromium.value("(() => { const box = document.getElementById('flame-search'); box.value = 'allreduce';"
                   "box.dispatchEvent(new Event('input')); })()")  # fmt: skip
    chromium.wait_for("document.getElementById('flame-found').textContent.endsWith('matches')")


def test_links_are_picked_opened_and_followed_over_time(chromium: Browser, page_of: PageOf) -> None:
    opened(chromium, page_of("many"))
    whole = chromium.value(f"{DIGEST}('links-canvas')")
    click(chromium, "#links-table tbody button")
    name = text_of(chromium, "#links-table tbody button")
    chromium.wait_for(f"document.getElementById('links-detail').textContent.startsWith({name.split()[0]!r})")
    left, top = place_of(chromium, "links-chart")
    chromium.mouse("mousePressed", left + 100, top + 60, button="left", clickCount=1)
    chromium.mouse("mouseMoved", left + 200, top + 60, button="left", buttons=1)
    chromium.mouse("mouseReleased", left + 200, top + 60, button="left", clickCount=1)
    chromium.wait_for("document.getElementById('links-range').textContent.includes(' to ')")
    assert chromium.value(f"{DIGEST}('links-canvas')") != whole
    click(chromium, "#links-open")
    chromium.wait_for("!document.getElementById('links-path').hidden")
    assert chromium.value("document.querySelectorAll('#links-path button').length") == 2
    assert chromium.errors == []


def test_nodes_without_a_switch_get_one_above_them(chromium: Browser, tmp_path: Path) -> None:
    document = synthetic.document(steps=8)
    nodes = [{**node, "level": 0, "parent": -1} for node in document["links"]["nodes"][-2:]]
    document["links"] |= {"levels": ["node"], "nodes": nodes}
    page = tmp_path / "flat.html"
    page.write_text(render(document), encoding="utf-8")
    opened(chromium, page)
    assert chromium.errors == []
    assert chromium.value("document.querySelectorAll('#links-table tbody tr').length") == 4
    assert "node0 → network" in text_of(chromium, "#links-table")


def test_foreign_names_stay_text(chromium: Browser, tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)></script>"
    document: dict[str, Any] = synthetic.document(steps=8)
    document |= {"functions": [f"{evil}{number}" for number in range(6)], "places": [evil] * 6, "program": evil}
    document["flame"] = {**document["flame"], "names": [evil] * 12}
    for node in document["links"]["nodes"]:
        node["name"] = evil
    for row in document["timeline"]["rows"]:
        row["name"] = row["host"] = evil
    page = tmp_path / "evil.html"
    page.write_text(render(document), encoding="utf-8")
    opened(chromium, page, 400)
    left, top = place_of(chromium, "timeline-canvas")
    chromium.mouse("mouseMoved", left + 300, top + 100)
    assert chromium.errors == [] and chromium.value("document.querySelectorAll('img').length") == 0
    assert chromium.value("document.scrollingElement.scrollWidth <= innerWidth")


def test_an_old_browser_is_told_apart(chromium: Browser, page_of: PageOf) -> None:
    script = chromium.call("Page.addScriptToEvaluateOnNewDocument", source="delete window.DecompressionStream")
    try:
        chromium.open(page_of("small"), 1400)
        assert "This browser can't unpack it" in text_of(chromium, "#timeline .hint")
        assert chromium.value("document.querySelectorAll('#paths-table tbody tr').length") == 6
        assert chromium.errors == []
    finally:
        chromium.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])


def test_the_tree_of_contexts_opens_turns_and_shows_source_and_ranks(chromium: Browser, page_of: PageOf) -> None:
    opened(chromium, page_of("small"))
    rows = "[...document.querySelectorAll('#sampled-table tbody .fold span')].map(one => one.textContent)"
    hot = ["main(int, char**)", "loop at stencil.cpp:12", "smooth(double*, int)", "residual<script>"]
    assert chromium.value(rows) == hot, "the hot path is open"
    chosen = text_of(chromium, "#sampled-table .chosen span")
    assert chosen == "smooth(double*, int)" == text_of(chromium, "#sampled-ranks")
    here = "[...document.querySelectorAll('#sampled-source .here')].map(one => one.cells[1].textContent)"
    assert chromium.value(here) == ["3", "4"]
    assert "changed after the run" in text_of(chromium, "#sampled-source .changed")
    assert chromium.value("document.querySelectorAll('#sampled-histogram rect').length") == 16
    chromium.value("document.querySelector('#sampled-table .chosen button').focus()")
    for name in ("ArrowUp", "ArrowLeft"):
        chromium.key(name)
    assert chromium.value(rows) == hot[:2], "the loop is closed"
    chromium.key("ArrowRight")
    assert chromium.value(rows) == hot
    for view, expected in (("up", [hot[2], hot[3]]), ("flat", [hot[0], hot[2], hot[3]])):
        click(chromium, f"[name=sampled-view][value={view}]")
        assert chromium.value(rows) == expected
    before = chromium.value(f"{DIGEST}('sampled-canvas')")
    chromium.value(
        "(() => { const one = document.getElementById('sampled-filter'); one.value = 'resid';"
        "one.dispatchEvent(new Event('input')); })()"
    )
    assert chromium.value(rows) == [hot[3]]
    assert chromium.value(f"{DIGEST}('sampled-canvas')") != before
