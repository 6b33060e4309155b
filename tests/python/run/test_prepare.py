"""The command line that runs a program under palmette."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.run import Prepared, RunError, prepare

Build = Callable[..., Path]
Prepare = Callable[..., Prepared]
GATHER = "by_topology:node=linear,leaf=k_nomial.4"
VARIABLES = {"PALMETTE_GATHER": GATHER}


@pytest.fixture
def ready(libraries: Path, tmp_path: Path) -> Prepare:
    def call(*words: str, environment: dict[str, str] | None = None, **options: object) -> Prepared:
        base = {"PATH": os.environ["PATH"], **(environment or {})}
        return prepare(words, VARIABLES, base, directory=tmp_path, libraries=libraries, **options)  # type: ignore[arg-type]

    return call


def preloads(libraries: Path, abi: str = "mpich") -> str:
    return str(libraries / f"libpalmette_{abi}.so")


def test_hydra_gets_genv(ready: Prepare, build: Build, launchers: dict[str, str], libraries: Path) -> None:
    app = str(build("app", needs=["libmpi.so.12"]))
    prepared = ready(launchers["hydra"], "-n", "4", app, "x")
    assert prepared.command == (
        launchers["hydra"], "-genv", "PALMETTE_GATHER", GATHER, "-genv", "LD_PRELOAD", preloads(libraries),
        "-n", "4", app, "x",
    )  # fmt: skip
    assert prepared.environment == {}
    assert prepared.launcher == "hydra"
    assert prepared.evidence.because == "app needs libmpi.so.12"


def test_open_mpi_gets_x_in_every_part(
    ready: Prepare, build: Build, launchers: dict[str, str], libraries: Path
) -> None:
    app = str(build("app", needs=["libmpi.so.40"]))
    ours = ["-x", f"PALMETTE_GATHER={GATHER}", "-x", f"LD_PRELOAD={preloads(libraries, 'ompi')}"]
    prepared = ready(launchers["prrte"], "-n", "1", app, ":", "-n", "2", app)
    assert list(prepared.command) == [launchers["prrte"], *ours, "-n", "1", app, ":", *ours, "-n", "2", app]


def test_srun_gets_export_and_values_with_commas_in_its_environment(
    ready: Prepare, build: Build, launchers: dict[str, str], libraries: Path
) -> None:
    app = str(build("app", needs=["libmpi_abi.so.1"]))
    preload = preloads(libraries, "abi")
    prepared = ready(launchers["srun"], "-n4", app)
    assert list(prepared.command) == [launchers["srun"], f"--export=ALL,LD_PRELOAD={preload}", "-n4", app]
    assert prepared.environment == VARIABLES
    prepared = ready(launchers["srun"], "--export", "HOME,LD_PRELOAD=/x.so", "-n4", app)
    assert prepared.command[1] == f"--export=HOME,PALMETTE_GATHER,LD_PRELOAD=/x.so:{preload}"
    prepared = ready(launchers["srun"], "--export=NONE", app)
    assert prepared.command[1] == f"--export=PALMETTE_GATHER,LD_PRELOAD={preload}"


def test_without_a_launcher_the_environment_does_it(ready: Prepare, build: Build, libraries: Path) -> None:
    app = str(build("app", needs=["libmpi.so.40"]))
    prepared = ready(app, "x")
    assert prepared.command == (app, "x")
    assert prepared.environment == {**VARIABLES, "LD_PRELOAD": preloads(libraries, "ompi")}
    assert prepared.launcher is None
    assert prepared.shell_line().startswith("env PALMETTE_GATHER=")


def test_preloads_of_the_user_stay(ready: Prepare, build: Build, launchers: dict[str, str], libraries: Path) -> None:
    app = str(build("app", needs=["libmpi.so.12"]))
    merged = f"/a.so:{preloads(libraries)}"
    from_environment = ready(launchers["hydra"], app, environment={"LD_PRELOAD": "/a.so"})
    assert from_environment.command[-2:] == (merged, app)
    typed = ready(launchers["hydra"], "-genv", "LD_PRELOAD", "/a.so", app)
    assert typed.command[-4:] == ("-genv", "LD_PRELOAD", merged, app)
    assert typed.command.count("LD_PRELOAD") == 1
    local = ready(launchers["hydra"], "-n", "1", app, ":", "-env", "LD_PRELOAD=/a.so", app)
    assert f"LD_PRELOAD={merged}" in local.command
    assert preloads(libraries) in local.command
    by_name = ready(
        launchers["prrte"], "-x", "LD_PRELOAD", str(build("ompi", needs=["libmpi.so.40"])),
        environment={"LD_PRELOAD": "/a.so"},
    )  # fmt: skip
    assert f"LD_PRELOAD=/a.so:{preloads(libraries, 'ompi')}" in by_name.command
    assert sum("LD_PRELOAD" in word for word in by_name.command) == 1


def test_palmette_stands_before_a_profiler_that_replaces_mpi(ready: Prepare, build: Build, libraries: Path) -> None:
    app = str(build("app", needs=["libmpi.so.12"]))
    profiler = str(build("libprofiler.so", library=True, source="int MPI_Init(void) { return 0; }"))
    plain = str(build("libplain.so", library=True, source="int other(void) { return 0; }"))
    prepared = ready(app, environment={"LD_PRELOAD": f"{plain} {profiler}"})
    assert prepared.environment["LD_PRELOAD"] == f"{plain}:{preloads(libraries)}:{profiler}"


def test_a_setting_that_the_line_gives_stays(ready: Prepare, build: Build, launchers: dict[str, str]) -> None:
    app = str(build("app", needs=["libmpi.so.12"]))
    prepared = ready(launchers["hydra"], "-genv", "PALMETTE_GATHER", "linear", app)
    assert prepared.command.count("PALMETTE_GATHER") == 1
    assert "linear" in prepared.command


def test_a_program_without_mpi_gets_the_launchers(ready: Prepare, launchers: dict[str, str]) -> None:
    for kind, abi in (("hydra", "mpich"), ("intel_hydra", "mpich"), ("prrte", "ompi")):
        prepared = ready(launchers[kind], "-n", "2", "sh", "-c", "true")
        assert prepared.evidence.abi == abi
        assert "names no MPI" in prepared.evidence.because
    with pytest.raises(RunError, match="srun starts programs of any; say --abi"):
        ready(launchers["srun"], "-n", "2", "sh")


def test_a_wrapped_program_counts(ready: Prepare, build: Build, launchers: dict[str, str]) -> None:
    app = str(build("app", needs=["libmpi_abi.so.1"]))
    assert ready(launchers["hydra"], "-n", "2", "env", "A=1", app).evidence.abi == "abi"


def test_the_directory_that_the_line_gives_is_looked_in(
    ready: Prepare, build: Build, launchers: dict[str, str]
) -> None:
    app = build("app", needs=["libmpi.so.12"])
    assert ready(launchers["hydra"], "-wdir", str(app.parent), "./app").evidence.abi == "mpich"


def test_libraries_are_found_where_the_line_says(
    ready: Prepare, build: Build, launchers: dict[str, str], tmp_path: Path
) -> None:
    build("libsolver.so", needs=["libmpi_abi.so.1"], library=True, where=tmp_path / "lib")
    app = str(build("app", needs=["libsolver.so"]))
    prepared = ready(launchers["hydra"], "-genv", "LD_LIBRARY_PATH", str(tmp_path / "lib"), app)
    assert prepared.evidence.abi == "abi"
    assert prepared.evidence.because == "app needs libmpi_abi.so.1 through libsolver.so"


def test_a_foreign_launcher_is_warned_of(ready: Prepare, build: Build, launchers: dict[str, str]) -> None:
    app = str(build("app", needs=["libmpi.so.40"]))
    assert "use the launcher of the program's MPI" in ready(launchers["hydra"], app).warnings[0]
    assert ready(launchers["srun"], app).warnings == ()


def test_programs_of_two_mpis_in_one_job_are_refused(ready: Prepare, build: Build, launchers: dict[str, str]) -> None:
    one, other = build("one", needs=["libmpi.so.12"]), build("other", needs=["libmpi.so.40"])
    with pytest.raises(RunError, match="use different MPIs"):
        ready(launchers["hydra"], str(one), ":", str(other))


def test_an_abi_that_is_said_spares_looking(ready: Prepare, launchers: dict[str, str], libraries: Path) -> None:
    prepared = ready(launchers["hydra"], "-configfile", "f", abi="abi")
    assert preloads(libraries, "abi") in prepared.command
    prepared = ready(launchers["prrte"], "-n", "1", "./a", ":", "./only-elsewhere", abi="ompi")
    assert sum("LD_PRELOAD" in word for word in prepared.command) == 2


@pytest.mark.parametrize("abi", ["mpich", "ompi", "abi"])
def test_a_preload_that_is_not_built_is_refused(build: Build, tmp_path: Path, abi: str) -> None:
    with pytest.raises(RunError, match=rf"libpalmette_{abi}.so, .* is not built: configure with PALMETTE_MPI_"):
        prepare(["x"], {}, dict(os.environ), abi=abi, directory=tmp_path, libraries=tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "no command"),
        (("ls",), "is no launcher that palmette knows"),
        (("./mpiexec", "-n", "2", "app"), "no such launcher"),
        (("./app",), "no such program"),
    ],
)
def test_what_can_not_be_run_is_refused(ready: Prepare, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(RunError, match=message):
        ready(*words)


def test_a_launcher_of_an_unknown_kind_is_refused(ready: Prepare, launchers: dict[str, str]) -> None:
    with pytest.raises(RunError, match="is no launcher that palmette knows, by its `--version`"):
        ready(launchers["unknown"], "-n", "2", "app")
