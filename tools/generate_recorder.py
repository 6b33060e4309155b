"""Write the wrappers of the recording library from the prototypes in an MPI's mpi.h.

Usage: generate_recorder.py COUNTED DIRECTORY ABI COMPILER [-I... -D...]      COUNTED: list of counted_messages.py

Every function of mpi.h that returns an int and that a program calls gets a wrapper, in C and, where the MPI's Fortran
layer bypasses the C functions (generate_fortran.py), in Fortran. Communicator, peer, tag and payload of a call follow
from the names and types of its parameters, which the standard fixes. Writes DIRECTORY/palmette/record/functions.hpp
and DIRECTORY/recorder_wrappers.cpp.

The ABI smpi is that of simulated programs, into which the recorder is linked. There the wrappers are called
palmette_recorded_MPI_X, and DIRECTORY/recorded_names.h gives these names to a program that is compiled with it.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from counted_messages import counted, read_kinds
from generate_fortran import fortran_names, has_large_integers
from mpi_prototypes import Prototype, declared_functions, preprocessed_mpi_h
from wrappers_header import finder, forwarded, with_offers

NOT_CALLS = re.compile(
    r"MPI_(?:T_.*|Pcontrol|.*_(?:f2c|c2f|f082c|c2f08|f2f08|f082f)|.*(?:NULL|DUP|CONVERSION).*_FN.*"
    r"|(?:Status_[gs]et_(?:error|source|tag)|Remove_error_.*|.*_buffer|Buffer_i?flush|Get_hw_.*)(?:_c)?"
    r"|Type_get_value_index"
    r"|(?:Type|Pack|Unpack|Buffer|Win_shared|Status|Register|Op)_.*_c|(?:Pack|Unpack|Get_count|Get_elements)_c"
    r"|File_get_type_extent_c|Address|Errhandler_(?:create|get|set)|Type_(?:extent|hindexed|hvector|lb|struct|ub)"
    r"|Abi_.*|Get_version|Get_library_version|NULL_.*|DUP_FN|.*_fromint|.*_toint|.*_function)"
)
"""Tools' interface, variable arguments, conversions between languages, predefined callbacks; what programs look up to
find out which MPI is loaded, before there is one; local functions that not every MPI has, of which a program that looks
them up must not find ours."""
HOOKS = {
    "MPI_Init": "start",
    "MPI_Init_thread": "start",
    "MPI_Finalize": "finalize",
    "MPI_Session_init": "session",
    "MPI_Session_finalize": "end_session",
    "MPI_Abort": "abort",
    "MPI_Comm_free": "free",
    "MPI_Comm_disconnect": "free",
    "MPI_Type_free": "free_type",
}
"""What is done around the call."""
COLLECTIVES = re.compile(
    r"MPI_(?:I?(?:bcast|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|all_?reduce|reduce|reduce_scatter(?:_block)?"
    r"|scan|exscan|barrier|neighbor_allgatherv?|neighbor_alltoall[vw]?))(?:_init)?(?:_c)?",
    re.IGNORECASE,
)


def functions(text: str) -> list[str]:
    """Return the names of all functions of a preprocessed mpi.h that get a wrapper, sorted."""
    found = set(re.findall(r"\bint\s+(MPI_[A-Z][A-Za-z0-9_]*)\s*\(", text))
    return sorted(name for name in found if not NOT_CALLS.fullmatch(name))


def _first(prototype: Prototype, names: tuple[str, ...], kinds: tuple[str, ...]) -> str | None:
    """Return the first of `names` that the function has as a parameter of one of the types."""
    have = {p.name: p.type for p in prototype.parameters}
    return next((name for name in names if have.get(name) in kinds), None)


def described(p: Prototype) -> list[str]:
    """Return the statements that say what a call is about."""
    lines = []
    comm = next((q.name for q in p.parameters if q.type == "MPI_Comm"), None)
    if comm:
        lines.append(f"call.on({comm});")
    peer = _first(p, ("dest", "dst", "source", "src", "target_rank"), ("int",))
    tag = _first(p, ("tag", "sendtag"), ("int",))
    if COLLECTIVES.fullmatch(p.name):
        peer, tag = _first(p, ("root",), ("int",)), None
    if peer:
        lines.append(f"call.with(peer_of({peer}), {tag or 0});")
    lines += _payload(p)
    if re.fullmatch(r"MPI_(?:S|Is)endrecv(?:_replace)?(?:_c)?", p.name):
        types = {q.name for q in p.parameters}
        count, kind = ("recvcount", "recvtype") if "recvcount" in types else ("count", "datatype")
        source = "source" if "source" in types else "src"  # of SimGrid
        lines.append(f"call.receives(peer_of({source}), recvtag, {count}, {kind});")
    if COLLECTIVES.fullmatch(p.name):
        lines.append("call.collective();")
    return lines


SIDES = (
    ("sendcount", "sendtype", "sendbuf"),
    ("recvcount", "recvtype", "recvbuf"),
    ("origin_count", "origin_datatype", None),
    ("count", "datatype", None),
    ("recvcount", "datatype", None),
)
"""Count, type, and the buffer that may be MPI_IN_PLACE: then the other side counts."""


FOR_ALL = re.compile(r"MPI_I?(?:alltoall|reduce_scatter_block)(?:_init)?(?:_c)?", re.IGNORECASE)
"""Their count is that of a block, of which each rank gets one."""


def _payload(p: Prototype) -> list[str]:
    """Return the statements that count a call's payload: what this rank sends; of a scatter what it receives."""
    have = {q.name: q.type for q in p.parameters}
    sides = [
        side for side in SIDES if have.get(side[0]) in ("int", "MPI_Count") and have.get(side[1]) == "MPI_Datatype"
    ]
    if "scatter" in p.name.lower():
        sides.sort(key=lambda side: side[0] != "recvcount")
    # On an inter-communicator some ranks' arguments mean nothing.
    rooted = "if (is_rank(root)) " if have.get("root") == "int" else ""
    if sides:
        count, kind, buffer = sides[0]
        line = f"call.bytes({count}, {kind});"
        if FOR_ALL.fullmatch(p.name):
            line = f"call.bytes_for_all({count}, {kind}, comm);"
        if buffer in have:
            other = line.replace(count, sides[1][0]).replace(kind, sides[1][1]) if len(sides) > 1 else ""
            line = f"if ({buffer} != MPI_IN_PLACE) {line}" + (f" else {other}" if other else "")
            line = f"{rooted}{{ {line} }}" if rooted else line
        return [line if buffer in have else rooted + line]
    for counts, kind in (("sendcounts", "sendtype"), ("recvcounts", "datatype")):
        if have.get(counts, "").startswith("const") and have.get(kind) == "MPI_Datatype" and "eighbor" not in p.name:
            in_place = "if (sendbuf != MPI_IN_PLACE) " if counts == "sendcounts" and "sendbuf" in have else ""
            local = "true" if counts == "recvcounts" else "false"
            return [f"{in_place}call.bytes_of_list({counts}, {kind}, comm, {local});"]
    if "sendtypes" in have and "eighbor" not in p.name:
        counts = "sendcounts" if "sendcounts" in have else "sendcnts"  # the simulator's header
        return [f"if (sendbuf != MPI_IN_PLACE) call.bytes_of_lists({counts}, sendtypes, comm);"]
    return []


