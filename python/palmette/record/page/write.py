"""The page of a recording as text, from the document that describes it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from palmette import _core
from palmette.present.templates import environment
from palmette.record.reading import RecordError
from palmette.units import bytes_text

MOST_BYTES = 3_000_000
"""Size of the largest page: what shows least is left out first, until the page is smaller."""
_FOLDER = Path(__file__).parent
_SCRIPTS = (
    "base", "timeline_data", "timeline_draw", "timeline", "paths", "flame", "matrix", "links_data", "links", "sampled",
    "sizes", "start",
)  # fmt: skip
"""Scripts of the page in order: they are joined to one."""
_SENT = (
    "ranks", "functions", "places", "timeline", "paths", "flame", "matrix", "links", "sizes", "durations",
    "sampled", "viewed",
)  # fmt: skip
"""What the script reads of the document; the rest is in the page's text."""
_PARTS = (
    ("computing_s", "computing", "outside of MPI"),
    ("waiting_s", "waiting", "until the others have come"),
    ("bound_s", "bound", "what links and memory need at least"),
    ("excess_s", "excess", "longer than that"),
    ("in_call_s", "in the call", "besides waiting: what it needs at least isn't known"),
    ("completion_s", "completion", "after the first rank has left"),
    ("other_s", "other MPI", "calls that aren't judged"),
)
_MOST_PATHS = 1000
_MOST_LINKS = 2000
_LEAST_FRAME = 0.001

Document = Mapping[str, Any]


def render(document: Document) -> str:
    """Return the page as HTML, which needs no other file and no network; at most MOST_BYTES.

    A document that would make a larger one loses details, and the page says which. Raises RecordError where it is still
    too large, and ValueError where it has numbers that aren't finite.
    """
    # One node alone has no link.
    if document["links"] and len(document["links"]["nodes"]) < 2:
        document = {**document, "links": None}
    left_out: list[str] = []
    text = _page(document, left_out)
    for words, reduced in _REDUCTIONS:
        if len(text.encode()) <= MOST_BYTES:
            return text
        smaller = reduced(document)
        if smaller is not document:
            left_out.append(words)
            document = smaller
            text = _page(document, left_out)
    if len(text.encode()) > MOST_BYTES:
        raise RecordError(f"the page would take {len(text.encode()):,} bytes; the names in it are too long")
    return text


def _page(document: Document, left_out: list[str]) -> str:
    templates = environment(_FOLDER)
    templates.filters.update(duration=_core.format_duration, percent=_percent, marked=_marked, bytes=bytes_text)
    notes = list(document["notes"])
    if left_out:
        notes.append(f"to keep this page below {MOST_BYTES // 10**6} MB it is without {', '.join(left_out)}")
    windows = [{"number": one["number"], "window": one["window"]} for one in document["findings"]]
    sent = json.dumps(
        {**{name: document.get(name) for name in _SENT}, "findings": windows}, allow_nan=False, separators=(",", ":")
    )
    return templates.get_template("page.html.j2").render(
        document=document,
        notes=notes,
        findings=[_finding(one) for one in document["findings"]],
        parts=_parts(document["split"]),
        causes=document.get("causes"),
        traced=document["kind"] == "trace",
        style=_file("page.css"),
        script=Markup("\n").join(_file(f"{name}.js") for name in _SCRIPTS),
        # Only `<` could end a script element.
        data=Markup(sent.replace("<", "\\u003c")),  # noqa: S704
    )


def _file(name: str) -> Markup:
    return Markup((_FOLDER / name).read_text(encoding="utf-8"))  # noqa: S704 - a file of ours


def _percent(share: float) -> str:
    """`12%`, and `0.4%` of what is small."""
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{share:.0%}" if share >= 0.0995 or share == 0 else f"{share:.1%}"


def _marked(text: str) -> Markup:
    """Return a sentence whose `commands` stand in backticks as HTML."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def _finding(finding: Mapping[str, Any]) -> dict[str, Any]:
    """Split a finding's sentence into where it is, which stands first in it, and what is there."""
    where = f"{finding['function']} at {finding['place']}"
    sentence = str(finding["sentence"])
    rest = sentence.removeprefix(f"{where}: ")
    window = finding["window"]
    return {
        **finding,
        "where": where,
        "rest": rest[:1].upper() + rest[1:] + ("" if rest.endswith(".") else "."),
        "window": None if window is None else json.dumps(window),
    }


