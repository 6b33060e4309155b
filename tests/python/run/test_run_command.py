"""The command `palmette run`: its options, what it prints, what it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.cli.group import run_group
from palmette.cli.palmette import cli
from palmette.cli.run_options import OPTIONS
from palmette.mpi.abi import Abi, built, preload_library, record_library
from palmette.run import jobs, prepared

Call = Callable[..., Any]
CLUSTER = Path(__file__).resolve().parents[3] / "examples" / "cluster"
TABLE, FABRIC = CLUSTER / "tuning.json", CLUSTER / "fabric.txt"


@pytest.fixture
def app(build: Callable[..., Path], libraries: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A program, with preload libraries for all ABIs in place."""
    monkeypatch.setattr(prepared, "preload_library", lambda abi, folder: preload_library(abi, libraries))

    def built_here(abis: tuple[Abi, ...], folder: Path, *, recorder: bool) -> tuple[Abi, ...]:
        return built(abis, libraries, recorder=recorder)

    monkeypatch.setattr(jobs, "built", built_here)
    return str(build("app", needs=["libmpi.so.12"]))


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    path = tmp_path / "topology.json"
    machine = _core.Machine.synthetic("2leaf:2node").to_json()
    path.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}), encoding="utf-8")
    return path


def environment(result: Any) -> dict[str, str]:
    assert result.status == 0, result.err
    found: dict[str, str] = json.loads(result.out)["environment"]
    found.pop("LD_PRELOAD")
    found.pop("PALMETTE_SITE", None)  # of a machine with files of settings
    return found


def test_options_become_settings_with_absolute_paths(
    palmette: Call, app: str, topology: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(TABLE, tmp_path / "table.json")
    result = palmette(
        "run", "--json", "--topology", "topology.json", "--table", "table.json", "--report", "out.json", "-vv",
        "--force", "gather=linear", "--force", "MPI_Allgather=ring:segment=4096,order=rank", app,
    )  # fmt: skip
    assert environment(result) == {
        "PALMETTE_TOPOLOGY": str(topology),
        "PALMETTE_TABLE": str(tmp_path / "table.json"),
        "PALMETTE_REPORT": str(tmp_path / "out.json"),
        "PALMETTE_VERBOSE": "2",
        "PALMETTE_FORCE": "gather=linear;allgather=ring:segment=4096,order=rank",
    }


@pytest.mark.parametrize("form", [["--report"], ["--report=1"], ["--report", "--off"]])
def test_a_report_without_a_file_is_the_page(palmette: Call, app: str, form: list[str]) -> None:
    assert environment(palmette("run", "--json", *form, app))["PALMETTE_REPORT"] == "1"


def test_off_passes_all_calls_through(palmette: Call, app: str) -> None:
    assert environment(palmette("run", "--json", "--off", app)) == {"PALMETTE_ENABLE": "0"}


def test_settings_of_the_environment_go_to_the_ranks_and_options_go_over_them(
    palmette: Call, app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PALMETTE_FORCE", "scatter=linear;gather=linear")
    monkeypatch.setenv("PALMETTE_LAB_BIN", "/x")
    found = environment(palmette("run", "--json", "--force", "gather=k_nomial", app))
    assert found == {"PALMETTE_FORCE": "scatter=linear;gather=k_nomial"}


def test_options_of_the_program_are_its_own(palmette: Call, app: str) -> None:
    result = palmette("run", "--json", "--", app, "--report", "--json", "-v")
    assert json.loads(result.out)["command"] == [app, "--report", "--json", "-v"]
    assert environment(result) == {}


def test_print_gives_a_line_for_a_shell(palmette: Call, app: str, launchers: dict[str, str]) -> None:
    result = palmette("run", "--print", "--off", launchers["hydra"], "-n", "2", app, "two words")
    assert result.status == 0
    assert result.out.startswith(f"{launchers['hydra']} -genv PALMETTE_ENABLE 0 -genv LD_PRELOAD ")
    assert result.out.endswith(f"-n 2 {app} 'two words'\n")


def test_a_warning_goes_to_standard_error(palmette: Call, app: str, launchers: dict[str, str]) -> None:
    result = palmette("run", "--print", launchers["prrte"], "-n", "2", app)
    assert result.err.startswith("palmette run: warning: app needs libmpi.so.12, but ")
    assert result.out.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument"),
        (["--force", "gather", "app"], "--force gather: expected COLLECTIVE=SPEC"),
        (["--force", "sendrecv=linear", "app"], "--force 'sendrecv': no such collective; take one of gather"),
        (["--force", "gather=ring", "app"], "=gather=ring: no such algorithm for gather; take one of linear"),
        (["--force", "reduce_scatter_block=bruck", "app"], "no such algorithm for reduce_scatter; take one of ring"),
        (["--topology", "/none.json", "app"], "/none.json: no such file"),
        (["--table", "/none.json", "app"], "PALMETTE_TABLE=/none.json: no such file"),
        (["--table", str(FABRIC), "app"], f"PALMETTE_TABLE: {FABRIC}"),
        (["--table", str(FABRIC), "--abi", "mpich", "app"], "name a decision table (`palmette tune` writes one)"),
        (["--report", "/none/x.json", "app"], "the folder /none isn't there"),
        (["--report=page", "app"], "--report page: a report's file ends in .json; --report without a file prints the"),
        (["--report", "x.txt", "sh", "-c", ":"], "--report x.txt: a report's file ends in .json"),
        (
            ["--trace", "mpiexec", "-n", "2", "./app"],
            "--trace needs a folder before the command: palmette run --trace ",
        ),
        (["--profile", "--off", "sh"], "--profile needs a folder before the command"),
        (["--topology", "/opt/mpi/bin/mpirun", "./app"], "--topology needs a file before the command"),
        (["--trace", "sh"], "palmette run --trace DIR sh ..."),
        (["--abi", "mpt", "app"], "--abi"),
        (["./no-such-app"], "no such program here; correct the name, or PATH"),
        (["/"], "a folder, no program"),
        ([__file__], "isn't executable; name the program"),
        (["--matrix", "m.txt", "app"], "--matrix is gone; every recording has the matrix: palmette run --profile DIR"),
    ],
)
def test_bad_input_is_told_in_one_line_with_status_2(palmette: Call, arguments: list[str], message: str) -> None:
    result = palmette("run", *arguments)
    assert result.status == 2
    assert message in result.err
    assert result.err.startswith("palmette run: ")
    assert result.err.count("\n") == 1


