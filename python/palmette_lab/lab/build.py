"""Bringing a lab up and down: the sequence of steps, and the rollback when one fails."""

from __future__ import annotations

import time
from pathlib import Path

from palmette_lab.lab import state
from palmette_lab.lab.aggregators import daemon_program, start_daemons
from palmette_lab.lab.backlog import WANTED, may_raise, raise_backlog, restore_backlog
from palmette_lab.lab.errors import LabError
from palmette_lab.lab.helpers import helper
from palmette_lab.lab.namespaces import Keeper, check_can_build, start_keeper, write_host_files
from palmette_lab.lab.network import (
    Network,
    host_commands,
    host_link_command,
    link_commands,
    plan_network,
)
from palmette_lab.lab.processes import ProcessId
from palmette_lab.lab.shaping import shaping_lines
from palmette_lab.lab.spec import Spec
from palmette_lab.lab.topology import lab_topology, save_topology
from palmette_lab.lab.user_namespace import is_inside

TABLE = "hosts.table"
"""File for palmette-lab-rsh: address, name and PID of each host."""

TOPOLOGY = "topology.json"

_CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

_SYSCTLS = {
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
    "net/ipv4/tcp_slow_start_after_idle": "0",
    "net/ipv4/tcp_no_metrics_save": "1",
    # Small windows: data is queued in the sender, where the MPI sees the backpressure, and not in the switches.
    "net/ipv4/tcp_wmem": "4096 65536 262144",
    "net/ipv4/tcp_rmem": "4096 131072 262144",
}


def take_up(name: str, text: str, spec: Spec, lifetime_s: float, *, detach: bool) -> tuple[state.LabState, Keeper]:
    """Bring up the lab called `name` from `spec`; `text` is the user's form of it.

    Not detached, its lifetime is that of this process. On any failure, Ctrl-C included, everything is removed. Raises
    LabError.
    """
    check_can_build()
    if spec.aggregators:
        daemon_program()
    directory = state.lab_directory(name)
    with state.locked():
        old = state.read_state(directory)
        if old is not None and old.is_alive():
            raise LabError(
                f"the lab '{name}' is up already; take it down (palmette-lab down --name {name}) or choose another"
                " --name"
            )
        clean_up(directory, old)
        directory.mkdir()
        keeper: Keeper | None = None
        try:
            network = plan_network(spec)
            write_host_files(directory, network.addresses)
            keeper = start_keeper(directory, list(network.addresses), lifetime_s)
            made = _state(name, text, spec, network, keeper, lifetime_s)
            made.write(directory)
            raise_backlog(keeper.process)
            _wire(network, keeper)
            set_rates(network, keeper, made.rates)
            if made.aggregators:
                addresses = {one.name: one.address for one in made.aggregators}
                start_daemons(directory, addresses, keeper, lifetime_s)
            _write_table(directory / TABLE, made)
            save_topology(directory / TOPOLOGY, lab_topology(name, text, spec, made.rates))
            if detach:
                keeper.detach()
        except BaseException:
            if keeper is not None:
                keeper.kill()
                restore_backlog(keeper.process)
            state.remove(directory)
            raise
    return made, keeper


def tear_down(name: str, only: ProcessId | None = None) -> bool:
    """End the lab called `name` and remove its files; returns whether there was one. Raises LabError.

    With `only`, a lab of the same name with another keeper is left alone.
    """
    directory = state.lab_directory(name)
    with state.locked():
        found = state.read_state(directory)
        if not directory.is_dir() or (only is not None and found is not None and found.keeper != only):
            return False
        clean_up(directory, found)
    return True


def clean_up(directory: Path, old: state.LabState | None) -> None:
    """End the remains of the lab in `directory`, which may be dead or partially built. The caller holds the lock.

    Without a state file there is no process to end: a keeper whose parent died before writing it has exited.
    """
    if old is not None and old.boot_id == state.machine_boot_id():
        Keeper(old.keeper, {}).kill()
        restore_backlog(old.keeper)
    state.remove(directory)


def set_rates(network: Network, keeper: Keeper, rates: dict[str, float | None]) -> None:
    """Set the rates of links, in bits per second by child group; None removes the limit."""
    for host, lines in shaping_lines(network.edges, rates).items():
        keeper.batch(host, "tc", lines)


def _state(name: str, text: str, spec: Spec, network: Network, keeper: Keeper, lifetime_s: float) -> state.LabState:
    return state.LabState(
        name=name,
        spec=text,
        spine_delay_s=spec.spine_delay_s,
        keeper_pid=keeper.process.pid,
        keeper_started=keeper.process.started,
        boot_id=state.machine_boot_id(),
        created_s=time.time(),
        lifetime_s=lifetime_s,
        hosts=[
            state.HostState(host.name, network.addresses[host.name], keeper.hosts[host.name], spec.slots(host))
            for host in spec.hosts
        ],
        rates={edge.child: edge.line_bits_per_s for edge in network.edges},
        limits=_limits(network),
        aggregators=[
            state.AggregatorState(one.name, switch.name, network.addresses[one.name], keeper.hosts[one.name])
            for switch, one in spec.aggregators
        ],
    )


def _limits(network: Network) -> list[str]:
    """Return what can't be set, for rights over the whole machine are missing."""
    limits = [] if may_raise() else [f"the kernel's queue of frames is the machine's own, not of {WANTED}"]
    if network.delayed_ports and is_inside():
        limits.append("the delay switch has the machine's socket buffers and an ordinary priority")
    return limits


def _wire(network: Network, keeper: Keeper) -> None:
    """Create the links, assign addresses, start the delay switch."""
    # -e: a kernel without IPv6 lacks the keys that disable it.
    settings = [f"{key}={value}" for key, value in _SYSCTLS.items()]
    keeper.run(None, ["sysctl", "-q", "-e", "-w", *settings])
    host_edges = [edge for edge in network.edges if edge.lower.host is not None]
    cables = [line for edge in host_edges for line in host_link_command(edge, keeper.hosts[edge.child])]
    keeper.batch(None, "ip", link_commands(network, congestion_control()) + cables)
    for host, address in network.addresses.items():
        keeper.run(host, ["sysctl", "-q", "-e", "-w", *settings])
        keeper.batch(host, "ip", host_commands(address, congestion_control()))
    if network.delayed_ports:
        delay_us = f"{network.spine_delay_s * 1e6:.1f}"
        keeper.run(None, [str(helper("palmette-lab-delay-switch")), delay_us, *network.delayed_ports, "delayport"])


def congestion_control() -> str:
    """Return the TCP congestion control for the lab: CUBIC, or Reno, which every kernel has.

    The machine's default is unsuitable: BBR paces and probes for its rate, and underutilises a link with a long queue.
    """
    return "cubic" if "cubic" in _CONGESTION_CONTROLS.read_text(encoding="utf-8").split() else "reno"


def _write_table(path: Path, made: state.LabState) -> None:
    path.write_text("".join(f"{host.address} {host.name} {host.pid}\n" for host in made.hosts), encoding="utf-8")
