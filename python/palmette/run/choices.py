"""From the options of `palmette run` to the variables that the preload library reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from palmette import settings
from palmette.mpi.errors import RunError
from palmette.mpi.launch.kept import keep, recall, signature
from palmette.run.folders import holds_calls, speaks_for_node, trouble_of_rank, unmappable

INTERNAL = ("PALMETTE_LAB_", "PALMETTE_MPI_")
"""Variables of the lab and of the search for MPIs, which ranks don't get."""

WRITTEN = ("PALMETTE_REPORT", "PALMETTE_PROFILE", "PALMETTE_TRACE")
"""Settings that name a file which the run writes."""
RECORDED = ("PALMETTE_PROFILE", "PALMETTE_TRACE")
"""Folders that MPI calls are recorded in; the library that does so is preloaded for them alone."""
KEPT_TOPOLOGY, KEPT_HOSTS = "topology.json", "hosts"
"""Files beside the recording: the cluster, and where ranks are pretended to run."""
KEPT_PROCESSORS = "processors"
"""File beside the recording: boot id of the machine that started the job, and how many processors it may use there."""


class Choices(NamedTuple):
    """The options' values; None and empty leave a setting to the environment.

    `report` is `1` or a path that ends in .json; `sample` is what PALMETTE_SAMPLE takes;
    `force` maps MPI functions (`gather`) to algorithms, or `mpi` for the MPI's own.
    """

    topology: Path | None = None
    table: Path | None = None
    report: str | None = None
    force: Mapping[str, str] = MappingProxyType({})
    off: bool = False
    verbose: int = 0
    profile: Path | None = None
    trace: Path | None = None
    reorder: str | None = None
    sample: str | None = None


def variables(
    choices: Choices, environment: Mapping[str, str], *, rank: bool = False, warnings: list[str] | None = None
) -> dict[str, str]:
    """Return the PALMETTE_ variables for the ranks: those of `environment`, with the options over them.

    All are passed on explicitly: launchers forward an environment to this host's ranks only, and ranks that see
    different settings would choose differently. Paths become absolute. Raises RunError for a value that can't be used.
    `rank`: this is one rank of a job that runs already, which judges no folder by itself and adds to `warnings`.
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
    if choices.profile is not None:
        result["PALMETTE_PROFILE"] = str(choices.profile)
    if choices.trace is not None:
        result["PALMETTE_TRACE"] = str(choices.trace)
    if choices.sample is not None:
        result["PALMETTE_SAMPLE"] = choices.sample
    if choices.reorder is not None:
        result["PALMETTE_REORDER"] = choices.reorder
    if choices.off:
        result["PALMETTE_ENABLE"] = "0"
    if choices.verbose:
        result["PALMETTE_VERBOSE"] = str(min(choices.verbose, 2))
    if choices.force:
        given = {_function(function): algorithm for function, algorithm in choices.force.items()}
        result |= settings.force(**{**settings.forced(result.get(settings.FORCE, "")), **given})
    try:
        settings.values(result)
    except settings.SettingError as error:
        raise RunError(f"{error}; `palmette settings` explains each") from None
    if result.get("PALMETTE_SAMPLE", "0") not in ("0", "0%") and not any(result.get(name) for name in RECORDED):
        result["PALMETTE_PROFILE"] = str(_folder_of_samples(rank=rank))
    _check_algorithms(result)
    _make_paths_absolute(result, rank=rank)
    _check_topology(result)
    if rank:
        told = _folders_of_rank(result, environment)
        if warnings is not None:
            warnings += told
    else:
        _make_folder(result)
    _check_table(result)
    return result


def _folder_of_samples(*, rank: bool) -> Path:
    """Return where samples go that nobody has named a folder for: the first of that name in which nothing lies.

    Ranks that start palmette themselves can't choose by what they find: all take the same.
    """
    names = (f"palmette-samples{f'-{number}' if number > 1 else ''}" for number in range(1, 10_000))
    return Path("palmette-samples" if rank else next(name for name in names if not Path(name).exists()))


def _function(name: str) -> str:
    """Return the key of a function of MPI. Raises RunError for a name that none has."""
    plain = name.lower().removeprefix("mpi_")
    if plain not in settings.functions():
        raise RunError(f"--force '{name}': no such collective; take one of {', '.join(settings.functions())}")
    return plain


def _check_algorithms(values: Mapping[str, str]) -> None:
    """Check names only: keys and levels are checked by the ranks, since they depend on the job."""
    forced = {name: spec for name, spec in settings.forced(values.get(settings.FORCE, "")).items() if spec != "mpi"}
    if not forced:
        return
    from palmette import _core  # takes longer to load than all the rest

    for function, spec in forced.items():
        if function.startswith("neighbor_"):
            collective, known = "neighbourhood collectives", ["direct", "combined"]
            where = "docs/method/choosing.md"
        else:
            where = "`palmette plan --list`"
            collective = _core.collective_of(function)
            known = [row.name for row in _core.algorithms() if row.collective == collective]
        if spec.partition(":")[0] not in known:
            raise RunError(
                f"{settings.FORCE}={function}={spec}: no such algorithm for {collective}; take one of "
                f"{', '.join(known)} or mpi ({where} explains them)"
            )


def _make_paths_absolute(values: dict[str, str], *, rank: bool) -> None:
    """Ranks may run in another directory than the caller (`-wdir`). A folder that is missing is no rank's to judge."""
    for setting in settings.declared():
        value = values.get(setting.name, "")
        if not value or not (setting.kind == "path" or (setting.kind == "report" and value.endswith(".json"))):
            continue
        path = Path(value).absolute()
        if setting.name in WRITTEN and not rank and not path.parent.is_dir():
            raise RunError(f"{setting.name}={value}: the folder {path.parent} isn't there; make it first")
        values[setting.name] = str(path)


