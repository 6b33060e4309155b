"""docs/guide/compose.md shows what the command really prints."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "compose.md"
Call = Callable[..., Any]


def commands() -> list[str]:
    """Return the commands of the guide."""
    return re.findall(r"^    (palmette compose .*)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_command_of_the_guide_runs(palmette: Call, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(commands()) >= 3
    for command in commands():
        result = palmette(*shlex.split(command)[1:])
        assert result.status == 0, (command, result.err)


def test_the_output_in_the_guide_is_the_commands(palmette: Call) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    shown = re.findall(r"^    (palmette compose [^\n]*)\n    \.\.\.\n(.*?)\n\n(?=\S)", text, re.MULTILINE | re.DOTALL)
    assert len(shown) >= 2
    for command, output in shown:
        result = palmette(*shlex.split(command)[1:])
        assert "\n".join(line.removeprefix("    ") for line in output.splitlines()) in result.out, command


def test_the_guides_picture_is_the_one_that_is_drawn(palmette: Call, tmp_path: Path) -> None:
    command = next(command for command in commands() if "--svg" in command)
    words = shlex.split(command)[1:]
    words[words.index("--svg") + 1] = str(tmp_path / "plan.svg")
    assert palmette(*words).status == 0
    drawn = (tmp_path / "plan.svg").read_text(encoding="utf-8")
    assert drawn == GUIDE.with_name("compose-allreduce.svg").read_text(encoding="utf-8")
