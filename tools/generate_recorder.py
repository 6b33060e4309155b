"""Write the wrappers of the recording library from the prototypes in an MPI's mpi.h.

Usage: generate_recorder.py TABLE DIRECTORY ABI COMPILER [-I... -D...]      TABLE: of mpi_functions.py

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
from pathlib import Path

from counted_messages import counted, payload
from generate_fortran import fortran_names
from mpi_functions import Function, read_functions
from mpi_prototypes import Prototype, declared_functions, preprocessed_mpi_h
from recorded_requests import RequestStatements, around_requests
from wrappers_header import finder, forwarded, with_offers

NOT_CALLS = re.compile(
    r"MPI_(?:T_.*|Pcontrol|.*_(?:f2c|c2f|f082c|c2f08|f2f08|f082f)|.*(?:NULL|DUP|CONVERSION).*_FN.*"
    r"|(?:Status_[gs]et_(?:error|source|tag)|Remove_error_.*|(?:Comm|Session)_attach_buffer|Get_hw_.*)(?:_c)?"
    r"|Type_get_value_index"
    r"|(?:Type|Pack|Unpack|Win_shared|Status|Register|Op)_.*_c|(?:Pack|Unpack|Buffer_attach|Get_count|Get_elements)_c"
    r"|File_get_type_extent_c|Address|Errhandler_(?:create|get|set)|Type_(?:extent|hindexed|hvector|lb|struct|ub)"
    r"|Abi_.*|Get_version|Get_library_version|NULL_.*|DUP_FN|.*_fromint|.*_toint|.*_function)"
)
"""Tools' interface, variable arguments, conversions between languages, predefined callbacks; what programs look up to
find out which MPI is loaded, before there is one; local functions that not every MPI has, of which a program that looks
them up must not find ours."""
Table = dict[str, Function]
"""All functions whose part is known, by name."""


def functions(text: str) -> list[str]:
    """Return the names of all functions of a preprocessed mpi.h that get a wrapper, sorted."""
    found = set(re.findall(r"\bint\s+(MPI_[A-Z][A-Za-z0-9_]*)\s*\(", text))
    return sorted(name for name in found if not NOT_CALLS.fullmatch(name))


def _first(prototype: Prototype, names: tuple[str, ...], kinds: tuple[str, ...]) -> str | None:
    """Return the first of `names` that the function has as a parameter of one of the types."""
    have = {p.name: p.type for p in prototype.parameters}
    return next((name for name in names if have.get(name) in kinds), None)


def described(p: Prototype, table: Table) -> list[str]:
    """Return the statements that say what a call is about."""
    lines = []
    comm = next((q.name for q in p.parameters if q.type == "MPI_Comm"), None)
    if comm:
        lines.append(f"call.on({comm});")
    peer = _first(p, ("dest", "dst", "source", "src", "target_rank"), ("int",))
    tag = _first(p, ("tag", "sendtag"), ("int",))
    function = table.get(p.name)
    if function and function.is_collective:
        peer, tag = _first(p, ("root",), ("int",)), None
    if peer:
        lines.append(f"call.with(peer_of({peer}), {tag or 0});")
    if function and function.moves:
        lines += payload(p, function.moves)
    if function and function.sends_and_receives:
        types = {q.name for q in p.parameters}
        count, datatype = ("recvcount", "recvtype") if "recvcount" in types else ("count", "datatype")
        source = "source" if "source" in types else "src"  # of SimGrid
        lines.append(f"call.receives(peer_of({source}), recvtag, {count}, {datatype});")
    if function and function.is_collective:
        lines.append("call.collective();")
    return lines


def hook_of(p: Prototype, table: Table) -> str:
    """Return kind and mark of a function that begins or ends something; else a blank."""
    return f"{table[p.name].kind} {table[p.name].mark}" if p.name in table else " "


def around(p: Prototype, table: Table) -> tuple[str, str]:
    """Return what stands before the call and after it."""
    hook = hook_of(p, table)
    if hook == "begins ":
        return "    Recorder::start();\n", "    if (code == MPI_SUCCESS) know_world();\n"
    if hook == "ends ":
        return "    finalizing();\n", "    finalized();\n"
    if hook == "begins session":
        return "    Recorder::start();\n", "    if (code == MPI_SUCCESS) session_begun();\n"
    if hook == "ends session":
        return "", "    if (code == MPI_SUCCESS) session_ended();\n"
    if hook == "aborts ":
        return "    aborting();\n", ""
    if hook == "frees communicator":
        return f"    if ({p.parameters[0].name}) forget(*{p.parameters[0].name});\n", ""
    if hook == "frees type":
        return "    forget_types();\n", ""
    new = [q.name for q in p.parameters if q.type == "MPI_Comm*"]
    if len(new) == 1 and "keyval" not in p.name and "get_parent" not in p.name:
        parent = next((q.name for q in p.parameters if q.type == "MPI_Comm"), "MPI_COMM_NULL")
        made = "will_make" if "idup" in p.name else "made"
        tag = ", tag" if p.name == "MPI_Comm_create_group" else ""
        return "", f"    if (code == MPI_SUCCESS && {new[0]}) {made}({parent}, *{new[0]}{tag});\n"
    return "", ""


ENDING = {
    "MPI_Finalize": "        if (call) { call.returned(); call.ends_all(); }\n",
    "MPI_Session_finalize": "        if (call && ends_last_session()) { call.returned(); call.ends_all(); }\n",
}
"""Functions after which nothing is completed any more."""


def moves_data(p: Prototype, table: Table) -> bool:
    """Whether a call that fails may have been counted as one that moves data."""
    return p.name in table and (table[p.name].is_collective or table[p.name].moves != "")


SIMULATED = "smpi"


def counting(p: Prototype, table: Table, code: str) -> str:
    """Return the statement that counts what a call that returns `code` has sent to whom; empty: nothing."""
    kind = table[p.name].moves if p.name in table else ""
    statement = counted(p, kind) if kind else ""
    # Who has begun to send and failed later has sent.
    taken = f"{code} == MPI_SUCCESS" if kind.startswith("lasting") else f"!is_refused({code})"
    return f"if (call.has_sent({taken})) {statement};" if statement else ""


def sends(p: Prototype, table: Table) -> str:
    """Return the argument of a Call that tells whether what it sends is counted also where it isn't recorded."""
    return ", true" if counting(p, table, "") or around_requests(p, False, table).always else ""


