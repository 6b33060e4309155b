"""The kit that all output is made of: tables, colors, pictures, charts."""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import pytest

from palmette.present.charts import Bar, Bars, Curve, LogLog
from palmette.present.colors import COLORS, CURVES, HEATS, contrast, heat, variables
from palmette.present.picture import Picture
from palmette.present.table import Column, Table, aligned
from palmette.present.words import clipped, wrapped

SVG = "{http://www.w3.org/2000/svg}"
PACKAGES = Path(__file__).resolve().parents[3] / "python"


@dataclass
class Cell:
    name: str
    seconds: float | None
    calls: int = 0


COLUMNS: list[Column[Cell]] = [
    Column("name", "name", left=True, most=8),
    Column("time", "seconds", show="{:.1f} s".format, group="of ranks", mark=lambda row: "bad" if row.calls else ""),
    Column("calls", "calls", show="{:,}".format, group="of ranks"),
    Column(None, "twice", lambda row: 2 * row.calls),
]
CELLS = [Cell("short", 1.25, 1234), Cell("<long name>", None)]


def test_a_table_is_text_json_csv_and_html() -> None:
    table = Table(COLUMNS, CELLS)
    assert table.lines() == [
        "              of ranks",
        "name       time  calls",
        "short     1.2 s  1,234",
        "<long n…      -      0",
    ]
    assert table.records()[1] == {"name": "<long name>", "seconds": None, "calls": 0, "twice": 0}
    assert next(csv.DictReader(io.StringIO(table.csv())))["seconds"] == "1.25"
    html = table.html()
    assert ElementTree.fromstring(html.replace("class=left", 'class="left"')).tag == "div"
    assert '<th colspan="2">of ranks</th>' in html and "&lt;long n…" in html and 'class="number bad"' in html


def test_colours_of_the_terminal_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" in "".join(Table(COLUMNS, CELLS).lines(colored=True))
    monkeypatch.setenv("NO_COLOR", "1")
    assert Table(COLUMNS, CELLS).lines(colored=True) == Table(COLUMNS, CELLS).lines()


def test_a_wide_table_stays_within_80_columns() -> None:
    rows = [("name", "what"), ("a" * 30, "many words " * 12), ("b", "")]
    lines = aligned(rows, (0, 1))
    assert max(map(len, lines)) <= 80 and lines[2].startswith(" " * 32 + "words")
    tight = aligned([["x" * 9] * 8])
    assert len(tight[0]) == 79, "columns are closer together where they need to be"


def test_equal_values_are_shown_once() -> None:
    columns: list[Column[Cell]] = [Column("n", "calls", once=True), Column("name", "name")]
    lines = Table(columns, [Cell("a", 0), Cell("b", 0), Cell("c", 0, 1)]).lines()
    assert [line.split() for line in lines] == [["n", "name"], ["0", "a"], ["b"], ["1", "c"]]


def test_text_is_wrapped_where_it_may_be() -> None:
    assert wrapped("") == []
    assert wrapped("word " * 20, "- ")[1].startswith("  word")
    assert wrapped("x" * 100) == ["x" * 100]
    assert max(map(len, wrapped("x" * 100, whole_words=False))) == 80
    parts = wrapped(",".join(["key=value"] * 12), after=",")
    assert max(map(len, parts)) <= 80 and "".join(part.strip() for part in parts) == ",".join(["key=value"] * 12)
    assert clipped("abcdef", 4) == "abc…"


def test_text_of_every_colour_can_be_read() -> None:
    for at in (0, 1):
        for name in ("ink", "muted", "bound", *(f"curve{index}" for index in range(CURVES))):
            assert contrast(COLORS[name][at], COLORS["card"][at]) >= 4.5, name
        for index in range(HEATS):
            assert contrast(COLORS[f"on_heat{index}"][at], COLORS[f"heat{index}"][at]) >= 4.5, index
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert (heat(-1), heat(1)) == ("heat0", f"heat{HEATS - 1}")


def test_colours_stand_once() -> None:
    """In the kit; pages of recordings draw on canvases, and have a style sheet of their own."""
    colour = re.compile(r"""["':\s]#[0-9a-fA-F]{3}(?:[0-9a-fA-F]{3})?\b|\brgba?\(\d""")
    own = PACKAGES / "palmette" / "record" / "page"
    files = [file for kind in ("py", "css", "j2") for file in PACKAGES.rglob(f"*.{kind}") if own not in file.parents]
    found = {file.name for file in files if colour.search(file.read_text(encoding="utf-8"))}
    assert found == {"colors.py"}
    used = set(re.findall(r"var\(--(\w+)\)", _style())) - {"shade", "seat"}
    assert used and all(f"--{name}:" in variables() for name in used)


def _style() -> str:
    return (PACKAGES / "palmette" / "bench_page" / "style.css").read_text(encoding="utf-8")


def test_a_picture_is_as_wide_as_its_texts_and_follows_light_and_dark() -> None:
    picture = Picture("a <title>")
    picture.text(90, 20, "many words & more", color="muted")
    picture.rect(0, 0, 5, 5, "palmette", tip="1 < 2")
    root = ElementTree.fromstring(picture.document(100, 50))
    assert float(root.get("width", "0")) > 190
    assert [title.text for title in root.iter(f"{SVG}title")] == ["a <title>", "1 < 2"]
    (sheet,) = [one.text or "" for one in root.iter(f"{SVG}style")]
    light, dark = sheet.split("@media")
    for name in ("muted", "palmette", "card"):
        assert f".f-{name}{{fill:{COLORS[name][0]}}}" in light and f".f-{name}{{fill:{COLORS[name][1]}}}" in dark
    assert "ink" not in sheet, "colours that aren't used aren't defined"


def test_bars_are_in_proportion() -> None:
    picture, bars = Picture("bars"), Bars(100, 200, 4.0)
    bars.draw(picture, [("a", [Bar(4, "four", high=4.0), Bar(1, "one")]), ("b", [Bar(0, "none")])], 10)
    bars.axis(picture, 0, 50, "{:g}".format)
    root = ElementTree.fromstring(picture.document(100, 50, inline="chart"))
    assert [one.get("width") for one in root.iter(f"{SVG}rect")] == ["200", "50"]
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert texts[:5] == ["a", "four", "one", "b", "none"] and texts[-1] == "4"


def test_curves_run_from_the_smallest_to_the_largest_size() -> None:
    picture = Picture("curves")
    axes = LogLog([1024, 4096], *LogLog.limits([1e-3, 1e-2]), 50, 10, 200, 100)
    axes.grid(picture)
    axes.draw(picture, Curve([(1024, 1e-3), (4096, 1e-2)], "curve0", ["low", "high"], name="a"))
    axes.draw(picture, Curve([(1024, 1e-3)], "curve1", ["alone"], square=True, name="b"))
    axes.names(picture)
    root = ElementTree.fromstring(picture.document(300, 150))
    (line,) = root.iter(f"{SVG}polyline")
    (x1, y1), (x2, y2) = (map(float, point.split(",")) for point in (line.get("points") or "").split())
    assert x1 < x2 and y1 > y2
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert {"1K", "4K", "1 ms", "10 ms", "a", "b"} <= set(texts)
