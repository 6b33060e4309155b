"""Write the wrappers of the preload library from the prototypes in an MPI's mpi.h.

Usage: generate_wrappers.py TABLE DIRECTORY COMPILER [-I... -D...]

For each hook and collective of the table (mpi_functions.py) that mpi.h declares, DIRECTORY/palmette/interpose/
wrappers.hpp declares `on_MPI_X`, the handler of the program's calls, and `next::MPI_X`, which calls whatever comes
after this library (another tool or the MPI); DIRECTORY/wrappers.cpp exports the MPI_X that calls the former where the
process's MPI has this ABI. `on_MPI_X` is written by hand for hooks, and generated here for the forms of a collective.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mpi_prototypes import FunctionNames, Parameter, Prototype, declared_functions, preprocessed_mpi_h, read_list
from wrappers_header import entry_point, finder, header, with_offers


def forms_of(collective: str) -> dict[str, str]:
    """Return the MPI functions of a collective, each with its kind: blocking, nonblocking or persistent."""
    return {
        f"MPI_{collective}": "blocking",
        f"MPI_{collective}_c": "blocking",
        f"MPI_I{collective.lower()}": "nonblocking",
        f"MPI_I{collective.lower()}_c": "nonblocking",
        f"MPI_{collective}_init": "persistent",
        f"MPI_{collective}_init_c": "persistent",
    }


ARGUMENTS = {
    "Gather": "sendbuf sendcount sendtype recvbuf recvcount recvtype root comm",
    "Gatherv": "sendbuf sendcount sendtype recvbuf recvcounts rdispls recvtype root comm",
    "Scatter": "sendbuf sendcount sendtype recvbuf recvcount recvtype root comm",
    "Scatterv": "sendbuf sendcounts sdispls sendtype recvbuf recvcount recvtype root comm",
    "Allgather": "sendbuf sendcount sendtype recvbuf recvcount recvtype comm",
    "Allgatherv": "sendbuf sendcount sendtype recvbuf recvcounts rdispls recvtype comm",
    "Bcast": "buffer count datatype root comm",
    "Reduce": "sendbuf recvbuf count datatype op root comm",
    "Allreduce": "sendbuf recvbuf count datatype op comm",
    "Reduce_scatter": "sendbuf recvbuf recvcounts datatype op comm",
    "Reduce_scatter_block": "sendbuf recvbuf recvcount datatype op comm",
    "Alltoall": "sendbuf sendcount sendtype recvbuf recvcount recvtype comm",
    "Alltoallv": "sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls recvtype comm",
    "Alltoallw": "sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls recvtypes comm",
    "Barrier": "comm",
    "Scan": "sendbuf recvbuf count datatype op comm",
    "Exscan": "sendbuf recvbuf count datatype op comm",
    "Neighbor_allgather": "sendbuf sendcount sendtype recvbuf recvcount recvtype comm",
    "Neighbor_allgatherv": "sendbuf sendcount sendtype recvbuf recvcounts rdispls recvtype comm",
    "Neighbor_alltoall": "sendbuf sendcount sendtype recvbuf recvcount recvtype comm",
    "Neighbor_alltoallv": "sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls recvtype comm",
    "Neighbor_alltoallw": "sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls recvtypes comm",
}
"""The parameters of each collective by uniform names; the headers of MPIs have different ones."""
BUFFERS = ("sendbuf", "recvbuf", "buffer")
"""Parameters with data, which may lie in device memory."""
AFTER = {"blocking": "", "nonblocking": " request", "persistent": " info request"}
"""What follows them in each form."""


def renamed(prototype: Prototype, collective: str, kind: str) -> Prototype:
    """Return the prototype of a collective with the names of ARGUMENTS."""
    names = (ARGUMENTS[collective] + AFTER[kind]).split()
    if len(names) != len(prototype.parameters):
        raise ValueError(f"{prototype.name}: mpi.h has {len(prototype.parameters)} parameters, not {', '.join(names)}")
    parameters = tuple(
        Parameter(re.sub(rf"\b{p.name}\b(?=[^\w]*$)", name, p.declared), name, p.type)
        for p, name in zip(prototype.parameters, names, strict=True)
    )
    return Prototype(prototype.name, parameters)


def all_functions(listed: FunctionNames) -> list[str]:
    """Return the names of all functions, hooks first."""
    return [*listed.hooks, *(name for collective in listed.collectives for name in forms_of(collective))]


def side(names: set[str], way: str, displacements: str) -> str:
    """Return the runtime::Side of `way`, send or recv, of a collective whose parameters have these names.

    `displacements`: the parameter with that side's, empty where it has none.
    """
    buffer = f"{way}buf" if f"{way}buf" in names else "buffer"
    type_name = f"{way}type" if f"{way}type" in names else "datatype"
    if f"{way}types" in names:
        return f"runtime::Side::typed({buffer}, {way}counts, {displacements}, {way}types)"
    if f"{way}counts" in names:
        return f"runtime::Side::listed({buffer}, {way}counts, {displacements or 'runtime::Counts()'}, {type_name})"
    # Parameters of a reduction that occur once belong to the receiving side.
    count = next(name for name in (f"{way}count", "count", "recvcount", "") if name in names or not name)
    return f"runtime::Side::alike({buffer}, {count or '0'}, {type_name})"


def call_arguments(prototype: Prototype, collective: str, kind: str) -> str:
    """Return the runtime::CallArguments of a call, from the names of its parameters."""
    names = {p.name for p in prototype.parameters}
    fields = [f"select::Function::{collective.lower()}", "true" if kind == "blocking" else "false", "comm"]
    if collective == "Barrier":
        return f"runtime::CallArguments{{{', '.join(fields)}, {{}}, {{}}, MPI_OP_NULL, 0}}"
    for way, displacements in (("send", "sdispls"), ("recv", "rdispls")):
        fields.append(side(names, way, displacements if displacements in names else ""))
    fields.append("op" if "op" in names else "MPI_OP_NULL")
    fields.append("root" if "root" in names else "0")
    return f"runtime::CallArguments{{{', '.join(fields)}}}"


def buffers_of(prototype: Prototype) -> list[str]:
    """Return the names of a collective's data buffers."""
    return [p.name for p in prototype.parameters if p.name in BUFFERS]