def around(p: Prototype) -> tuple[str, str]:
    """Return what stands before the call and after it."""
    hook = HOOKS.get(p.name)
    if hook == "start":
        return "    Recorder::start();\n", "    if (code == MPI_SUCCESS) know_world();\n"
    if hook == "finalize":
        return "    finalizing();\n", "    finalized();\n"
    if hook == "session":
        return "    Recorder::start();\n", "    if (code == MPI_SUCCESS) session_begun();\n"
    if hook == "end_session":
        return "", "    if (code == MPI_SUCCESS) session_ended();\n"
    if hook == "abort":
        return "    aborting();\n", ""
    if hook == "free":
        return f"    if ({p.parameters[0].name}) forget(*{p.parameters[0].name});\n", ""
    if hook == "free_type":
        return "    forget_types();\n", ""
    new = [q.name for q in p.parameters if q.type == "MPI_Comm*"]
    if len(new) == 1 and "keyval" not in p.name and "get_parent" not in p.name:
        parent = next((q.name for q in p.parameters if q.type == "MPI_Comm"), "MPI_COMM_NULL")
        made = "will_make" if "idup" in p.name else "made"
        tag = ", tag" if p.name == "MPI_Comm_create_group" else ""
        return "", f"    if (code == MPI_SUCCESS && {new[0]}) {made}({parent}, *{new[0]}{tag});\n"
    return "", ""


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


