"""An SVG picture: elements in pixels, colors by name, for light and dark surroundings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from xml.sax.saxutils import escape, quoteattr

from palmette.present.colors import rules

MARGIN = 32.0
TOP = 92.0
"""Where the contents of a picture with a head begin."""
LEGEND_ROW = 22.0
_FONT = "Inter, 'DejaVu Sans', Helvetica, Arial, sans-serif"
_SIZE = 12.0

Point = tuple[float, float]


def text_width(text: str, size: float) -> float:
    """Return an upper estimate of the width of text in a common sans-serif font."""
    wide = sum(1.0 if char in "mwMW@%×→" else 0.0 for char in text)
    upper = sum(char.isupper() or char.isdigit() for char in text)
    return size * (0.58 * len(text) + 0.1 * upper + 0.32 * wide)


def clip(text: str, size: float, width: float) -> str:
    """Return text that fits, with an ellipsis in the middle: names of neighbours differ at their ends."""
    if text_width(text, size) <= width:
        return text
    keep = len(text) - 1
    while keep > 1 and text_width(text[: keep // 2] + "…" + text[-(keep - keep // 2) :], size) > width:
        keep -= 1
    return text[: keep // 2] + "…" + text[-(keep - keep // 2) :]


class Picture:
    """Elements of one document, drawn in the order of the calls. It grows to the right with its texts."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.right = 0.0
        """Where the rightmost text ends."""
        self._parts: list[str] = []
        self._used: dict[tuple[str, str, str], None] = {}

    def text(
        self, x: float, y: float, words: str, size: float = _SIZE, color: str = "ink", anchor: str = "start",
        weight: int = 400, most: float = 0.0,
    ) -> None:  # fmt: skip
        """Write words with their baseline at (x, y); `anchor`: start, middle or end; `most`: clipped to this width."""
        shown = clip(words, size, most) if most else words
        self.right = max(self.right, x + text_width(shown, size) * {"start": 1.0, "middle": 0.5, "end": 0.0}[anchor])
        more = "" if anchor == "start" else f' text-anchor="{anchor}"'
        more += ("" if weight == 400 else f' font-weight="{weight}"') + (
            "" if size == _SIZE else f' font-size="{size:g}"'
        )
        self._parts.append(f'<text x="{_n(x)}" y="{_n(y)}"{more}{self._colors(color)}>{escape(shown)}</text>')

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, *, edge: str = "", edge_width: float = 1.0,
        radius: float = 0.0, opacity: float = 1.0, tip: str = "",
    ) -> None:  # fmt: skip
        """Draw a rectangle; `tip` is shown where the pointer is over it."""
        round_ = f' rx="{radius:g}"' if radius else ""
        at = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"{round_}'
        self._add("rect", at, fill, edge, edge_width, opacity=opacity, tip=tip)

    def circle(self, x: float, y: float, radius: float, fill: str, *, opacity: float = 1.0, tip: str = "") -> None:
        """Draw a disc."""
        self._add("circle", f'cx="{_n(x)}" cy="{_n(y)}" r="{radius:g}"', fill, opacity=opacity, tip=tip)

    def line(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        color: str,
        width: float = 1.0,
        dashes: str = "",
        tip: str = "",
    ) -> None:
        """Draw a straight line."""
        at = f'x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"'
        self._add("line", at, "", color, width, dashes, tip=tip)

    def path(self, way: str, color: str, width: float = 1.0, dashes: str = "") -> None:
        """Draw an open path in SVG's notation."""
        self._add("path", f'd="{way}" stroke-linejoin="round"', "none", color, width, dashes)

    def polyline(self, points: Sequence[Point], color: str, width: float = 1.0, dashes: str = "") -> None:
        """Draw lines from point to point."""
        self._add("polyline", f'points="{_points(points)}" stroke-linejoin="round"', "none", color, width, dashes)

    def polygon(self, points: Sequence[Point], fill: str, opacity: float = 1.0) -> None:
        """Fill an area."""
        self._add("polygon", f'points="{_points(points)}"', fill, opacity=opacity)

    @contextmanager
    def group(self, tip: str, opacity: float = 1.0) -> Iterator[None]:
        """Elements that share a tip."""
        faded = f' opacity="{opacity:g}"' if opacity < 1 else ""
        self._parts.append(f"<g{faded}><title>{escape(tip)}</title>")
        yield
        self._parts.append("</g>")

    def head(self, title: str, below: str, width: float = 720.0) -> None:
        """Write what the picture shows."""
        self.text(MARGIN, 40, title, 20, weight=700, most=width)
        self.text(MARGIN, 62, below, color="muted", most=width)

    def legend(
        self, entries: Sequence[tuple[Callable[[float, float], None], str]], y: float, width: float, x: float = MARGIN
    ) -> float:
        """Draw symbols, 30 pixels wide around a height, with their meanings, in as many rows as they need up to
        `width`; return the height below.
        """
        start = x
        for draw, words in entries:
            needed = 38 + text_width(words, _SIZE) + 18
            if x + needed > width and x > start:
                x, y = start, y + LEGEND_ROW
            draw(x, y)
            self.text(x + 38, y + 4, words)
            x += needed
        return y + LEGEND_ROW

    def document(self, width: float, height: float, *, inline: str = "") -> str:
        """Return the picture, as wide as `width` and its texts need.

        `inline`: the class of one that stands within a page, without a background of its own.
        """
        width = max(width, self.right + 12)
        shown = self._colors("card") if not inline else ""
        sheet = rules((f".{short}-{name}", kind, name) for short, kind, name in self._used)
        size = f'class="{inline}" role="img"' if inline else f'width="{width:.0f}" height="{height:.0f}" role="img"'
        return "\n".join(
            [
                f'<svg {size} xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}"'
                f' aria-label={quoteattr(self.title)} font-family="{_FONT}" font-size="{_SIZE:g}">',
                f"<style>{sheet}</style>",
                *([f"<title>{escape(self.title)}</title>"] if shown else []),
                *([f'<rect width="100%" height="100%"{shown}/>'] if shown else []),
                *self._parts,
                "</svg>",
                "",
            ]
        )

    def _colors(self, fill: str, stroke: str = "") -> str:
        """Return the class attribute, or fill="none"."""
        names = []
        for short, kind, name in (("f", "fill", fill), ("s", "stroke", stroke)):
            if name and name != "none":
                self._used[short, kind, name] = None
                names.append(f"{short}-{name}")
        return (' fill="none"' if fill == "none" else "") + (f' class="{" ".join(names)}"' if names else "")

    def _add(
        self, tag: str, at: str, fill: str, stroke: str = "", width: float = 1.0, dashes: str = "",
        opacity: float = 1.0, tip: str = "",
    ) -> None:  # fmt: skip
        more = f' stroke-width="{_n(width)}"' if stroke and width != 1 else ""
        more += f' stroke-dasharray="{dashes}"' if dashes else ""
        more += f' opacity="{opacity:g}"' if opacity < 1 else ""
        end = f"><title>{escape(tip)}</title></{tag}>" if tip else "/>"
        self._parts.append(f"<{tag} {at}{more}{self._colors(fill, stroke)}{end}")


def _n(value: float) -> str:
    return f"{round(value, 1):g}" if abs(value) < 99_999 else f"{value:.1f}"


def _points(points: Sequence[Point]) -> str:
    return " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
