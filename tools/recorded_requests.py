"""How the recorder's wrappers follow requests: from the call that makes one to the call that completes it.

Of tools/generate_recorder.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mpi_prototypes import Prototype

COMPLETES = re.compile(r"MPI_(?P<verb>Wait|Test)(?P<several>|all|any|some)")
STARTS = re.compile(r"MPI_Start(all)?")
FILLS_STATUS = re.compile(r"MPI_(?:Recv|Mrecv|Probe|Iprobe|Mprobe|Improbe|Sendrecv|Sendrecv_replace)(?:_c)?")


@dataclass(frozen=True)
class Around:
    """Statements on a call's requests and status. `before` and `after` stand where the call is recorded."""

    before: tuple[str, ...] = ()
    substitute: str = ""
    """Gives the call statuses of ours where the program ignores them and only they tell a source; C only."""
    after: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Parameters that `after` reads, of which the call may change what they point at."""


def _first_of(p: Prototype, kind: str) -> str:
    """Return the name of the first parameter of a type, however it is written; empty: there is none."""
    return next((q.name for q in p.parameters if q.type.replace(" ", "").replace("[]", "*") == kind), "")


def around_requests(p: Prototype, fortran: bool, kinds: dict[str, str]) -> Around:
    """Return how a call's requests are followed: from the call that makes them to the one that completes them."""
    types = {q.name: q.type for q in p.parameters}
    requests = "FortranRequests" if fortran else "Requests"
    filled, filled_list = ("filled_fortran", "filled_fortran") if fortran else ("filled", "filled_list")
    listed = _first_of(p, "MPI_Request*") or "request"
    count = next((name for name in ("count", "incount") if name in types), "1")
    if found := COMPLETES.fullmatch(p.name):
        before = [f"call.waits_for({count}, {requests}({listed}));"]
        one = found["several"] in ("", "any")
        ignored, status = "MPI_STATUS_IGNORE" if one else "MPI_STATUSES_IGNORE", _first_of(p, "MPI_Status*")
        index = next((name for name in types if name in ("index", "indx")), "")
        indices = next((name for name in types if name.endswith("indices")), "")
        base = " - first_index()" if fortran else ""
        test = found["verb"] == "Test" and found["several"] != "some"
        succeeded = f"{'succeeded(ierror)' if fortran else 'code == MPI_SUCCESS'}{' && *flag' if test else ''}"
        # After an error handles tell which are complete, and statuses whom a message was from that was too long.
        match found["several"]:
            case "":
                what = f"call.completed(0, {filled}({status}));"
                failed = f"i == 0 ? {filled}({status}) : nullptr"
            case "any":
                what = f"if (*{index} != MPI_UNDEFINED) call.completed(*{index}{base}, {filled}({status}));"
                failed = f"i == *{index}{base} ? {filled}({status}) : nullptr"
            case "all":
                what = f"for (int i = 0; i < {count}; ++i) call.completed(i, at({filled_list}({status}), i));"
                failed = f"at({filled_list}({status}), i)"
            case _:
                what = (
                    f"if (*outcount != MPI_UNDEFINED) for (int i = 0; i < *outcount; ++i) "
                    f"call.completed({indices}[i]{base}, at({filled_list}({status}), i));"
                )
                failed = (
                    f"at({filled_list}({status}), position_of(i, *outcount, {count}, "
                    f"[&](int k) {{ return {indices}[k]{base}; }}))"
                )
        good = "succeeded(ierror)" if fortran else "code == MPI_SUCCESS"
        ended = f"call.stops_waiting({requests}({listed}), {good}, [&]([[maybe_unused]] int i) {{ return {failed}; }});"
        completed = ("call.returned();", f"if ({succeeded}) {what}", ended)
        names = [listed, status, index, count if count != "1" else "", *(("flag",) if test else ())]
        names += ["outcount", indices] if found["several"] == "some" else []
        substitute = f"if ({status} == {ignored} && call.needs_status()) {status} = call.own_statuses({count});"
        return Around(tuple(before), substitute, completed, tuple(name for name in names if name))
    if STARTS.fullmatch(p.name):
        good = "succeeded(ierror)" if fortran else "code == MPI_SUCCESS"
        started = f"if ({good}) call.started({count}, {requests}({listed}));"
        return Around(after=("call.returned();", started), names=(listed, "count"))
    if p.name == "MPI_Request_free":
        good = "succeeded(ierror)" if fortran else "code == MPI_SUCCESS"
        return Around(
            before=(f"if (request) call.frees({requests}(request)[0]);",),
            after=("call.returned();", f"call.freed({good});"), names=("request",),
        )  # fmt: skip
    if p.name == "MPI_Cancel":
        return Around(before=(f"if (request) call.cancels({requests}(request)[0]);",), names=("request",))
    if types.get("request") == "MPI_Request*":
        persistent = "no" if not re.search(r"_init(?:_c)?$", p.name) else "sends"
        if kinds.get(p.name) == "awaiting":
            persistent = "receives"
        persistent = f"trace::Persistent::{persistent}"
        good = "succeeded(ierror)" if fortran else "code == MPI_SUCCESS"
        after = ("call.returned();", f"if ({good} && request) call.made({requests}(request)[0], {persistent});")
        return Around(after=after, names=("request",))
    if FILLS_STATUS.fullmatch(p.name) and "status" in types:
        substitute = "if (status == MPI_STATUS_IGNORE && call.needs_status()) status = call.own_statuses(1);"
        flag = " && *flag" if "flag" in types else ""
        good = f"matrix::has_received({'code_of(ierror)' if fortran else 'code'}){flag}"
        then: tuple[str, ...] = ("call.returned();", f"if ({good}) call.from({filled}(status));")
        reads: tuple[str, ...] = ("status", "flag") if flag else ("status",)
        if "probe" in p.name and "message" in types:
            message = "FortranMessage(message)" if fortran else "message"
            then = (*then, f"if ({good}) call.has_matched(*{message});")
            reads = (*reads, "message")
        return Around((), substitute, then, reads)
    return Around()