def on_device(prototype: Prototype, arguments: str, kind: str) -> str:
    """Return the statements by which a call on device memory is made with copies of it in the host's."""
    buffers = buffers_of(prototype)
    if not buffers:
        return ""
    member = {"sendbuf": "send", "recvbuf": "recv", "buffer": "buffer"}
    given = [
        f"device.{member[p.name]}({p.name})" if p.name in buffers else "inner" if p.name == "request" else p.name
        for p in prototype.parameters
    ]
    again = f"on_{prototype.name}({', '.join(given)})"
    direct = f"[&] {{ return next::{prototype.name}({prototype.arguments}); }}"
    if kind == "blocking":
        return f"""\
    if (!runtime::all_on_host({", ".join(buffers)})) [[unlikely]]
        if (const auto code = runtime::on_device({arguments}, inside, [&](const runtime::OnDevice& device) {{
                return {again};
            }}, {direct}))
            return *code;
"""
    return f"""\
    if (!runtime::all_on_host({", ".join(buffers)})) [[unlikely]]
        if (const auto code = runtime::{kind}_on_device({arguments}, inside, request,
                [&](const runtime::OnDevice& device, MPI_Request* inner) {{ return {again}; }},
                {direct}))
            return *code;
"""


def served_body(prototype: Prototype, collective: str, kind: str) -> str:
    """Return the body of a collective's `on_MPI_X`: served by palmette where possible, otherwise by what comes next."""
    arguments = call_arguments(prototype, collective, kind)
    measured = ""
    before = f"    if (runtime::{kind}_is_left()) return MPI_SUCCESS;\n" if buffers_of(prototype) else ""
    serve = f"runtime::start_{kind}({arguments}, request)"
    if kind == "blocking":
        serve = f"runtime::serve({arguments})"
        before = "    if (runtime::blocking_is_left(comm)) return MPI_SUCCESS;\n"
        measured = f"""\
        if (runtime::CachedPlan* plan = runtime::take_measured()) [[unlikely]] {{
            runtime::before_blocking(comm);
            return runtime::measure_mpi(comm, *plan, [&] {{ return next::{prototype.name}({prototype.arguments}); }});
        }}
"""
    return f"""\
{on_device(prototype, arguments, kind)}    if (const Entry entry; entry.ours()) {{
        if (const auto code = {serve}) return *code;
{measured}    }}
{before}    return next::{prototype.name}({prototype.arguments});"""


