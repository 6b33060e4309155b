"""How the recorder's wrappers follow requests: from the call that makes one to the call that completes it.

Of tools/generate_recorder.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mpi_functions import Function
from mpi_prototypes import Prototype


@dataclass(frozen=True)
class RequestStatements:
    """Statements on a call's requests and status. `before` and `after` stand where the call is recorded."""

    before: tuple[str, ...] = ()
    substitute: str = ""
    """Gives the call statuses of ours where the program ignores them and only they tell a source; C only."""
    after: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Parameters that `after` reads, of which the call may change what they point at."""
    always: bool = False
    """Whether it is done where the call isn't recorded, too: what persistent requests send is always counted."""


def _first_of(p: Prototype, kind: str) -> str:
    """Return the name of the first parameter of a type, however it is written; empty: there is none."""
    return next((q.name for q in p.parameters if q.type.replace(" ", "").replace("[]", "*") == kind), "")


def around_requests(p: Prototype, fortran: bool, table: dict[str, Function]) -> RequestStatements:
    """Return how a call's requests are followed: from the call that makes them to the one that completes them."""
    types = {q.name: q.type for q in p.parameters}
    requests = "FortranRequests" if fortran else "Requests"
    filled, filled_list = ("filled_fortran", "filled_fortran") if fortran else ("filled", "filled_list")
    listed = _first_of(p, "MPI_Request*") or _first_of(p, "constMPI_Request*") or "request"
    count = next((name for name in ("count", "incount") if name in types), "1")
    function = table.get(p.name)
    kind = function.kind if function else ""
    if function and kind in ("completes", "tests", "asks"):
        asks = kind == "asks"
        if asks and types.get(listed) == "MPI_Request" and not fortran:
            listed = f"&{listed}"
        before = [] if asks else [f"call.waits_for({count}, {requests}({listed}));"]
        completed_by = f"call.noticed({requests}({listed}), " if asks else "call.completed("
        one = function.mark in ("", "any")
        ignored, status = "MPI_STATUS_IGNORE" if one else "MPI_STATUSES_IGNORE", _first_of(p, "MPI_Status*")
        index = next((name for name in types if name in ("index", "indx")), "")
        indices = next((name for name in types if name.endswith("indices")), "")
        base = " - first_index()" if fortran else ""
        test = kind != "completes" and function.mark != "some"
        succeeded = f"{'succeeded(ierror)' if fortran else 'code == MPI_SUCCESS'}{' && *flag' if test else ''}"
        # After an error handles tell which are complete, and statuses whom a message was from that was too long.
        match function.mark:
            case "":
                what = f"{completed_by}0, {filled}({status}));"
                failed = f"i == 0 ? {filled}({status}) : nullptr"
            case "any":
                what = f"if (*{index} != MPI_UNDEFINED) {completed_by}*{index}{base}, {filled}({status}));"
                failed = f"i == *{index}{base} ? {filled}({status}) : nullptr"
            case "all":
                what = f"for (int i = 0; i < {count}; ++i) {completed_by}i, at({filled_list}({status}), i));"
                failed = f"at({filled_list}({status}), i)"
            case _:
                what = (
                    f"if (*outcount != MPI_UNDEFINED) for (int i = 0; i < *outcount; ++i) "
                    f"{completed_by}{indices}[i]{base}, at({filled_list}({status}), i));"
                )
                failed = (
                    f"at({filled_list}({status}), position_of(i, *outcount, {count}, "
                    f"[&](int k) {{ return {indices}[k]{base}; }}))"
                )
        good = "succeeded(ierror)" if fortran else "code == MPI_SUCCESS"
        ended = f"call.stops_waiting({requests}({listed}), {good}, [&]([[maybe_unused]] int i) {{ return {failed}; }});"
        completed = ("call.returned();", f"if ({succeeded}) {what}", *(() if asks else (ended,)))
        names = [listed.lstrip("&"), status, index, count if count != "1" else "", *(("flag",) if test else ())]
        names += ["outcount", indices] if function.mark == "some" else []
        needed = "" if asks else " && call.needs_status()"
        substitute = f"if ({status} == {ignored}{needed}) {status} = call.own_statuses({count});"
        lines = "\n".join((*before, *completed))
        read = tuple(name for name in names if name and re.search(rf"\b{name}\b", lines))
        return RequestStatements(tuple(before), substitute, completed, read)
    if kind == "starts":
        good = "succeeded(ierror)" if fortran else "code == MPI_SUCCESS"
        starts = f"call.starts({count}, {requests}({listed}));"
        started = f"call.started({good} ? {count} : 0, {requests}({listed}));"
        return RequestStatements(
            before=(starts,), after=("call.returned();", started), always=True, names=(listed, "count")
        )
    if kind == "frees" and "request" in types:
        good = "succeeded(ierror)" if fortran else "code == MPI_SUCCESS"
        return RequestStatements(
            before=(f"if (request) call.frees({requests}(request)[0]);",),
            after=("call.returned();", f"call.freed({good});"), always=True, names=("request",),
        )  # fmt: skip
    if kind == "cancels":
        return RequestStatements(before=(f"if (request) call.cancels({requests}(request)[0]);",), names=("request",))
    if types.get("request") == "MPI_Request*":
        persistent = "sends" if function and function.is_persistent else "no"
        if kind == "awaiting":
            persistent = "receives"
        persistent = f"trace::Persistent::{persistent}"
        good = "succeeded(ierror)" if fortran else "code == MPI_SUCCESS"
        after = ("call.returned();", f"if ({good} && request) call.made({requests}(request)[0], {persistent});")
        return RequestStatements(after=after, names=("request",))
    if kind in ("message", "receive", "matched", "probe") and "status" in types:
        substitute = "if (status == MPI_STATUS_IGNORE && call.needs_status()) status = call.own_statuses(1);"
        flag = " && *flag" if "flag" in types else ""
        good = f"has_received({'code_of(ierror)' if fortran else 'code'}){flag}"
        then: tuple[str, ...] = ("call.returned();", f"if ({good}) call.from({filled}(status));")
        reads: tuple[str, ...] = ("status", "flag") if flag else ("status",)
        if kind == "probe" and "message" in types:
            message = "FortranMessage(message)" if fortran else "message"
            then = (*then, f"if ({good}) call.has_matched(*{message});")
            reads = (*reads, "message")
        return RequestStatements((), substitute, then, reads)
    return RequestStatements()
