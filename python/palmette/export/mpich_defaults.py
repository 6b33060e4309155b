"""MPICH's built-in tuning, extracted from its library.

A tuning file replaces the library's built-in tuning for all collectives: a collective that it lacks ends the program.
So exported files start from the built-in ones, which the library contains as JSON texts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palmette.mpi.install import Installation

Tree = dict[str, Any]
"""A decision tree of MPICH: conditions as keys, tried in turn, down to one `algorithm=` or `composition=`."""

_BEGIN = b'{"collective='


class NoDefaultsError(LookupError):
    """The library has no tuning in the known form; the message names the file."""


@dataclass(frozen=True)
class Defaults:
    """`algorithms`: the algorithm on a communicator. `compositions`: of intra- and inter-node parts (ch4)."""

    algorithms: Tree
    compositions: Tree


def read_defaults(mpich: Installation) -> Defaults:
    """Return the tuning of an installed MPICH. Raises NoDefaultsError."""
    library = _library(mpich)
    algorithms: Tree | None = None
    compositions: Tree | None = None
    for text in _texts(library.read_bytes()):
        if b"MPIDI_POSIX" in text:
            continue  # intra-node: not changed
        if b'"composition=' in text:
            compositions = json.loads(text)
        elif b'"algorithm=MPIR_' in text:
            algorithms = json.loads(text)
    if algorithms is None or compositions is None:
        raise NoDefaultsError(
            f"{library} has no built-in tuning as MPICH 4 and 5 have; name the prefix of an MPICH 5 in"
            " PALMETTE_MPI_MPICH"
        )
    return Defaults(algorithms, compositions)


def _library(mpich: Installation) -> Path:
    folders = [mpich.prefix / "lib", *(mpich.prefix / "lib").glob("*-linux-*")]
    for folder in [mpich.library_dir] if mpich.library_dir else folders:
        for name in ("libmpi.so.12", "libmpich.so.12"):  # the second is Debian's
            if (folder / name).exists():
                return folder / name
    raise NoDefaultsError(f"no libmpi.so.12 below {mpich.prefix}; name the prefix of an MPICH 5 in PALMETTE_MPI_MPICH")


def _texts(data: bytes) -> list[bytes]:
    """The JSON texts that begin with a collective, each up to its NUL byte."""
    texts = []
    at = data.find(_BEGIN)
    while at >= 0:
        end = data.index(b"\0", at)
        texts.append(data[at:end])
        at = data.find(_BEGIN, end)
    return texts
