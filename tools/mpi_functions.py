"""The table of MPI's functions, src/palmette/mpi/functions.txt: all forms of each, and what they do.

Usage: mpi_functions.py TABLE ROWS SERVED    write both headers: the rows for palmette/trace/functions.cpp, and the
                                             collectives that are served for palmette/select/table.hpp
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

COLLECTIVE = ("neighbours", "exchange", "shares", "block", "scatter", "nothing")
MOVES = ("message", "lasting", "receive", "awaiting", "matched", *COLLECTIVE[:-1], "one-sided", "file")
"""Kinds of functions that move data."""
OTHER = ("probe", "completes", "tests", "asks", "starts", "cancels", "frees", "begins", "ends", "aborts")
KINDS = (*MOVES, "nothing", *OTHER)
TELLS = "tells"
"""The kind of lines that stand for names, or their beginnings, and have no row."""
HOOK = "hook"
"""The kind of lines for functions that the preload library intercepts, which have no row by that."""
WAITS = {
    "barrier": "barrier", "all-to-all": "all_to_all", "one-to-all": "one_to_all", "all-to-one": "all_to_one",
    "scan": "scan",
}  # fmt: skip
"""Third words of collectives, and their palmette::trace::Kind."""
KIND_OF = {
    "message": "send", "lasting": "send", "receive": "receive", "awaiting": "receive", "matched": "receive",
    "neighbours": "neighbours", "completes": "wait", "tests": "test",
}  # fmt: skip
"""The palmette::trace::Kind of other functions."""
MARKS = {
    **dict.fromkeys(("completes", "tests", "asks", "starts"), ("all", "any", "some")),
    **dict.fromkeys(("begins", "ends"), ("session",)), "frees": ("request", "communicator", "type"),
}  # fmt: skip
"""Third words of other functions."""


class Function(NamedTuple):
    """One MPI function."""

    name: str
    kind: str
    """One of KINDS."""
    mark: str
    """The third word of its line; empty: there is none."""
    plain: str
    """The blocking form of a nonblocking or persistent one; its own name."""
    is_nonblocking: bool
    is_persistent: bool

    @property
    def is_collective(self) -> bool:
        """Whether all ranks of a communicator take part."""
        return self.kind in COLLECTIVE

    @property
    def moves(self) -> str:
        """The function's kind where it moves data, else empty; of a persistent collective behind `lasting`."""
        if self.kind not in MOVES:
            return ""
        return f"lasting {self.kind}" if self.is_collective and self.is_persistent else self.kind

    @property
    def sends_and_receives(self) -> bool:
        """Whether it is an MPI_Sendrecv, in any form."""
        return self.kind == "message" and self.operation.startswith("sendrecv")

    @property
    def operation(self) -> str:
        """MPI_Iallgather_c's allgather, MPI_Send_init's send."""
        name = self.plain.removeprefix("MPI_").lower()
        return name.removesuffix("_init") if self.is_persistent else name

    @property
    def waits(self) -> str:
        """How the function makes ranks depend on each other: a palmette::trace::Kind."""
        if self.kind in ("begins", "ends"):
            return "other" if self.mark else "init"
        return WAITS.get(self.mark) or KIND_OF.get(self.kind, "other")

    @property
    def made_request_does_it(self) -> bool:
        """Whether what the function does is done by the request that it makes. The receive of a matched message is
        recorded as a request, which begins with the probe.
        """
        return self.is_nonblocking or self.is_persistent or self.kind == "matched"


def forms_of(kind: str, name: str, mark: str) -> list[Function]:
    """Return all functions that one line of the table stands for."""
    nonblocking = f"MPI_I{name.removeprefix('MPI_').lower()}"
    if kind not in COLLECTIVE:
        forms = [(name, False, kind in ("lasting", "awaiting"))]
    else:
        forms = [(name, False, False), (nonblocking, True, False), (f"{name}_init", False, True)]
    return [
        Function(form + large, kind, mark, name, is_nonblocking, is_persistent)
        for form, is_nonblocking, is_persistent in forms
        for large in ("", "_c")
    ]


