"""The status of an aggregation daemon: read from its socket, as text and for Prometheus."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

from palmette.files import parse_json
from palmette.units import bytes_text, plural

DEFAULT_PATH = "/run/palmette-aggregator/status.sock"
TIMEOUT_S = 5.0
MOST_BYTES = 1 << 24

Status = dict[str, Any]


class StatusError(ValueError):
    """What answers isn't an aggregation daemon."""


def read(path: str) -> Status:
    """Return what a daemon tells on its status socket. Raises OSError and StatusError."""
    answer = b""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(path)
        while part := connection.recv(1 << 16):
            answer += part
            if len(answer) > MOST_BYTES:
                break
    try:
        status = parse_json(answer.decode())
    except ValueError:
        status = None
    if not isinstance(status, dict) or status.get("format") != "palmette-aggregator" or status.get("version") != 1:
        raise StatusError(f"{path}: what answers there is no aggregation daemon of this version")
    return status


def lines(status: Status) -> Iterator[str]:
    """Yield the lines that people read, of at most 80 columns."""
    used, limits, counters = status["in_use"], status["limits"], status["counters"]
    name = f" {status['name']}" if status["name"] else ""
    yield f"daemon{name} on {status['address']}, profile {limits['profile']}, up {status['uptime_s']:.0f} s"
    if "parent" in status:
        yield f"below {status['parent']}"
    numbers = (used["groups"], "group"), (len(status["users"]), "user"), (status["open_connections"], "connection")
    yield ", ".join(plural(number, word) for number, word in numbers)
    yield f"{used['slots']} of {limits['slots_total']} slots, {_share(used['bytes'], limits['memory_bytes'])}"
    yield f"{counters['chunks']} chunks combined, {bytes_text(counters['bytes_received'])} received"
    for what in ("refused", "ended"):
        told = ", ".join(f"{reason} {number}" for reason, number in counters[what].items())
        yield f"{what}: {told or 'none'}"
    for group in status["groups"]:
        yield from _group_lines(group)


def _share(used: int, most: int) -> str:
    return f"{bytes_text(used)} of {bytes_text(most)}"


def _group_lines(group: Status) -> Iterator[str]:
    yield (
        f"group {group['group']}.{group['epoch']} of user {group['uid']}: {group['joined']} of {group['members']}"
        f" members, {group['chunks']} chunks"
    )
    yield f"  {group['slots']} slots of {bytes_text(group['chunk_bytes'])}, {group['mode']}, tree {group['tree']}"
    if group["missing"]:
        where = " at the daemon above" if group["missing_above"] else ""
        yield f"  waits for {plural(group['missing'], 'member')}{where}, the first is {group['first_missing']}"


GAUGES = {"groups": "Groups now.", "slots": "Slots that groups hold.", "bytes": "Bytes that groups hold."}
COUNTERS = {
    "connections": "Connections taken.",
    "frames_received": "Frames received.",
    "frames_sent": "Frames sent.",
    "bytes_received": "Bytes of payload received.",
    "bytes_sent": "Bytes of payload sent.",
    "chunks": "Chunks combined or passed on.",
    "groups": "Groups made.",
}


def metrics(status: Status) -> Iterator[str]:
    """Yield the lines of Prometheus' text format."""
    for name, kind, text, samples in families(status):
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} {kind}"
        for labels, value in samples:
            told = ",".join(f'{label}="{said}"' for label, said in labels.items())
            yield f"{name}{{{told}}} {value}" if told else f"{name} {value}"


Samples = list[tuple[dict[str, str], float]]


def families(status: Status) -> Iterator[tuple[str, str, str, Samples]]:
    """Yield each metric: name, kind, what it is, samples by labels."""
    yield _family("up", "gauge", "1 while the daemon answers.", [({}, 1)])
    yield _family("uptime_seconds", "gauge", "Since its start.", [({}, status["uptime_s"])])
    yield _family("open_connections", "gauge", "Connections now.", [({}, status["open_connections"])])
    for name, text in GAUGES.items():
        yield _family(f"in_use_{name}", "gauge", text, [({}, status["in_use"][name])])
        of_users: Samples = [({"uid": str(user["uid"])}, user[name]) for user in status["users"]]
        yield _family(f"user_{name}", "gauge", f"{text[:-1]}, by user.", of_users)
    for name in ("slots_total", "memory_bytes"):
        yield _family(f"limit_{name}", "gauge", "What the daemon gives.", [({}, status["limits"][name])])
    counters = status["counters"]
    for name, text in COUNTERS.items():
        yield _family(f"{name}_total", "counter", text, [({}, counters[name])])
    for name, text in (("refused", "Refusals"), ("ended", "Ends of groups")):
        by_reason: Samples = [({"reason": reason}, number) for reason, number in counters[name].items()]
        yield _family(f"{name}_total", "counter", f"{text}, by reason.", by_reason)


def _family(name: str, kind: str, text: str, samples: Samples) -> tuple[str, str, str, Samples]:
    return f"palmette_aggregator_{name}", kind, text, samples