BLOCK_ARGUMENTS = {
    "Gather": ("sendbuf", "sendcount", "sendtype"),
    "Scatter": ("recvbuf", "recvcount", "recvtype"),
    "Allgather": ("", "recvcount", "recvtype"),
    "Allgatherv": ("", "recvcounts", "recvtype"),
    "Bcast": ("", "count", "datatype"),
    "Reduce": ("", "count", "datatype"),
    "Allreduce": ("", "count", "datatype"),
    "Reduce_scatter": ("", "recvcounts", "datatype"),
    "Reduce_scatter_block": ("", "recvcount", "datatype"),
    "Alltoall": ("", "recvcount", "recvtype"),
    "Scan": ("", "count", "datatype"),
    "Exscan": ("", "count", "datatype"),
}
"""The parameters that define the block length of a collective: the buffer that may be MPI_IN_PLACE, which makes the
others void; the count or counts; the type. Other collectives have no block whose length all ranks know."""


def bypassed(collective: str) -> str:
    """Return the condition under which a blocking call goes straight to what comes next."""
    buffer, *block = BLOCK_ARGUMENTS.get(collective, ("",))
    in_place = f"{buffer} != MPI_IN_PLACE && " if buffer else ""
    bypass = f"runtime::bypass_of(select::Function::{collective.lower()})"
    names = ARGUMENTS[collective].split()
    if block:  # the plan depends on these, too
        block.append("op" if "op" in names else "MPI_OP_NULL")
        if not block[0].endswith("s"):
            block.append("root" if "root" in names else "0")
    taken = f"!inside && {in_place}{bypass}.takes({', '.join(['comm', *block])})"
    buffers = ", ".join(name for name in ARGUMENTS[collective].split() if name in BUFFERS)
    return f"{taken} && (runtime::all_on_host({buffers}) || {bypass}.leaves())" if buffers else taken


def source(prototypes: list[Prototype], listed: FunctionNames) -> str:
    """Return the text of wrappers.cpp."""
    collectives = {name: (c, kind) for c in listed.collectives for name, kind in forms_of(c).items()}
    prototypes = [renamed(p, *collectives[p.name]) if p.name in collectives else p for p in prototypes]
    parts = [
        """\
// Made by tools/generate_wrappers.py.
#include "palmette/interpose/wrappers.hpp"

#include "palmette/interpose/guard.hpp"
#include "palmette/runtime/state/bypass.hpp"
#include "palmette/runtime/serve/nonblocking.hpp"
#include "palmette/runtime/serve/on_device.hpp"
#include "palmette/runtime/serve/persistent.hpp"
#include "palmette/runtime/serve/serve.hpp"

using palmette::interpose::Word;
"""
    ]
    for p in prototypes:
        served = bypass = ""
        if p.name in collectives:
            served = f"int on_{p.name}({p.declared}) {{\n{served_body(p, *collectives[p.name])}\n}}\n"
            if collectives[p.name][1] == "blocking":
                bypass = f"    if ({bypassed(collectives[p.name][0])}) return next::{p.name}({p.arguments});\n"
        parts.append(
            f"namespace palmette::interpose {{\n{finder(p)}{served}}}  // namespace palmette::interpose\n"
            f"{entry_point(p, 'interpose', bypass)}"
        )
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    """Preprocess mpi.h with the given compiler and write both files."""
    path, directory, compiler = Path(arguments[0]), Path(arguments[1]), arguments[2:]
    listed = read_list(path)
    prototypes = declared_functions(preprocessed_mpi_h(compiler), all_functions(listed))
    if not prototypes:
        print(f"{path}: mpi.h declares none of these functions; is the prefix right?", file=sys.stderr)
        return 1
    include = directory / "palmette" / "interpose"
    include.mkdir(parents=True, exist_ok=True)
    (include / "wrappers.hpp").write_text(header(prototypes, __file__, "interpose"), encoding="utf-8")
    (directory / "wrappers.cpp").write_text(with_offers(source(prototypes, listed)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
