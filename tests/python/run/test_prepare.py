"""The command line that runs a program under palmette."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.run import LaunchPlan, RunError, prepare

Build = Callable[..., Path]
Prepare = Callable[..., LaunchPlan]
GATHER = "by_topology:node=linear,leaf=k_nomial.4"
VARIABLES = {"PALMETTE_FORCE": f"gather={GATHER}"}


@pytest.fixture
def ready(libraries: Path, tmp_path: Path) -> Prepare:
    def call(*words: str, environment: dict[str, str] | None = None, **options: object) -> LaunchPlan:
        base = {"PATH": os.environ["PATH"], **(environment or {})}
        return prepare(words, VARIABLES, base, directory=tmp_path, libraries=libraries, **options)  # type: ignore[arg-type]

    return call


def preloads(libraries: Path, abi: str = "mpich") -> str:
    return str(libraries / f"libpalmette_{abi}.so")


def test_hydra_gets_genv(ready: Prepare, build: Build, launchers: dict[str, str], libraries: Path) -> None:
    app = str(build("app", needs=["libmpi.so.12"]))
    prepared = ready(launchers["hydra"], "-n", "4", app, "x")
    assert prepared.command == (
        launchers["hydra"], "-genv", "PALMETTE_FORCE", f"gather={GATHER}", "-genv", "LD_PRELOAD", preloads(libraries),
        "-n", "4", app, "x",
    )  # fmt: skip
    assert prepared.environment == {}
    assert prepared.launcher == "hydra"
    assert prepared.evidence.because == "app needs libmpi.so.12"


def test_open_mpi_gets_x_in_every_part(
    ready: Prepare, build: Build, launchers: dict[str, str], libraries: Path
) -> None:
    app = str(build("app", needs=["libmpi.so.40"]))
    ours = ["-x", f"PALMETTE_FORCE=gather={GATHER}", "-x", f"LD_PRELOAD={preloads(libraries, 'ompi')}"]
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
    assert prepared.command[1] == f"--export=HOME,PALMETTE_FORCE,LD_PRELOAD=/x.so:{preload}"
    prepared = ready(launchers["srun"], "--export=NONE", app)
    assert prepared.command[1] == f"--export=PALMETTE_FORCE,LD_PRELOAD={preload}"


def test_without_a_launcher_the_environment_does_it(ready: Prepare, build: Build, libraries: Path) -> None:
    app = str(build("app", needs=["libmpi.so.40"]))
    prepared = ready(app, "x")
    assert prepared.command == (app, "x")
    assert prepared.environment == {**VARIABLES, "LD_PRELOAD": preloads(libraries, "ompi")}
    assert prepared.launcher is None
    assert prepared.shell_line().startswith("env PALMETTE_FORCE=gather=")


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
    prepared = ready(launchers["hydra"], "-genv", "PALMETTE_FORCE", "gather=linear", app)
    assert prepared.command.count("PALMETTE_FORCE") == 1
    assert "gather=linear" in prepared.command


@pytest.mark.parametrize(
    ("kind", "abis"),
    [
        ("hydra", ("mpich", "abi")),
        ("intel_hydra", ("mpich", "abi")),
        ("prrte", ("ompi", "abi")),
        ("srun", ("mpich", "ompi", "abi")),
    ],
)
def test_a_program_without_mpi_gets_the_preloads_of_the_launchers_mpis(
    ready: Prepare, launchers: dict[str, str], libraries: Path, kind: str, abis: tuple[str, ...]
) -> None:
    prepared = ready(launchers[kind], "-n", "2", "sh", "-c", "true")
    assert (prepared.evidence.abi, prepared.evidence.abis) == (None, abis)
    assert prepared.evidence.because.startswith("sh names no MPI")
    value = ":".join(preloads(libraries, abi) for abi in abis)
    assert any(word.endswith(f"LD_PRELOAD={value}") or word == value for word in prepared.command)


@pytest.mark.parametrize(
    ("environment", "abis"),
    [
        ({}, ("mpich", "ompi", "abi")),
        # What modules set tells nothing of what a script loads by itself.
        ({"I_MPI_ROOT": "/opt/intel/mpi", "MPI_HOME": "/opt/intel/mpi"}, ("mpich", "ompi", "abi")),
        # Slurm does this for all MPIs.
        ({"PMI_RANK": "0", "SLURM_PROCID": "0"}, ("mpich", "ompi", "abi")),
        ({"PMI_RANK": "0", "MPI_LOCALRANKID": "0"}, ("mpich", "abi")),
        ({"OMPI_COMM_WORLD_RANK": "0", "PMIX_RANK": "0"}, ("ompi", "abi")),
    ],
)
def test_without_a_launcher_the_job_around_tells_the_mpi_or_all_preloads_go(
    ready: Prepare, libraries: Path, environment: dict[str, str], abis: tuple[str, ...]
) -> None:
    prepared = ready("ls", environment=environment)
    assert prepared.evidence.abis == abis
    assert prepared.environment["LD_PRELOAD"] == ":".join(preloads(libraries, abi) for abi in abis)
    assert prepared.warnings == ()


def test_only_preloads_that_are_built_are_given(ready: Prepare, libraries: Path, tmp_path: Path) -> None:
    (libraries / "libpalmette_ompi.so").unlink()
    assert ready("ls").evidence.abis == ("mpich", "abi")
    (libraries / "libpalmette_abi.so").unlink()
    alone = ready("ls").evidence
    assert (alone.abi, alone.because) == (
        "mpich",
        "ls names no MPI and none can be inferred: the preload for libmpi.so.12 is given",
    )
    (libraries / "libpalmette_mpich.so").unlink()
    with pytest.raises(RunError, match=r"libpalmette_mpich\.so, .* is not built"):
        ready("ls")


def test_all_that_record_stand_before_all_that_serve(libraries: Path, tmp_path: Path) -> None:
    for abi in ("mpich", "abi"):
        (libraries / f"libpalmette_record_{abi}.so").touch()
    environment = {"PATH": os.environ["PATH"]}
    prepared = prepare(["ls"], {"PALMETTE_PROFILE": "/m"}, environment, directory=tmp_path, libraries=libraries)
    names = [path.name for path in prepared.preloads]
    assert names == [
        "libpalmette_record_mpich.so",
        "libpalmette_record_abi.so",
        "libpalmette_mpich.so",
        "libpalmette_abi.so",
    ]


def test_preloads_that_a_run_around_gave_go(ready: Prepare, build: Build, libraries: Path) -> None:
    app = str(build("app", needs=["libmpi.so.40"]))
    outside = ready("ls").environment["LD_PRELOAD"]
    assert ready(app, environment={"LD_PRELOAD": f"/a.so:{outside}"}).environment["LD_PRELOAD"] == (
        f"/a.so:{preloads(libraries, 'ompi')}"
    )


def test_a_launcher_behind_a_wrapper_is_warned_of(ready: Prepare, build: Build, launchers: dict[str, str]) -> None:
    app = str(build("app", needs=["libmpi.so.12"]))
    prepared = ready("env", "A=1", launchers["hydra"], "-n", "2", app)
    assert prepared.evidence.abi == "mpich"
    assert "put `palmette run` right before" in prepared.warnings[0]


def test_programs_in_a_file_get_the_preloads_of_the_launchers_mpis(
    ready: Prepare, launchers: dict[str, str], libraries: Path
) -> None:
    prepared = ready(launchers["hydra"], "-configfile", "f")
    value = f"{preloads(libraries)}:{preloads(libraries, 'abi')}"
    assert prepared.command[4:] == ("-genv", "LD_PRELOAD", value, "-configfile", "f")
    assert prepared.evidence.because.startswith("the file of programs names no MPI and its launcher")


def test_a_static_wrapper_is_warned_of(ready: Prepare, build: Build, launchers: dict[str, str]) -> None:
    source = "void _start(void) { for (;;) {} }"
    wrapper = str(build("wrap", options=["-static", "-nostdlib"], source=source))
    app = str(build("app", needs=["libmpi.so.12"]))
    assert ready(launchers["hydra"], wrapper, app).warnings == ()
    assert (
        "nothing can be preloaded into it, only into what it starts" in ready(launchers["hydra"], wrapper).warnings[0]
    )


@pytest.fixture
def sanitized(build: Build, tmp_path: Path) -> Callable[[str], str]:
    """A program that needs an address sanitizer's runtime, with or without the flag in it."""

    def make(text: str) -> str:
        source = f'const char *flags(void) {{ return "{text}"; }}'
        build("libasan.so.8", library=True, where=tmp_path / "san", source=source)
        needs = ["libmpi.so.12", "libasan.so.8"]
        return str(build("app", needs=needs, options=[f"-Wl,-rpath,{tmp_path / 'san'}"]))

    return make


