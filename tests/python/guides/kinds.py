"""What is done with each shell line of the documentation: the first rule that fits a line decides.

A line that no rule fits fails the test, and so does a rule that fits no line. Reasons are for readers: they say why a
line isn't run as it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .lines import ROOT, Line

QUICK = "run by make test"
LONG = "run by make test-long"
TESTED = "run, and its output compared, by tests/python/test_guides.py"
SLURM = "run by make test-long under Slurm, on this machine alone"


@dataclass(frozen=True)
class Rule:
    """A page and a line, as regular expressions, and what is done with such lines: one of the above, or a reason."""

    page: str
    line: str
    kind: str
    smaller: tuple[tuple[str, str], ...] = ()
    """Replaced before the line is run, besides SMALLER: pattern and replacement."""
    statuses: tuple[int, ...] = (0,)
    """Exit statuses that are right: studies tell by 1 that what was measured missed their target."""
    prints: str = ""
    """What the output must have, where statuses allow bad input's."""


# Seconds instead of minutes. What the line itself says comes later on it, and counts.
SHORT_BENCH = "--seconds 20ms --min-iterations 3"
FAKES = ROOT / "build" / "release" / "tests" / "fakes"
LIBRARIES = (("/opt/palmette/[^ ]*/lib/", f"{ROOT}/python/palmette/lib/"), ("/opt/palmette/", ""))
HERE = (r"--topology topology.json(.* -- )", r"--topology here.json\1")
BENCH = (
    HERE,
    (r"(palmette(?:-lab)? bench)( collectives)?\b", rf"\1 {SHORT_BENCH} --sizes 1K"),
    (r"--budget [0-9a-z]+", "--budget 100s"),
)
PATTERN = (
    HERE,
    (r"(palmette(?:-lab)? bench (?:pattern|compose))", rf"\1 {SHORT_BENCH}"),
    ("--budget 1min", "--budget 30s"),
)
APP = ((r"(palmette(?:-lab)? bench app)", r"\1 --rounds 1"),)
TUNE = ((r"(palmette(?:-lab)? tune)", r"\1 --sizes 1K --budget 30s"), (r"--budget (10min|75s)", "--budget 30s"))
CALIBRATE = (
    HERE,
    (r"(palmette(?:-lab)? calibrate)", r"\1 --budget 5s --target 50%"),
)
SIMULATE = (
    ("palmette-lab simulate", "palmette-lab simulate --collectives gather --sizes 64 --rivals mpich --cpu-limit 20s"),
    ("--sizes [0-9,KM]+", "--sizes 64"),
    ("--ranks 128", "--ranks 16"),
)
FOLDER = (("/etc/palmette", "etc/palmette"),)
CHECKOUT = (
    f"&& for folder in env/lib/python3*/site-packages; do echo {ROOT}/python > $folder/here.pth; done"
    f"; ln -s {ROOT}/.venv/bin/palmette env/bin/"
)
SAME_PACKAGE = (("~/palmette/bin/palmette", "palmette"),)

