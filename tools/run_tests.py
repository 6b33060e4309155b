"""Run every test: the C++ executables of build/release, then pytest. The last line counts them all.

Usage: run_tests.py [cpp] [quiet] [jobs] [long] [arm64] [-- PYTEST-ARGUMENTS]      default: the first three

`cpp` and `quiet` only compute, so as many run side by side as there are processors; of `jobs`, which start MPI jobs,
networks and services and often wait for them, one more.
`long` is what make test leaves out: sweeps, soaks, suites of other projects, and new simulations of the rivals.
`arm64` is what build/arm64 holds, under emulation.

Each part ends with its time; the slowest files and tests are listed before the last line.
Exits with 1 when a test failed, a runner died, or no test ran.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPP_TESTS = ROOT / "build" / "release" / "tests"
ARM64_TESTS = ROOT / "build" / "arm64" / "tests"
# Without the proofs of all plans, which take half an hour there and need nothing of a processor.
EMULATED = (
    *("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"),
    *("-E", f"LD_PRELOAD={ARM64_TESTS / 'libpalmette_emulated.so'}"),
    *("-E", "GTEST_FILTER=-*EveryAlgorithm*:LargeJobs*:*AllgatherOf16RanksANode*:*.is_proved_right_*"),
)
PYTHON_TESTS = ROOT / "tests" / "python"
SIMULATED = PYTHON_TESTS / "simulate"
PARTS = ("cpp", "quiet", "jobs")
LONG = "long"
ARM64 = "arm64"
TEST_ARM64 = PYTHON_TESTS / "mpi" / "test_arm64.py"
# Shards of each C++ executable: one executable takes most of the time, and would leave processors idle.
SHARDS = 16
SLOWEST = 30


@dataclass
class Count:
    """How many tests passed, failed and were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: list[tuple[float, str]] = field(default_factory=list)
    """Seconds and name of each test."""

    def __add__(self, other: Count) -> Count:
        """Return the sums."""
        return Count(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.seconds + other.seconds,
        )

    def __str__(self) -> str:
        """Return the closing line."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def count_gtest(report: Path, status: int) -> Count:
    """Count GoogleTest's JSON report; a runner that died without a report, or after it, counts as one failure."""
    if not report.is_file():
        return Count(failed=1)
    data = json.loads(report.read_text(encoding="utf-8"))
    skipped = sum(
        test.get("result") == "SKIPPED" or test.get("status") == "NOTRUN"
        for suite in data["testsuites"]
        for test in suite["testsuite"]
    )
    failed = int(data["failures"]) + int(data["errors"])
    if status != 0 and failed == 0:
        failed = 1
    seconds = [
        (float(test["time"].rstrip("s")), f"{report.name.split('.')[0]} {suite['name']}.{test['name']}")
        for suite in data["testsuites"]
        for test in suite["testsuite"]
    ]
    return Count(int(data["tests"]) - failed - skipped, failed, skipped, seconds)


