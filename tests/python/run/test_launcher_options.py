"""How many values the options of a launcher take, by its help, by our list and by its own answer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from palmette.mpi.errors import RunError
from palmette.mpi.install import NAMES, MpiNotFoundError, find
from palmette.mpi.launch import LauncherKind
from palmette.run.command_line import read_command_line
from palmette.run.help_text import values_in_help
from palmette.run.launcher_options import LauncherOptions, missing_values
from palmette.run.options import FLAGS, VALUES

HYDRA = """
Usage: ./mpiexec [global opts] [local opts for exec1] [exec1] [exec1 args] : [local opts for exec2] [exec2] : ...

Global options (passed to all executables):
    -genv {name} {value}             environment variable name and value
    -genvnone                        do not pass any environment variables
    -hosts {host list}               comma separated host list
    -n/-np {value}                   number of processes
    {exec_name} {args}               executable name and arguments
    -launcher                        launcher to use (ssh rsh fork slurm ll lsf sge manual persist)
    -enable-x/-disable-x             enable or disable X forwarding
    -usize                           universe size (SYSTEM, INFINITE, <value>)
    -s <spec>                        redirect stdin to all or 1,2 or 2-4,6 MPI processes (0 by default)
    -cpu-bind <cpu-binding>          Explicitly set CPU binding for application.
  <option> -help                     show help message for the specific option
"""

OPEN_MPI_4 = """\
mpirun (Open MPI) 4.1.4

Usage: mpirun [OPTION]...  [PROGRAM]...
-c|-np|--np <arg0>       Number of processes to run
   -cf|--cartofile <arg0>
                         Provide a cartography file
   -display-topo|--display-topo
                         Display the topology as part of the process map
   -gmca|--gmca <arg0> <arg1>
                         Pass global MCA parameters that are applicable to
                         all contexts (arg0 is the parameter name)
   -output-filename|--output-filename <arg0>
                         Redirect output from application processes into
                         filename/job/rank/std[out,err,diag]. A relative