def _parts(split: Mapping[str, float | None]) -> list[dict[str, Any]]:
    """Return the parts of all ranks' time that are known, with their shares."""
    known = {key: value for key, value in split.items() if value is not None}
    whole = sum(known.values()) or 1.0
    # A profile judges no call: all of MPI is one part.
    judged = "waiting_s" in known
    return [
        {
            "name": name if judged or key != "other_s" else "in MPI",
            "kind": key.removesuffix("_s"),
            "seconds": known[key],
            "share": known[key] / whole,
            "meaning": meaning if judged or key != "other_s" else "all calls",
        }
        for key, name, meaning in _PARTS
        if known.get(key) or (key in ("computing_s", "waiting_s") and key in known)
    ]


def _without_messages(document: Document) -> Document:
    return _with_timeline(
        document, messages={"count": 0, "total": document["timeline"]["messages"]["total"]} | _NO_MESSAGES
    )


def _without_critical_path(document: Document) -> Document:
    return _with_timeline(document, critical=None) if document["timeline"].get("critical") else document


def _without_calls(document: Document) -> Document:
    return _with_timeline(document, calls={"count": 0, "total": document["timeline"]["calls"]["total"]} | _NO_CALLS)


_NO_MESSAGES = dict.fromkeys(("from", "to", "sent", "received", "bytes"), "")
_NO_CALLS = dict.fromkeys(("row", "begin", "length", "waiting", "function", "place", "bytes", "waits_for"), "")


def _with_coarser_bins(document: Document) -> Document:
    levels = document["timeline"]["levels"]
    return _with_timeline(document, levels=levels[:-1]) if len(levels) > 1 else document


def _with_timeline(document: Document, **parts: Any) -> Document:
    return {**document, "timeline": {**document["timeline"], **parts}}


def _if_there(name: str, reduced: Callable[[Document], Document]) -> Callable[[Document], Document]:
    return lambda document: document if document.get(name) is None else reduced(document)


def _without_time_of_links(document: Document) -> Document:
    nodes = [{**node, "up": None, "down": None} for node in document["links"]["nodes"]]
    return {**document, "links": {**document["links"], "nodes": nodes}}


def _without_many_links(document: Document) -> Document:
    many = len(document["links"]["nodes"]) > _MOST_LINKS
    return {**document, "links": None} if many else document


def _with_few_paths(document: Document) -> Document:
    """Keep the costliest paths, their places alone, and frames that cost something."""
    kept = sorted(document["paths"], key=lambda path: -path["seconds"])[:_MOST_PATHS]
    return {**document, "paths": kept, "flame": _pruned(document["flame"])}


def _pruned(flame: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flame graph without frames below _LEAST_FRAME of all time; their time is their parents' own."""
    order = [flame["tree"]]
    for frame in order:
        order.extend(frame[3])
    total: dict[int, float] = {}
    calls: dict[int, int] = {}
    for frame in reversed(order):
        total[id(frame)] = frame[1] + sum(total[id(child)] for child in frame[3])
        calls[id(frame)] = frame[2] + sum(calls[id(child)] for child in frame[3])
    least = _LEAST_FRAME * total[id(flame["tree"])]
    names: dict[int, int] = {}
    copies: dict[int, list[Any]] = {}
    for frame in reversed(order):
        kept = [child for child in frame[3] if total[id(child)] >= least]
        gone = [child for child in frame[3] if total[id(child)] < least]
        copies[id(frame)] = [
            frame[0],
            frame[1] + sum(total[id(child)] for child in gone),
            frame[2] + sum(calls[id(child)] for child in gone),
            [copies[id(child)] for child in kept],
        ]
    result = [copies[id(flame["tree"])]]
    for frame in result:
        frame[0] = names.setdefault(frame[0], len(names))
        result.extend(frame[3])
    return {"names": [flame["names"][name] for name in names], "tree": result[0]}


def _without_sources(document: Document) -> Document:
    return {**document, "viewed": {**document["viewed"], "sources": []}}


_REDUCTIONS: tuple[tuple[str, Callable[[Document], Document]], ...] = (
    ("messages in the timeline", _if_there("timeline", _without_messages)),
    ("the critical path", _if_there("timeline", _without_critical_path)),
    ("sources", _if_there("viewed", _without_sources)),
    ("the links' bytes over time", _if_there("links", _without_time_of_links)),
    ("single calls in the timeline", _if_there("timeline", _without_calls)),
    ("the timeline's finest bins", _if_there("timeline", _with_coarser_bins)),
    (f"call paths beyond the {_MOST_PATHS:,} costliest", _with_few_paths),
    (f"the machine's links, which are more than {_MOST_LINKS:,}", _if_there("links", _without_many_links)),
)
"""What a page can do without, the least first."""
