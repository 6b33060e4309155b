"""A run as JSON lines, and the one that the package brings: `palmette demo` on a lab, for machines that allow none.

The first line is the run without its jobs, each other line a job with its samples.
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from palmette.bench.results import Cell, EdgeLoad, Job, Limit, Overlap, PassThrough, Run

PATH = Path(__file__).with_name("recorded.jsonl.gz")


def write(path: Path, run: Run) -> None:
    """Write `run` without what tells nothing elsewhere: the machine's name, its kernel's build, the commit.

    Times are in nanoseconds.
    """
    head = {
        "started": run.started,
        "machine": {**run.machine, "name": "", "commit": None, "kernel": _plain(run.machine.get("kernel"))},
        "place": run.place,
        "settings": {**run.settings, "recorded": True},
        "topology": run.topology,
    }
    lines: list[dict[str, Any]] = [head, *map(asdict, run.jobs)]
    text = "".join(json.dumps(_rounded(line), ensure_ascii=False) + "\n" for line in lines)
    # No time and no name in the file: the same run gives the same bytes.
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def read(path: Path = PATH) -> Run:
    """Return the run in `path`."""
    head, *jobs = map(json.loads, gzip.decompress(path.read_bytes()).decode().splitlines())
    return Run(**head, jobs=[_job(job) for job in jobs])


def _plain(kernel: object) -> object:
    """Return a kernel's name and version without those of its build."""
    found = re.match(r"\S+ \d+\.\d+", kernel) if isinstance(kernel, str) else None
    return found[0] if found else kernel


def _job(document: dict[str, Any]) -> Job:
    cells = [_cell(cell) for cell in document.pop("cells")]
    passes = [PassThrough(**one) for one in document.pop("passes")]
    load = [EdgeLoad(**edge) for edge in document.pop("load")]
    return Job(**document, cells=cells, passes=passes, load=load)


def _cell(document: dict[str, Any]) -> Cell:
    bound, overlap = document.pop("bound"), document.pop("overlap")
    return Cell(**document, bound=Limit(**bound) if bound else None, overlap=Overlap(**overlap) if overlap else None)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value
