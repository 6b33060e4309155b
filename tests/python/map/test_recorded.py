"""Recorded runs: palmette's recordings, Open MPI's monitoring, and `palmette map` on both."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from palmette.cli.main import main
from palmette.map.errors import MapError
from palmette.map.traffic_file import RecordedTraffic, read_traffic
from palmette.record.reading import Job, RecordError
from palmette.record.sent import traffic_of

MACHINE = "2node@100Mbit/s:2core"
"""A lab whose hosts are called h0 and h1."""
LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
Rows = list[tuple[int, int, int]]
"""from, to, bytes."""


def write(folder: Path, text: str, name: str = "run.matrix") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.fixture
def run_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return the folder of a run that is recorded: rank r of `hosts` has sent and exchanged so much."""

    def made(hosts: str = "h0 h1 h0 h1", sent: Rows | None = None, exchanged: Rows | None = None, **more: int) -> str:
        names = hosts.split()
        processes = []
        for rank, host in enumerate(names):
            peers = [
                SimpleNamespace(
                    rank=to, messages=0 if by else 1, message_bytes=0 if by else size, neighbour_blocks=0,
                    neighbour_bytes=0, exchange_blocks=by, exchange_bytes=size if by else 0,
                )
                for by, rows in enumerate((sent or [], exchanged or [])) for source, to, size in rows if source == rank
            ]  # fmt: skip
            begun = {"rank": rank, "size": len(names), "begin_real_ns": 1, "one_sided": 0, "uncounted": 0}
            processes.append(SimpleNamespace(host=host, recorded=SimpleNamespace(**{**begun, "peers": peers, **more})))
        monkeypatch.setattr("palmette.record.sent.read_job", lambda folder: Job(folder, cast(Any, processes)))
        folder = tmp_path / "calls"
        folder.mkdir(exist_ok=True)
        return str(folder)

    return made


def triples(recorded: RecordedTraffic) -> list[tuple[int, int, float]]:
    pattern = recorded.pattern
    rows = zip(pattern.source.tolist(), pattern.target.tolist(), pattern.bytes.tolist(), strict=True)
    return sorted(rows)


