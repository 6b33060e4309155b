"""Pages and pictures of all commands in a real browser: nothing sticks out, and every word can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.test_text import comparisons
from bench.conftest import make_run
from bench.test_loaded import make_loaded
from compose.test_bench_compose import invented_cell
from palmette.app.text import page as app_page
from palmette.bench import recorded
from palmette.bench.evaluate import evaluate
from palmette.bench_page.page import STYLE, render
from palmette.bench_page.speedups import speedups
from palmette.compose.bench_svg import svg as bars_of_compositions
from palmette.patterns.svg import svg as pattern_picture
from patterns.test_pattern_runs import invented
from record_page.browser import Browser, browser, find_browser

MACHINE = "3leaf@50Mbit/s~200us:3+3+2node@100Mbit/s~100us:2core"
COMMANDS = {
    "topology": ("show", "TOPOLOGY"),
    "plan": ("plan", "gather", "--machine", MACHINE, "--placement", "cyclic"),
    "plan of many": ("plan", "allgather", "--machine", "8node:8core", "--algorithm", "ring"),
    "bound": ("plan", "allreduce", "--machine", "aggregator:3node", "--algorithm", "in_network"),
    "flow": ("plan", "--flow", "allgather", "--machine", MACHINE, "--size", "64K", "--traffic", "alltoall:half:64K"),
    "predict": ("plan", "--predict", "gather,bcast", "--machine", MACHINE, "--sizes", "1K,16K,256K"),
    "compose": ("compose", "allreduce", "--hierarchy", "2:4"),
    "map": ("map", "--pattern", "stencil:8x2", "--machine", MACHINE, "--placement", "random:1"),
}
"""Commands that draw with --svg."""
CONTRAST = 4.5

LOOK = """(() => {
  const found = [];
  const number = word => Number(word);
  function color(text) {
    const parts = (text.match(/-?[\\d.]+(?:e-?\\d+)?/g) || []).map(number);
    if (text === "none" || text === "transparent" || parts.length < 3) return [0, 0, 0, 0];
    const scale = text.startsWith("color(") ? 255 : 1;
    return [...parts.slice(0, 3).map(one => one * scale), parts.length > 3 ? parts[3] : 1];
  }
  function over(top, bottom) {
    const alpha = top[3] + bottom[3] * (1 - top[3]);
    if (!alpha) return [0, 0, 0, 0];
    return [...[0, 1, 2].map(i => (top[i] * top[3] + bottom[i] * bottom[3] * (1 - top[3])) / alpha), alpha];
  }
  function light(rgb) {
    const [r, g, b] = rgb.slice(0, 3).map(one => one / 255).map(
      one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  }
  const faded = one => {
    let share = 1;
    for (let at = one; at instanceof Element; at = at.parentElement) share *= Number(getComputedStyle(at).opacity);
    return share;
  };
  function below(text, x, y) {
    let seen = [0, 0, 0, 0];
    for (const one of document.elementsFromPoint(x, y)) {
      if (one === text || text.contains(one)) {
        if (one instanceof SVGElement || one !== text) continue;
      }
      const style = getComputedStyle(one);
      const drawn = one instanceof SVGElement && !(one instanceof SVGSVGElement);
      if (drawn && ["text", "line"].includes(one.tagName)) continue;
      const filled = color(drawn ? style.fill : style.backgroundColor);
      if (drawn) filled[3] *= Number(style.fillOpacity);
      filled[3] *= faded(one);
      seen = over(seen, filled);
      if (seen[3] > 0.999) break;
    }
    return over(seen, dark ? [18, 18, 18, 1] : [255, 255, 255, 1]);
  }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.querySelectorAll("details").forEach(one => { one.open = true; });
  const wide = document.scrollingElement.scrollWidth;
  if (wide > innerWidth) found.push(`the page is ${wide} wide`);
  const texts = [...document.querySelectorAll("body *")].filter(one => one.tagName === "text" || (
    !(one instanceof SVGElement) && !["SCRIPT", "STYLE", "OPTION"].includes(one.tagName)
    && [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim())));
  for (const text of texts) {
    const words = text.textContent.trim().slice(0, 40);
    const range = document.createRange();
    const own = [...text.childNodes].find(node => node.nodeType === 3 && node.data.trim());
    if (!words || !own) continue;
    range.selectNodeContents(own);
    const boxes = [...range.getClientRects()].filter(one => one.width > 0);
    if (!boxes.length || getComputedStyle(text).visibility === "hidden") continue;
    const picture = text.closest("svg");
    if (picture) {
      const [inner, outer] = [text.getBoundingClientRect(), picture.getBoundingClientRect()];
      if (inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.top < outer.top - 1
          || inner.bottom > outer.bottom + 1) found.push(`outside of its picture: ${words}`);
    }
    text.scrollIntoView({block: "center", inline: "center"});
    const box = [...range.getClientRects()].find(one => one.width > 0);
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    if (x < 0 || y < 0 || x > innerWidth || y > innerHeight) continue;
    const ground = below(text, x, y);
    const style = getComputedStyle(text);
    const ink = color(picture ? style.fill : style.color);
    ink[3] *= faded(text);
    const shown = over(ink, ground);
    const lights = [light(shown), light(ground)];
    const contrast = Math.max(...lights) / Math.min(...lights);
    if (contrast < CONTRAST) found.push(
      `contrast ${contrast.toFixed(2)}: ${words} (${shown.map(Math.round)} on ${ground.map(Math.round)})`);
  }
  return [texts.length, [...new Set(found)]];
})()""".replace("CONTRAST", str(CONTRAST))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip("no browser here: apt-get install chromium")
    with browser(program, tmp_path_factory.mktemp("profile")) as running:
        yield running


def drawn(text: str) -> str:
    """A page that shows a picture as a document does: no wider than the window."""
    return (
        '<!DOCTYPE html><meta charset="utf-8"><style>:root{color-scheme:light dark}body{margin:0}'
        f"svg{{max-width:100%;height:auto}}</style><body>{text}</body>"
    )


def bench_page(make: Callable[..., Any], **options: Any) -> str:
    run = make(**options)
    return render(run, evaluate(run))


def factor(mpi: str, _placement: str, _collective: str, size: int) -> float:
    return {64: 0.3, 16384: 1.0, 262144: 3.5}[size] * {"mpich": 1.0, "openmpi": 1.02}[mpi]


PAGES: dict[str, Callable[[], str]] = {
    "benchmark": lambda: bench_page(lambda **_: recorded.read()),
    "benchmark of two MPIs": lambda: bench_page(make_run, factor=factor, mpis=("mpich", "openmpi"), noise=0.1),
    "benchmark under traffic": lambda: bench_page(lambda **_: make_loaded(make_run)),
    "program": lambda: app_page(comparisons(2496), STYLE),
    "speedups": lambda: drawn(speedups(recorded.read(), evaluate(recorded.read()))),
    "compositions": lambda: drawn(bars_of_compositions([("mpich 5.0.2, random:1", invented_cell())])),
    "pattern": lambda: drawn(pattern_picture(*invented(), "mpich 5.0.2, random:1")),
}


@pytest.fixture(params=[*COMMANDS, *PAGES])
def document(request: pytest.FixtureRequest, palmette: Callable[..., Any], tmp_path: Path) -> Path:
    """The file of a page, or of a page with a command's picture."""
    name = request.param
    file = tmp_path / "page.html"
    if name in PAGES:
        file.write_text(PAGES[name](), encoding="utf-8")
        return file
    picture, topology = tmp_path / "picture.svg", tmp_path / "topology.json"
    if name == "topology":
        assert palmette("discover", "--from", f"synthetic:{MACHINE}", "-o", topology).status == 0
    words = [topology if word == "TOPOLOGY" else word for word in COMMANDS[name]]
    result = palmette(*words, "--svg", picture)
    assert result.status == 0, result.err
    file.write_text(drawn(picture.read_text(encoding="utf-8")), encoding="utf-8")
    return file


def test_nothing_sticks_out_and_every_word_can_be_read(chromium: Browser, document: Path) -> None:
    for width in (400, 1400):
        for dark in (False, True):
            chromium.open(document, width, dark=dark)
            texts, found = chromium.value(LOOK)
            assert chromium.errors == []
            assert texts > 3
            assert found == [], (width, "dark" if dark else "light")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ('<p style="width:500px">wide</p>', "the page is 500 wide"),
        ('<p style="color:#999;background:#fff">pale</p>', "contrast 2.85: pale"),
        ('<svg width="60" height="20"><text x="40" y="15">outside</text></svg>', "outside of its picture: outside"),
        ('<svg width="90" height="20"><rect width="90" height="20" fill="#222"/><text x="0" y="15">on</text></svg>',
         "contrast 1.3"),
    ],
)  # fmt: skip
def test_what_sticks_out_or_is_pale_is_found(chromium: Browser, tmp_path: Path, body: str, complaint: str) -> None:
    file = tmp_path / "page.html"
    file.write_text(f'<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">{body}', encoding="utf-8")
    chromium.open(file, 400)
    _, found = chromium.value(LOOK)
    assert any(one.startswith(complaint) for one in found), found