-q|--quiet               Suppress helpful messages
-x <arg0>                Export an environment variable, optionally
                         specifying a value (e.g., "-x foo" exports the
"""

PRRTE = """\
+----------------------+-----------------------------------------------+
| Option               | Description                                   |
|======================|===============================================|
| "-h" | "--help       | Help for the specified option                 |
| <arg0>"              |                                               |
+----------------------+-----------------------------------------------+
| "--debug-daemons-    | Enable debugging of any PRRTE daemons used by |
| file"                | this application, <not a value>               |
+----------------------+-----------------------------------------------+
| "--runtime-options   | Comma-delimited list of runtime directives    |
| <arg0>"              | for the job                                   |
+----------------------+-----------------------------------------------+
| "-N" | "--npernode   | Run designated number of processes on each    |
| <num>"               | node                                          |
+----------------------+-----------------------------------------------+
| "--app-pmix-prefix <dir>" | Prefix to be used by app procs to look   |
|                      | for their PMIx "--no-app-prefix" installation |
+----------------------+-----------------------------------------------+
| "--set-env           | Set the named environmental variable to the   |
|     <name>=<value>"  | specified value.                              |
+----------------------+-----------------------------------------------+
| "--prepend-env       | Prepend the named environment variable with   |
| <name[c]> <value>"   | given value.                                  |
+----------------------+-----------------------------------------------+
| "-s" | "--preload-   | Preload the binary on the remote machine      |
| binary"              | before starting the remote process.           |
+----------------------+-----------------------------------------------+
"""

SRUN = """\
Parallel run options:
  -A, --account=name          charge job to specified account
      --acctg-freq=<datatype>=<interval> accounting and profiling sampling
      --compress[=library]    data compression library used with --bcast
      --container             Path to OCI container bundle
  -B  --extra-node-info=S[:C[:T]]  combine request of sockets per node,
                              cores per socket and threads per core.
  -E, --preserve-env          env vars for node and task counts override
  -I, --immediate[=secs]      exit if resources not available in "secs"
                              --mem >= --mem-per-cpu if --mem is specified.
"""


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("hydra", HYDRA, {"genv": 2, "hosts": 1, "n": 1, "np": 1, "s": 1, "cpu-bind": 1}),
        (
            "prrte",
            OPEN_MPI_4,
            {"c": 1, "np": 1, "cf": 1, "cartofile": 1, "gmca": 2, "output-filename": 1, "x": 1},
        ),
        (
            "prrte",
            PRRTE,
            {"runtime-options": 1, "N": 1, "npernode": 1, "app-pmix-prefix": 1, "set-env": 1, "prepend-env": 2},
        ),
        ("srun", SRUN, {"A": 1, "account": 1, "acctg-freq": 1, "B": 1, "extra-node-info": 1}),
    ],
)
def test_help_tells_by_placeholders(kind: LauncherKind, text: str, expected: dict[str, int]) -> None:
    assert values_in_help(kind, text) == expected


@pytest.mark.parametrize(
    ("kind", "status", "answer", "expected"),
    [
        ("prrte", 1, "An option was included on the mpirun command line that requires\nan argument, but no", 1),
        ("prrte", 1, "    missing-argument\nBut I couldn't open the help file", 1),
        ("prrte", 1, "The provided command line option requires passing two\nvalues:", 2),
        ("prrte", 1, 'orterun: Error: option "--mca" did not have enough parameters (2)', 2),
        ("prrte", 1, "No executable was specified on the prterun command line.", 0),
        ("prrte", 1, 'orterun: Error: unknown option "--foo"', None),
        ("srun", 1, "srun: option '--nodes' requires an argument", 1),
        ("srun", 1, "srun: option requires an argument -- 'n'", 1),
        ("srun", 1, "srun: fatal: No command given to execute.", 0),
        ("srun", 1, "srun: fatal: Could not establish a configuration source", None),
        ("hydra", 255, "[mpiexec@h] HYDU_set_str (args.c:201): cannot assign NULL object", 1),
        ("hydra", -11, "", 1),
        ("hydra", 255, "[mpiexec@h] main (mpiexec.c:60): No executable provided. Try -h for usages.", 0),
        ("hydra", 255, "[mpiexec@h] main (mpiexec.c:54): Missing executable.", 0),
        ("hydra", 255, "[mpiexec@h] match_arg (args.c:166): unrecognized argument foo", None),
        ("intel_hydra", 127, "mpirun: 109: mpiexec.hydra: not found", None),
    ],
)
def test_a_launcher_that_gets_an_option_alone_tells_what_it_misses(
    kind: LauncherKind, status: int, answer: str, expected: int | None
) -> None:
    assert missing_values(kind, status, answer) == expected


def fake(tmp_path: Path, script: str) -> Path:
    """A launcher that appends each of its calls to `calls` and then does what `script` says."""
    path = tmp_path / "mpirun"
    path.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/calls\n{script}\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def test_what_neither_help_nor_our_list_tells_the_launcher_is_asked_once(tmp_path: Path) -> None:
    script = """case "$1" in
    --help) echo '   --new-value <arg0>    something' ;;
    --newer-value) echo 'an option that requires an argument' ; exit 1 ;;
    *) echo 'No executable was specified' ; exit 1 ;;
    esac"""
    path = fake(tmp_path, script)
    line = ["mpirun", "--new-value", "1", "--newer-value", "2", "--new-flag", "--np", "2", "--report-bindings", "app"]
    for _ in range(2):
        options = LauncherOptions("prrte", path, {"PATH": os.environ["PATH"]})
        assert read_command_line("prrte", line, options).parts[0].program == "app"
    calls = (tmp_path / "calls").read_text(encoding="utf-8").split("\n")
    assert calls == ["--help", "--help full", "--newer-value", "--new-flag", ""]


def test_where_help_and_our_list_differ_the_launcher_decides(tmp_path: Path) -> None:
    script = """case "$1" in
    --help) echo '      --bcast=<dest_path>     Copy executable'; echo '      --label=<x>   no such thing yet' ;;
    --label) echo "option '--label' requires an argument" ; exit 1 ;;
    *) echo 'srun: fatal: No command given to execute.' ; exit 1 ;;
    esac"""
    options = LauncherOptions("srun", fake(tmp_path, script), {"PATH": os.environ["PATH"]})
    assert (options.count("--bcast", "bcast"), options.count("--label", "label")) == (0, 1)


def test_a_launcher_that_fails_leaves_our_list(tmp_path: Path) -> None:
    for script in ("exit 3", "kill -9 $$"):
        options = LauncherOptions("prrte", fake(tmp_path, script), {"PATH": os.environ["PATH"]})
        assert [options.count(f"--{name}", name) for name in ("np", "mca", "xml", "unheard-of")] == [1, 2, 0, 0]
    gone = LauncherOptions("prrte", tmp_path / "none")
    assert [gone.count(f"--{name}", name) for name in ("np", "unheard-of")] == [1, 0]


def test_an_option_of_palmettes_behind_the_launcher_is_told_unless_the_launcher_has_it(tmp_path: Path) -> None:
    script = """case "$1" in
    --help) echo '   --report <arg0>    something' ;;
    --trace) echo 'mpirun: Error: unknown option "--trace"' ; exit 1 ;;
    *) echo 'No executable was specified' ; exit 1 ;;
    esac"""
    own = {"--trace": "DIR", "--report": "", "--off": ""}
    options = LauncherOptions("prrte", fake(tmp_path, script), {"PATH": os.environ["PATH"]}, own)
    for words in (["--trace", "calls"], ["--trace=calls"], ["-n", "2", "--trace", "calls"]):
        with pytest.raises(RunError, match=r"--trace is an option of palmette's .*: palmette run --trace DIR mpirun"):
            read_command_line("prrte", ["mpirun", *words, "app"], options)
    for words in (["--report", "x"], ["--report=x"], ["--off"], ["-n", "2", "app", "--trace"]):
        assert read_command_line("prrte", ["mpirun", *words, "app"], options).parts[0].program == "app"


def test_no_option_is_listed_twice() -> None:
    for kind, values in VALUES.items():
        assert not set(values) & FLAGS[kind], kind


@pytest.mark.parametrize("name", list(NAMES))
def test_our_list_says_what_the_installed_launcher_says(name: str) -> None:
    try:
        mpi = find(name)
    except MpiNotFoundError as error:
        pytest.skip(str(error))
    kind = mpi.launcher
    environment = {**os.environ, **mpi.environment()}
    options = LauncherOptions(kind, mpi.mpiexec, environment)
    dash = "--" if kind == "prrte" else "-"
    # hydra's complaint doesn't tell two values from one, nor does Open MPI 5's of these.
    two = {"env", "genv", "append-env", "prepend-env"}
    for option, count in options._from_help().items():
        assert count == VALUES[kind].get(option), option
    some = ("ppn", "bind-to", "wdir", "verbose", "prepend-rank", "with-ft", "mca", "oversubscribe", "tune", "timeout")
    for option in [option for option in (*some, *two) if option in VALUES[kind] or option in FLAGS[kind]]:
        asked = options._asked(f"{dash}{option}")
        listed = VALUES[kind].get(option, 0)
        assert asked is None or asked == (1 if option in two else listed), option
    line = {
        "prrte": "mpirun --with-ft ulfm --display-topo x --output-proctable -n 2 app",
        "hydra": "mpiexec -bind-to core -prepend-rank -n 2 app",
        "intel_hydra": "mpiexec -tune x -prot -n 2 app",
    }[kind]
    assert read_command_line(kind, line.split(), options).parts[0].program == "app"
