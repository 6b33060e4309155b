"""SVG document header and text elements, and the common colours."""

from __future__ import annotations

from xml.sax.saxutils import escape

INK, MUTED = "#1f2a44", "#5b6578"
"""Text colours: primary and secondary."""
BLUE, GRAY, RED = "#2274a5", "#9aa5b8", "#d1495b"
"""Palmette's results, those that it is compared with, and limits."""
_FONT = "Inter, 'DejaVu Sans', Helvetica, Arial, sans-serif"


def document(width: float, height: float) -> str:
    """Return the opening tag of a picture of that many pixels, which scales."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{_FONT}">'
    )


def text(x: float, y: float, words: str, size: float, color: str, anchor: str = "start", weight: int = 400) -> str:
    """Return words with their baseline at (x, y); `anchor` is start, middle or end."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{round(size, 1):g}" fill="{color}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{escape(words)}</text>'
    )
