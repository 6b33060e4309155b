"""`palmette plan --flow`: flow simulation of a plan on a machine's links, without and with background traffic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from palmette import _core
from palmette.cli.common import CliError, emit_json, write_file
from palmette.cli.job_options import JobOptions, head_lines
from palmette.cli.progress import Bar
from palmette.flow.summary import FlowRun, both_json, lines
from palmette.flow.svg import svg
from palmette.plan.choice import AlgorithmChoice, NothingChosenError, choose
from palmette.plan.contents import size_phrase
from palmette.plan.request import about_steps, details_of
from palmette.present.words import wrapped

MOST_STEPS = 20_000_000
"""A plan of all ranks with its simulation takes about 250 bytes a step."""

Progress = Callable[[int, int], None]


def show(
    job: _core.Job, where: JobOptions, collective: str, algorithm: str | None, size: str, *, ordered: bool,
    shared: bool, traffic: str | None, seed: int, exact: bool, picture: str | None, over_time: bool, as_json: bool,
) -> None:  # fmt: skip
    """Simulate the plan on the links, shared by max-min fairness, ranks executing a step at a time. Raises CliError."""
    if over_time and not as_json:
        raise CliError("--over-time adds to what --json prints; give both, or --svg FILE for a picture")
    try:
        if traffic is not None:
            _core.parse_traffic(traffic)
        block_bytes = 0 if collective == "barrier" else _core.parse_size(size)
        chosen = choose(job, collective, algorithm, where.root, block_bytes, ordered=ordered, shared_memory=shared)
        plan = _plan(job, collective, chosen, where.root, block_bytes, ordered, shared)
        bound = _core.bound(job, collective, block_bytes, where.root, in_network=plan.services > 0)
        quiet = _play("quiet", plan, bound, "", seed, exact)
        loaded = _play("loaded", plan, bound, traffic, seed, exact) if traffic not in (None, "", "none") else None
        described = where.phrase(job, collective)
    except (_core.Error, NothingChosenError) as error:
        raise CliError(str(error)) from None
    phrase = size_phrase(collective, block_bytes)
    if picture is not None:
        under = f"  ·  loaded: {traffic}" if loaded is not None else ""
        subtitle = "  ·  ".join(part for part in (described, phrase) if part) + under
        write_file(picture, svg(quiet, loaded, f"{collective} {chosen.algorithm}", subtitle), "--svg")
    if as_json:
        document = {
            "collective": collective,
            "algorithm": chosen.algorithm,
            "chosen": chosen.reason,
            "size_bytes": block_bytes,
            "ranks": job.size,
            "placement": where.placement,
            "root": where.root if _core.is_rooted(collective) else None,
            "traffic": traffic,
            "seed": seed,
            **both_json(quiet, loaded, over_time=over_time),
        }
        if picture is not None:
            document["svg"] = picture
        emit_json(document)
        return
    text = head_lines(collective, chosen, described + (f", {phrase}" if phrase else ""))
    if loaded is not None:
        text += wrapped(f"loaded: {traffic}", rest="")
    text += ["", *lines(quiet, loaded)]
    if picture is not None:
        text += ["", f"wrote {picture}"]
    click.echo("\n".join(text))


def _plan(
    job: _core.Job, collective: str, chosen: AlgorithmChoice, root: int, block_bytes: int, ordered: bool, shared: bool
) -> _core.Plan:
    details = details_of(collective, ordered=ordered, shared_memory=shared)
    about = about_steps(job, collective, chosen.algorithm, root, block_bytes, details)
    if about > MOST_STEPS:
        raise CliError(
            f"the plan of all {job.size:,} ranks has about {about:,.0f} steps, too many to hold at once; simulate "
            "fewer ranks with --ranks, or another algorithm with --algorithm"
        )
    return _core.Plan(job, collective, chosen.algorithm, root, block_bytes, **details)


def _play(label: str, plan: _core.Plan, bound: _core.Bound, traffic: str | None, seed: int, exact: bool) -> FlowRun:
    with _progress(label) as progress:
        result = _core.flow(plan, traffic=traffic or "", seed=seed, tolerance=0.0 if exact else -1.0, progress=progress)
    return FlowRun(label, plan, result, bound)


@contextmanager
def _progress(label: str) -> Iterator[Progress | None]:
    """A bar over messages on a terminal; elsewhere a line for every tenth of many messages."""
    with Bar("{task.completed:,}/{task.total:,} messages", 1, label) as bar:
        if bar.is_shown:
            yield lambda done, total: bar.move(done, total)
            return
    reported = 0

    def report(done: int, total: int) -> None:
        nonlocal reported
        if total and done * 10 // total > reported:
            reported = done * 10 // total
            click.echo(f"palmette plan: {label}, {done:,} of {total:,} messages", err=True)

    yield report
