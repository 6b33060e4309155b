"""`palmette predict`: predicted times of a collective's algorithms on a machine."""

from __future__ import annotations

import click

from palmette import _core
from palmette.cli.common import CliError, emit_json, errors, json_option, sizes_option, write_file
from palmette.cli.job_options import JobOptions, job_options, planned_as, shared_option
from palmette.predict.answer import Question, TooManyStepsError, answer_json, predict_all
from palmette.predict.svg import curves_svg
from palmette.predict.text import answer_lines

EXAMPLE = 'palmette predict gather,bcast --machine "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core" --sizes 1K,64K'


@click.command("predict", epilog=f"Example: {EXAMPLE}", context_settings={"max_content_width": 80})
@click.argument("collectives", default="gather,scatter,allgather,bcast,reduce,allreduce")
@job_options
@sizes_option("64,1K,16K,256K", "Bytes a block, or of the vector.")
@click.option(
    "--algorithm",
    "--algorithms",
    "algorithms",
    multiple=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="One to predict (repeatable). [default: those that the model decides among, and what the table takes]",
)
@shared_option
@click.option("--svg", "picture", metavar="FILE", help="Draw time over size, a curve for each algorithm.")
@json_option
def command(
    collectives: str,
    where: JobOptions,
    sizes: str,
    algorithms: tuple[str, ...],
    shared: bool,
    picture: str | None,
    as_json: bool,
) -> None:
    """Predict what COLLECTIVES take, by size and algorithm, and the share of each level.

    Names separated by commas, or `all`; reduce_scatter_block and the v and w forms stand for the others, with blocks of
    equal length.

    The plan of every algorithm is simulated with the latencies, rates and capacities of the topology; missing ones are
    assumed, as the last lines report. The fastest has a star, what the built-in table takes a `>`.
    """
    try:
        asked = _question(collectives, where.job(EXAMPLE), sizes, algorithms, where.root, shared)
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
