"""Communication matrices in files: dense, sparse, or of Open MPI's monitoring."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palmette.files import parse_json, read_text
from palmette.map.errors import MapError
from palmette.map.matrix import read_matrix
from palmette.map.monitoring import is_monitored, read_monitored
from palmette.map.pattern import Pattern, pattern_of_matrix, pattern_of_messages

FORMAT = "palmette-traffic"


@dataclass(frozen=True)
class RecordedTraffic:
    """What a run sent and exchanged by ranks of MPI_COMM_WORLD, and where those ranks were."""

    pattern: Pattern
    hosts: tuple[str, ...] = ()
    """The host of each rank; empty: not known."""
    uncounted: tuple[str, ...] = ()
    """Sentences on traffic that was not recorded."""


def read_traffic(path: str | Path) -> RecordedTraffic:
    """Return the messages of a file, of whichever form it has.

    By its name: JSON, or a file of Open MPI's monitoring (`monitoring.read_monitored`). Else rows of numbers
    (`matrix.read_matrix`).

    The JSON form is {"format": "palmette-traffic", "version": 1, "ranks": p, "messages": [[from, to, bytes], ...]}; the
    same pair may come several times. Raises MapError naming the file and the place in it.
    """
    if Path(path).suffix == ".json":
        return RecordedTraffic(_read_json(path))
    if is_monitored(path):
        return RecordedTraffic(read_monitored(path))
    return RecordedTraffic(pattern_of_matrix(read_matrix(path), Path(path).name))


def _read_json(path: str | Path) -> Pattern:
    try:
        document = parse_json(read_text(path))
    except OSError as error:
        raise MapError(f"{path}: can't be read ({error.strerror}); name a file with messages") from None
    except (ValueError, RecursionError) as error:
        raise MapError(f"{path}: not JSON ({error}); {_form()}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("version") != 1:
        raise MapError(f"{path}: no traffic of version 1; {_form()}")
    ranks, messages = document.get("ranks"), document.get("messages")
    if not isinstance(ranks, int) or isinstance(ranks, bool) or ranks < 1:
        raise MapError(f"{path}: `ranks` is {ranks!r}, not a number of ranks; {_form()}")
    if not isinstance(messages, list):
        raise MapError(f"{path}: `messages` is no list; {_form()}")
    rows = [_message(path, index, row, ranks) for index, row in enumerate(messages)]
    return pattern_of_messages(Path(path).name, ranks, rows)


def _form() -> str:
    return f'write {{"format": "{FORMAT}", "version": 1, "ranks": P, "messages": [[FROM, TO, BYTES], ...]}}'


def _message(path: str | Path, index: int, row: Any, ranks: int) -> tuple[int, int, float]:
    where = f"{path}: messages[{index}]"
    if not isinstance(row, list) or len(row) != 3 or not all(type(word) in (int, float) for word in row):
        raise MapError(f"{where} is not [FROM, TO, BYTES]")
    source, target, size = row
    if not all(type(rank) is int and 0 <= rank < ranks for rank in (source, target)):
        raise MapError(f"{where}: {source} to {target} are not ranks of 0 to {ranks - 1}")
    if not 0 <= size < float("inf"):
        raise MapError(f"{where}: {size} is no number of bytes")
    return source, target, float(size)