def placed(requests: RequestStatements) -> tuple[str, list[str], str]:
    """Return where a call's requests are followed: before it, there where it is recorded, and behind it."""
    after = " ".join(requests.after)
    if requests.always:
        first = "".join(f"        if (call.counts()) {{ {line} }}\n" for line in requests.before)
        return first, [], f"        if (call.counts()) {{ {after} }}\n"
    return "", list(requests.before), f"        if (call) {{ {after} }}\n" if after else ""


def wrapper(p: Prototype, number: int, abi: str, table: Table) -> str:
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
    before, after = around(p, table)
    requests = around_requests(p, False, table)
    first, at_begin, at_end = placed(requests)
    inside = [*described(p, table), *at_begin, *([requests.substitute] if requests.substitute else [])]
    lines = "".join(f"            {line}\n" for line in inside)
    done = at_end or ENDING.get(p.name, "")
    if counting_it := counting(p, table, "code"):
        done += f"        {counting_it}\n"
    if moves_data(p, table):
        done = f"        if (call && code != MPI_SUCCESS) [[unlikely]] call.failed(code);\n{done}"
    return f"""\
namespace palmette::record {{
namespace next {{
{next_one}}}  // namespace palmette::record
extern "C" __attribute__((visibility("default"))) int entry_{p.name}({words}) __asm__("{symbol}");
int entry_{p.name}({words}) {{
    using namespace palmette;
    using namespace palmette::record;
    using interpose::argument;
    if (!mpi::is_ours(__builtin_return_address(0))) [[unlikely]] {{
        static constinit interpose::PassOn pass_on{{"{p.name}"}};
        return {forwarded(p)};
    }}
{typed}{before}    int code = MPI_SUCCESS;
    {{
        Call call({number}, __builtin_return_address(0), __builtin_frame_address(0){sends(p, table)});
{first}        if (call) {{
{lines}            call.begin();
        }}
        code = next::{p.name}({p.arguments});
{done}    }}
{after}    return code;
}}
"""


FORTRAN_HANDLES = {"MPI_Comm": "Comm", "MPI_Datatype": "Type"}


def fortran_argument(kind: str, word: str) -> str:
    """Return a Fortran argument as C has it."""
    value = f"*reinterpret_cast<const MPI_Fint*>({word})"
    if kind in ("void*", "const void*"):
        return f"palmette::interpose::fortran::buffer(reinterpret_cast<void*>({word}))"
    if kind in ("MPI_Count", "MPI_Aint"):  # INTEGER(KIND=MPI_COUNT_KIND), MPI_ADDRESS_KIND
        return f"*reinterpret_cast<const {kind}*>({word})"
    if kind in ("const MPI_Count*", "const MPI_Aint*"):
        return f"reinterpret_cast<{kind}>({word})"
    if kind.startswith("const MPI_Datatype"):
        return f"palmette::record::FortranTypes(reinterpret_cast<const MPI_Fint*>({word}))"
    if kind == "MPI_Message*":
        return f"palmette::record::FortranMessage(reinterpret_cast<const MPI_Fint*>({word}))"
    if kind == "MPI_Request*":
        return f"palmette::record::FortranRequests(reinterpret_cast<const MPI_Fint*>({word}))"
    if kind.endswith("*"):
        return f"reinterpret_cast<const MPI_Fint*>({word})"
    return f"PMPI_{FORTRAN_HANDLES[kind]}_f2c({value})" if kind in FORTRAN_HANDLES else value