def test_a_profile_puts_the_library_that_records_first(
    palmette: Call, app: str, libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(prepared, "record_library", lambda abi, folder: record_library(abi, libraries))
    ours = str(libraries / "libpalmette_mpich.so")
    assert json.loads(palmette("run", "--json", app).out)["environment"]["LD_PRELOAD"] == ours
    missing = palmette("run", "--json", "--profile", "calls", app)
    assert (missing.status, "which records calls, is not built" in missing.err) == (2, True)
    records = libraries / "libpalmette_record_mpich.so"
    records.touch()
    found = json.loads(palmette("run", "--json", "--profile", "calls", app).out)
    assert found["environment"]["LD_PRELOAD"] == f"{records}:{ours}"
    assert found["environment"]["PALMETTE_PROFILE"] == str(tmp_path / "calls")
    assert found["preload"] == [str(records), ours]


def test_a_program_that_names_no_mpi_gets_every_preload_and_json_says_so(
    palmette: Call, app: str, libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\nmpiexec -n 2 ./app\n", encoding="utf-8")
    script.chmod(0o755)
    for variable in ("OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID"):
        monkeypatch.delenv(variable, raising=False)
    found = json.loads(palmette("run", "--json", str(script)).out)
    expected = [str(libraries / f"libpalmette_{abi}.so") for abi in ("mpich", "ompi", "abi")]
    assert (found["abi"], found["abis"], found["preload"]) == (None, ["mpich", "ompi", "abi"], expected)
    assert found["environment"]["LD_PRELOAD"] == ":".join(expected)
    assert found["because"] == (
        "job.sh names no MPI and none can be inferred: the preloads for "
        "libmpi.so.12, libmpi.so.40 and libmpi_abi.so.1 are "
        "given, each inactive unless the MPI has its ABI"
    )
    assert f"LD_PRELOAD={':'.join(expected)}" in palmette("run", "--print", str(script)).out


@pytest.mark.parametrize(
    "words",
    [
        ["--off", "-v"],
        ["-vv", "--verbose", "--off"],
        ["--report", "x.json", "--force", "gather=linear", "--force=bcast=mpi"],
        ["--report", "--off"],
        ["--report=1", "--abi", "ompi"],
        ["--abi=abi", "--"],
        ["--table=table.json"],
        ["--table", "table.json"],
        [],
    ],
)
def test_options_are_read_alike_with_and_without_the_command_lines_library(
    palmette: Call, app: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    shutil.copy(TABLE, tmp_path / "table.json")
    alone = palmette("run", "--print", *words, app, "--report", "-v")
    assert alone.status == 0
    assert run_group(cli, ["run", "--print", *words, app, "--report", "-v"]) == 0
    assert capsys.readouterr().out == alone.out


def test_help_shows_every_option(palmette: Call) -> None:
    text = palmette("run", "--help").out
    assert all(word in text for option in OPTIONS for word in option.words)
    assert "[mpich|ompi|abi]" in text


HEAVY = ("click", "rich", "elftools", "jsonschema", "dataclasses", "subprocess", "palmette._core", "importlib.metadata")


def test_a_known_program_starts_without_what_takes_long_to_load(app: str, launchers: dict[str, str]) -> None:
    words = ["run", "--print", launchers["hydra"], "-n", "2", app]
    code = (
        "import sys; from palmette.cli.main import main; from palmette.run import prepared; from pathlib import Path;"
        "prepared.preload_library = lambda abi, folder: Path('/x.so');"
        f"status = main({words!r}); print(status, *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    for loaded in (("elftools", "subprocess"), ()):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        line = done.stdout.splitlines()[-1].split()
        assert line[0] == "0"
        assert set(loaded) <= set(line[1:])
    assert line == ["0"], "the second start takes what the first one has found"


@pytest.mark.parametrize("first", ["#!/bin/sh\n", ""])
def test_a_script_takes_our_place_and_passes_the_preloads_on(first: str, libraries: Path, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(f'{first}echo "$1 $LD_PRELOAD $PALMETTE_ENABLE"; exit 7\n', encoding="utf-8")
    script.chmod(0o755)
    for library in libraries.iterdir():
        library.unlink()
    code = (
        "import sys; from pathlib import Path; from palmette.cli.main import main; "
        "from palmette.run import jobs, prepared;"
        "jobs.built = lambda *_, **__: ('mpich', 'abi');"
        f"prepared.preload_library = lambda abi, folder: Path({str(libraries)!r}) / f'libpalmette_{{abi}}.so';"
        f"sys.exit(main(['run', '--off', {str(script)!r}, 'word']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    expected = f"word {libraries}/libpalmette_mpich.so:{libraries}/libpalmette_abi.so 0\n"
    assert (done.returncode, done.stdout) == (7, expected), done.stderr


def test_a_lab_takes_the_same_files_for_a_report(palmette_lab: Call) -> None:
    result = palmette_lab("run", "--mpi", "mpich", "--report", "page.html", "--", "sh", "-c", ":")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "--report page.html: a report's file ends in .json" in result.err
