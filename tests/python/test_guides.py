"""The guides of commands whose output is the same everywhere show what these really print and draw."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guide"
VIEWS = {"plan": "palmette plan ", **{name: f"palmette plan --{name} " for name in ("bound", "flow", "predict")}}
"""What the examples of each guide begin with."""


def blocks(guide: str) -> list[str]:
    """Return the indented blocks of a guide, an example's empty lines inside of it."""
    found: list[str] = []
    lines: list[str] = []
    for line in [*(GUIDES / guide).read_text(encoding="utf-8").splitlines(), "end"]:
        if line.startswith("    ") or not line:
            lines.append(line[4:])
            continue
        if text := "\n".join(lines).strip("\n"):
            found.append(text)
        lines = []
    return found


def examples() -> list[tuple[str, str]]:
    """Return each command with the output below it, empty where none stands there."""
    found = []
    for name, start in VIEWS.items():
        for text in blocks(f"{name}.md"):
            if text.startswith(start):
                command, _, output = text.partition("\n")
                found.append((command, output.strip("\n")))
    return found


@pytest.mark.parametrize(("command", "output"), examples(), ids=lambda text: str(text)[:60])
def test_an_example_prints_what_the_guide_says(
    palmette: Callable[..., Any], command: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = palmette(*shlex.split(command)[1:])
    assert result.status == 0, result.err
    assert output in result.out


def test_every_guide_has_an_example_with_output() -> None:
    shown = [command for command, output in examples() if output]
    for name, start in VIEWS.items():
        assert any(command.startswith(start) for command in shown), name


@pytest.mark.parametrize(
    ("name", "picture"), [("plan", "plan-gather"), ("flow", "flow-allgather"), ("predict", "predict-bcast")]
)
def test_the_picture_is_the_one_that_is_drawn(
    palmette: Callable[..., Any], tmp_path: Path, name: str, picture: str
) -> None:
    command = next(command for command, _ in examples() if VIEWS[name] in command and "--svg" in command)
    words = shlex.split(command)[1:]
    words[words.index("--svg") + 1] = str(tmp_path / "drawn.svg")
    assert palmette(*words).status == 0
    drawn = (tmp_path / "drawn.svg").read_text(encoding="utf-8")
    assert drawn == (GUIDES / f"{picture}.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["plan", "bound", "flow"])
def test_the_python_example_runs(name: str) -> None:
    code = [text for text in blocks(f"{name}.md") if text.startswith("from palmette")]
    assert code
    for text in code:
        exec(compile(text, name, "exec"), {})
