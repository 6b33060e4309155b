"""Text output of `palmette export`, in lines of 80 columns."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from palmette import _core
from palmette.export.match import Export, Line
from palmette.present.words import wrapped

_SHORT = {"reduce_scatter_block": "red_scat_blk", "reduce_scatter": "red_scatter"}


def export_lines(export: Export, folder: Path | None) -> list[str]:
    """The decisions and their matches, the files, and how to use them; without a folder the files' contents."""
    lines = [f"{export.form}, for {export.library}"]
    lines += _table(export.lines)
    for note in export.notes:
        lines += wrapped(note, rest="")
    if folder is None:
        for name, text in export.files.items():
            lines += [f"--- {name}", *text.rstrip("\n").split("\n")]
    lines.append(
        "use: " + (" ".join(str(folder / name) for name in export.files) if folder else "-o DIR writes the files; then")
    )
    lines += environment_lines(export.environment(folder or Path("DIR")))
    return lines


def environment_lines(variables: Mapping[str, str]) -> list[str]:
    """One `export NAME=VALUE` per variable, for a shell."""
    return [f"  export {name}={shlex.quote(value)}" for name, value in variables.items()]


def _table(lines: Sequence[Line]) -> list[str]:
    """The matches, one size range per line; then the ranges that keep the default, by reason."""
    out = []
    width = max([10, *(len(_range(line)) + 1 for line in lines)])
    for line in lines:
        if line.match.name is not None:
            parameters = " ".join(f"{key}={value}" for key, value in line.match.parameters.items())
            remark = f" ({line.match.remark})" if line.match.remark else ""
            text = f"{line.decision.algorithm} -> {line.match.name} {parameters}".rstrip() + remark
            out += _hanging(f"  {_name(line):<13}{_range(line):<{width}}", text)
    kept: dict[str, list[str]] = {}
    for line in lines:
        if line.match.name is None:
            kept.setdefault(line.match.remark, []).append(f"{_name(line)} {_range(line)}")
    if kept:
        out.append("  default kept:")
    for remark, cells in kept.items():
        out += _hanging("    ", f"{remark}: {', '.join(cells)}")
    return out


def _hanging(head: str, text: str) -> list[str]:
    # A specification may be longer than a line, and be broken after a comma.
    return wrapped(text, head, " " * (len(head) + 2 if head.strip() else 6), whole_words=False, after=",")


def _name(line: Line) -> str:
    return _SHORT.get(line.decision.function, line.decision.function)


def _range(line: Line) -> str:
    start, end = line.decision.min_bytes, line.decision.max_bytes
    if start == 0 and end is None:
        return "all"
    if end is None:
        return f"{_size(start)} up"
    return f"{_size(start)}-{_size(end)}"


def _size(size: int) -> str:
    """A size with its boundary: 2049 is `>2K`."""
    if size > 1024 and size % 1024 == 1:
        return f">{_core.format_size(size - 1)}"
    if size >= 1023 and size % 1024 == 1023:
        return f"<{_core.format_size(size + 1)}"
    return _core.format_size(size)
