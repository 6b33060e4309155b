"""Slurm itself on this machine: its daemons in a network and process namespace of their own, which end with the
script."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

_TOOLS = ("slurmctld", "slurmd", "srun", "scontrol", "sinfo", "unshare", "ip")
_OWN_NAMESPACES = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
_CONF = """\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
SlurmctldPort=16817
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
TopologyPlugin=topology/tree
MailProg=/bin/true
NodeName=h[0-{last}] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[17000-{last_port}] CPUs={cores}
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=5
"""
# Shared memory of earlier jobs, whose steps had the same numbers, must not be theirs.
# Names are looked up where some interface besides the loopback has an address: one end of a pair that leads nowhere.
_START = """\
mount -t tmpfs tmpfs /dev/shm
ip link set lo up
ip link add out0 type veth peer name out1
ip addr add 10.77.0.1/24 dev out0
ip link set out0 up
slurmctld -D > slurmctld.log 2>&1 &
for host in {hosts}; do
    mkdir spool.$host
    slurmd -D -N $host > slurmd.$host.log 2>&1 &
done
for _ in $(seq 60); do
    sinfo -h -o '%D %t' 2> sinfo.log | grep -qx '{count} idle' && break
    sleep 0.25
done
"""


def require_slurm() -> None:
    """Skip where Slurm can't be run here."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"no {missing[0]} here: apt-get install slurmctld slurmd slurm-client iproute2")
    if subprocess.run([*_OWN_NAMESPACES, "true"], capture_output=True).returncode != 0:
        pytest.skip("namespaces of network and processes for Slurm's daemons take root, and its rights")


def in_slurm(
    folder: Path,
    switches: Mapping[str, Sequence[str]],
    cores: int,
    script: str,
    more_conf: str = "",
    environment: Mapping[str, str] = os.environ,
    timeout_s: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a shell script in an idle cluster of leaf switches with hosts h0, h1, ... below a spine."""
    hosts = [host for below in switches.values() for host in below]
    (folder / "state").mkdir()
    conf = _CONF.format(folder=folder, last=len(hosts) - 1, last_port=16999 + len(hosts), cores=cores)
    (folder / "slurm.conf").write_text(conf + more_conf)
    lines = [f"SwitchName={name} Nodes={','.join(below)}" for name, below in switches.items()]
    (folder / "topology.conf").write_text("\n".join([*lines, f"SwitchName=spine Switches={','.join(switches)}", ""]))
    whole = _START.format(hosts=" ".join(hosts), count=len(hosts)) + script
    return subprocess.run(
        [*_OWN_NAMESPACES, "bash", "-c", whole],
        cwd=folder,
        env={**environment, "SLURM_CONF": str(folder / "slurm.conf")},
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