def around_requests(p: Prototype, fortran: bool) -> Around:
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
        match found["several"]:
            case "":
                what = f"call.completed(0, {filled}({status}));"
            case "any":
                what = f"if (*{index} != MPI_UNDEFINED) call.completed(*{index}{base}, {filled}({status}));"
            case "all":
                what = f"for (int i = 0; i < {count}; ++i) call.completed(i, at({filled_list}({status}), i));"
            case _:
                what = (
                    f"if (*outcount != MPI_UNDEFINED) for (int i = 0; i < *outcount; ++i) "
                    f"call.completed({indices}[i]{base}, at({filled_list}({status}), i));"
                )
        completed = ("call.returned();", f"if ({succeeded}) {what}", f"call.stops_waiting({requests}({listed}));")
        names = [listed, status, index, count if count != "1" else "", *(("flag",) if test else ())]
        names += ["outcount", indices] if found["several"] == "some" else []
        substitute = f"if ({status} == {ignored} && call.needs_status()) {status} = call.own_statuses({count});"
        return Around(tuple(before), substitute, completed, tuple(name for name in names if name))
    if STARTS.fullmatch(p.name):
        good = "succeeded(ierror)" if fortran else "code == MPI_SUCCESS"
        started = f"if ({good}) call.started({count}, {requests}({listed}));"
        return Around(after=("call.returned();", started), names=(listed, "count"))
    if p.name == "MPI_Request_free":
        return Around(before=(f"if (request) call.freed({requests}(request)[0]);",), names=("request",))
    if types.get("request") == "MPI_Request*" and p.name != "MPI_Cancel":
        persistent = "true" if re.search(r"_init(?:_c)?$", p.name) else "false"
        good = "succeeded(ierror)" if fortran else "code == MPI_SUCCESS"
        after = ("call.returned();", f"if ({good} && request) call.made({requests}(request)[0], {persistent});")
        return Around(after=after, names=("request",))
    if FILLS_STATUS.fullmatch(p.name) and "status" in types:
        substitute = "if (status == MPI_STATUS_IGNORE && call.needs_status()) status = call.own_statuses(1);"
        flag = " && *flag" if "flag" in types else ""
        good = f"{'succeeded(ierror)' if fortran else 'code == MPI_SUCCESS'}{flag}"
        after = ("call.returned();", f"if ({good}) call.from({filled}(status));")
        return Around((), substitute, after, ("status", *(("flag",) if flag else ())))
    return Around()


SIMULATED = "smpi"


def counting(p: Prototype, kinds: dict[str, str], good: str) -> tuple[str, str]:
    """Return what counts a call's messages for the matrix: what stands before the call, and after it."""
    if not kinds:
        return "", ""
    if p.name in STARTED:
        return GUARD, f"    if ({good} && counts) {STARTED[p.name]}\n"
    if p.name == "MPI_Request_free":
        return f"{GUARD}    if (counts && request) Counters::instance().forget(*request);\n", ""
    kind = kinds.get(p.name)
    return (GUARD, f"    if ({good} && counts) {counted(p, kind)};\n") if kind else ("", "")


GUARD = "    const matrix::Outermost counts(__builtin_return_address(0), __builtin_frame_address(0));\n"
STARTED = {
    "MPI_Start": "Counters::instance().started(*request);",
    "MPI_Startall": "for (int i = 0; i < count; ++i) Counters::instance().started(array_of_requests[i]);",
}


def wrapper(p: Prototype, number: int, abi: str, kinds: dict[str, str]) -> str:
    """Return the exported function of C and what finds the next one."""
    next_one = f"""\
int find_{p.name}({p.declared});
inline constinit interpose::Next<int (*)({p.declared})> {p.name}{{&find_{p.name}}};
}}  // namespace next
{finder(p)}"""
    symbol = p.name
    if abi == SIMULATED:
        # What is linked: palmette's, where it serves the function, else the simulator's.
        next_one = f"inline constinit interpose::Next<int (*)({p.declared})> {p.name}{{&::{p.name}}};\n}}  // next\n"
        symbol = f"palmette_recorded_{p.name}"
    words = ", ".join(f"Word w{i}" for i in range(len(p.parameters)))
    typed = "".join(
        f"    [[maybe_unused]] {'' if 'Status' in q.type else 'const '}auto {q.name} = argument<{q.type}>(w{i});\n"
        for i, q in enumerate(p.parameters)
    )
    before, after = around(p)
    count_before, count_after = counting(p, kinds, "code == MPI_SUCCESS")
    requests = around_requests(p, fortran=False)
    inside = [*described(p), *requests.before, *([requests.substitute] if requests.substitute else [])]
    lines = "".join(f"            {line}\n" for line in inside)
    done = f"        if (call) {{ {' '.join(requests.after)} }}\n" if requests.after else ""
    return f"""\
namespace palmette::record {{
namespace next {{
{next_one}}}  // namespace palmette::record
extern "C" __attribute__((visibility("default"))) int entry_{p.name}({words}) __asm__("{symbol}");
int entry_{p.name}({words}) {{
    using namespace palmette;
    using namespace palmette::record;
    using interpose::argument;
    using matrix::Counters;
    if (!mpi::is_ours(__builtin_return_address(0))) [[unlikely]] {{
        static constinit interpose::PassOn pass_on{{"{p.name}"}};
        return {forwarded(p)};
    }}
{typed}{count_before}{before}    int code = MPI_SUCCESS;
    {{
        Call call({number}, __builtin_return_address(0), __builtin_frame_address(0));
        if (call) {{
{lines}            call.begin();
        }}
        code = next::{p.name}({p.arguments});
{done}    }}
{count_after}{after}    return code;
}}
"""


