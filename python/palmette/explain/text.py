"""Text output of `palmette explain`, in lines of 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from palmette import _core, settings
from palmette.explain.costs import Cost
from palmette.explain.decision import NONE, OFF, REPRODUCIBLE, CollectiveCall, Decision, RowCheck
from palmette.explain.measured import MeasuredTime
from palmette.explain.report import CallSummary
from palmette.plan.request import details_of
from palmette.present.words import wrapped
from palmette.tune.rows import TUNED
from palmette.units import plural, time_text

WORTH_TUNING = 1.5
"""Factor by which another algorithm must be predicted faster than the chosen one to recommend tuning."""


FEW_ROWS = 3
"""Number of rows that don't match which are shown by default."""


def decision_lines(decision: Decision, all_rows: bool = False) -> list[str]:
    """Return the decision and why the rows before don't match: all of them, or those that a measurement may change."""
    asked = decision.asked
    lines = wrapped(f"{_question(decision)}: {_named(decision.algorithm)}")
    if asked.in_rank_order:
        lines += wrapped("planned in rank order, as the reduction's result depends on it: the placement is ignored")
    if decision.algorithm == NONE:
        return lines + wrapped("nothing to move: it returns at once, and the table isn't consulted")
    if decision.forced_by == OFF:
        return lines + wrapped(f"switched off by {OFF}=0; the table isn't consulted")
    if decision.forced_by == REPRODUCIBLE:
        return lines + wrapped(f"{REPRODUCIBLE}=1: the same for any placement and any times; the table and "
                                "comparisons aren't consulted")  # fmt: skip
    if decision.refused is not None:
        return lines + wrapped(
            f"{decision.forced_by}={decision.refused} can't serve it: {decision.reason}; so the call is the MPI's"
        )
    if decision.forced_by is not None:
        lines += wrapped(f"forced by {decision.forced_by}={decision.algorithm}; the table isn't consulted")
        if decision.row is not None:
            lines += wrapped(f"without it: row {decision.row.number} of {decision.table}, {decision.row.algorithm}")
        return lines
    if decision.by_aggregators:
        switches = any(one.kind == "sharp" and one.level < 0 for one in decision.asked.job.aggregators)
        by = "libsharp_coll is there and the switches reduce" if switches else "PALMETTE_AGGREGATOR_TOKEN is set"
        lines += wrapped(f"{by}; {decision.reason}")
        if decision.row is not None:
            lines += wrapped(f"without it: row {decision.row.number} of {decision.table}, {decision.row.algorithm}")
        return lines
    if decision.row is None:
        taken = "so the call is the MPI's" if decision.algorithm == "mpi" else "so the model decides"
        lines += wrapped(f"no row of {decision.table} matches, {taken}")
        lines += _wrapped(
            "  ",
            decision.reason
            if decision.algorithm != "mpi"
            else "where `palmette calibrate` has measured the machine, the model decides instead",
        )
        if decision.on_trial and asked.blocking:
            lines += _wrapped("  ", "on trial: the first calls are done by the MPI and by this one in turns; the calls "
                              "are the MPI's until this one has shown to be faster")  # fmt: skip
    else:
        row = decision.row
        lines += wrapped(f"decided by row {row.number} of {decision.table} ({row.limits})")
        # A row may leave the choice to the model: then the reason has the predicted time.
        reason = decision.reason.partition(": ")[2] if decision.algorithm != row.algorithm else row.why
        lines += _wrapped("  ", reason) if reason else []
    if decision.passed_over:
        lines += ["", *_passed_over(decision.passed_over, asked.function, all_rows)]
    return lines


def _passed_over(checks: Sequence[RowCheck], function: str, all_rows: bool) -> list[str]:
    if all_rows or len(checks) <= FEW_ROWS:
        shown = list(checks)
        lines = [f"Rows for {function} before it:"]
    else:
        shown = [check for check in checks if check.measurable]
        some = ", among them" if shown else ""
        lines = wrapped(f"{len(checks)} rows for {function} before it don't match (--rows shows why){some}")
    return lines + [line for check in shown for line in _check_lines(check)]