RULES = [
    # The tutorial: each part in its folder, which the first page makes.
    Rule("docs/tutorial/own", "compose .*--hierarchy|gossip_run|cat", QUICK),
    Rule("docs/tutorial", ".", LONG, ((r"heat\.py(?!.*steps)", "heat.py --steps 20"),)),
    # What needs a machine, a network or a site that tests don't have.
    Rule("tomography", r"pip install .*palmette", LONG, ((r"dist/palmette.*", CHECKOUT),)),
    Rule("", r"(env/bin/|~/palmette/bin/)?pip install .*palmette", "fetches packages; tools/test_wheel.py installs it"),
    Rule("install", r"python3 -m venv ~/palmette", LONG),
    Rule("install", r"~/palmette/bin/palmette", LONG, SAME_PACKAGE),
    Rule("install", r"mpiexec .*/opt/palmette", LONG, LIBRARIES),
    Rule("install", r"(make install|cmake)", "run in a fresh clone by test_make.py; packaging/debian"),
    Rule("install", r"palmette completion .* > ~", LONG),
    Rule("discover", "ibnetdiscover >", LONG),
    Rule("discover", "srun", SLURM, (("srun", "srun -N 2"),)),
    Rule(
        "aggregator|guide/sharp",
        "aggregator serve",
        LONG,
        (("(palmette-aggregator .*)", r"\1 > serve.log 2>&1 & echo $! > background; sleep 3"),),
    ),
    Rule("aggregator", "palmette-aggregator token --new-key /etc", LONG, FOLDER),
    Rule("aggregator", "cp packaging/systemd", "needs systemd as the machine's first process"),
    Rule("site", r"(palmette|cp|echo|editor) .*/etc", LONG, (("/etc/", "etc/"),)),
    Rule("site", r"palmette .* srun", SLURM),
    Rule("site", "srun", SLURM, (("srun", "srun -n 2"),)),
    Rule("site", "systemctl|journalctl|scontrol", "needs systemd or Slurm as the machine's; slurm/test_task_prolog.py"),
    Rule("site", "module load", "test_packaging.py reads the module files"),
    Rule("calibrate", "discover .* -f hosts", "needs several hosts; the line below it does the same on a lab"),
    Rule(
        "map",
        "mpirun --mca",
        LONG,
        (
            ("mpirun", "env -u LD_LIBRARY_PATH mpirun.openmpi --oversubscribe --allow-run-as-root"),
            ("app", "app4"),
            ("-n 64", "-n 8"),
        ),
    ),
    Rule("device", "node_check|tar xf", "long; tests/python/device/test_node_check.py runs it"),
    Rule("run", "srun", SLURM),
    Rule("bench", "srun", SLURM, BENCH),
    Rule("bench", "lmp -in", "needs LAMMPS, a Debian package; studies/apps measures it"),
    Rule("method/testing", "pytest|sanitize.sh", "the tests themselves"),
    Rule("README|docs/start", "make (demo|test|build|wheel)", "run in a fresh clone by test_make.py"),
    Rule("simulate", "make simulate", "a step of make test"),
    Rule("device", r"\./program", LONG, (("program", "app"),)),
    Rule(
        "device",
        "--memory cuda",
        LONG,
        (*BENCH, ("^", f"LD_LIBRARY_PATH={FAKES}:$LD_LIBRARY_PATH ")),
    ),
    Rule(
        "what-if",
        "palmette run .*--trace",
        LONG,
        (("topology.json", "here.json"), (r"\./app", "./steps allreduce 4096 1000 3")),
    ),
    Rule("guide/sharp", "palmette-lab run", "needs the topology that its reader has edited"),
    Rule("lab", "/run/palmette-lab", LONG, (("/run/palmette-lab", "$PALMETTE_LAB_STATE"),)),
    # What measures for minutes runs in small.
    Rule("patterns", "rail --topology", LONG, (*PATTERN, ("rail", "rail:groups=2"))),
    Rule("", r"palmette(-lab)? bench report", LONG),
    Rule("", r"palmette(-lab)? bench (pattern|compose)", LONG, PATTERN),
    Rule("", r"palmette(-lab)? bench app", LONG, APP),
    Rule("", r"palmette(-lab)? bench", LONG, BENCH),
    Rule("", r"palmette(-lab)? tune", LONG, TUNE),
    Rule("", r"palmette(-lab)? calibrate", LONG, CALIBRATE),
    Rule("predict", "predict_against", LONG, (("topology.json", "lab.json"),), (0, 1)),
    Rule("predict", "studies/", LONG, ((r"--budget-min \d+", "--budget-min 1.5"),), (0, 1)),
    Rule("tuning", "studies/", LONG, (("choice_quality.py", "choice_quality.py --draw 1 --budget-min 0.5"),), (0, 1)),
    # A busy machine leaves too few pairs of some cell for a ratio: status 2.
    Rule(
        "measuring",
        "studies/",
        LONG,
        (("--draw 4", "--draw 1"), ("labs.py", "labs.py --sizes 1 --seconds 0.1")),
        (0, 1, 2),
        r"\| all \| \d+",
    ),
    Rule("", "palmette-lab simulate", LONG, SIMULATE),
    # Output that stands in the guide is compared elsewhere.
    Rule("guide/(plan|bound|flow|predict)", r"palmette plan ", TESTED),
    # Networks of this machine.
    Rule("", r"(sudo )?palmette(-lab| demo)\b|palmette report demo", LONG),
    Rule("guide/runs", "--gate", LONG, (), (0, 1)),
    Rule("guide/runs", "~/app.sqlite", LONG, (("~/app.sqlite", "app.sqlite"), ("mpiexec", "mpiexec -n 2"))),
    # The rest is run; what a newcomer reads first in each test.
    Rule("", "--compare|--trace|--profile", LONG),
    Rule(
        "^(README|docs/start)", r"(palmette (discover|run|doctor|show|plan gather|report|top)|export|mpicc|cp)\b", QUICK
    ),
    Rule("discover|guide/README", "palmette|export|cp|mpicc", QUICK),
    Rule("", r"(palmette(-aggregator)?|export|mpicc|mpiexec|source|python3|env/bin|PALMETTE_\w+=|sqlite3)", LONG),
]