def count_junit(report: Path, status: int) -> Count:
    """Count pytest's JUnit report; a pytest that died, or failed outside a test, counts as one failure."""
    count = Count()
    if report.is_file():
        for case in ElementTree.parse(report).getroot().iter("testcase"):  # noqa: S314
            kinds = {child.tag for child in case}
            count.seconds.append((float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}"))
            if kinds & {"failure", "error"}:
                count.failed += 1
            elif "skipped" in kinds:
                count.skipped += 1
            else:
                count.passed += 1
    if status not in (0, 1, 5) or (status == 1 and count.failed == 0):
        count.failed += 1
    return count


def run_shard(launcher: tuple[str, ...], executable: Path, folder: Path, shard: int) -> tuple[str, Count, float]:
    """Run one of SHARDS parts of a C++ test executable; return what to print, its count and its seconds."""
    report = folder / f"{executable.name}.{shard}.json"
    started = time.monotonic()
    done = subprocess.run(
        [*launcher, str(executable), "--gtest_brief=1", f"--gtest_output=json:{report}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        cwd=ROOT,
        env={**os.environ, "GTEST_TOTAL_SHARDS": str(SHARDS), "GTEST_SHARD_INDEX": str(shard)},
    )
    count = count_gtest(report, done.returncode)
    text = done.stdout.rstrip() + "\n" if count.failed else ""
    if done.returncode < 0:
        text += f"{executable.name}, part {shard}: killed by signal {-done.returncode}\n"
    return text, count, time.monotonic() - started


def run_cpp(folder: Path, tests: Path = CPP_TESTS, launcher: tuple[str, ...] = ()) -> Count:
    """Run the C++ tests in SHARDS parts of each executable, as many at a time as there are processors."""
    executables = sorted(p for p in tests.glob("palmette_test_*") if os.access(p, os.X_OK) and p.is_file())
    if not executables:
        advice = "make arm64" if tests == ARM64_TESTS else "install GoogleTest (libgtest-dev), then make test"
        print(f"C++ tests: skipped, none was built; {advice}", flush=True)
        return Count(skipped=1)
    total = Count()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        started = {
            one: [pool.submit(run_shard, launcher, one, folder, shard) for shard in range(SHARDS)]
            for one in executables
        }
        for executable, shards in started.items():
            texts, counts, seconds = zip(*(shard.result() for shard in shards), strict=True)
            count = sum(counts, Count())
            print(f"{''.join(texts)}{executable.name}: {count} ({sum(seconds):.1f} s of a processor)", flush=True)
            total += count
    return total


def run_pytest(part: str, arguments: list[str], folder: Path) -> Count:
    """Run pytest with `arguments`, its output shown as it comes."""
    report = folder / f"{part}.xml"
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *arguments]
    return count_junit(report, subprocess.run(command, cwd=ROOT, check=False).returncode)


def run_part(part: str, extra: list[str], folder: Path) -> Count:
    """Run one of PARTS, LONG or ARM64; `extra` goes to pytest."""
    if part == "cpp":
        return run_cpp(folder)
    if part == ARM64:
        cpp = run_cpp(folder, ARM64_TESTS, EMULATED)
        return cpp + run_pytest(part, ["-m", LONG, str(TEST_ARM64), *extra], folder)
    if part == "quiet":
        # Simulations first, so that short tests come last and balance the load of the processors.
        places = [str(SIMULATED), str(PYTHON_TESTS)]
        side_by_side = ["-n", str(os.cpu_count() or 1), "--dist=worksteal"]
        return run_pytest(part, [*side_by_side, "-m", "not long and not jobs", *places, *extra], folder)
    if part == LONG:
        os.environ["PALMETTE_TEST_RIVALS"] = "anew"
        side_by_side = ["-n", str(os.cpu_count() or 1), "--dist=worksteal"]
        anew = run_pytest("rivals", [*side_by_side, str(SIMULATED), *extra], folder)
        return anew + run_pytest(
            part, ["-m", "long", "-s", f"--ignore={TEST_ARM64}", str(PYTHON_TESTS), *extra], folder
        )
    side_by_side = ["-n", str((os.cpu_count() or 1) + 1), "--dist=worksteal"]
    return run_pytest(part, [*side_by_side, "-m", "not long and jobs", str(PYTHON_TESTS), *extra], folder)


def main(arguments: list[str]) -> int:
    """Run the parts asked for and print the closing line."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    parts, extra = arguments[:split] or list(PARTS), arguments[split + 1 :]
    wrong = [part for part in parts if part not in (*PARTS, LONG, ARM64)]
    if wrong:
        parts = [*PARTS, LONG, ARM64]
        print(f"run_tests: {wrong[0]} is no part of the tests; take {', '.join(parts)}", file=sys.stderr)
        return 2
    total = Count()
    with tempfile.TemporaryDirectory() as folder:
        for part in parts:
            started = time.monotonic()
            total += run_part(part, extra, Path(folder))
            print(f"part {part}: {time.monotonic() - started:.0f} s", flush=True)
    files = defaultdict[str, float](float)
    for took, name in total.seconds:
        files[re.split("::| ", name, maxsplit=1)[0]] += took
    print("slowest files, seconds of all their tests:")
    for name, took in sorted(files.items(), key=lambda item: -item[1])[:SLOWEST]:
        print(f"{took:7.1f} s  {name[:100]}")
    print("slowest tests:")
    for seconds, name in sorted(total.seconds, reverse=True)[:SLOWEST]:
        print(f"{seconds:7.1f} s  {name[:100]}")
    print(total, flush=True)
    return 1 if total.failed or total.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
