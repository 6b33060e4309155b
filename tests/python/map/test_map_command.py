"""`palmette map`: orders, what the links carry, files for launchers, and errors of one line."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palmette.cli.main import main
from palmette.map.writers import WRITERS

DISTANCES = Path(__file__).resolve().parents[2] / "data" / "distances"
LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
GREEDY = {
    4: "0 1 3 2",
    8: "0 1 3 7 5 6 4 2",
    16: "0 1 2 9 11 15 5 12 7 13 6 14 8 3 10 4",
}
"""The orders that the slides give with their matrices."""
SLOWEST = {4: (0.2458, 0.0283, 0.0283), 8: (0.0967, 0.0466, 0.0345), 16: (0.2335, 0.0498, 0.0473)}
"""Slowest edge, the closing one included: as placed, greedy, optimal."""


def map_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["map", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def by_distance(capsys: pytest.CaptureFixture[str], size: int, method: str) -> dict[str, Any]:
    file = str(DISTANCES / f"pingpong-{size}.txt")
    return map_json(capsys, "--pattern", "ring", "--method", method, "--distances", file)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_greedy_gives_the_orders_of_the_slides_on_one_line(capsys: pytest.CaptureFixture[str], size: int) -> None:
    file = str(DISTANCES / f"pingpong-{size}.txt")
    assert main(["map", "--pattern", "ring", "--method", "greedy", "--distances", file]) == 0
    captured = capsys.readouterr()
    assert captured.out == GREEDY[size] + "\n"
    assert "slowest edge" in captured.err


@pytest.mark.parametrize("size", [4, 8, 16])
def test_the_slowest_edge_of_a_ring(capsys: pytest.CaptureFixture[str], size: int) -> None:
    identity, greedy, optimal = SLOWEST[size]
    found = by_distance(capsys, size, "greedy")
    assert found["slowest_before"] == pytest.approx(identity, abs=5e-5)
    assert found["slowest_after"] == pytest.approx(greedy, abs=5e-5)
    best = by_distance(capsys, size, "optimal")
    assert best["slowest_after"] == pytest.approx(optimal, abs=5e-5)
    assert best["slowest_bound"] == best["slowest_after"]
    assert sorted(best["order"]) == list(range(size))


def test_the_greedy_ring_of_16_is_4_69_times_faster_than_the_ranks_own(capsys: pytest.CaptureFixture[str]) -> None:
    found = by_distance(capsys, 16, "greedy")
    assert found["slowest_before"] / found["slowest_after"] == pytest.approx(4.69, abs=0.005)


def test_a_matrix_of_bytes_is_mapped_by_distances_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Ranks 0 and 2, 1 and 3 exchange much; 0 and 1, 2 and 3 are near."""
    matrix, distances = tmp_path / "bytes.txt", tmp_path / "distances.txt"
    matrix.write_text("0 1 900 1\n1 0 1 900\n900 1 0 1\n1 900 1 0\n")
    distances.write_text("0 9 1 9\n9 0 9 1\n1 9 0 9\n9 1 9 0\n")
    as_placed = map_json(capsys, "--matrix", str(matrix), "--distances", str(distances))
    assert (as_placed["method"], as_placed["order"]) == ("as_placed", [0, 1, 2, 3])
    assert as_placed["weighted_after"] == as_placed["weighted_before"], "greedy would be worse"
    matrix.write_text("0 900 1 1\n900 0 1 1\n1 1 0 900\n1 1 900 0\n")
    assert main(["map", "--matrix", str(matrix), "--distances", str(distances)]) == 0
    captured = capsys.readouterr()
    assert captured.out == "0 2 1 3\n" or captured.out == "0 2 3 1\n"
    assert "by greedy" in captured.err and "as placed" in captured.err and "x less" in " ".join(captured.err.split())


