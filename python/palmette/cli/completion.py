"""`palmette completion`: the completion script of a shell, and what such a script asks for at each TAB."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import redirect_stderr

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
)

from palmette.cli.table import complete_variable

BREAKS = "=:"
"""Where bash splits words for completion only (COMP_WORDBREAKS)."""


class Bash(BashComplete):
    """Bash, where `--reorder=halo` and `random:1` arrive as three words of which only the last is replaced."""

    _kept = ""

    def source(self) -> str:
        """Return the script, without a look at the bash of this machine, which needn't be the user's."""
        return ShellComplete.source(self)

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words as they were typed."""
        args, last = super().get_completion_args()
        words: list[str] = []
        joins = False
        for word in [*args, last]:
            breaks = bool(word) and not word.strip(BREAKS)
            if words and word and (breaks or joins):
                words[-1] += word
            else:
                words.append(word)
            joins = breaks
        self._kept = words[-1] if joins else words[-1].removesuffix(last)
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """Return the part of a value that replaces bash's last word."""
        return f"{item.type},{item.value.removeprefix(self._kept)}"


class Fish(FishComplete):
    """Fish, with values and help that contain commas."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": ZshComplete, "fish": Fish}


def _of_shell(name: str, group: click.Command) -> ShellComplete:
    program = group.name or ""
    return SHELLS[name](group, {}, program, complete_variable(program))


def script(shell: str, group: click.Command) -> str:
    """Return a program's completion script for a shell of SHELLS."""
    return f"{_of_shell(shell, group).source().rstrip()}\n"


def complete(instruction: str, group: Callable[[], click.Command]) -> int:
    """Print what a completion script asks for and return the exit status. Says nothing about mistakes on the line.

    `group` imports the program's commands.
    """
    from palmette.cli import stand_ins

    shell = instruction.removesuffix("_complete")
    if shell not in SHELLS:
        expected = f"{'_complete, '.join(SHELLS)}_complete"
        click.echo(f"completion: {instruction} is no instruction; expected {expected}", err=True)
        return 2
    stand_ins.install()
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        try:
            found = _of_shell(shell, group()).complete()
        except (Exception, SystemExit):
            return 1  # as the shell shows nothing: the command itself will say what is wrong
    click.echo(found)
    return 0


HELP = """Print the script that lets a shell complete palmette's commands, options and their values.

\b
It goes to, for your own account:
  bash  ~/.local/share/bash-completion/completions/palmette
  zsh   _palmette in a folder of $fpath
  fish  ~/.config/fish/completions/palmette.fish
"""
EXAMPLE = "source <(palmette completion bash)"


@click.command(
    "completion",
    help=HELP,
    short_help="Print the completion script of bash, zsh or fish.",
    epilog=f"Example: {EXAMPLE}",
)
@click.argument("shell", type=click.Choice(list(SHELLS)))
def command(shell: str) -> None:
    """Print the script; the help text is above, because it is a table."""
    program = click.get_current_context().find_root().command
    click.echo(script(shell, program), nl=False)
