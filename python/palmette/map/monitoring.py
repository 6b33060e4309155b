"""Reader of the traffic recorded by Open MPI's pml_monitoring component: a file a rank, PREFIX.RANK.prof.

The format was derived from files of Open MPI 5.0.11: `E FROM TO N bytes M msgs sent ...` for messages of the program,
`I ...` for those of the library itself, then sections on one-sided communication and collectives, which are skipped.
"""

from __future__ import annotations

import re
from pathlib import Path

from palmette.files import read_text
from palmette.map.errors import MapError
from palmette.map.pattern import Pattern, pattern_of_messages

_NAME = re.compile(r"(?P<prefix>.*)\.(?P<rank>\d+)\.prof$")
_MESSAGES = re.compile(r"(?P<kind>[EI])\t(?P<source>\d+)\t(?P<target>\d+)\t(?P<bytes>\d+) bytes\t\d+ msgs sent\b")


def is_monitored(path: str | Path) -> bool:
    """Return whether the name is one of a monitored run's files."""
    return _NAME.match(Path(path).name) is not None


def read_monitored(path: str | Path) -> Pattern:
    """Return the messages of all ranks, from the files next to the named one. Raises MapError with file and line."""
    path = Path(path)
    match = _NAME.match(path.name)
    assert match is not None
    try:
        listing = list(path.parent.iterdir())
    except OSError as error:
        raise MapError(f"{path.parent}: can't be read ({error.strerror}); name one of the run's .prof files") from None
    files = {
        int(other["rank"]): file
        for file in listing
        if (other := _NAME.match(file.name)) is not None and other["prefix"] == match["prefix"]
    }
    ranks = max(files, default=-1) + 1
    missing = next((rank for rank in range(ranks) if rank not in files), None)
    if ranks == 0 or missing is not None:
        lacking = path.name if ranks == 0 else f"{match['prefix']}.{missing}.prof"
        raise MapError(f"{path.parent}: lacks {lacking}; each rank of the run writes a file; put all of them there")
    rows = [row for rank in range(ranks) for row in _rows(files[rank], rank, ranks)]
    return pattern_of_messages(f"{match['prefix']}.*.prof", ranks, rows)


def _rows(file: Path, rank: int, ranks: int) -> list[tuple[int, int, int]]:
    try:
        lines = read_text(file).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text"
        raise MapError(f"{file}: can't be read ({reason})") from None
    rows = []
    for number, line in enumerate(lines, start=1):
        if line.startswith("# OSC"):
            break
        if not line.strip() or line.startswith("#"):
            continue
        match = _MESSAGES.match(line)
        if match is None or int(match["source"]) != rank or int(match["target"]) >= ranks:
            raise MapError(
                f"{file}, line {number}: '{line[:60].strip()}' is no line of Open MPI's monitoring for rank {rank} of "
                f"{ranks}; record the run again"
            )
        if match["kind"] == "E":
            rows.append((rank, int(match["target"]), int(match["bytes"])))
    return rows
