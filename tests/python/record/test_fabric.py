"""Links of a host and what else it tells as OpenMetrics: counters from files as Linux has them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from palmette.aggregator import status
from palmette.record import openmetrics
from palmette.record.fabric import Links, Watch, document, flows, ports

parser = pytest.importorskip("prometheus_client.openmetrics.parser")

ROOT = Path(__file__).resolve().parents[3]
DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo: 999 9 0 0 0 0 0 0 999 9 0 0 0 0 0 0
  eth0: {into} 10 1 2 0 0 0 0 {out} 20 3 4 0 0 0 0
"""
JOB = {
    "palmette": "0.1.0", "program": 'he"at\\1', "mpi": "mpich", "ranks": 4, "seconds": 1.5, "calls_served": 10,
    "calls_left": 2, "served_seconds": 0.5,
}  # fmt: skip


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A host with an Ethernet adapter and two ports of an InfiniBand one, of which one has no counters."""
    write(tmp_path / "proc/self/net/dev", DEV.format(into=1000, out=2000))
    write(tmp_path / "sys/class/net/eth0/speed", "10000\n")
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    write(port / "rate", "100 Gb/sec (4X EDR)\n")
    for name, value in {"port_xmit_data": 250, "port_rcv_data": 50, "symbol_error": 3, "port_xmit_wait": 7}.items():
        write(port / "counters" / name, f"{value}\n")
    (tmp_path / "sys/class/infiniband/mlx5_0/ports/2").mkdir()
    return tmp_path


def write(file: Path, text: str) -> None:
    """Write a file, with its folders."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="ascii")


def test_ports_are_read_in_bytes(system: Path) -> None:
    found = {port.name: port for port in ports(system / "sys", system / "proc")}
    assert list(found) == ["eth0", "mlx5_0/1"]
    eth0, infiniband = found.values()
    assert (eth0.kind, eth0.rate, eth0.sent, eth0.received, eth0.errors) == ("ethernet", 1.25e9, 2000, 1000, 10)
    assert (infiniband.rate, infiniband.sent, infiniband.received) == (12.5e9, 1000, 200)
    assert (infiniband.errors, infiniband.waited, eth0.waited) == (3, 7, None)


def test_a_host_without_counters_has_no_ports(tmp_path: Path) -> None:
    assert ports(tmp_path, tmp_path) == []
    write(tmp_path / "self/net/dev", "a\nb\nbroken\n")
    assert ports(tmp_path, tmp_path) == []


def test_flows_are_differences_and_the_busiest_is_first(system: Path) -> None:
    before = ports(system / "sys", system / "proc")
    write(system / "proc/self/net/dev", DEV.format(into=1400, out=2100))
    write(system / "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "500250\n")
    write(system / "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait", "5\n")
    first, second = flows(before, ports(system / "sys", system / "proc"), 2)
    assert (first.port.name, first.out, first.into) == ("mlx5_0/1", 1e6, 0)
    assert first.waited == 5, "a counter that began anew"
    assert (second.out, second.into, second.errors) == (50, 200, 0)


def test_a_host_that_a_job_isnt_on_says_so(system: Path) -> None:
    watch = Watch(system / "sys", system / "proc", "n1")
    links = watch.links(None)
    assert (links.host, links.job_out, links.notes) == ("n1", None, [])
    assert json.dumps(document(links))
    assert isinstance(links, Links)


def families(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Return what Prometheus' own reader of OpenMetrics finds."""
    return {
        family.name: {tuple(sorted(sample.labels.items())): sample.value for sample in family.samples}
        for family in parser.text_string_to_metric_families(text)
    }


def test_links_and_ended_jobs_are_openmetrics(system: Path) -> None:
    log = system / "jobs.jsonl"
    log.write_text(json.dumps(JOB) + "\nnot a job\n" + json.dumps(JOB | {"off": "one rank"}) + "\n", encoding="utf-8")
    made = openmetrics.links(ports(system / "sys", system / "proc"), "n1") + openmetrics.ended(log)
    found = families(openmetrics.exposition(made))
    where = (("direction", "out"), ("host", "n1"), ("link", "eth0"))
    assert found["palmette_link_bytes"][where] == 2000
    job = (("mpi", "mpich"), ("program", 'he"at\\1'))
    assert found["palmette_jobs"][job] == 2
    assert found["palmette_jobs_ranks"][job] == 8
    assert found["palmette_jobs_seconds"][job] == 3
    assert found["palmette_jobs_off"] == {(("reason", "one rank"),): 1}
    assert found["palmette_jobs_damaged_lines"] == {(): 1}
    with pytest.raises(OSError, match="No such file"):
        openmetrics.ended(system / "nothing.jsonl")


def test_a_folder_of_ended_jobs(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"4711-n1-{number}.json").write_text(json.dumps(JOB), encoding="utf-8")
    found = families(openmetrics.exposition(openmetrics.ended(tmp_path)))
    assert list(found["palmette_jobs"].values()) == [3]


TOLD: status.Status = {
    "name": "leaf0", "address": "n1:7117", "uptime_s": 2.5, "open_connections": 1,
    "in_use": {"groups": 1, "slots": 8, "bytes": 4096}, "users": [{"uid": 5, "groups": 1, "slots": 8, "bytes": 4096}],
    "limits": {"slots_total": 64, "memory_bytes": 1 << 20},
    "counters": dict.fromkeys(status.COUNTERS, 3) | {"refused": {"quota": 2}, "ended": {}},
}  # fmt: skip


def test_a_daemons_status_is_openmetrics() -> None:
    found = families(openmetrics.exposition(openmetrics.daemon(TOLD)))
    assert found["palmette_aggregator_refused"] == {(("daemon", "leaf0"), ("reason", "quota")): 2}
    assert found["palmette_aggregator_up"] == {(("daemon", "leaf0"),): 1}
    assert found["palmette_aggregator_user_groups"] == {(("daemon", "leaf0"), ("uid", "5")): 1}


def test_the_dashboard_asks_for_what_there_is(system: Path) -> None:
    """Each metric in its expressions is one of those above, with the labels that it is asked by."""
    log = system / "jobs.jsonl"
    log.write_text(json.dumps(JOB | {"off": "one rank", "saved_seconds": 1}) + "\n", encoding="utf-8")
    made = openmetrics.links(ports(system / "sys", system / "proc"), "n1") + openmetrics.ended(log)
    made += openmetrics.daemon(TOLD)
    told = {name: set(dict(key)) for name, samples in families(openmetrics.exposition(made)).items() for key in samples}
    told |= {"palmette_job_bytes": {"host", "direction"}, "palmette_job_processes_in_mpi": {"host"}}
    dashboard = json.loads((ROOT / "packaging/grafana/palmette.json").read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len(expressions) >= 6
    for expression in expressions:
        names = re.findall(r"palmette_[a-z_]+", expression)
        assert names, expression
        names = [name if name in told else name.removesuffix("_total") for name in names]
        assert set(names) <= set(told), expression
        labels = {word for group in re.findall(r"by \(([^)]*)\)", expression) for word in group.split(", ")}
        assert labels <= set().union(*(told[name] for name in names)), expression