def test_the_address_sanitizer_is_told_not_to_insist(
    ready: Prepare, sanitized: Callable[[str], str], launchers: dict[str, str], libraries: Path
) -> None:
    app = sanitized("verify_asan_link_order")
    flag = "verify_asan_link_order=0"
    prepared = ready(launchers["hydra"], "-n", "2", app)
    at = prepared.command.index("ASAN_OPTIONS")
    assert prepared.command[at + 1] == flag
    assert prepared.command[prepared.command.index("LD_PRELOAD") + 1] == preloads(libraries)
    alone = ready(app, environment={"ASAN_OPTIONS": "detect_leaks=0"})
    assert alone.environment["ASAN_OPTIONS"] == f"detect_leaks=0:{flag}"
    typed = ready(launchers["hydra"], "-genv", "ASAN_OPTIONS", "a=1", app)
    assert f"a=1:{flag}" in typed.command and typed.command.count("ASAN_OPTIONS") == 1
    slurm = ready(launchers["srun"], "--export=HOME,ASAN_OPTIONS=a=1", app)
    assert slurm.command[1].startswith("--export=HOME,PALMETTE_FORCE,ASAN_OPTIONS,LD_PRELOAD=")
    assert slurm.environment["ASAN_OPTIONS"] == f"a=1:{flag}"


def test_an_old_address_sanitizer_goes_first(
    ready: Prepare, sanitized: Callable[[str], str], libraries: Path, tmp_path: Path
) -> None:
    prepared = ready(sanitized("nothing to be told"))
    assert prepared.environment["LD_PRELOAD"] == f"{tmp_path / 'san' / 'libasan.so.8'}:{preloads(libraries)}"


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
        (("./mpiexec", "-n", "2", "app"), "no such launcher"),
        (("./app",), "no such program"),
    ],
)
def test_what_can_not_be_run_is_refused(ready: Prepare, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(RunError, match=message):
        ready(*words)


def test_a_launcher_of_an_unknown_kind_gets_the_preload_through_the_environment(
    ready: Prepare, build: Build, launchers: dict[str, str], libraries: Path
) -> None:
    app = str(build("app", needs=["libmpi.so.40"]))
    prepared = ready(launchers["unknown"], "-n", "2", app)
    assert prepared.command == (launchers["unknown"], "-n", "2", app)
    assert prepared.environment["LD_PRELOAD"] == preloads(libraries, "ompi")
    assert "is no launcher that palmette knows, by its `--version`" in prepared.warnings[0]
