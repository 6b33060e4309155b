"""The common header of a preload library's wrappers, and the lookup of the next definition of a function."""

from __future__ import annotations

import re
from pathlib import Path

from mpi_prototypes import Prototype


def header(prototypes: list[Prototype], tool: str, layer: str) -> str:
    """Return the text of wrappers.hpp, in the namespace of a layer; `tool` is the path of its generator."""
    hooks = "\n".join(f"int on_{p.name}({p.declared});" for p in prototypes)
    finders = "\n".join(f"int find_{p.name}({p.declared});" for p in prototypes)
    following = "\n".join(
        f"inline constinit interpose::Next<int (*)({p.declared})> {p.name}{{&find_{p.name}}};" for p in prototypes
    )
    return f"""\
// Made by tools/{Path(tool).name}.
#pragma once

#include <mpi.h>

#include "palmette/interpose/next.hpp"

namespace palmette::{layer} {{

// Handlers of the program's calls.
{hooks}

// What comes after this library: another preloaded one, a tool, or the MPI.
namespace next {{
{finders}
{following}
}}  // namespace next

}}  // namespace palmette::{layer}
"""


def finder(p: Prototype) -> str:
    """Return the definition of the function that resolves the next definition at the first call, and calls it."""
    find = ", ".join([f'"{p.name}"', f"&P{p.name}", *(q.name for q in p.parameters)])
    return f"int next::find_{p.name}({p.declared}) {{\n    return {p.name}.find_and_call({find});\n}}\n"


def forwarded(p: Prototype) -> str:
    """Return the expression that passes a call on where the process's MPI has another ABI, by `pass_on`, w0, w1, ..."""
    passed = ", ".join(f"w{i}" for i in range(len(p.parameters)))
    return f"pass_on({passed})"


def with_offers(text: str) -> str:
    """Return a file of entry points, each with what decides whether it is there (palmette/mpi/offers.hpp)."""
    names = re.findall(r'__asm__\("(\w+)"\)', text)
    return f'{text}\n#include "palmette/mpi/offers.hpp"\n\n' + "".join(f"PALMETTE_OFFER({name})\n" for name in names)


def entry_point(p: Prototype, layer: str, first: str = "") -> str:
    """Return the exported MPI_X, which calls `on_MPI_X` where the process's MPI has this library's ABI.

    `first` are statements before that. The symbol gets its name by a label, since mpi.h declares MPI_X with types.
    """
    words = ", ".join(f"Word w{i}" for i in range(len(p.parameters)))
    typed = "".join(f"    const auto {q.name} = argument<{q.type}>(w{i});\n" for i, q in enumerate(p.parameters))
    return f"""\
extern "C" __attribute__((visibility("default"))) int entry_{p.name}({words}) __asm__("{p.name}");
int entry_{p.name}({words}) {{
    using namespace palmette;
    using namespace palmette::{layer};
    using interpose::argument;
{typed}{first}    if (!mpi::is_ours(__builtin_return_address(0))) [[unlikely]] {{
        static constinit interpose::PassOn pass_on{{"{p.name}"}};
        return {forwarded(p)};
    }}
    return on_{p.name}({p.arguments});
}}
"""