FORTRAN_HANDLES = {"MPI_Comm": "Comm", "MPI_Datatype": "Type"}


def fortran_argument(kind: str, word: str) -> str:
    """Return a Fortran argument as C has it; lists of types need their communicator, `comm`."""
    value = f"*reinterpret_cast<const MPI_Fint*>({word})"
    if kind in ("void*", "const void*"):
        return f"palmette::interpose::fortran::buffer(reinterpret_cast<void*>({word}))"
    if kind.startswith("const MPI_Datatype"):
        return f"palmette::interpose::fortran::Types(reinterpret_cast<const MPI_Fint*>({word}), comm)"
    if kind == "MPI_Request*":
        return f"palmette::record::FortranRequests(reinterpret_cast<const MPI_Fint*>({word}))"
    if kind.endswith("*"):
        return f"reinterpret_cast<const MPI_Fint*>({word})"
    return f"PMPI_{FORTRAN_HANDLES[kind]}_f2c({value})" if kind in FORTRAN_HANDLES else value


def fortran_counting(p: Prototype, kinds: dict[str, str]) -> tuple[str, str]:
    """Return `counting` for Fortran's arguments, which are converted after the call where it counts.

    Each where it is used: in place, there may be nothing behind the list of sending types.
    """
    if has_large_integers(p):
        return "", ""
    before, after = counting(p, kinds, f"succeeded(w{len(p.parameters)})")
    if p.name == "MPI_Request_free":  # its handle is gone afterwards
        return (
            f"{GUARD}    if (counts) Counters::instance().forget({fortran_argument('MPI_Request*', 'w0')}[0]);\n", ""
        )  # fmt: skip
    if not after:
        return "", ""
    statement = re.sub(r"\*(request)\b", r"\1[0]", after.partition(" && counts) ")[2].strip())
    converted = {q.name: fortran_argument(q.type, f"w{i}") for i, q in enumerate(p.parameters)}
    statement = re.sub(rf"\b(?:{'|'.join(converted)})\b", lambda found: converted[found[0]], statement)
    statement = statement.replace(", comm)", f", {converted.get('comm')})")
    return before, f"    if (counts && succeeded(w{len(p.parameters)})) {statement}\n"


