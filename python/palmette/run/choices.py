"""From the options of `palmette run` to the variables that the preload library reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from palmette import settings
from palmette.mpi.errors import RunError
from palmette.mpi.launch.kept import keep, recall, signature
from palmette.run.folders import RECORDED, prepare_folders

INTERNAL = ("PALMETTE_LAB_", "PALMETTE_MPI_")
"""Variables of the lab and of the search for MPIs, which ranks don't get."""

WRITTEN = ("PALMETTE_REPORT", "PALMETTE_MATRIX", "PALMETTE_PROFILE", "PALMETTE_TRACE")
"""Settings that name a file which the run writes."""
RECORDERS = (*RECORDED, "PALMETTE_MATRIX")
"""The settings for which the library that records is preloaded."""


class Choices(NamedTuple):
    """The options' values; None and empty leave a setting to the environment.

    `report` is `1` or a path that ends in .json; `force` maps MPI functions (`gather`) to algorithms, or `mpi` for the
    MPI's own.
    """

    topology: Path | None = None
    table: Path | None = None
    report: str | None = None
    force: Mapping[str, str] = MappingProxyType({})
    off: bool = False
    verbose: int = 0
    matrix: Path | None = None
    profile: Path | None = None
    trace: Path | None = None
    grids: str | None = None


def variables(
    choices: Choices, environment: Mapping[str, str], *, rank: bool = False, warnings: list[str] | None = None
) -> dict[str, str]:
    """Return the PALMETTE_ variables for the ranks: those of `environment`, with the options over them.

    All are passed on explicitly: launchers forward an environment to this host's ranks only, and ranks that see
    different settings would choose differently. Paths become absolute. Raises RunError for a value that can't be used.
    `rank`: this is one rank of a job that runs already (prepare_folders), which adds to `warnings`.
    """
    result = {
        name: value
        for name, value in environment.items()
        if name.startswith("PALMETTE_") and not name.startswith(INTERNAL) and value
    }
    if choices.topology is not None:
        result["PALMETTE_TOPOLOGY"] = str(choices.topology)
    if choices.table is not None:
        result["PALMETTE_TABLE"] = str(choices.table)
    if choices.report is not None:
        result["PALMETTE_REPORT"] = choices.report
    if choices.matrix is not None:
        result["PALMETTE_MATRIX"] = str(choices.matrix)
    if choices.profile is not None:
        result["PALMETTE_PROFILE"] = str(choices.profile)
    if choices.trace is not None:
        result["PALMETTE_TRACE"] = str(choices.trace)
    if choices.grids is not None:
        result["PALMETTE_GRIDS"] = choices.grids
    if choices.off:
        result["PALMETTE_ENABLE"] = "0"
    if choices.verbose:
        result["PALMETTE_VERBOSE"] = str(min(choices.verbose, 2))
    for function, algorithm in choices.force.items():
        result[f"PALMETTE_{_function(function)}"] = algorithm
    try:
        settings.values(result)
    except settings.SettingError as error:
        raise RunError(f"{error}; `palmette settings` explains each") from None
    _check_algorithms(result)
    _make_paths_absolute(result, rank=rank)
    _check_topology(result)
    told = prepare_folders(result, environment, rank=rank)
    if warnings is not None:
        warnings += told
    _check_table(result)
    return result


def _function(name: str) -> str:
    """Return the setting's key in capitals. Raises RunError for a name that no function has."""
    known = [setting.key for setting in settings.declared() if setting.kind == "algorithm"]
    plain = name.lower().removeprefix("mpi_")
    if plain not in known:
        raise RunError(f"--force '{name}': no such collective; take one of {', '.join(known)}")
    return plain.upper()


def _check_algorithms(values: Mapping[str, str]) -> None:
    """Check names only: keys and levels are checked by the ranks, since they depend on the job."""
    forced = [setting for setting in settings.declared() if setting.kind == "algorithm"]
    forced = [setting for setting in forced if values.get(setting.name, "mpi") not in ("", "mpi")]
    if not forced:
        return
    from palmette import _core  # takes longer to load than all the rest

    for setting in forced:
        value = values[setting.name]
        if setting.key.startswith("neighbor_"):
            collective, known = "neighbourhood collectives", ["direct", "combined"]
            where = "docs/method/choosing.md"
        else:
            where = "`palmette plan --list`"
            collective = _core.collective_of(setting.key)
            known = [row.name for row in _core.algorithms() if row.collective == collective]
        if value.partition(":")[0] not in known:
            raise RunError(
                f"{setting.name}={value}: no such algorithm for {collective}; take one of {', '.join(known)} or mpi "
                f"({where} explains them)"
            )


def _make_paths_absolute(values: dict[str, str], *, rank: bool) -> None:
    """Ranks may run in another directory than the caller (`-wdir`). A folder that is missing is no rank's to judge."""
    for setting in settings.declared():
        value = values.get(setting.name, "")
        # A library's bare name is looked for by the loader, not in the working directory.
        is_path = setting.kind == "path" and ("/" in value or setting.name != "PALMETTE_HWLOC")
        if not value or not (is_path or (setting.kind == "report" and value.endswith(".json"))):
            continue
        path = Path(value).absolute()
        if setting.name in WRITTEN and not rank and not path.parent.is_dir():
            raise RunError(f"{setting.name}={value}: the folder {path.parent} isn't there; make it first")
        values[setting.name] = str(path)


def _check_topology(values: Mapping[str, str]) -> None:
    path = values.get("PALMETTE_TOPOLOGY")
    if path is None:
        return
    key = [path, signature(path)]
    if recall("topology", key) is True:
        return
    from palmette.topology.file import TopologyError, load

    try:
        load(path)
    except TopologyError as error:
        raise RunError(str(error)) from None
    keep("topology", key, True)


def _check_table(values: Mapping[str, str]) -> None:
    path = values.get("PALMETTE_TABLE")
    if path is not None and not Path(path).is_file():
        raise RunError(f"PALMETTE_TABLE={path}: no such file; correct the name, or leave it out for the built-in table")
