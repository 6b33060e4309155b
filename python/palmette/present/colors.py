"""The colors of all pictures and of the benchmark's page, each for light and for dark surroundings."""

from __future__ import annotations

from collections.abc import Iterable

Shade = tuple[str, str]
"""A color in light and in dark surroundings."""

COLORS: dict[str, Shade] = {
    "paper": ("#f6f7f4", "#12161c"),  # of a page
    "card": ("#ffffff", "#1a2028"),  # of a picture, or of a section of a page
    "soft": ("#eef1f5", "#252d38"),  # bands, empty fields
    "line": ("#d5dae3", "#3a4552"),
    "ink": ("#1f2a44", "#e6eaee"),
    "muted": ("#566072", "#a3aebb"),
    "palmette": ("#1b6a9c", "#5fb0e0"),
    "alone": ("#68738a", "#9eaac2"),  # what palmette is compared with
    "bound": ("#b3324a", "#f0879a"),
    "faster": ("#12724f", "#1d7a5a"),
    "slower": ("#b43a22", "#b0452c"),
    "on_shade": ("#000000", "#ffffff"),  # text on a part of them, up to 0.87
    "strong": ("#ffffff", "#ffffff"),  # text on `faster` and `slower`
    "good": ("#12724f", "#4fcf9f"),
    "bad": ("#b43a22", "#f58d78"),
    "ambiguous": ("#c79a2a", "#c79a2a"),
    "same": ("#b3bcc6", "#5d6878"),
    "curve0": ("#0b62a4", "#6cb4ee"),
    "curve1": ("#b1430f", "#f0935c"),
    "curve2": ("#24743f", "#6cc98a"),
    "curve3": ("#7a3fa0", "#c79bea"),
    "curve4": ("#7d6200", "#d9bd4a"),
    "curve5": ("#b02a61", "#f080ac"),
    "curve6": ("#1f7280", "#6bc6d6"),
    "curve7": ("#5f6b7d", "#a9b4c4"),
    "root": ("#1f2a44", "#c9d3e6"),
    "on_root": ("#ffffff", "#10151d"),
    "leaf": ("#dff1ec", "#16372f"),
    "leaf_edge": ("#4fa58e", "#4fa58e"),
    "group": ("#e4e8f7", "#262f52"),
    "group_edge": ("#7d8bc4", "#7d8bc4"),
    "link": ("#8391b0", "#8391b0"),
    "device": ("#8793ab", "#8793ab"),
    "reducing": ("#e8a33d", "#e8a33d"),
}
CURVES = 8
"""`curve0` and so on: dark enough for text on `card`, distinguishable by the color-blind."""
HEATS = 25
"""`heat0` to `heat24`: from nothing to everything. Text on them is `on_heat0` ..."""
_HEAT = (
    ("#f3f5f9", "#cfe1ef", "#9cc4e0", "#5fa0cb", "#2274a5", "#164d73", "#0b2a44"),
    ("#222a34", "#17364f", "#1b5580", "#2a7fb3", "#5fa9d6", "#a5d0ec", "#e6f3fb"),
)


def _parts(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _between(anchors: tuple[str, ...], share: float) -> str:
    place = share * (len(anchors) - 1)
    low = min(int(place), len(anchors) - 2)
    pairs = zip(_parts(anchors[low]), _parts(anchors[low + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - low)):02x}" for a, b in pairs)


def contrast(one: str, other: str) -> float:
    """Return the ratio of two colors' luminances, 1 to 21, as WCAG 2 defines it."""
    lights = []
    for color in (one, other):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (p / 255 for p in _parts(color))]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
    return max(lights) / min(lights)


def _legible(color: str) -> str:
    """Black or white: one of both always has a contrast of 4.5 at least."""
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, color))


for _step in range(HEATS):
    _light, _dark = (_between(anchors, _step / (HEATS - 1)) for anchors in _HEAT)
    COLORS[f"heat{_step}"] = (_light, _dark)
    COLORS[f"on_heat{_step}"] = (_legible(_light), _legible(_dark))


def heat(share: float) -> str:
    """Return the color's name for a share from 0 to 1."""
    return f"heat{round(max(0.0, min(1.0, share)) * (HEATS - 1))}"


def rules(selectors: Iterable[tuple[str, str, str]]) -> str:
    """Return a style sheet for (selector, property, color's name) that follows light and dark screens."""
    listed = list(selectors)
    light, dark = ("".join(f"{s}{{{p}:{COLORS[name][at]}}}" for s, p, name in listed) for at in (0, 1))
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}"


def variables() -> str:
    """Return a style sheet that defines `--ink` and so on for a page; without the shades of pictures."""
    return rules((":root", f"--{name}", name) for name in COLORS if "heat" not in name)