def fortran_wrapper(p: Prototype, number: int, name: str, kinds: dict[str, str]) -> str:
    """Return the exported function under one Fortran name, which passes its arguments on as they are."""
    # The hidden lengths of character arguments come behind the others; words that nobody passed are read by nobody.
    count = len(p.parameters) + 3
    words = ", ".join(f"Word w{i}" for i in range(count))
    passed = ", ".join(f"w{i}" for i in range(count))
    starts = p.name in ("MPI_Init", "MPI_Init_thread")
    requests = around_requests(p, fortran=True)
    inside = [] if starts else [*described(p), *requests.before]
    used = " ".join(inside)
    typed = late = ""
    for i, q in enumerate(p.parameters):
        if q.name in requests.names:
            star = "*" if q.type == "int" else ""
            late += f"    const auto {q.name} = {star}reinterpret_cast<const MPI_Fint*>(w{i});\n"
            continue
        if not re.search(rf"\b{q.name}\b", used):
            continue
        value = fortran_argument(q.type, f"w{i}")
        if q.type.startswith("const MPI_Datatype"):
            value = f"FortranTypes(reinterpret_cast<const MPI_Fint*>(w{i}))"
        typed += f"            const auto {q.name} = {value};\n"
    lines = "".join(f"            {line}\n" for line in inside)
    done = f"        if (call) {{ {' '.join(requests.after)} }}\n" if requests.after else ""
    done = done.replace("ierror", f"w{len(p.parameters)}")
    count_before, count_after = fortran_counting(p, kinds)
    hook = HOOKS.get(p.name)
    before = after = ""
    error = "w0" if p.name == "MPI_Init" else "w2" if p.name == "MPI_Init_thread" else ""
    if hook == "start":
        before = "    Recorder::start();\n"
        after = f"    if (succeeded({error})) know_world();\n"
    elif hook == "finalize":
        before, after = "    finalizing();\n", "    finalized();\n"
    elif hook == "session":
        before, after = "    Recorder::start();\n", f"    if (succeeded(w{len(p.parameters)})) session_begun();\n"
    elif hook == "end_session":
        after = f"    if (succeeded(w{len(p.parameters)})) session_ended();\n"
    elif hook == "abort":
        before = "    aborting();\n"
    elif hook == "free_type":
        before = "    forget_types();\n"
    elif hook == "free":
        before = "    forget(PMPI_Comm_f2c(*reinterpret_cast<const MPI_Fint*>(w0)));\n"
    else:
        new = [i for i, q in enumerate(p.parameters) if q.type == "MPI_Comm*"]
        if len(new) == 1 and "keyval" not in p.name and "get_parent" not in p.name:
            parent = next(
                (
                    f"PMPI_Comm_f2c(*reinterpret_cast<const MPI_Fint*>(w{i}))"
                    for i, q in enumerate(p.parameters)
                    if q.type == "MPI_Comm"
                ),
                "MPI_COMM_NULL",
            )
            tag = ", *reinterpret_cast<const MPI_Fint*>(w2)" if p.name == "MPI_Comm_create_group" else ""
            after = (
                f"    if (succeeded(w{len(p.parameters)})) "
                f"{'will_make' if 'idup' in p.name else 'made'}({parent}, "
                f"PMPI_Comm_f2c(*reinterpret_cast<const MPI_Fint*>(w{new[0]})){tag});\n"
            )
    return f"""\
extern "C" __attribute__((visibility("default"))) void entry_{name}({words}) __asm__("{name}");
void entry_{name}({words}) {{
    using namespace palmette;
    using namespace palmette::record;
    using matrix::Counters;
    static constinit palmette::interpose::PassOn pass_on{{"{name}"}};
    if (!palmette::mpi::is_ours(__builtin_return_address(0))) [[unlikely]] {{
        pass_on({passed});
        return;
    }}
{late}{count_before}{before}    {{
        Call call({number}, __builtin_return_address(0), __builtin_frame_address(0));
        if (call) {{
{typed}{lines}            call.begin();
        }}
        pass_on({passed});
{done}    }}
{count_after}{after}}}
"""


def source(prototypes: list[Prototype], abi: str, kinds: dict[str, str]) -> str:
    """Return the text of recorder_wrappers.cpp."""
    parts = [
        """\
// Made by tools/generate_recorder.py.
#include "palmette/record/wrapping.hpp"

using palmette::interpose::Word;
"""
    ]
    for number, p in enumerate(prototypes):
        parts.append(wrapper(p, number, abi, kinds))
        if abi in ("mpich", "ompi") and not p.name.endswith("_c"):
            parts += [fortran_wrapper(p, number, name, kinds) for name in fortran_names(p, abi)]
    return "\n".join(parts)


def header(prototypes: list[Prototype]) -> str:
    """Return the text of functions.hpp: names by number."""
    names = "".join(f'    "{p.name}",\n' for p in prototypes)
    return f"""\
// Made by tools/generate_recorder.py.
#pragma once

#include <cstdint>

namespace palmette::record {{

inline constexpr std::uint32_t function_count = {len(prototypes)};
inline constexpr const char* function_names[] = {{
{names}}};
static_assert(function_count < 1024, "a key has 10 bits for them");

}}  // namespace palmette::record
"""


def main(arguments: list[str]) -> int:
    """Preprocess mpi.h with the given compiler and write both files."""
    kinds, directory, abi, compiler = read_kinds(Path(arguments[0])), Path(arguments[1]), arguments[2], arguments[3:]
    if abi == SIMULATED:
        kinds = {}
    text = preprocessed_mpi_h(compiler)
    prototypes = declared_functions(text, functions(text))
    if not prototypes:
        print("mpi.h declares no functions; is the prefix right?", file=sys.stderr)
        return 1
    include = directory / "palmette" / "record"
    include.mkdir(parents=True, exist_ok=True)
    (include / "functions.hpp").write_text(header(prototypes), encoding="utf-8")
    (directory / "recorder_wrappers.cpp").write_text(with_offers(source(prototypes, abi, kinds)), encoding="utf-8")
    if abi == SIMULATED:
        names = "".join(
            f"extern __typeof__({p.name}) palmette_recorded_{p.name};\n#define {p.name} palmette_recorded_{p.name}\n"
            for p in prototypes
        )
        text = f"/* Made by tools/generate_recorder.py. */\n#include <mpi.h>\n{names}"
        (directory / "recorded_names.h").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