def fortran_counting(p: Prototype, table: Table) -> str:
    """Return `counting` for Fortran's arguments.

    Each is converted where it is used, after the call: in place, there may be nothing behind the list of sending types.
    """
    statement = counting(p, table, f"code_of(w{len(p.parameters)})")
    statement = re.sub(r"\*(request)\b", r"\1[0]", statement)
    converted = {q.name: fortran_argument(q.type, f"w{i}") for i, q in enumerate(p.parameters)}
    return re.sub(rf"\b(?:{'|'.join(converted)})\b", lambda found: converted[found[0]], statement) if statement else ""


def fortran_wrapper(p: Prototype, number: int, name: str, table: Table) -> str:
    """Return the exported function under one Fortran name, which passes its arguments on as they are."""
    # The hidden lengths of character arguments come behind the others; words that nobody passed are read by nobody.
    count = len(p.parameters) + 3
    words = ", ".join(f"Word w{i}" for i in range(count))
    passed = ", ".join(f"w{i}" for i in range(count))
    starts = hook_of(p, table) == "begins "
    requests = around_requests(p, True, table)
    first, at_begin, at_end = placed(requests)
    inside = [] if starts else [*described(p, table), *at_begin]
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
        typed += f"            const auto {q.name} = {value};\n"
    lines = "".join(f"            {line}\n" for line in inside)
    done = at_end or ENDING.get(p.name, "")
    if moves_data(p, table):
        done = f"        if (call && !succeeded(ierror)) [[unlikely]] call.failed(code_of(ierror));\n{done}"
    done = done.replace("ierror", f"w{len(p.parameters)}")
    if counting_it := fortran_counting(p, table):
        done += f"        {counting_it}\n"
    hook = hook_of(p, table)
    before = after = ""
    error = "w0" if p.name == "MPI_Init" else "w2" if p.name == "MPI_Init_thread" else ""
    if hook == "begins ":
        before = "    Recorder::start();\n"
        after = f"    if (succeeded({error})) know_world();\n"
    elif hook == "ends ":
        before, after = "    finalizing();\n", "    finalized();\n"
    elif hook == "begins session":
        before, after = "    Recorder::start();\n", f"    if (succeeded(w{len(p.parameters)})) session_begun();\n"
    elif hook == "ends session":
        after = f"    if (succeeded(w{len(p.parameters)})) session_ended();\n"
    elif hook == "aborts ":
        before = "    aborting();\n"
    elif hook == "frees type":
        before = "    forget_types();\n"
    elif hook == "frees communicator":
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
    static constinit palmette::interpose::PassOn pass_on{{"{name}"}};
    if (!palmette::mpi::is_ours(__builtin_return_address(0))) [[unlikely]] {{
        pass_on({passed});
        return;
    }}
{late}{before}    {{
        Call call({number}, __builtin_return_address(0), __builtin_frame_address(0){sends(p, table)});
{first}        if (call) {{
{typed}{lines}            call.begin();
        }}
        pass_on({passed});
{done}    }}
{after}}}
"""


def source(prototypes: list[Prototype], abi: str, table: Table) -> str:
    """Return the text of recorder_wrappers.cpp."""
    parts = [
        """\
// Made by tools/generate_recorder.py.
#include "palmette/record/wrapping.hpp"

using palmette::interpose::Word;
"""
    ]
    for number, p in enumerate(prototypes):
        parts.append(wrapper(p, number, abi, table))
        if abi in ("mpich", "ompi") and not p.name.endswith("_c"):
            parts += [fortran_wrapper(p, number, name, table) for name in fortran_names(p, abi)]
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
    table, directory, abi, compiler = (
        read_functions(Path(arguments[0])),
        Path(arguments[1]),
        arguments[2],
        arguments[3:],
    )
    text = preprocessed_mpi_h(compiler)
    prototypes = declared_functions(text, functions(text))
    if not prototypes:
        print("mpi.h declares no functions; is the prefix right?", file=sys.stderr)
        return 1
    include = directory / "palmette" / "record"
    include.mkdir(parents=True, exist_ok=True)
    (include / "functions.hpp").write_text(header(prototypes), encoding="utf-8")
    (directory / "recorder_wrappers.cpp").write_text(with_offers(source(prototypes, abi, table)), encoding="utf-8")
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