def _question(decision: Decision) -> str:
    asked = decision.asked
    nodes = asked.job.level("node")
    size = f" of {_core.format_size(asked.size_bytes)}" if asked.size_bytes > 0 else ""
    kind = "" if asked.blocking else "nonblocking "
    where = f"{asked.job.size} ranks on {plural(nodes.count if nodes is not None else 1, 'node')}"
    order = "scattered" if _core.is_scattered(asked.job) else "in topology order"
    return f"{kind}{asked.function}{size}, {where}, {order}{f', {asked.mpi}' if asked.mpi else ''}"


def _check_lines(check: RowCheck) -> list[str]:
    return _wrapped("  ", f"row {check.number}, {check.algorithm}: {check.why_not}")


def _named(algorithm: str) -> str:
    return "the MPI's own" if algorithm == "mpi" else algorithm


def cost_lines(costs: Sequence[Cost], decision: Decision) -> list[str]:
    """Return the predicted times as a table."""
    if not costs:
        return []
    taken = decision.algorithm
    lines = ["", "By the model:", f"    {'time':>9} {'bound':>6}  algorithm"]
    for one in costs:
        multiple = _multiple(one.multiple)
        shares = ", ".join(f"{level} {share:.0%}" for level, share in one.shares.items() if share >= 0.005)
        mark = "->" if one.spec == taken else "  "
        about = "" if one.played else "~"
        head = f" {mark} {about + time_text(one.seconds):>9} {multiple:>6}  "
        lines += wrapped(one.spec, head, " " * len(head), after=",")
        lines += wrapped(f"time on {shares}", " " * len(head), " " * len(head)) if shares else []
    if not all(one.played for one in costs):
        lines += wrapped(
            "~: by a closed formula, as the plan is too large to be simulated; it ignores contention on links"
        )
    mine = next((one for one in costs if one.spec == taken), None)
    if mine is None and taken == "mpi":
        lines += wrapped("The MPI's own time isn't predicted: `palmette tune` measures it.")
    elif mine is not None and mine.seconds > WORTH_TUNING * costs[0].seconds:
        lines += wrapped(
            f"The model predicts another one {mine.seconds / costs[0].seconds:.1f} times faster than the chosen one."
            f" {_whom_to_believe(decision)} This measures it:",
        )
        lines.append(f"  {tune_line(decision.asked)}")
    return lines


def _whom_to_believe(decision: Decision) -> str:
    if decision.row is not None and decision.row.why.startswith(TUNED):
        return "Believe the row: it was measured here, or on a machine that you chose."
    if decision.on_trial:
        return (
            "Believe neither yet: the choice is the model's, too, by a formula that is quick enough for a run; above, "
            "plans are simulated on the links."
        )
    if any(level.costs.source == "calibrated" for level in decision.asked.job.levels):
        return "Believe the model rather: costs are calibrated here, and rows were measured on other machines."
    return "Believe the row: it was measured, on another machine, and the model's costs are assumed or incomplete."


def tune_line(asked: CollectiveCall) -> str:
    """Return the command that measures a call's cell."""
    size = f" --sizes {_core.format_size(asked.size_bytes)}" if asked.size_bytes > 0 else ""
    root = f" --root {asked.root}" if asked.root else ""
    return f"palmette tune {asked.function}{size}{root} -- mpiexec -n {asked.job.size}"


def _multiple(multiple: float | None) -> str:
    if multiple is None:
        return ""
    return f"{multiple:.2f}x" if multiple < 100 else f"{multiple:.0f}x"


def measured_lines(figures: Sequence[MeasuredTime], store: str) -> list[str]:
    """Return measured medians as a table."""
    if not figures:
        return []
    first = figures[0]
    size = f"{_core.format_size(first.size_bytes)}, " if first.size_bytes else ""
    head = f"Measured {first.started[:10]} ({size}{first.mpi}, {first.placement}; {store}):"
    lines = ["", *wrapped(head)]
    names = {"table": "what the table chose then", "mpi": "the MPI alone"}
    for one in figures[:8]:
        what = f"{names.get(one.spec, one.spec)} ({plural(one.rounds, 'round')})"
        lines += _wrapped(f"    {time_text(one.seconds):>9}  ", what, " " * 15)
    return lines


