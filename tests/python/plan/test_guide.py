"""docs/guide/plan.md shows what the command really prints."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "plan.md"


def examples() -> list[tuple[str, str]]:
    """Return each command of the guide with the output that stands below it, empty where none does."""
    found: list[tuple[str, str]] = []
    indented = [
        line[4:] if line.startswith("    ") else None if line.strip() else ""
        for line in GUIDE.read_text(encoding="utf-8").splitlines()
    ]
    block: list[str] = []
    for line in [*indented, None]:
        if line is not None:
            block.append(line)
            continue
        text = "\n".join(block).strip("\n")
        block = []
        if text.startswith("palmette plan"):
            command, _, output = text.partition("\n")
            found.append((command, output.strip("\n")))
    return found


@pytest.mark.parametrize(("command", "output"), examples(), ids=lambda text: str(text)[:60])
def test_an_example_of_the_guide_prints_what_it_says(
    palmette: Callable[..., Any], command: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = palmette(*shlex.split(command)[1:])
    assert result.status == 0, result.err
    if output:
        assert output in result.out


def test_the_guide_has_examples_with_output() -> None:
    assert sum(bool(output) for _, output in examples()) >= 3


def test_the_guides_picture_is_the_one_that_is_drawn(palmette: Callable[..., Any], tmp_path: Path) -> None:
    command = next(command for command, _ in examples() if "--svg" in command)
    words = shlex.split(command)[1:]
    words[words.index("--svg") + 1] = str(tmp_path / "plan.svg")
    assert palmette(*words).status == 0
    assert (tmp_path / "plan.svg").read_text(encoding="utf-8") == GUIDE.with_name("plan-gather.svg").read_text(
        encoding="utf-8"
    )