def map_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["map", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_peers_become_messages_without_those_to_oneself(run_of: Callable[..., str]) -> None:
    found = traffic_of(Path(run_of(sent=[(0, 1, 100), (3, 3, 7), (2, 0, 5)])))
    assert triples(found) == [(0, 1, 100.0), (2, 0, 5.0)]
    assert (found.hosts, found.uncounted) == (("h0", "h1", "h0", "h1"), ())


def test_exchanges_are_traffic_of_a_kind_of_its_own(
    capsys: pytest.CaptureFixture[str], run_of: Callable[..., str]
) -> None:
    path = run_of(sent=[(0, 1, 100)], exchanged=[(0, 1, 200), (1, 0, 100), (2, 2, 9)])
    assert triples(traffic_of(Path(path))) == [(0, 1, 100.0), (0, 1, 200.0), (1, 0, 100.0)]
    found = map_json(capsys, "--matrix", path, "--machine", MACHINE)
    assert (found["bytes"], found["exchanged_bytes"], found["before"]["busiest"]["bytes"]) == (400, 300, 300)
    assert main(["map", "--matrix", path, "--machine", MACHINE]) == 0
    assert "\nall-to-all exchanges are 75% of 400 bytes\n" in capsys.readouterr().out


def test_a_pencil_fft_on_scattered_ranks_sends_less_over_the_busiest_uplink(
    capsys: pytest.CaptureFixture[str], run_of: Callable[..., str]
) -> None:
    """64^3 complex on a 4 x 4 grid: transposed in rows and in columns, 64 KB from each rank to each other one."""
    pairs = [(a, b) for a in range(16) for b in range(16) if a != b and (a // 4 == b // 4 or a % 4 == b % 4)]
    path = run_of("elsewhere " * 16, exchanged=[(source, target, 65536) for source, target in pairs])
    found = map_json(capsys, "--matrix", path, "--machine", LAB, "--placement", "random:1")
    before, after = (found[when]["busiest"]["bytes"] / 65536 for when in ("before", "after"))
    assert (before, after) == (26, 18)


def test_what_a_recording_lacks_is_told(run_of: Callable[..., str]) -> None:
    found = traffic_of(Path(run_of(sent=[(0, -1, 100), (3, -1, 1), (3, -2, 1)], one_sided=300, uncounted=1)))
    assert found.uncounted == (
        "2 messages to processes outside of MPI_COMM_WORLD", "1 messages to ranks for which there was no room",
        "1,200 one-sided calls", "4 persistent sends for which there was no room",
    )  # fmt: skip


def test_a_recording_without_some_ranks_is_refused(run_of: Callable[..., str]) -> None:
    path = Path(run_of(size=5))
    with pytest.raises(RecordError, match=r"lacks what rank 4 sent; copy all nodes' files"):
        traffic_of(path)


def test_a_folder_without_a_recording_is_told_in_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["map", "--matrix", str(tmp_path), "--machine", MACHINE]) == 2
    assert capsys.readouterr().err.startswith(f"palmette map: {tmp_path}: it holds no recording yet")


def test_the_seats_are_those_of_the_run(capsys: pytest.CaptureFixture[str], run_of: Callable[..., str]) -> None:
    # Ranks 0 and 1 talk, and 2 and 3, but each pair sits on two hosts.
    path = run_of(sent=[(0, 1, 100), (1, 0, 100), (2, 3, 100), (3, 2, 100)])
    found = map_json(capsys, "--matrix", path, "--machine", MACHINE)
    assert found["placement"] == "as in the run"
    assert (found["before"]["busiest"]["bytes"], found["after"]["busiest"]) == (200, None)
    assert found["hosts"][0] == found["hosts"][1] != found["hosts"][2] == found["hosts"][3]
    placed = map_json(capsys, "--matrix", path, "--machine", MACHINE, "--placement", "block")
    assert (placed["placement"], placed["before"]["busiest"], placed["notes"]) == ("block", None, [])


def test_hosts_that_the_machine_lacks_are_told_and_ranks_placed_in_blocks(
    capsys: pytest.CaptureFixture[str], run_of: Callable[..., str]
) -> None:
    path = run_of("h0 elsewhere h0 elsewhere", sent=[(0, 1, 100)], one_sided=3)
    assert main(["map", "--matrix", path, "--machine", MACHINE]) == 0
    out = capsys.readouterr().out
    assert "placed block" in out
    assert "note: the run's host elsewhere isn't on this machine: placed block" in out
    assert "note: not in calls: 12 one-sided calls" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_another_number_of_ranks_is_refused(capsys: pytest.CaptureFixture[str], run_of: Callable[..., str]) -> None:
    path = run_of(sent=[(0, 1, 100)])
    assert main(["map", "--matrix", path, "--machine", MACHINE, "--ranks", "3"]) == 2
    assert "holds 4 ranks, not 3; leave --ranks out" in capsys.readouterr().err


def prof(folder: Path, rank: int, *rows: str) -> str:
    """Write a file in the form that Open MPI 5.0.11 writes."""
    text = "# POINT TO POINT\n" + "".join(f"{row}\t0,1,0\n" for row in rows)
    text += f"# OSC\n# COLLECTIVES\nC\t{rank}\t1\t400 bytes\t1 msgs sent\nD\tMPI_COMM_WORLD\tprocs: 0,1\n"
    return write(folder, text, f"prof.{rank}.prof")


def test_monitoring_of_all_ranks_is_read_by_the_name_of_one(tmp_path: Path) -> None:
    first = prof(tmp_path, 0, "E\t0\t1\t3000 bytes\t3 msgs sent", "I\t0\t1\t400 bytes\t1 msgs sent")
    prof(tmp_path, 1, "E\t1\t0\t10 bytes\t1 msgs sent")
    write(tmp_path, "nothing of it", "other.7.prof")
    assert triples(read_traffic(first)) == [(0, 1, 3000.0), (1, 0, 10.0)]


def test_a_rank_without_its_file_is_told(tmp_path: Path) -> None:
    path = prof(tmp_path, 1, "E\t1\t0\t10 bytes\t1 msgs sent")
    with pytest.raises(MapError, match=r"lacks prof\.0\.prof; each rank of the run writes a file"):
        read_traffic(path)


@pytest.mark.parametrize("row", ["E\t1\t0\t10 bytes\t1 msgs sent", "E\t0\t5\t10 bytes\t1 msgs sent", "E 0 1 10"])
def test_a_damaged_line_of_monitoring_is_named(tmp_path: Path, row: str) -> None:
    path = prof(tmp_path, 0, row)
    with pytest.raises(MapError, match=r"prof\.0\.prof, line 2: .* is no line of Open MPI's monitoring for rank 0"):
        read_traffic(path)
