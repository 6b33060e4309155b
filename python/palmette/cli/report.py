"""`palmette report`: where a recorded job's time went."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from palmette.cli.common import CliError, json_option
from palmette.cli.report_recording import compare, report


@click.command(context_settings={"max_content_width": 80}, epilog="Example: palmette report calls --output report.html")
@click.argument("runs", metavar="RECORDING [LATER]", nargs=-1, required=True)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page, too: timeline, call paths, who sends to whom, links.",
)
@click.option(
    "--topology",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The cluster's topology.json, where palmette run had none.",
)
@click.option("--hosts", metavar="A,B,...", help="The host of rank 0, 1, ..., where others are meant.")
@click.option("--all", "in_full", is_flag=True, help="What the page has besides, in text.")
@click.option("--csv", "as_csv", is_flag=True, help="Print its call paths as CSV.")
@json_option
def command(
    runs: tuple[str, ...],
    output: Path | None,
    topology: Path | None,
    hosts: str | None,
    in_full: bool,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Say where a recorded job's time went.

    RECORDING is the folder of `palmette run --trace` or `--profile`: the findings are printed, for whom ranks wait and
    what takes longer than it must; with -o FILE.html a page has them, the timeline, call paths, who sends to whom, the
    links of the machine. A page is one HTML file that needs no other.

    Two recordings are compared: what takes longer in the later one, and what shorter; a page is the later one's, with
    the samples of both side by side.
    """
    if len(runs) > 2:
        raise CliError(f"{len(runs)} recordings; one has a report, two are compared")
    run = runs[0]
    if as_csv + as_json + in_full > 1:
        raise CliError("--csv, --json and --all are three forms of one report; give one of them")
    if not Path(run).is_dir() and (run.isdigit() or run.startswith("last") or run.endswith(".sqlite")):
        raise CliError(f"{run}: runs of palmette bench have a command of their own: palmette bench report {run}")
    if len(runs) == 2:
        if topology or hosts or as_csv or in_full:
            raise CliError("two recordings are compared on the screen, with --json or -o; leave out the other options")
        compare(Path(run), Path(runs[1]), output, as_json=as_json)
        return
    form: Literal["csv", "json", "all", ""] = "csv" if as_csv else "json" if as_json else "all" if in_full else ""
    report(Path(run), output, topology, hosts.split(",") if hosts else None, form)
