"""Class Lab, the Python interface to an emulated cluster: up, attach, run, set rates, down."""

from __future__ import annotations

import dataclasses
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType

from palmette.measure.links import LinkLog
from palmette.measure.running import run_to_end
from palmette.mpi import install as mpi_install
from palmette.mpi import launch
from palmette.topology.model import TreeNode
from palmette.topology.placement import hosts_of_ranks
from palmette_lab.lab import aggregators, build, state
from palmette_lab.lab.counters import read_link_bytes
from palmette_lab.lab.errors import LabError
from palmette_lab.lab.helpers import helper
from palmette_lab.lab.link_log import logging_links
from palmette_lab.lab.mpi_settings import lab_settings
from palmette_lab.lab.namespaces import TMPDIR, Keeper
from palmette_lab.lab.network import plan_network
from palmette_lab.lab.spec import Spec, read_spec
from palmette_lab.lab.topology import lab_topology, save_topology

DEFAULT_NAME = "default"
DEFAULT_LIFETIME_S = 7200.0
DEFAULT_TIMEOUT_S = 600.0


class Lab:
    """A running emulated cluster, from `up` or `attach`; as a context manager it is taken down at the end."""

    def __init__(self, made: state.LabState, keeper: Keeper, spec: Spec) -> None:
        self._state = made
        self._keeper = keeper
        self._spec = spec
        self._network = plan_network(spec)

    @classmethod
    def up(
        cls,
        spec: str,
        *,
        name: str = DEFAULT_NAME,
        spine_delay_s: float | None = None,
        lifetime_s: float = DEFAULT_LIFETIME_S,
        detach: bool = False,
    ) -> Lab:
        """Bring up a lab of `spec`: a synthetic machine whose @RATEs are link rates incl. frame headers, or a
        topology.json.

        `spine_delay_s` is the one-way delay of the top switch; it overrides the latency in `spec`. The lab ends with
        this process, unless `detach` is given, and after `lifetime_s` seconds in any case. Needs root, also that
        of a user namespace (user_namespace.way). Raises LabError, after removing everything.
        """
        machine = read_spec(spec)
        if spine_delay_s is not None:
            machine = dataclasses.replace(machine, spine_delay_s=spine_delay_s)
        if not 0 <= machine.spine_delay_s <= 1:
            raise LabError(f"a delay of {machine.spine_delay_s} s is not between 0 and 1 s")
        if lifetime_s <= 0:
            raise LabError(f"a lifetime of {lifetime_s} s is not above 0")
        made, keeper = build.take_up(name, spec, machine, lifetime_s, detach=detach)
        return cls(made, keeper, machine)

    @classmethod
    def attach(cls, name: str = DEFAULT_NAME) -> Lab:
        """Return the running lab of that name. Raises LabError when there is none."""
        directory = state.lab_directory(name)
        found = state.read_state(directory)
        if found is None or not found.is_alive():
            named = "" if name == DEFAULT_NAME else f" --name {name}"
            other = state.where_else(name) or f"start it with `palmette-lab up SPEC{named}`"
            raise LabError(f"the lab '{name}' is not up; {other}")
        # The lab's own topology.json is used, as the user's file may no longer exist.
        machine = dataclasses.replace(read_spec(str(directory / build.TOPOLOGY)), spine_delay_s=found.spine_delay_s)
        inits = {host.name: host.pid for host in found.hosts} | {one.name: one.pid for one in found.aggregators}
        return cls(found, Keeper(found.keeper, inits), machine)

    def down(self) -> None:
        """End everything that runs in the lab and remove it. Idempotent."""
        self._keeper.kill()
        build.tear_down(self._state.name, only=self._state.keeper)

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    @property
    def state(self) -> state.LabState:
        """State of the lab: addresses, rates, times."""
        return self._state

    @property
    def hosts(self) -> list[str]:
        """Host names in topology order."""
        return [host.name for host in self._state.hosts]

    @property
    def aggregators(self) -> list[str]:
        """Names of the aggregators, in topology order of their switches."""
        return [one.name for one in self._state.aggregators]

    @property
    def ports(self) -> dict[str, str]:
        """The switches' ports by what is connected there, interfaces of the login host: `ip link set p0 down` pulls a
        cable.
        """
        return {edge.child: edge.upper.interface for edge in self._network.edges}

    def daemon_pid(self, aggregator: str) -> int | None:
        """Return the process of an aggregator's daemon, None where it has ended."""
        return aggregators.daemon_pid(state.lab_directory(self._state.name), aggregator)

    @property
    def token_path(self) -> Path | None:
        """The token with which ranks use the aggregators; None for a lab that has none."""
        return aggregators.token_path(state.lab_directory(self._state.name)) if self._state.aggregators else None

    def paths(self) -> list[list[str]]:
        """Return, for each host, the switches between it and the top one, nearest first."""
        return list(_paths(self._spec.machine.tree, []))

    @property
    def tree(self) -> TreeNode:
        """The machine's tree with the current capacities of links, TCP payload."""
        return lab_topology(self._state.name, self._state.spec, self._spec, self._state.rates).machine.tree

    def link_bytes(self) -> dict[str, tuple[int, int]]:
        """Return the bytes so far over the link of each group, out and in, frame headers included. Raises LabError."""
        return read_link_bytes(self._network, self._keeper)

    def logging_links(self, period_s: float) -> AbstractContextManager[Callable[[], LinkLog]]:
        """Log the bytes over all links, see link_log.logging_links."""
        return logging_links(self._network, self._keeper, period_s)

    @property
    def topology_path(self) -> Path:
        """The topology.json of the lab. Its capacities are TCP payload, 1448/1514 of the link rates."""
        return state.lab_directory(self._state.name) / build.TOPOLOGY

    def place(self, placement: str, *, ppn: int | None = None, ranks: int | None = None) -> list[str]:
        """Return the host of each rank for a placement of docs/reference/topology-json.md.

        `ppn` is the number of slots a host (default: the machine's); `ranks` cuts the job. Raises PlacementError.
        """
        return hosts_of_ranks([(host.name, ppn or host.slots) for host in self._state.hosts], placement, ranks)

    def command(
        self,
        mpi: str | mpi_install.Installation,
        hosts: Sequence[str],
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
    ) -> list[str]:
        """Return the command line that runs `argv` under `mpi` with rank i on `hosts[i]`.

        `env` is set in the ranks only, LD_PRELOAD included (for Open MPI one more preload is appended), and has
        precedence over what the lab sets: its MPIs' settings, and the token for its aggregators. `options` go to
        mpiexec. The command's descendants die with it, and it dies with the thread that starts it. Raises LabError,
        MpiNotFoundError.
        """
        found = mpi_install.find(mpi) if isinstance(mpi, str) else mpi
        for host in hosts:
            if host not in self.hosts:
                raise LabError(f"no host is called {host}; there are {', '.join(self.hosts)}")
        check_visible(argv)
        token = {aggregators.TOKEN_VARIABLE: str(self.token_path)} if self.token_path else {}
        # What is laid down for this machine's cluster isn't the lab's.
        apart = {"PALMETTE_SITE": "0"}
        settings = lab_settings(found, {**apart, **token, **(env or {})})
        directory = state.lab_directory(self._state.name)
        job = launch.Job(
            argv=argv,
            hosts_of_ranks=hosts,
            directory=directory / "runs",
            environment=settings.ranks,
            agent=helper("palmette-lab-rsh"),
            options=[*settings.options, *options],
        )
        starter = launch.launcher(found.launcher)
        variables = {
            "TMPDIR": TMPDIR,
            "PALMETTE_LAB_TABLE": str(directory / build.TABLE),
            **settings.launcher,
            **starter.environment(job),
        }
        return self._keeper.command(None, launch.with_variables(variables, starter.command(found.mpiexec, job)))

    def run(
        self,
        argv: Sequence[str],
        *,
        mpi: str,
        placement: str = "block",
        ppn: int | None = None,
        ranks: int | None = None,
        env: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        capture: bool = False,
        stdin: int | None = subprocess.DEVNULL,
    ) -> subprocess.CompletedProcess[str]:
        """Run an MPI program and wait for it; its output passes through, or is captured.

        The status is mpiexec's, or 124 on timeout. After this, and after Ctrl-C, no process of the run is left on any
        host. Raises LabError, MpiNotFoundError, PlacementError.
        """
        command = self.command(mpi, self.place(placement, ppn=ppn, ranks=ranks), argv, env, options)
        return run_to_end(command, timeout_s=timeout_s, capture=capture, stdin=stdin)

    def exec_command(self, host: str, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs `argv` on one host, an aggregator's included, or on `login`.

        Raises LabError for an unknown host.
        """
        known = ["login", *self.hosts, *self.aggregators]
        if host not in known:
            raise LabError(f"no host is called {host}; there are {', '.join(known)}")
        return self._keeper.command(host, launch.with_variables({"TMPDIR": TMPDIR}, argv))

    def set_rates(self, rates: Mapping[str, float | None]) -> None:
        """Change link rates: bits per second incl. frame headers, by the name of a level (`node`, `leaf`), a group or
        an aggregator; "aggregator" stands for them all.

        None removes the limit. The topology.json is updated. Raises LabError for an unknown name.
        """
        changed = dict(self._state.rates)
        for key, rate in rates.items():
            groups = [edge.child for edge in self._network.edges if key in (edge.child, edge.level)]
            if not groups:
                raise LabError(f"no level, switch, host or aggregator is called {key}")
            changed |= dict.fromkeys(groups, rate)
        build.set_rates(self._network, self._keeper, changed)
        self._state = dataclasses.replace(self._state, rates=changed)
        directory = state.lab_directory(self._state.name)
        self._state.write(directory)
        topology = lab_topology(self._state.name, self._state.spec, self._spec, changed)
        save_topology(directory / build.TOPOLOGY, topology)

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Remove all rates temporarily: only times that rates make five times longer, or more, are bound by links."""
        build.set_rates(self._network, self._keeper, {})
        try:
            yield
        finally:
            build.set_rates(self._network, self._keeper, self._state.rates)

    @property
    def uptime_s(self) -> float:
        """Seconds since the lab was brought up."""
        return time.time() - self._state.created_s


def _paths(group: TreeNode, above: list[str]) -> Iterator[list[str]]:
    for child in group.children:
        if child.level == "node":
            yield above
        else:
            yield from _paths(child, [child.name, *above])


def check_visible(argv: Sequence[str]) -> None:
    """Raise LabError for a program or working directory that hosts don't see: their /dev/shm and /proc are private."""
    for path in (Path(argv[0]), Path.cwd()):
        place = path.absolute()
        if place.is_relative_to("/dev/shm") or place.is_relative_to("/proc"):  # noqa: S108
            raise LabError(f"{path} is not visible on the hosts, which have a {place.parts[1]} of their own; move it")