SMALLER = [
    (r"(mpiexec|mpirun) -(n|np) (64|16)\b", r"\1 -\2 4", "64 ranks on two processors take a minute"),
    (r" -hosts a,b,c,d| -(hostfile|f) hosts\b", "", "hosts that aren't there"),
    (r" -N (8|16)\b", " -N 2", "hosts that aren't there"),
    (r"--ntasks-per-node 16\b", "--ntasks-per-node 1", "64 ranks on two processors take a minute"),
    (r"srun -n 64\b", "srun -n 2", "64 ranks on two processors take a minute"),
    ("10.0.0.9:7117", "127.0.71.17:7117", "an address of the loopback interface"),
    (r"^sudo ", "", "tests run as root"),
    ("srun", "srun --mpi=pmi2", "Slurm's default of a test is none"),
]
"""What is replaced before a line is run: pattern, replacement and reason."""

THIS_HOST = "palmette discover --from hwloc -o here.json"
SMALL = "palmette-lab up --name small --lifetime 30min 2leaf@50Mbit/s:2node@100Mbit/s:1core"
TUTORIAL = [
    "mkdir -p tutorial && cp examples/tutorial/*.py examples/first/first.c examples/cluster/fabric.txt tutorial",
    "cd tutorial",
]
TUTORIAL_APP = "mpicc -O2 first.c -o app -lm"
BEFORE = {
    "docs/guide/bench.md": [THIS_HOST],
    "docs/guide/lab-bench.md": [SMALL],
    "docs/guide/calibrate.md": [SMALL, THIS_HOST],
    "docs/guide/tune.md": [SMALL, THIS_HOST],
    "docs/guide/predict.md": [
        SMALL,
        f"palmette-lab bench {SHORT_BENCH} allgather --sizes 16K,64K --lab small",
        "cp $PALMETTE_LAB_STATE/small/topology.json lab.json",
    ],
    "docs/guide/map.md": ["env -u LD_LIBRARY_PATH mpicc.openmpi app.c -o app4 -lm"],
    "docs/guide/patterns.md": [THIS_HOST],
    "docs/guide/runs.md": [f"python3 {ROOT}/tests/python/runs/invented.py archive.sqlite"],
    "docs/guide/what-if.md": [
        THIS_HOST,
        "cp tuning.json table.json && cp here.json faster.json",
        "mpicxx -O1 tests/mpi/steps.cpp -o steps",
    ],
    "README.md": [THIS_HOST],
    **{f"docs/tutorial/{part}.md": TUTORIAL for part in ("wiring", "slow", "own")},
    **{f"docs/tutorial/{part}.md": [*TUTORIAL, TUTORIAL_APP] for part in ("helps", "site")},
    "docs/reference/measurements.md": [f"palmette bench {SHORT_BENCH} allgather --sizes 1K -n 2"],
}
"""What a page says that its reader has: labs and measurements."""


def rule_of(line: Line) -> Rule | None:
    """Return the first rule that fits a line."""
    return next((rule for rule in RULES if re.search(rule.page, line.page) and re.search(rule.line, line.text)), None)


def smaller(line: Line) -> str:
    """Return the line as it is run."""
    rule = rule_of(line)
    text = line.text
    for pattern, replacement in [*((old, new) for old, new, _ in SMALLER), *(rule.smaller if rule else ())]:
        text = re.sub(pattern, replacement, text)
    return text
