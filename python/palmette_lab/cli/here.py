"""Bringing up labs in a command that may lack root: the command goes on in a user namespace then."""

from __future__ import annotations

import os
import sys

import click

from palmette_lab.lab import LabError, user_namespace


def check_lab() -> user_namespace.Way:
    """Return how this command can bring up a lab. Raises LabError where it can't."""
    way = user_namespace.way()
    if way == "user namespace" and click.get_current_context().find_root().obj != sys.argv[1:]:
        raise LabError("no root, and a program that calls palmette's commands isn't replaced; call it with sudo")
    return way


def be_root() -> None:
    """Replace this process by the same command in a user namespace, unless it may bring up labs itself.

    To be called before anything is printed or written. Raises LabError where no lab is possible.
    """
    if check_lab() == "user namespace":
        words, environment = user_namespace.command_inside(sys.argv[1:])
        os.execve(words[0], words, environment)  # noqa: S606 - the terminal and its signals are the command's
