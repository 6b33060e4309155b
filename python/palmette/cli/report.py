"""`palmette report`: where a recorded job's time went."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from palmette.cli.common import CliError, json_option
from palmette.cli.report_recording import report


@click.command(context_settings={"max_content_width": 80}, epilog="Example: palmette report calls --output report.html")
@click.argument("run", metavar="RECORDING")
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
    run: str,
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
    """
    if as_csv + as_json + in_full > 1:
        raise CliError("--csv, --json and --all are three forms of one report; give one of them")
    if not Path(run).is_dir() and (run.isdigit() or run.startswith("last") or run.endswith(".sqlite")):
        raise CliError(f"{run}: runs of palmette bench have a command of their own: palmette bench report {run}")
    form: Literal["csv", "json", "all", ""] = "csv" if as_csv else "json" if as_json else "all" if in_full else ""
    report(Path(run), output, topology, hosts.split(",") if hosts else None, form)
