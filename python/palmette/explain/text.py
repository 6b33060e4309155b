"""An explanation in lines of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from palmette import _core
from palmette.explain.costs import Cost
from palmette.explain.decision import Decision, RowLook
from palmette.explain.measured import Figure
from palmette.explain.report import Explained
from palmette.tune.rows import duration
from palmette.units import plural

WIDTH = 80


def decision_lines(decision: Decision) -> list[str]:
    """Return who decided and what, and why not the rows before."""
    asked = decision.asked
    lines = _wrapped("", f"{_question(decision)}: {_named(decision.algorithm)}")
    if decision.forced_by is not None:
        lines += _wrapped("", f"forced by {decision.forced_by}={decision.algorithm}; the table isn't asked")
        if decision.row is not None:
            lines += _wrapped(
                "", f"without it: row {decision.row.number} of {decision.table}, {decision.row.algorithm}"
            )
        return lines
    if decision.row is None:
        taken = "so the call is the MPI's" if decision.algorithm == "mpi" else "so the model decides"
        lines += _wrapped("", f"no row of {decision.table} fits, {taken}")
        lines += _wrapped("  ", decision.reason) if decision.algorithm != "mpi" else []
    else:
        row = decision.row
        lines += _wrapped("", f"decided by row {row.number} of {decision.table} ({row.limits})")
        # A row may leave the choice to the model: then the reason has the predicted time.
        said = decision.reason.partition(": ")[2] if decision.algorithm != row.algorithm else row.why
        lines += _wrapped("  ", said) if said else []
    if decision.passed_over:
        lines += ["", f"Rows for {asked.function} before it:"]
        lines += [line for look in decision.passed_over for line in _look(look)]
    return lines


def _question(decision: Decision) -> str:
    asked = decision.asked
    nodes = asked.job.level("node")
    size = f" of {_core.format_size(asked.size_bytes)}" if asked.size_bytes > 0 else ""
    kind = "" if asked.blocking else "nonblocking "
    where = f"{asked.job.size} ranks on {plural(nodes.count if nodes is not None else 1, 'node')}"
    order = "scattered" if _core.is_scattered(asked.job) else "in topology order"
    return f"{kind}{asked.function}{size}, {where}, {order}{f', {asked.mpi}' if asked.mpi else ''}"


def _look(look: RowLook) -> list[str]:
    return _wrapped("  ", f"row {look.number}, {look.algorithm}: {look.why_not}")


def _named(algorithm: str) -> str:
    return "the MPI's own" if algorithm == "mpi" else algorithm


def cost_lines(costs: Sequence[Cost], taken: str) -> list[str]:
    """Return the predicted times as a table."""
    if not costs:
        return []
    lines = ["", "By the model:", f"    {'time':>9} {'bound':>6}  algorithm"]
    for one in costs:
        multiple = f"{one.multiple:.2f}x" if one.multiple is not None else ""
        shares = ", ".join(f"{level} {share:.0%}" for level, share in one.shares.items() if share >= 0.005)
        mark = "->" if one.spec == taken else "  "
        head = f" {mark} {duration(one.seconds):>9} {multiple:>6}  "
        lines += _wrapped(head, one.spec, " " * len(head))
        lines += _wrapped(" " * len(head), f"time on {shares}") if shares else []
    return lines


def figure_lines(figures: Sequence[Figure], store: str) -> list[str]:
    """Return measured medians as a table."""
    if not figures:
        return []
    first = figures[0]
    size = f"{_core.format_size(first.size_bytes)}, " if first.size_bytes else ""
    head = f"Measured {first.started[:10]} ({size}{first.mpi}, {first.placement}; {store}):"
    lines = ["", *_wrapped("", head)]
    names = {"table": "what the table chose then", "mpi": "the MPI alone"}
    for one in figures[:8]:
        said = f"{names.get(one.spec, one.spec)} ({plural(one.rounds, 'round')})"
        lines += _wrapped(f"    {duration(one.seconds):>9}  ", said, " " * 15)
    return lines


def force_lines(decision: Decision, other: str | None) -> list[str]:
    """Return how another algorithm is forced."""
    function = decision.asked.function
    spec = other or "mpi"
    return [
        "",
        "To take another:",
        f"  palmette run --force {function}={spec}",
        f"  PALMETTE_{function.upper()}={spec}",
        f"`palmette plan {_core.collective_of(function)} --list` names all; `palmette tune {function}` measures.",
    ]


def report_lines(rows: Sequence[Explained], notes: Sequence[str]) -> list[str]:
    """Return a paragraph for each row of a report."""
    lines: list[str] = []
    for one in rows:
        time = f", {duration(one.mean_s)} a call and rank" if one.mean_s else ""
        size = f" of {one.size}" if one.size else ""
        lines += _wrapped("", f"{one.function}{size}, {one.calls} calls{time}: {_named(one.algorithm)}")
        lines += _wrapped("  ", one.reason)
        lines += _wrapped("  ", f"row {one.row} is for: {one.limits}") if one.limits else []
    if rows:
        function = rows[0].function.rpartition(" ")[2]
        lines += ["", f"What others cost: palmette explain {function} SIZE --topology FILE"]
        lines += [f"To take another: palmette run --force {function}=ALGORITHM mpiexec ..."]
    lines = lines or ["no call was seen"]
    return lines + ([""] if notes else []) + [line for note in notes for line in _wrapped("", note)]


def _wrapped(label: str, text: str, indent: str = "    ") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=label, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