def test_a_file_of_another_form_is_not_replaced(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.txt"
    words = ["map", "--pattern", "ring", "--machine", "2leaf:2node"]
    hosts.write_text("h0\nh1\nh2\nh3\n")
    for kind in ("hydra", "rankfile", "coordinates"):
        assert main([*words, "--write", f"{kind}={hosts}"]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1 and f"--write {kind}={hosts}: that file is there" in err
        assert hosts.read_text().startswith("h0\n")
    for kind in WRITERS:
        file = tmp_path / kind
        for _ in range(2):
            assert main([*words, "--write", f"{kind}={file}"]) == 0, "what it has written is replaced"


def test_rows_may_be_numbered_and_commented(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = (DISTANCES / "pingpong-4.txt").read_text().splitlines()
    numbered = tmp_path / "numbered.txt"
    numbered.write_text(
        "# seconds\n" + "\n".join(f"{i} {row.replace(' ', ', ')}" for i, row in enumerate(rows)) + "\n\n"
    )
    assert main(["map", "--pattern", "ring", "--method", "greedy", "--distances", str(numbered)]) == 0
    assert capsys.readouterr().out == "0 1 3 2\n"


@pytest.mark.parametrize("pattern", ["recursive_doubling", "gather", "bcast"])
def test_each_pattern_has_its_heuristic(capsys: pytest.CaptureFixture[str], pattern: str) -> None:
    file = str(DISTANCES / "pingpong-16.txt")
    found = map_json(capsys, "--pattern", pattern, "--method", "heuristic", "--distances", file)
    assert sorted(found["order"]) == list(range(16))
    assert found["order"][0] == 0
    assert found["weighted_after"] < found["weighted_before"]
    on_tree = map_json(
        capsys, "--pattern", pattern, "--method", "heuristic", "--machine", LAB, "--placement", "random:1"
    )
    assert on_tree["after"]["hop_bytes"] < on_tree["before"]["hop_bytes"]


@pytest.mark.parametrize(
    "pattern", ["ring", "recursive_doubling", "gather", "bcast", "stencil:8x2", "stencil:4x4,periodic"]
)
@pytest.mark.parametrize("placement", ["block", "cyclic", "random:1"])
def test_auto_is_never_worse_than_the_ranks_own_order(
    capsys: pytest.CaptureFixture[str], pattern: str, placement: str
) -> None:
    found = map_json(capsys, "--pattern", pattern, "--machine", LAB, "--placement", placement)
    before, after = found["before"], found["after"]
    assert after["busiest"]["seconds"] <= before["busiest"]["seconds"] * 1.000001
    assert sorted(found["order"]) == list(range(16))
    if placement == "random:1":
        assert after["hop_bytes"] < before["hop_bytes"]


@pytest.mark.parametrize("method", ["grid", "bisection", "partition"])
def test_a_stencil_on_scattered_ranks_halves_the_busiest_uplink(
    capsys: pytest.CaptureFixture[str], method: str
) -> None:
    words = ("--pattern", "stencil:8x2", "--machine", LAB, "--placement", "random:1", "--method", method)
    found = map_json(capsys, *words)
    assert found["before"]["busiest"]["bytes"] >= 2 * found["after"]["busiest"]["bytes"]


def test_a_matrix_with_hidden_groups_is_found(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    # Ranks 0, 8, 16 and 24 talk, and so on: what one placement round robin over 8 hosts of 4 keeps inside of hosts.
    groups = np.arange(32) % 8
    matrix = np.where(groups[:, None] == groups[None, :], 1000, 1)
    file = tmp_path / "matrix.txt"
    np.savetxt(file, matrix, fmt="%d")
    machine = "2leaf@1GB/s:4node@1GB/s:4core"
    for method in ("auto", "partition", "bisection"):
        found = map_json(capsys, "--matrix", str(file), "--machine", machine, "--method", method)
        hosts = found["hosts"]
        assert all(hosts[rank] == hosts[rank % 8] for rank in range(32)), method
    assert (
        map_json(capsys, "--matrix", str(file), "--machine", machine, "--placement", "cyclic")["method"] == "as_placed"
    )


def test_uneven_groups_are_filled_exactly(capsys: pytest.CaptureFixture[str]) -> None:
    machine = "3leaf@50Mbit/s:3+1+2node@100Mbit/s:5+1+2core"
    found = map_json(capsys, "--pattern", "stencil:4x3", "--machine", machine, "--method", "partition", "--ranks", "12")
    placed = map_json(
        capsys, "--pattern", "stencil:4x3", "--machine", machine, "--method", "as_placed", "--ranks", "12"
    )
    assert sorted(found["hosts"]) == sorted(placed["hosts"])


def test_files_for_launchers_say_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kinds = ("hydra", "intel", "rankfile", "seq", "slurm", "coordinates")
    writes = [word for kind in kinds for word in ("--write", f"{kind}={tmp_path / kind}")]
    words = ("--pattern", "stencil:8x2", "--machine", LAB, "--placement", "random:1", *writes)
    found = map_json(capsys, *words)
    hosts = found["hosts"]
    for kind in ("intel", "seq", "slurm"):
        assert (tmp_path / kind).read_text().split() == hosts
    options = (tmp_path / "hydra").read_text().split()
    named = options[options.index("-hosts") + 1].split(",")
    assert [named[int(index)] for index in options[options.index("-rankmap") + 1].split(",")] == hosts
    ranks = [line.split() for line in (tmp_path / "rankfile").read_text().splitlines()]
    assert [line[1].partition("=")[2] for line in ranks] == hosts
    assert {line[2] for line in ranks} == {"slot=0", "slot=1"}
    lines = (tmp_path / "coordinates").read_text().splitlines()
    assert len(lines) == 17
    leaf_of = {f"h{i}": i // 3 for i in range(8)}
    assert [int(line.split()[2]) for line in lines[1:]] == [leaf_of[host] for host in hosts]
    assert all(len(line.split(": ")[1].split()) == 3 for line in lines[1:])


def test_the_page_fits_80_columns_and_the_picture_is_svg(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picture = tmp_path / "map.svg"
    words = ["map", "--pattern", "stencil:8x2", "--machine", LAB, "--placement", "random:1", "--svg", str(picture)]
    assert main([*words, "--write", "seq=" + str(tmp_path / "s")]) == 0
    out = capsys.readouterr().out
    assert "busiest link" in out and "hop-bytes" in out and "x less" in out
    assert all(len(line) <= 80 for line in out.splitlines() if str(tmp_path) not in line)
    root = ET.fromstring(picture.read_text())
    assert root.tag.endswith("svg")
    assert len(root.findall("{*}rect")) > 12


def test_the_list_names_every_method_and_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["map", "--list"]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("greedy", "partition", "hydra", "coordinates"))
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--machine", LAB], "no pattern given"),
        (["--pattern", "ring"], "exactly one of --topology, --machine and --distances"),
        (["--pattern", "star", "--machine", LAB], "'star' is no pattern"),
        (["--pattern", "stencil:8y2", "--machine", LAB], "is no stencil"),
        (["--pattern", "stencil:8x3", "--machine", LAB], "has 24 cells, more than the 16 ranks"),
        (["--pattern", "ring", "--machine", LAB, "--method", "magic"], "'magic' is no method"),
        (["--pattern", "ring", "--machine", LAB, "--method", "grid"], "method grid is not for 'ring'"),
        (["--pattern", "ring", "--machine", LAB, "--write", "pbs=x"], "KIND is one of hydra"),
        (["--pattern", "ring", "--machine", LAB, "--placement", "hosts=h99"], "h99"),
        (["--pattern", "ring", "--topology", "/none.json"], "/none.json"),
        (["--pattern", "ring", "--distances", "/none.txt"], "can't be read"),
        (["--matrix", "/none.txt", "--machine", LAB], "can't be read"),
    ],
)
def test_bad_input_is_told_in_one_line(capsys: pytest.CaptureFixture[str], words: list[str], complaint: str) -> None:
    assert main(["map", *words]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("palmette map: ")
    assert captured.err.count("\n") == 1
    assert complaint in captured.err


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1 2\n3\n", "line 2: 1 numbers, but there are 2 rows"),
        ("0 1\n1 x\n", "line 2: 'x' is no number"),
        ("0 1\n-1 0\n", "line 2: -1 is out of range"),
        ("0 inf\n1 0\n", "line 1: inf is out of range"),
        ("# nothing\n", "holds no numbers"),
    ],
)
def test_a_matrix_that_is_none_is_told_by_its_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, complaint: str
) -> None:
    file = tmp_path / "matrix.txt"
    file.write_text(text)
    assert main(["map", "--pattern", "ring", "--distances", str(file)]) == 2
    assert complaint in capsys.readouterr().err