def force_lines(decision: Decision, other: str | None, before: Sequence[str] = ()) -> list[str]:
    """Return how to force another algorithm, and what measures it unless `before`, the lines above, tell that."""
    asked = decision.asked
    function = asked.function
    spec = other or (_first_that_serves(asked) if decision.algorithm == "mpi" else "mpi")
    if spec is None:
        return ["", *wrapped("No algorithm of palmette's can serve it.")]
    measures = f"  {tune_line(asked)}"
    told = measures in before
    return [
        "",
        "To take another:",
        f"  palmette run --force {function}={spec}",
        f"  {settings.FORCE}='{function}={spec}'",
        f"`palmette plan {_core.collective_of(function)} --list` names all{'' if told else '; this measures here:'}",
        *([] if told else [measures]),
    ]


def _first_that_serves(asked: CollectiveCall) -> str | None:
    collective = _core.collective_of(asked.function)
    details = details_of(collective, ordered=asked.ordered, shared_memory=asked.may_share)
    for one in _core.algorithms():
        if one.collective == collective and not _core.refusal(
            asked.planned_job, collective, one.name, asked.root, asked.size_bytes, **details
        ):
            return one.name
    return None


def gain_lines(report: Mapping[str, Any]) -> list[str]:
    """Return what a report says first: the time of served calls, and what that saved; nothing for older reports."""
    sentence = (report.get("gain") or {}).get("sentence")
    if not isinstance(sentence, str):
        return []
    wiring = [] if "topology" in report else ["topology: none (levels from the MPI); --topology FILE"]
    return [*wrapped(sentence), *wiring, ""]


def report_lines(rows: Sequence[CallSummary], notes: Sequence[str]) -> list[str]:
    """Return a paragraph for each row of a report."""
    lines: list[str] = []
    for one in rows:
        time = f", {time_text(one.mean_s)} a call and rank" if one.mean_s else ""
        size = f" of {one.size}" if one.size else ""
        lines += wrapped(f"{one.function}{size}, {plural(one.calls, 'call')}{time}: {_named(one.algorithm)}")
        lines += _wrapped("  ", one.reason)
        lines += _wrapped("  ", f"row {one.row} is for: {one.limits}") if one.limits else []
        if one.multiple is not None and one.bound_s is not None:
            lines += _wrapped("  ", f"{one.multiple:.2f} times the physical bound of {time_text(one.bound_s)}")
        if one.predicted:
            times = ", ".join(f"{time_text(cost.seconds)} {_taken(cost, one)}" for cost in one.predicted)
            lines += _wrapped("  ", f"by the model{_middle(one)}: {times}")
        if one.compared is not None:
            lines += _wrapped(
                "  ",
                f"compared with the MPI's own in {plural(one.compared.pairs, 'pair')}: {time_text(one.compared.ours_s)}"
                f" against {time_text(one.compared.mpi_s)}",
            )
    if rows:
        function = rows[0].function.rpartition(" ")[2]
        lines += [""]
        if any(one.multiple is not None or one.predicted for one in rows):
            lines += wrapped(
                "Bounds and the model's times are of a call by all ranks, root 0; the mean includes waiting."
            )
        lines += [f"What others cost: palmette explain {function} SIZE --topology FILE"]
        lines += [f"To take another: palmette run --force {function}=ALGORITHM mpiexec ..."]
    lines = lines or ["no call was seen"]
    return lines + ([""] if notes else []) + [line for note in notes for line in wrapped(note)]


def _middle(one: CallSummary) -> str:
    """The size of the prediction, where that isn't the size of all calls."""
    size = _core.format_size(one.predicted_bytes) if one.predicted_bytes is not None else one.size
    return "" if size == one.size else f" at {size}, the middle of these sizes"


def _taken(cost: Cost, one: CallSummary) -> str:
    return f"{cost.spec} (taken)" if cost.spec == one.algorithm else cost.spec


def _wrapped(label: str, text: str, indent: str = "    ") -> list[str]:
    return wrapped(text, label, indent)
