"""What is done with each shell line of the documentation: the first rule that fits a line decides.

A line that no rule fits fails the test, and so does a rule that fits no line. Reasons are for readers: they say why a
line isn't run as it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .lines import Line

QUICK = "run by make test"
LONG = "run by make test-long"
TESTED = "run, and its output compared, by tests/python/test_guides.py"
PARSED = "parsed: "
"""Begins the reason of a line that isn't run, whose words palmette's command line must take all the same."""


@dataclass(frozen=True)
class Rule:
    """A page and a line, as regular expressions, and what is done with such lines: one of the above, or a reason."""

    page: str
    line: str
    kind: str


RULES = [
    # What needs a machine, a network or a site that tests don't have.
    Rule("", r"(env/bin/|~/palmette/bin/)?pip install", "fetches packages; tools/test_wheel.py installs the wheel"),
    Rule("install", r"(python3 -m venv )?~/palmette", "uses what the line above it installs from the package index"),
    Rule("install", r"mpiexec .*/opt/palmette", "needs /opt/palmette; test_surroundings.py sets the same by hand"),
    Rule("install", r"(make install|cmake)", "compiles everything again; tests/python/test_packaging.py does it"),
    Rule("install", r"palmette completion .* > ~", PARSED + "the home folder's; tests/python/cli/test_completion.py"),
    Rule("discover", "ibnetdiscover", "needs InfiniBand and root; examples/cluster/fabric.txt is what it prints"),
    Rule("discover", "srun", "needs a Slurm site; tests/python/slurm runs Slurm"),
    Rule("aggregator", r"palmette aggregator (serve|try|status)", PARSED + "a service; test_aggregator_command.py"),
    Rule("aggregator", r"palmette aggregator token --new-key /etc", PARSED + "writes to /etc"),
    Rule("aggregator", "cp packaging/systemd", "needs systemd as the machine's first process"),
    Rule("lab", r"(sudo )?palmette lab exec (h0 palmette aggregator|login)", PARSED + "test_aggregators_on_lab.py"),
    Rule("bench", "palmette bench app --ignore", PARSED + "needs LAMMPS"),
    Rule("site", r"palmette .*/etc", PARSED + "writes to /etc; tests/python/mpi/test_site.py has a folder of its own"),
    Rule("site", r"cp .*/etc", "writes to /etc; test_packaging.py and slurm/test_task_prolog.py try the files"),
    Rule("site", r"palmette .* srun", PARSED + "needs a Slurm site; tests/python/slurm"),
    Rule("site", "srun", "needs a Slurm site; tests/python/slurm/test_task_prolog.py does it on one of a host"),
    Rule(
        "map",
        "mpirun --mca|PREFIX",
        "needs an Open MPI with monitoring; tests/python/map/test_recorded.py reads its files",
    ),
    Rule(
        "calibrate", "-f hosts", PARSED + "needs a cluster's hosts; tests/python/calibrate has sessions of local ranks"
    ),
    Rule("device", "gpu_check|tar xf", "needs a GPU; tests/python/device/test_gpu_check.py packs and unpacks"),
    Rule(
        "what-if",
        r"palmette what-if .*--(force|table|placement|topology)",
        PARSED + "needs a run on a cluster whose links are known; tests/python/simulate/test_what_if.py",
    ),
    Rule("what-if", r"palmette what-if .*--bound", PARSED + "the same"),
    Rule("run", r"palmette run --report run.json .* srun", PARSED + "needs a Slurm site; tests/python/slurm"),
    Rule("method/testing", "pytest|sanitize.sh", "the tests themselves"),
    Rule(
        "(fft|tomography)/",
        "env/bin|python3 -m venv",
        "takes packages from the index; test_mpi4py_suite and make test-long run them",
    ),
    Rule("README|docs/start", "make (demo|test|build)", "compiles or tests everything: CI's first steps"),
    Rule("simulate", "make simulate", "a step of make test"),
    # What measures for minutes: its words are parsed, and tests run the command in small.
    Rule(
        "",
        r"(sudo )?(\.venv/bin/)?palmette (bench|tune|calibrate)\b",
        PARSED + "measures for minutes; tests/python/{bench,tune,calibrate} run it in small",
    ),
    Rule("calibrate", "palmette discover --from measurement", PARSED + "measures for minutes; test_measurement.py"),
    Rule(
        "(measuring|tuning|predict)",
        r"(\.venv/bin/)?python studies/",
        "a study of minutes to hours; tests/python import and try each",
    ),
    Rule("measurements", "sqlite3", "needs the samples of a measurement; test_store.py makes such a query"),
    Rule("bench", "palmette report last", PARSED + "needs a measurement; test_page.py"),
    Rule("simulate", "palmette simulate", PARSED + "simulates for minutes; tests/python/simulate runs it in small"),
    Rule("device", "palmette run mpiexec -n 4 ./program", PARSED + "needs a GPU; tests/python/mpi/test_device.py"),
    # Output that stands in the guide is compared elsewhere.
    Rule("guide/(plan|bound|flow|predict)", r"palmette (plan|bound|flow|predict) ", TESTED),
    # Networks of this machine.
    Rule("", r"(sudo )?palmette (lab|demo)|palmette report demo", LONG),
    # The rest is run; what a newcomer reads first in each test.
    Rule("", "--compare|--trace|--profile", LONG),
    Rule(
        "^(README|docs/start)", r"(palmette (discover|run|doctor|show|plan gather|report|top)|export|mpicc|cp)\b", QUICK
    ),
    Rule("discover|guide/README", "palmette|export|cp|mpicc", QUICK),
    Rule("", r"(palmette|export|mpicc|source|PALMETTE_\w+=|sqlite3)", LONG),
]

SMALLER = [
    (r"(mpiexec|mpirun) -(n|np) 64\b", r"\1 -\2 4", "64 ranks on two processors take a minute"),
    (r"^sudo ", "", "tests run as root"),
]
"""What is replaced before a line is run: pattern, replacement and reason."""


def rule_of(line: Line) -> Rule | None:
    """Return the first rule that fits a line."""
    return next((rule for rule in RULES if re.search(rule.page, line.page) and re.search(rule.line, line.text)), None)


def smaller(text: str) -> str:
    """Return the line as it is run."""
    for pattern, replacement, _ in SMALLER:
        text = re.sub(pattern, replacement, text)
    return text
