"""`palmette runs`: an archive of runs, and what many of them say together."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palmette.cli.common import CliError, emit_json, json_option

if TYPE_CHECKING:
    from palmette.runs.archive import Archive

DEFAULT = Path("archive.sqlite")
QUESTIONS = ("scaling", "variation", "gate", "slower_since")
_file = click.Path(path_type=Path, dir_okay=False)


@click.command("runs", epilog="Example: palmette runs --add trace --tag commit=4f2a && palmette runs --gate")
@click.argument("names", nargs=-1, metavar="[RUN [LATER]]")
@click.option("--add", multiple=True, metavar="RECORDING", type=click.Path(path_type=Path), help="Add recordings.")
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="With --add: keep a fact of the run.")
@click.option("--program", metavar="NAME", help="Only runs of this program.")
@click.option("--scaling", type=click.Choice(["ranks", "bytes"]), help="How times grow, and what doesn't scale.")
@click.option("--variation", is_flag=True, help="How run times vary, and how much of it placement explains.")
@click.option("--gate", is_flag=True, help="Exit with 1 if RUN, or the last, is slower than those before.")
@click.option("--slower-since", metavar="DATE", help="What got slower: 2026-11-01.")
@click.option("--jobs", metavar="LOG", help="Which jobs were served, by a PALMETTE_JOBLOG; - is standard input.")
@click.option("--archive", type=_file, default=DEFAULT, show_default=True, help="Where runs are.")
@json_option
def command(
    names: tuple[str, ...], add: tuple[Path, ...], tags: tuple[str, ...], archive: Path, as_json: bool,
    program: str | None, jobs: str | None, **asked: Any,
) -> None:  # fmt: skip
    """Keep recordings' sums in one file, and ask what many runs say together.

    Without options: the runs there are. One RUN (its number, last, last~1): where its time went; two: both side by
    side. docs/guide/runs.md describes the file's tables.
    """
    from palmette.record.reading import RecordError
    from palmette.runs.archive import open_archive
    from palmette.runs.schema import ArchiveError

    questions = [name for name in QUESTIONS if asked[name]]
    if len(questions) + bool(add) + bool(jobs) > 1:
        given = ["add"] * bool(add) + ["jobs"] * bool(jobs) + questions
        words = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise CliError(f"{words}: one at a time")
    if tags and not add:
        raise CliError("--tag keeps a fact of a run that --add adds: palmette runs --add RECORDING --tag KEY=VALUE")
    if add and names:
        raise CliError(f"--add {add[0]} {names[0]}: give each recording its own --add")
    if len(names) > 2 or (questions and len(names) > (questions == ["gate"])):
        raise CliError(f"{' '.join(names)}: too many runs; one is shown or passes the gate, two are compared")
    if jobs and names:
        raise CliError(f"--jobs {jobs} {names[0]}: a log of jobs has no runs; give --program NAME for some of them")
    try:
        if jobs:
            _put(_of_jobs(jobs, program, as_json=as_json))
            return
        with open_archive(archive, create=bool(add)) as opened:
            if add:
                _add(opened, add, _tags(tags), as_json=as_json)
            elif questions:
                _answer(opened, questions[0], names, program, asked, as_json=as_json)
            else:
                _show(opened, names, program, as_json=as_json)
    except (ArchiveError, RecordError) as error:
        raise CliError(str(error)) from None


def _tags(texts: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in texts:
        key, mark, value = text.partition("=")
        if not key or not mark:
            raise CliError(f"--tag {text}: give KEY=VALUE, as in commit=4f2a")
        found[key] = value
    return found


def _add(opened: Archive, folders: tuple[Path, ...], tags: dict[str, str], *, as_json: bool) -> None:
    from palmette.runs.entry import entry_of

    added = []
    for folder in folders:
        number = opened.add(entry_of(folder, tags))
        added.append({"recording": str(folder), "run": number})
        if not as_json:
            click.echo(f"{folder}: " + (f"run {number}" if number else f"{opened.path} has it already"))
    if as_json:
        emit_json({"added": added})


def _of_jobs(log: str, program: str | None, *, as_json: bool) -> dict[str, Any] | list[str]:
    from palmette.runs import joblog

    lines: Iterable[str] = sys.stdin if log == "-" else joblog.lines_of(Path(log))
    found = joblog.jobs_of(lines, "standard input" if log == "-" else log, program)
    return found.to_json() if as_json else joblog.text_of(found)


def _show(opened: Archive, names: tuple[str, ...], program: str | None, *, as_json: bool) -> None:
    from palmette.cli.report_terminal import change_lines
    from palmette.record.changes import to_json
    from palmette.runs import text
    from palmette.runs.questions import compared

    if not names:
        runs = opened.runs(program)
        _put({"runs": [run.to_json() for run in runs]} if as_json else text.listed(runs))
        return
    found = [opened.find(name, program) for name in names]
    if len(found) == 2:
        changes = compared(opened, found[0], found[1])
        if as_json:
            _put({"before": found[0].to_json(), "after": found[1].to_json(), "changes": to_json(changes)})
        else:
            whole_s = max((run.time_s or 0.0) for run in found)
            _put([*text.of_both(found[0], found[1]), *change_lines(changes, whole_s)])
        return
    sums = opened.sums(found[0])
    if as_json:
        rows = [{"key": key, **asdict(one)} for key, one in sums.items()]
        _put({"run": found[0].to_json(), "rows": _keyed(rows)})
    else:
        _put(text.of_run(found[0], sums))


def _answer(
    opened: Archive, question: str, names: tuple[str, ...], program: str | None, asked: dict[str, Any], *, as_json: bool
) -> None:  # fmt: skip
    from palmette.runs import questions, text

    if question == "gate":
        judged = questions.gate(opened, opened.find(names[0] if names else "last", program))
        rows = [{**asdict(one), "ratio": one.ratio if one.usual_s > 0 else None} for one in judged.slower]
        _put(
            {"run": judged.run.to_json(), "before": [run.id for run in judged.before], "slower": _keyed(rows)}
            if as_json else text.of_gate(judged)
        )  # fmt: skip
        if judged.slower:
            raise click.exceptions.Exit(1)
        return
    runs = opened.runs(program)
    if question == "variation":
        varied = questions.variation(runs)
        _put({"programs": [asdict(one) for one in varied]} if as_json else text.of_variation(varied))
    elif question == "slower_since":
        date = asked["slower_since"]
        if not re.fullmatch(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?", date):
            raise CliError(f"--slower-since {date}: give a date as 2026-11-01")
        since = questions.slower_since(opened, runs, date)
        _put(
            {"since": date, "slower": _keyed([asdict(one) for one in since])} if as_json else text.of_since(since, date)
        )
    else:
        if len({run.program for run in runs}) > 1:
            raise CliError(f"{opened.path} has several programs; name one with --program")
        over_bytes = asked["scaling"] == "bytes"
        rows_of = questions.scaling_by_size if over_bytes else questions.scaling
        scaled = rows_of(opened, runs)
        rows = [{**asdict(one), "name": one.growth.name, "scales": not one.is_unscaled} for one in scaled]
        _put(
            {"over": asked["scaling"], "rows": _keyed(rows)}
            if as_json
            else text.of_scaling(scaled, over_bytes=over_bytes)
        )


def _keyed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with function and place instead of a key."""
    return [
        {"function": row["key"][0], "place": row["key"][1], **{name: row[name] for name in row if name != "key"}}
        for row in rows
    ]


def _put(answer: dict[str, Any] | list[str]) -> None:
    if isinstance(answer, dict):
        emit_json(answer)
    else:
        click.echo("\n".join(answer))
