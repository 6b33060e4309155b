"""Check the sources: ruff, mypy --strict, clang-format, the layers, the width of Markdown.

Usage: lint.py                    check everything, change nothing
       lint.py --fix FILE...      rewrite the named files only; others may be editing the rest

Exits with 1 when a check found something. A tool that is not installed is named, and is no failure.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PYTHON = ["python", "tests", "tools"]
CPP_FOLDERS = ("src", "tests")
MARKDOWN_FOLDERS = ("docs", "examples", "packaging", "studies", "tests", "tools")
MAX_LINES = 60
CPP_SUFFIXES = (".hpp", ".cpp", ".h", ".c")


def tool(name: str) -> str | None:
    """Return the program's path, that of the virtual environment first."""
    own = BIN / name
    return str(own) if own.exists() else shutil.which(name)


def run(label: str, command: list[str]) -> bool:
    """Run a check, show its output when it fails, and return whether it passed."""
    program = tool(command[0])
    if program is None:
        print(f"{label}: not checked, {command[0]} is not installed")
        return True
    done = subprocess.run([program, *command[1:]], cwd=ROOT, check=False, capture_output=True, text=True)
    passed = done.returncode == 0
    print(f"{label}: {'ok' if passed else 'failed'}", flush=True)
    if not passed:
        lines = (done.stdout + done.stderr).rstrip().splitlines()
        print("\n".join(lines[:MAX_LINES]), flush=True)
        if len(lines) > MAX_LINES:
            print(f"... and {len(lines) - MAX_LINES} lines more: {' '.join([command[0], *command[1:5]])} ...")
    return passed


def cpp_sources() -> list[str]:
    """Return our C and C++ sources, relative to the root."""
    files = (file for folder in CPP_FOLDERS for file in (ROOT / folder).rglob("*"))
    return sorted(str(file.relative_to(ROOT)) for file in files if file.suffix in CPP_SUFFIXES)


def markdown_sources() -> list[str]:
    """Return our pages, relative to the root."""
    files = [*ROOT.glob("*.md"), *(file for name in MARKDOWN_FOLDERS for file in (ROOT / name).rglob("*.md"))]
    return sorted(str(file.relative_to(ROOT)) for file in files)


def fix(files: list[str]) -> int:
    """Rewrite the given files and nothing else."""
    python = [file for file in files if file.endswith(".py")]
    cpp = [file for file in files if file.endswith(CPP_SUFFIXES)]
    markdown = [file for file in files if file.endswith(".md")]
    other = [file for file in files if file not in (*python, *cpp, *markdown)]
    if not files or other:
        what = f"{other[0]} is no Python, C++ or Markdown" if other else "no files were named"
        print(f"lint: {what}; name the files to rewrite: lint.py --fix FILE...", file=sys.stderr)
        return 2
    checks = []
    if python:
        checks.append(run("ruff check", ["ruff", "check", "--quiet", "--fix", *python]))
        checks.append(run("ruff format", ["ruff", "format", "--quiet", *python]))
    if cpp:
        checks.append(run("clang-format", ["clang-format", "-i", *cpp]))
    if markdown:
        checks.append(run("wrap_markdown", [sys.executable, "tools/wrap_markdown.py", *markdown]))
    return 0 if all(checks) else 1


def main(arguments: list[str]) -> int:
    """Run every check, or rewrite the named files with --fix."""
    if arguments[:1] == ["--fix"]:
        return fix(arguments[1:])
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    checks = [
        run("ruff check", ["ruff", "check", "--quiet", "--output-format=concise", *PYTHON]),
        run("ruff format", ["ruff", "format", "--check", *PYTHON]),
        run("mypy", ["mypy", "--no-error-summary", "python/palmette", "python/palmette_lab", "tools"]),
        run("clang-format", ["clang-format", "--dry-run", "--Werror", *cpp_sources()]),
        run("wrap_markdown", [sys.executable, "tools/wrap_markdown.py", "--check", *markdown_sources()]),
        run("layers", [sys.executable, "-m", "pytest", "-q", "tests/python/test_layers.py"]),
    ]
    return 0 if all(checks) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
