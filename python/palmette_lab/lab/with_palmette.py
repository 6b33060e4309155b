"""Running a program on a lab with palmette: what is preloaded, and what the lab tells it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from palmette.mpi.abi import fits_launcher, is_mpi
from palmette.mpi.elf import read_binary
from palmette.mpi.errors import RunError
from palmette.mpi.install import Installation
from palmette.mpi.libraries import needed_libraries
from palmette.mpi.program import find_program
from palmette.run import Choices, prepare, variables
from palmette.run.choices import RECORDED, keep_machine
from palmette.run.preload import NAME as LD_PRELOAD
from palmette.run.preload import is_ours, with_preload


class RankEnvironment(NamedTuple):
    """Variables for the ranks, and sentences for people. `preloaded`: palmette is in the ranks."""

    variables: dict[str, str]
    warnings: tuple[str, ...]
    preloaded: bool


def served(
    mpi: Installation, ranks: int, argv: Sequence[str], given: Mapping[str, str], topology: Path, *,
    palmette: bool, report: str | None,
) -> RankEnvironment:  # fmt: skip
    """Return `given`, the user's variables for the ranks, with palmette's: the preload, the lab's topology, the report.

    Without `palmette` only a preload that is there already gets the topology, as below `palmette run`; the program is
    examined all the same. Raises RunError for a program that can't be served.
    """
    environment = {**os.environ, **mpi.environment(), **given}
    result = dict(given)
    warnings: list[str] = []
    # An enclosing `palmette run --trace` has made its folder already.
    recorders = {name: environment[name] for name in RECORDED if environment.get(name)}
    try:
        prepared = prepare([str(mpi.mpiexec), "-n", str(ranks), *argv], recorders, environment)
        abi = prepared.evidence.abi
        of_its_abi = abi is None or fits_launcher(abi, mpi.launcher)
        warnings += [*prepared.warnings, *(_of_another_mpi(mpi, argv[0], environment) if of_its_abi else [])]
    except RunError:
        if palmette:
            raise
        prepared = None
    if palmette and prepared is not None:
        settings = variables(Choices(report=report), {**os.environ, **given})
        result = {**settings, **given, LD_PRELOAD: with_preload(prepared.preloads, environment.get(LD_PRELOAD))}
    preloaded = any(map(is_ours, filter(None, {**environment, **result}.get(LD_PRELOAD, "").split(":"))))
    if preloaded and not environment.get("PALMETTE_TOPOLOGY"):
        result["PALMETTE_TOPOLOGY"] = str(topology)
        for folder in (recorders[name] for name in RECORDED if name in recorders):
            keep_machine(Path(folder), str(topology))
    return RankEnvironment(result, tuple(dict.fromkeys(warnings)), preloaded)


def _of_another_mpi(mpi: Installation, word: str, environment: Mapping[str, str]) -> list[str]:
    """Return a warning of a program that loads the library of another installation than the launcher's.

    Two of one ABI may differ in how their ranks find each other: the program then ends with errors of the launcher.
    """
    if mpi.library_dir is None:
        return []
    program = find_program(word, environment, Path.cwd()).executed
    binary = read_binary(program)
    if binary is None or binary.is_static:
        return []
    for library in needed_libraries(binary, environment, stop=is_mpi):
        if not is_mpi(library.name) or library.file is None:
            continue
        if library.file.resolve().is_relative_to(mpi.prefix.resolve()):
            return []
        compiler = mpi.prefix / "bin" / "mpicc"
        build = f"compile it with {compiler}" if compiler.exists() else "compile it for that one, or take another --mpi"
        return [f"{program.name} loads {library.file}, which is not of {mpi.mpiexec}'s MPI; {build}"]
    return []
