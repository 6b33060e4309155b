"""Folders that calls are recorded in: what is in them already, and who decides."""

from __future__ import annotations

import errno
import json
import mmap
import os
import subprocess
import sys
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from palmette.mpi.errors import RunError
from palmette.run import Choices, variables
from palmette.run.choices import make_recording_folder
from palmette.run.folders import is_rank

MAGIC = b"PALMREC\0"
HEADER, SECTION = 65536, 65536


def recording(sections: list[bytes]) -> bytes:
    """A node's file with sections that begin so."""
    header = pack("=8sIIQ", MAGIC, 2, HEADER, HEADER + SECTION * len(sections))
    return header.ljust(HEADER, b"\0") + b"".join(pack("=8sQ", one, SECTION).ljust(SECTION, b"\0") for one in sections)


@pytest.mark.parametrize(
    ("contents", "is_one"),
    [
        (b"", False),
        (recording([]), False),
        (recording([b"", b""]), False),
        (recording([b"", MAGIC]), True),
        (recording([MAGIC])[: HEADER + 8], False),
        (b"something else", True),
        (bytes(4096), False),
    ],
)
def test_only_what_a_process_has_begun_to_record_is_a_recording(tmp_path: Path, contents: bytes, is_one: bool) -> None:
    (tmp_path / "host.palmette").write_bytes(contents)
    assert bool(make_recording_folder(tmp_path)) is is_one
    assert (tmp_path / "host.palmette").exists() is is_one, "what is none doesn't make the next job refuse"


def test_a_file_system_without_shared_mappings_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENODEV, "No such device")

    monkeypatch.setattr(mmap, "mmap", refuses)
    with pytest.raises(RunError, match=r"PALMETTE_TRACE=.*share a file's pages.*No such device.*such as /tmp"):
        variables(Choices(trace=tmp_path / "t"), {})
    assert not any((tmp_path / "t").iterdir()), "nothing is left there"


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({}, False),
        ({"PMI_RANK": "0"}, True),
        ({"OMPI_COMM_WORLD_RANK": "3"}, True),
        ({"SLURM_PROCID": "0", "SLURM_JOB_ID": "7"}, False),
        ({"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_STEP_ID": "1"}, True),
    ],
)
def test_a_rank_is_told_from_a_batch_script(environment: dict[str, str], rank: bool) -> None:
    assert is_rank(environment) is rank


def started_as_rank(folder: Path, rank: int, *words: str) -> subprocess.CompletedProcess[str]:
    """`palmette run --json --trace FOLDER`, by a launcher that isn't a rank itself."""
    command = [sys.executable, "-m", "palmette.cli.main", "run", "--json", "--trace", str(folder), *words, "true"]
    # env(1) becomes the command; what starts it is no rank.
    return subprocess.run(
        ["env", f"PMI_RANK={rank}", f"MPI_LOCALRANKID={rank}", *command], capture_output=True, text=True, check=False
    )


def test_no_rank_refuses_by_what_it_finds(tmp_path: Path) -> None:
    """Some of a job's ranks come later, and find what others have begun; all of them find what an earlier job left."""
    folder = tmp_path / "t"
    assert "PALMETTE_TRACE" in json.loads(started_as_rank(folder, 0).stdout)["environment"]
    own = folder / f"{os.uname().nodename}.palmette"
    own.write_bytes(recording([]))
    later = started_as_rank(folder, 1)
    assert later.returncode == 0 and json.loads(later.stdout)["environment"]["PALMETTE_TRACE"] == str(folder)
    # The same beside a launcher's own line, which starts a job, is refused.
    own.write_bytes(recording([MAGIC]))
    refused = subprocess.run(
        [sys.executable, "-m", "palmette.cli.main", "run", "--json", "--trace", str(folder), "true"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert refused.returncode == 2 and "holds a recording already" in refused.stderr
