"""Check that every file that names the project's version names that of CMakeLists.txt.

Usage: check_release.py          what is in the tree
       check_release.py TAG      also that the tag is v<version>, and that CHANGELOG.md has a date for it

Prints a line for each mistake and exits with 1.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ("CMakeLists.txt", r"project\(palmette VERSION ([\d.]+)")
CHANGELOG = ("CHANGELOG.md", r"^## \[([\d.]+)\]")
PLACES = (
    CHANGELOG,
    ("CITATION.cff", r"^version: ([\d.]+)$"),
    ("codemeta.json", r'^  "version": "([\d.]+)"'),
    ("packaging/conda/recipe.yaml", r"^  version: ([\d.]+)$"),
    ("packaging/debian/changelog", r"\Apalmette \(([\d.]+)-"),
    ("packaging/slurm/task_prolog.sh", r"^prefix=/opt/palmette/([\d.]+)$"),
    ("packaging/spack/package.py", r'^    version\("([\d.]+)"'),
)
"""Files that can't read the version in CMakeLists.txt, and where each names it first."""
HEADER = ("src/palmette/interpose/palmette.h", r"_VERSION_MAJOR (\d+)\n#define PALMETTE_VERSION_MINOR (\d+)$")


def found(root: Path, file: str, pattern: str) -> str:
    """Return the version that `file` names, its numbers joined by dots; empty where it names none."""
    match = re.search(pattern, (root / file).read_text(encoding="utf-8"), re.MULTILINE)
    return ".".join(match.groups()) if match else ""


def mistakes(root: Path = ROOT, tag: str | None = None) -> list[str]:
    """Return a line for each file that names another version, and for a tag that can't be released."""
    version = found(root, *SOURCE)
    short = ".".join(version.split(".")[:2])
    wanted = [(version, *place) for place in PLACES] + [(short, *HEADER)]
    lines = [
        f"{file}: names version {there or 'none'}; CMakeLists.txt has {want}"
        for want, file, pattern in wanted
        if (there := found(root, file, pattern)) != want
    ]
    if tag is not None and tag != f"v{version}":
        lines.append(f"tag {tag}: CMakeLists.txt has {version}; name it v{version}, or raise the version first")
    if tag is not None and not found(root, CHANGELOG[0], rf"^## \[({re.escape(version)})\] - \d{{4}}-\d\d-\d\d$"):
        lines.append(f"CHANGELOG.md: no heading `## [{version}] - YYYY-MM-DD`; write the day of the release there")
    return lines


def main(arguments: list[str]) -> int:
    """Check the tree, and the tag where one is given."""
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        print(__doc__, file=sys.stderr)
        return 2
    lines = mistakes(tag=arguments[0] if arguments else None)
    print("\n".join(lines) if lines else f"version {found(ROOT, *SOURCE)}: the same everywhere")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
