"""`palmette-lab status`: one lab in full, or all that are up."""

from __future__ import annotations

import time

import click

from palmette.cli.common import CliError, emit_json, json_option
from palmette.present.table import Column, Table, aligned
from palmette.units import span_text
from palmette_lab.lab import Lab, LabError, aggregators, state, user_namespace


@click.command(epilog="Example: palmette-lab status --json", context_settings={"max_content_width": 80})
@click.option("--name", help="This lab alone. [default: all that are up]")
@json_option
def status(name: str | None, as_json: bool) -> None:
    """Show hosts, aggregators, addresses, rates and uptime.

    Without --name all labs that are up, other users' too. Status 1 when none is, or that one is not.
    """
    up = state.labs_up()
    if name is not None:
        try:
            directory = state.lab_directory(name)
        except LabError as error:
            raise CliError(str(error)) from None
        if not any(one.ours and one.state.name == name for one in up):
            if as_json:
                emit_json({"name": name, "up": False})
            else:
                left = "; `palmette-lab down` removes what a dead one left" if directory.exists() else ""
                other = state.where_else(name)
                click.echo(f"the lab '{name}' is not up" + (f"; {other}" if other else left))
            click.get_current_context().exit(1)
        lab = _attached(name)
        if as_json:
            emit_json(describe(lab))
        else:
            _print(lab)
        return
    if as_json:
        emit_json({"labs": [_described(one) for one in up]})
    elif not up:
        click.echo(f"no lab is up; {_how()}")
    elif len(up) == 1 and up[0].ours:
        _print(_attached(up[0].state.name))
    else:
        _list(up)
    if not up:
        click.get_current_context().exit(1)


def _how() -> str:
    """Return how to get one here."""
    try:
        way = user_namespace.way()
    except LabError as error:
        return f"none can be made here: {error}"
    if way == "root":
        return "start one: palmette-lab up 4node@100Mbit/s"
    return "without root one lives as long as its command: palmette-lab run --lab 4node@100Mbit/s --mpi mpich -- ./app"


def _attached(name: str) -> Lab:
    try:
        return Lab.attach(name)
    except LabError as error:
        raise CliError(str(error)) from None


def _described(one: state.RunningLab) -> dict[str, object]:
    """Return what `--json` prints of a lab in a list; another user's can't be attached to."""
    if one.ours:
        return {"owner": one.owner, **describe(_attached(one.state.name))}
    known = one.state
    return {
        "owner": one.owner, "name": known.name, "up": True, "spec": known.spec, "spine_delay_s": known.spine_delay_s,
        "uptime_s": time.time() - known.created_s, "lifetime_s": known.lifetime_s,
    }  # fmt: skip


def _list(up: list[state.RunningLab]) -> None:
    now = time.time()
    columns: list[Column[state.RunningLab]] = [
        Column("lab", "state.name", left=True),
        Column("of", "owner", left=True),
        Column("hosts", "state.hosts", show=lambda hosts: str(len(hosts))),
        Column("up for", "", lambda one: span_text(now - one.state.created_s)),
        Column("ends in", "", lambda one: span_text(one.state.lifetime_s - now + one.state.created_s)),
        Column("spec", "state.spec", left=True),
    ]
    click.echo("\n".join([*Table(columns, up).lines(), "one in full: palmette-lab status --name NAME"]))


def describe(lab: Lab) -> dict[str, object]:
    """Return what `--json` prints of a lab."""
    known = lab.state
    directory = state.lab_directory(known.name)
    return {
        "name": known.name,
        "up": True,
        "spec": known.spec,
        "spine_delay_s": known.spine_delay_s,
        "uptime_s": lab.uptime_s,
        "lifetime_s": known.lifetime_s,
        "keeper_pid": known.keeper_pid,
        "topology": str(lab.topology_path),
        "hosts": [{"name": host.name, "address": host.address, "slots": host.slots} for host in known.hosts],
        "ports": lab.ports,
        "aggregators": [
            {
                "name": one.name,
                "switch": one.switch,
                "address": f"{one.address}:{aggregators.PORT}",
                "pid": lab.daemon_pid(one.name),
                "status": str(aggregators.status_path(directory, one.name)),
                "log": str(aggregators.log_path(directory, one.name)),
            }
            for one in known.aggregators
        ],
        "aggregator_token": str(lab.token_path) if lab.token_path else None,
        "link_bits_per_s": known.rates,
        "limits": known.limits,
    }


def _print(lab: Lab) -> None:
    known = lab.state
    delay = f", top switch delays {known.spine_delay_s * 1e3:g} ms" if known.spine_delay_s else ""
    left = span_text(known.lifetime_s - lab.uptime_s)
    click.echo(f"lab '{known.name}': {known.spec}{delay}")
    for limit in known.limits:
        click.echo(f"limited: {limit}")
    click.echo(f"up for {span_text(lab.uptime_s)}, ends by itself in {left}; topology: {lab.topology_path}")
    rows = [("host", "address", "slots", "link", "behind")]
    for host, path in zip(known.hosts, lab.paths(), strict=True):
        behind = " < ".join(f"{group} ({_rate(known.rates.get(group))})" for group in path)
        rows.append((host.name, host.address, str(host.slots), _rate(known.rates.get(host.name)), behind))
    click.echo("\n".join(aligned(rows, range(5))))
    if known.aggregators:
        _print_aggregators(lab)


def _print_aggregators(lab: Lab) -> None:
    known = lab.state
    rows = [("aggregator", "address", "link", "at", "daemon")]
    for one in known.aggregators:
        pid = lab.daemon_pid(one.name)
        daemon = f"process {pid}" if pid is not None else "has ended"
        address = f"{one.address}:{aggregators.PORT}"
        rows.append((one.name, address, _rate(known.rates.get(one.name)), one.switch, daemon))
    click.echo("\n".join(["", *aligned(rows, range(5))]))
    click.echo(f"logs, status sockets: {state.lab_directory(known.name)}")


def _rate(bits_per_s: float | None) -> str:
    if bits_per_s is None:
        return "unlimited"
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6)):
        if bits_per_s >= factor:
            return f"{bits_per_s / factor:.4g} {unit}"
    return f"{bits_per_s / 1e3:.4g} kbit/s"