def read_names(path: Path, *kinds: str) -> list[str]:
    """Return the names of the lines of these kinds; of `tells`, with a * also beginnings of names."""
    lines = (line.split("#")[0].split() for line in path.read_text(encoding="utf-8").splitlines())
    return [words[1] for words in lines if words and words[0] in kinds]


def read_functions(path: Path) -> dict[str, Function]:
    """Return all other functions of the table by name. Raises ValueError with the line that can't be meant."""
    found: dict[str, Function] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        kind, name, mark, *more = [*words, "", ""][: max(3, len(words))]
        if kind not in (*KINDS, TELLS, HOOK) or not name or more:
            known = ", ".join((*KINDS, TELLS, HOOK))
            raise ValueError(f"{path}:{number}: '{line}' is not one of {known} with an MPI_NAME")
        if kind in (TELLS, HOOK):
            continue
        needs = () if kind == "neighbours" else tuple(WAITS) if kind in COLLECTIVE else MARKS.get(kind, ())
        if (mark and mark not in needs) or (kind in COLLECTIVE and needs and not mark):
            raise ValueError(f"{path}:{number}: '{line}' needs one of {', '.join(needs) or 'no words'} at its end")
        for function in forms_of(kind, name, mark):
            found[function.name] = function
    # Nonblocking messages have lines of their own.
    for name, function in found.items():
        plain = f"MPI_{name.removeprefix('MPI_I').removesuffix('_c').capitalize()}"
        if not function.is_collective and name.startswith("MPI_I") and plain in found:
            found[name] = function._replace(plain=plain, is_nonblocking=True)
        elif name.endswith("_c") and not function.is_collective:
            found[name] = function._replace(plain=function.plain)
    return found


def header(functions: dict[str, Function], telling: list[str]) -> str:
    """Return the rows of palmette::trace's table, sorted by name, and names and beginnings of functions that tell."""

    def flag(value: bool) -> str:
        return "true" if value else "false"

    rows = "".join(
        f'    {{"{one.name}", "{one.operation}", Kind::{one.waits}, {flag(one.made_request_does_it)}, '
        f"{flag(one.is_persistent)}, {flag(one.sends_and_receives)}, "
        f"{flag(one.kind == 'ends' and not one.mark)}, {flag(one.kind == 'ends' or one.mark == 'request')}}},\n"
        for _, one in sorted(functions.items())
    )
    return f"""\
// Made by tools/mpi_functions.py from src/palmette/mpi/functions.txt: change that file.
inline constexpr std::array<Function, {len(functions)}> rows{{{{
{rows}}}}};
inline constexpr std::array<std::string_view, {len(telling)}> telling{{{{
{"".join(f'    "{name}",{chr(10)}' for name in telling)}}}}};
"""


def served_header(collectives: list[str]) -> str:
    """Return palmette::select's functions, which are the collectives of the table, those of neighbours last."""
    names = [name.removeprefix("MPI_").lower() for name in collectives]
    chosen = [name for name in names if not name.startswith("neighbor_")]
    plans = {name: name.removesuffix("_block") for name in chosen}
    plans = {name: base[:-1] if base[:-1] in chosen else base for name, base in plans.items()}
    ordered = [*chosen, *(name for name in names if name not in chosen)]
    lines = "".join(f"    {name},\n" for name in ordered)
    rows = "".join(f'    {{"{name}", plan::Collective::{plans.get(name, "composed")}}},\n' for name in ordered)
    return f"""\
// Made by tools/mpi_functions.py from src/palmette/mpi/functions.txt: change that file.
enum class Function : std::uint8_t {{
{lines}}};
inline constexpr std::size_t function_count = {len(chosen)};
inline constexpr std::size_t all_function_count = {len(ordered)};
inline constexpr std::array<FunctionRow, all_function_count> function_rows{{{{
{rows}}}}};
"""


def main(arguments: list[str]) -> int:
    """Write both headers."""
    table, *targets = map(Path, arguments)
    texts = (
        header(read_functions(table), sorted(read_names(table, TELLS))),
        served_header(read_names(table, *COLLECTIVE)),
    )
    for target, text in zip(targets, texts, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
