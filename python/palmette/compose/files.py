"""Reading compositions from files: JSON, or Python that defines `composition(ranks, bytes)`."""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.compose.composition import Composition
from palmette.compose.errors import ComposeError
from palmette.files import parse_json, read_text

_KEYS = {"ranks", "bytes", "blocks", "vector", "element_bytes", "phases"}
_MULTICAST = {"multicast", "to", "source", "blocks", "target"}
_REDUCE = {"reduce", "to", "source", "blocks", "target", "operation", "commutative"}


def read(path: Path, ranks: int | None, bytes: int) -> Composition:
    """Read a composition from a .json or .py file.

    A Python file is run: its function `composition(ranks, bytes)` returns a `Composition`. In JSON,

        {"ranks": 4, "bytes": 1024, "blocks": 4, "phases": [
          [{"multicast": 0, "to": "all", "source": "x", "blocks": [0, 2], "target": "y"}],
          [{"reduce": [0, 1], "to": 3, "source": "y", "blocks": [0, 1], "target": "z", "operation": "sum"}]]}

    `blocks` of a primitive is first and count. Raises ComposeError.
    """
    if path.suffix == ".py":
        return _from_python(path, ranks, bytes)
    try:
        document = parse_json(read_text(path))
    except OSError as error:
        raise ComposeError(f"can't read {path}: {error.strerror}; name another file") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ComposeError(f"{path} is no JSON: {error}; a composition in Python has the suffix .py") from None
    return from_json(document, str(path), ranks)


def _from_python(path: Path, ranks: int | None, bytes: int) -> Composition:
    if ranks is None:
        raise ComposeError(f"{path} doesn't say for how many ranks; add --ranks, --machine or --hierarchy")
    try:
        names = runpy.run_path(str(path))
    except SystemExit as error:
        raise ComposeError(f"{path} ends the program (exit {error.code}); only define composition() in it") from None
    except OSError as error:
        raise ComposeError(f"can't read {path}: {error.strerror}; name another file") from None
    except Exception as error:
        raise ComposeError(f"{path} can't be run: {type(error).__name__}: {error}; correct the file") from None
    make = names.get("composition")
    if not callable(make):
        raise ComposeError(f"{path} defines no function composition(ranks, bytes); add it")
    try:
        made = make(ranks, bytes)
    except SystemExit as error:
        raise ComposeError(f"{path}: composition() ends the program (exit {error.code}); let it return") from None
    except Exception as error:
        raise ComposeError(f"{path}: composition({ranks}, {bytes}) fails: {error}; correct the file") from None
    if not isinstance(made, Composition):
        raise ComposeError(f"{path}: composition() returns a {type(made).__name__}; return a palmette Composition")
    if made.name == "composition":
        made.name = path.stem
    return made


def from_json(document: Any, where: str, ranks: int | None = None) -> Composition:
    """Make a composition from a parsed document; `where` names it in errors. Raises ComposeError."""
    _keys(document, _KEYS, where)
    for key in ("ranks", "bytes", "phases"):
        if key not in document:
            raise ComposeError(f"{where}: '{key}' is missing; a composition has ranks, bytes and phases")
    if ranks is not None and ranks != document["ranks"]:
        raise ComposeError(f"{where} is for {document['ranks']} ranks and not for {ranks}; leave the number out")
    try:
        made = Composition(
            document["ranks"],
            bytes=document["bytes"],
            blocks=document.get("blocks"),
            vector=document.get("vector", False),
            element_bytes=document.get("element_bytes", 1),
        )
    except (_core.Error, TypeError) as error:
        raise ComposeError(f"{where}: {_plain(error)}") from None
    made.name = Path(where).stem
    if not isinstance(document["phases"], list) or not all(isinstance(phase, list) for phase in document["phases"]):
        raise ComposeError(f"{where}: phases must be a list of lists of primitives")
    for number, phase in enumerate(document["phases"]):
        if number:
            made.fence()
        for index, primitive in enumerate(phase):
            _add(made, primitive, f"{where}: phases[{number}][{index}]")
    return made


def _add(made: Composition, primitive: Any, where: str) -> None:
    reduces = isinstance(primitive, Mapping) and "reduce" in primitive
    _keys(primitive, _REDUCE if reduces else _MULTICAST, where)
    missing = (_REDUCE - {"operation", "commutative"} if reduces else _MULTICAST) - primitive.keys()
    if missing:
        raise ComposeError(f"{where}: '{sorted(missing)[0]}' is missing")
    try:
        first, count = primitive["blocks"]
        source, target = made.buffer(primitive["source"]), made.buffer(primitive["target"])
        region = source[first : first + count]
        if region.count != count or first < 0:
            raise ComposeError(f"{where}: there are only the blocks 0 to {made.core.blocks - 1}")
        if reduces:
            made.reduce(
                primitive["reduce"],
                primitive["to"],
                region,
                target,
                primitive.get("operation", "sum"),
                commutative=primitive.get("commutative", True),
            )
        else:
            made.multicast(primitive["multicast"], primitive["to"], region, target)
    except ComposeError:
        raise
    except (_core.Error, TypeError, ValueError) as error:
        raise ComposeError(f"{where}: {_plain(error)}") from None


def _keys(document: Any, known: set[str], where: str) -> None:
    if not isinstance(document, Mapping):
        raise ComposeError(f"{where} must be an object with {', '.join(sorted(known))}")
    unknown = sorted(set(document) - known)
    if unknown:
        raise ComposeError(f"{where}: '{unknown[0]}' is unknown; there are {', '.join(sorted(known))}")


def _plain(error: Exception) -> str:
    # A type error of the core lists its signatures, which doesn't help a reader of JSON.
    if isinstance(error, TypeError):
        return "a value has the wrong type; numbers are whole, ranks are a list or 'all', blocks are first and count"
    return str(error)