def make_recording_folder(path: Path, *, parents: bool = False) -> str:
    """Make a folder for a recording; return what hinders it and what to do, or nothing."""
    try:
        path.mkdir(parents=parents, exist_ok=True)
        files = list(path.glob("*.palmette"))
        if any(map(holds_calls, files)):
            return "it holds a recording already; give another folder, or remove it first"
        for file in files:  # of processes that couldn't record
            file.unlink()
    except OSError as error:
        return f"{error.strerror}; give a folder that can be made"
    return unmappable(path)


def _folders_of_rank(values: dict[str, str], environment: Mapping[str, str]) -> list[str]:
    """Let a rank record, or not, by what none of its job finds otherwise; return what is to be said, once a node."""
    warnings = []
    for name in RECORDED:
        value = values.get(name)
        if value is None:
            continue
        trouble = trouble_of_rank(Path(value))
        try:
            if not trouble and not (Path(value) / KEPT_TOPOLOGY).exists():
                keep_machine(Path(value), values.get("PALMETTE_TOPOLOGY"), values.get("PALMETTE_FAKE_HOSTS"))
        except RunError as error:
            trouble = str(error)
        if trouble:
            values[name] = ""  # also where the environment has it
            if speaks_for_node(environment):
                warnings.append(f"{name}={value}: {trouble}; nothing is recorded on this host")
    return warnings


def _make_folder(values: Mapping[str, str]) -> None:
    """Make the folder that calls are recorded in; one that holds a recording would get another one's processes."""
    for name in RECORDED:
        value = values.get(name)
        if value is None:
            continue
        if trouble := make_recording_folder(Path(value)):
            raise RunError(f"{name}={value}: {trouble}")
        keep_machine(
            Path(value), values.get("PALMETTE_TOPOLOGY"), values.get("PALMETTE_FAKE_HOSTS"), _processors_here()
        )  # fmt: skip


def _processors_here() -> str | None:
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot_id} {len(os.sched_getaffinity(0))}\n"
    except OSError:
        return None


def keep_machine(
    folder: Path, topology: str | None, hosts: str | None = None, processors: str | None = None
) -> None:  # fmt: skip
    """Keep with a recording what `palmette report` needs to know links: the cluster's file, and pretended hosts.

    `processors`: of the machine that the job is started on, to know whether ranks share them.
    """
    kept = {
        KEPT_TOPOLOGY: Path(topology) if topology else None,
        KEPT_HOSTS: hosts.replace(",", "\n") + "\n" if hosts else None,
        KEPT_PROCESSORS: processors,
    }
    for name, what in kept.items():
        path = folder / name
        try:
            if isinstance(what, Path):
                if path.exists() and path.samefile(what):
                    continue
                what = what.read_text(encoding="utf-8", errors="surrogateescape")
            # Of an earlier recording in this folder.
            path.unlink(missing_ok=True)
            if what is not None:
                path.write_bytes(what.encode("utf-8", "surrogateescape"))
        except OSError as error:
            raise RunError(f"{path}: {error.strerror}; give a folder with room for a recording") from None


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
    if mistake := table_mistake(values.get("PALMETTE_TABLE", "")):
        raise RunError(mistake)


def table_mistake(path: str) -> str:
    """Return why a decision table can't be read, and what to do; nothing for one that can, and for no path."""
    if not path:
        return ""
    if not Path(path).is_file():
        return f"PALMETTE_TABLE={path}: no such file; correct the name, or leave it out for the built-in table"
    key = [path, signature(path)]
    if recall("table", key) is True:
        return ""
    from palmette import _core

    try:
        _core.Table.from_file(path)
    except _core.Error as error:
        return f"PALMETTE_TABLE: {error}; name a decision table (`palmette tune` writes one), or none: the built-in one"
    keep("table", key, True)
    return ""
