"""What the archive of runs keeps of a recorded job is what its recording says."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.record.functions import ENDS
from palmette.record.reading import read_job

from .conftest import Mpi

pytestmark = pytest.mark.mpi


def test_an_archive_keeps_what_was_recorded(
    mpi_called: Callable[[str], Mpi], palmette: Callable[..., Any], tmp_path: Path
) -> None:
    mpi = mpi_called("mpich")
    archive = tmp_path / "archive.sqlite"
    for kind in ("trace", "profile"):
        folder = mpi.directory / kind
        ran = mpi.run(4, "accounts", settings={f"PALMETTE_{kind.upper()}": str(folder)})
        assert ran.status == 0, ran.text
        added = palmette("runs", "--archive", archive, "--add", folder, "--tag", f"kind={kind}", "--json")
        assert json.loads(added.out)["added"][0]["run"] is not None, added.err
        again = palmette("runs", "--archive", archive, "--add", folder, "--json")
        assert json.loads(again.out)["added"][0]["run"] is None
        expected: Counter[tuple[str, str]] = Counter()
        for process in read_job(folder).processes:
            for row in process.recorded.aggregates:
                if not row.is_request and row.function not in ENDS:
                    expected[row.function, "calls"] += row.calls
                    expected[row.function, "bytes"] += row.bytes
        with sqlite3.connect(archive) as database:
            (number,) = database.execute("SELECT max(id) FROM runs").fetchone()
            found: Counter[tuple[str, str]] = Counter()
            for function, calls, size in database.execute(
                "SELECT function, calls, bytes FROM call_rows WHERE run_id = ?", (number,)
            ):
                found[function, "calls"] += calls
                found[function, "bytes"] += size
            rows = database.execute("SELECT DISTINCT level FROM call_rows WHERE run_id = ?", (number,))
            levels = {level for (level,) in rows}
        assert found == expected
        assert levels - {""}
        report = json.loads(palmette("report", folder, "--json").out)
        one = json.loads(palmette("runs", "--archive", archive, "last", "--json").out)
        assert one["run"]["kind"] == kind and one["run"]["ranks"] == 4 and one["run"]["tags"] == {"kind": kind}
        assert one["run"]["waiting_s"] == (report["split"]["waiting_s"] if kind == "trace" else None)
        seconds = sum(row["seconds"] for row in one["rows"] if row["function"] != "(computing)")
        assert seconds == pytest.approx(sum(row["seconds"] for row in report["paths"]), rel=1e-3)
