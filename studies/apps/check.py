"""Checks of programs that print their results into files: what `palmette bench app --check` calls.

Usage: check.py (hpcc | gromacs) OUTPUT
"""

import re
import sys
from pathlib import Path

TOLERANCE = 1e-4
"""Relative tolerance of GROMACS' energies after 300 steps: sums are made in another order."""


def hpcc() -> str:
    """Return what is wrong with the last run's own checks; nothing: they passed."""
    text = Path("hpccoutf.txt").read_text(encoding="utf-8", errors="replace")
    last = text[text.rindex("Begin of MPIRandomAccess") if "Begin of MPIRandomAccess" in text else 0 :]
    return "" if "Success=1" in last and "FAILED" not in last else "HPCC says that a check failed"


def gromacs() -> str:
    """Return how the energies differ from those of the first run, which are kept."""
    text = Path("md.log").read_text(encoding="utf-8", errors="replace")
    energies = re.findall(r"Energies \(kJ/mol\)\n(.*?)\n\n", text, re.DOTALL)[-1]
    numbers = [float(word) for word in re.findall(r"[-+]?\d\.\d+e[-+]\d+", energies)]
    kept = Path("energies.txt")
    if not kept.exists():
        kept.write_text(" ".join(map(repr, numbers)), encoding="ascii")
    expected = [float(word) for word in kept.read_text(encoding="ascii").split()]
    wrong = [(a, b) for a, b in zip(numbers, expected, strict=True) if abs(a - b) > TOLERANCE * max(1, abs(b))]
    return f"{wrong[0][0]} instead of {wrong[0][1]} in the energies" if wrong else ""


if __name__ == "__main__":
    complaint = {"hpcc": hpcc, "gromacs": gromacs}[sys.argv[1]]()
    print(complaint or "right")
    sys.exit(1 if complaint else 0)
