"""`palmette plan --predict`: predicted times of algorithms on a machine, by size."""

from __future__ import annotations

import click

from palmette import _core
from palmette.cli.common import CliError, emit_json, errors, write_file
from palmette.cli.job_options import JobOptions, planned_as
from palmette.predict.answer import Question, TooManyStepsError, answer_json, predict_all
from palmette.predict.svg import curves_svg
from palmette.predict.text import answer_lines

DEFAULT_SIZES = "64,1K,16K,256K"


def show(
    job: _core.Job, where: JobOptions, collectives: str, sizes: str, algorithms: tuple[str, ...], *, shared: bool,
    picture: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Simulate the plan of every algorithm with the latencies, rates and capacities of the topology, and print times.

    Raises CliError.
    """
    try:
        asked = _question(collectives, job, sizes, algorithms, where.root, shared)
        with errors.status("predicting") as status:
            cells = predict_all(asked, lambda what: status.update(f"predicting {what}"))
    except (_core.Error, TooManyStepsError) as error:
        raise CliError(str(error)) from None
    if not cells:
        raise CliError("none of the algorithms serves this; `palmette plan COLLECTIVE --list` shows all of them")
    if picture is not None:
        write_file(picture, curves_svg(cells), "--svg")
    if as_json:
        document = answer_json(asked, cells)
        emit_json(document | {"placement": where.placement} | ({"svg": picture} if picture else {}))
        return
    click.echo("\n".join(answer_lines(asked, cells, where.placement)))
    if picture is not None:
        click.echo(f"\nwrote {picture}")


def _question(
    collectives: str, job: _core.Job, sizes: str, algorithms: tuple[str, ...], root: int, shared: bool
) -> Question:
    asked_for = _core.collectives() if collectives == "all" else [name.strip() for name in collectives.split(",")]
    names = list(dict.fromkeys(planned_as(name) for name in asked_for))
    lengths = sorted({_core.parse_size(size.strip()) for size in sizes.split(",")})
    asked = Question(job, names, lengths, algorithms, root, shared)
    for spec in algorithms:
        if not any(spec in asked.named(name) for name in names):
            raise CliError(
                f"algorithm '{spec}' belongs to none of {', '.join(names)}; "
                f"`palmette plan {names[0]} --list` shows them"
            )
    return asked
