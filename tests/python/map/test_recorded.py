"""Recorded runs: the matrix file's lines, Open MPI's monitoring, and `palmette map` on both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from palmette.cli.main import main
from palmette.map.errors import MapError
from palmette.map.traffic_file import read_traffic

HEAD = "palmette-matrix 2\n# a remark\nranks 4\n"
HOSTS = "".join(f"host {rank} h{rank % 2}\n" for rank in range(4))
MACHINE = "2node@100Mbit/s:2core"
"""Its hosts are called h0 and h1."""
LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


def write(folder: Path, text: str, name: str = "run.matrix") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def triples(path: str) -> list[tuple[int, int, float]]:
    pattern = read_traffic(path).pattern
    rows = zip(pattern.source.tolist(), pattern.target.tolist(), pattern.bytes.tolist(), strict=True)
    return sorted(rows)


def map_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["map", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_lines_become_messages_without_those_to_oneself(tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + HOSTS + "sent 0 1 100 2\nsent 3 3 7 1\nsent 2 0 5 1\n")
    assert triples(path) == [(0, 1, 100.0), (2, 0, 5.0)]
    found = read_traffic(path)
    assert (found.hosts, found.uncounted) == (("h0", "h1", "h0", "h1"), ())


def test_exchanges_are_traffic_of_a_kind_of_its_own(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write(
        tmp_path, HEAD + HOSTS + "sent 0 1 100 2\nexchanged 0 1 200 1\nexchanged 1 0 100 4\nexchanged 2 2 9 1\n"
    )
    assert triples(path) == [(0, 1, 100.0), (0, 1, 200.0), (1, 0, 100.0)]
    found = map_json(capsys, "--matrix", path, "--machine", MACHINE)
    assert (found["bytes"], found["exchanged_bytes"], found["before"]["busiest"]["bytes"]) == (400, 300, 300)
    assert main(["map", "--matrix", path, "--machine", MACHINE]) == 0
    assert "\nall-to-all exchanges are 75% of 400 bytes\n" in capsys.readouterr().out


def test_files_of_version_1_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, "palmette-matrix 1\nranks 4\nsent 0 1 100 2\n")
    assert (triples(path), read_traffic(path).pattern.exchanged) == ([(0, 1, 100.0)], 0)


def test_a_pencil_fft_on_scattered_ranks_sends_less_over_the_busiest_uplink(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """64^3 complex on a 4 x 4 grid: transposed in rows and in columns, 64 KB from each rank to each other one."""
    pairs = [(a, b) for a in range(16) for b in range(16) if a != b and (a // 4 == b // 4 or a % 4 == b % 4)]
    lines = [f"exchanged {source} {target} 65536 1\n" for source, target in pairs]
    path = write(tmp_path, "palmette-matrix 2\nranks 16\n" + "".join(lines))
    found = map_json(capsys, "--matrix", path, "--machine", LAB, "--placement", "random:1")
    before, after = (found[when]["busiest"]["bytes"] / 65536 for when in ("before", "after"))
    assert (before, after) == (26, 18)


def test_what_the_matrix_lacks_is_told(tmp_path: Path) -> None:
    found = read_traffic(write(tmp_path, HEAD + "outside 0 100 2\noutside 3 1 1\none-sided 1 1200\n"))
    assert found.uncounted == ("3 messages to processes outside of MPI_COMM_WORLD", "1,200 one-sided calls")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("palmette-matrix 3\nranks 4\n", "line 1: 'palmette-matrix 3', expected 'palmette-matrix 2'"),
        (HEAD + "sent 0 1 100\n", "line 4: 'sent 0 1 100', expected sent FROM TO BYTES MESSAGES"),
        (HEAD + "got 0 1\n", "line 4: 'got 0 1', expected `ranks P`"),
        (HEAD + "sent 0 4 1 1\n", "line 4: no rank 4 among ranks 0 to 3"),
        (HEAD + "exchanged 0 1 100\n", "line 4: 'exchanged 0 1 100', expected exchanged FROM TO BYTES CALLS"),
        (HEAD + "exchanged 0 4 1 1\n", "line 4: no rank 4 among ranks 0 to 3"),
        (HEAD + "sent 0 1 -5 1\n", "line 4: '-5' is no whole number"),
        (HEAD + "sent 0 1 1.5 1\n", "line 4: '1.5' is no whole number"),
        (HEAD + "ranks 4\n", "line 4: `ranks` stands once"),
        (HEAD + "host 0 a\nhost 0 a\n", "line 5: the host of rank 0 stands twice"),
        (HEAD + "host 0 a\nhost 1 a\n", "line 5: ends with the hosts of 2 of 4 ranks"),
        ("palmette-matrix 1\nsent 0 1 1 1\n", "line 2: `sent` stands before `ranks P`"),
        ("palmette-matrix 1\n", "line 1: ends without `ranks P`"),
    ],
)
def test_an_error_names_the_file_and_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(MapError) as caught:
        read_traffic(path)
    assert str(caught.value).startswith(f"{path}, {message}")


def test_the_seats_are_those_of_the_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    # Ranks 0 and 1 talk, and 2 and 3, but each pair sits on two hosts.
    path = write(tmp_path, HEAD + HOSTS + "sent 0 1 100 1\nsent 1 0 100 1\nsent 2 3 100 1\nsent 3 2 100 1\n")
    found = map_json(capsys, "--matrix", path, "--machine", MACHINE)
    assert found["placement"] == "as in the run"
    assert (found["before"]["busiest"]["bytes"], found["after"]["busiest"]) == (200, None)
    assert found["hosts"][0] == found["hosts"][1] != found["hosts"][2] == found["hosts"][3]
    placed = map_json(capsys, "--pattern", path, "--machine", MACHINE, "--placement", "block")
    assert (placed["placement"], placed["before"]["busiest"], placed["notes"]) == ("block", None, [])


def test_hosts_that_the_machine_lacks_are_told_and_ranks_placed_in_blocks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = write(tmp_path, HEAD + HOSTS.replace("h1", "elsewhere") + "sent 0 1 100 1\none-sided 0 3\n")
    assert main(["map", "--matrix", path, "--machine", MACHINE]) == 0
    out = capsys.readouterr().out
    assert "placed block" in out
    assert "note: the run's host elsewhere isn't on this machine: placed block" in out
    assert "note: not in run.matrix: 3 one-sided calls" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_another_number_of_ranks_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + "sent 0 1 100 1\n")
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
    assert triples(first) == [(0, 1, 3000.0), (1, 0, 10.0)]


def test_a_rank_without_its_file_is_told(tmp_path: Path) -> None:
    path = prof(tmp_path, 1, "E\t1\t0\t10 bytes\t1 msgs sent")
    with pytest.raises(MapError, match=r"lacks prof\.0\.prof; each rank of the run writes a file"):
        read_traffic(path)


@pytest.mark.parametrize("row", ["E\t1\t0\t10 bytes\t1 msgs sent", "E\t0\t5\t10 bytes\t1 msgs sent", "E 0 1 10"])
def test_a_damaged_line_of_monitoring_is_named(tmp_path: Path, row: str) -> None:
    path = prof(tmp_path, 0, row)
    with pytest.raises(MapError, match=r"prof\.0\.prof, line 2: .* is no line of Open MPI's monitoring for rank 0"):
        read_traffic(path)
