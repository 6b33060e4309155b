"""The source `cloud`: what AWS, Google Cloud and Oracle Cloud tell of where instances are in their network.

- AWS: `aws ec2 describe-instance-topology`; NetworkNodes name the layers from the top down to the instance's own.
- Google: `gcloud compute instances list --format=json`; resourceStatus.physicalHostTopology: cluster, block, subblock.
- Oracle: lists of bare-metal hosts with HPC island, network block and local block (`oci compute
  compute-capacity-topology`), or an instance's rdmaTopologyData.

These name instances; programs see host names. Where the clouds tell both in another list (`aws ec2
describe-instances`, `oci compute instance list`), that list may stand in the same file, before or behind.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from palmette.discover.grouping import Group, machine_of_groups
from palmette.discover.text import read_text
from palmette.topology.found import DiscoverError, SourceResult
from palmette.topology.model import Source
from palmette.units import plural

_ORACLE = (
    ("computeHpcIslandId", "customerHPCIslandId", "hpcIslandId"),
    ("computeNetworkBlockId", "customerNetworkBlock", "networkBlockId"),
    ("computeLocalBlockId", "customerLocalBlock", "localBlockId"),
)
_GOOGLE = ("cluster", "block", "subblock")


class _Instance(NamedTuple):
    """An instance and the groups of the network that it is in, the outermost first."""

    name: str
    layers: tuple[str, ...]


def discover_cloud(argument: str | None) -> SourceResult:
    """The machine of a cloud's instances. argument: a file of JSON or `-`. Raises DiscoverError."""
    if argument is None:
        raise DiscoverError(
            "cloud needs a file: the JSON of `aws ec2 describe-instance-topology`, `gcloud compute instances list"
            " --format=json` or Oracle's list of hosts"
        )
    found = SourceResult(Source("cloud", "standard input" if argument == "-" else argument))
    documents = list(_documents(read_text(argument), found))
    records = [record for document in documents for record in _records(document)]
    names = dict(pair for record in records for pair in _host_name(record))
    instances = list(dict.fromkeys(one for record in records for one in _instances(record)))
    found.leave_out(
        sum(not one.layers for one in instances), "instances", "the cloud doesn't say where in its network they are"
    )
    placed = [one for one in instances if one.layers]
    if not placed:
        raise DiscoverError(
            f"no instance with its place in the network in it, {found.source.path}; give the cloud's JSON, of instances"
            " whose type tells its topology"
        )
    if any(_rest(document) for document in documents):
        found.warn("the list goes on (it has a token for its next page): fetch all pages, one behind the other")
    unnamed = [one.name for one in placed if one.name not in names and _is_number(one.name)]
    if unnamed:
        found.warn(
            f"{plural(len(unnamed), 'instance')} such as {unnamed[0]} without a host name: append the cloud's list of"
            " instances to the file (aws ec2 describe-instances, oci compute instance list)"
        )
    found.machine = machine_of_groups(_groups(placed, names), found)
    found.source.detail = f"{plural(len(placed), 'instance')} in {plural(_count(placed), 'group')} of the network"
    return found


def _documents(text: str, found: SourceResult) -> Iterator[Any]:
    """Yield the JSON documents that stand one behind the other."""
    decoder, at = json.JSONDecoder(), 0
    while (at := len(text) - len(text[at:].lstrip())) < len(text):
        try:
            document, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", at)) + 1
            what = getattr(error, "msg", "nested too deeply")
            raise DiscoverError(f"not JSON ({what}), {found.source.path}:{line}; give the cloud's own output") from None
        yield document


def _records(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield the objects that may be of an instance, whatever lists and pages are around them."""
    if depth > 8:
        return
    if isinstance(value, list):
        for one in value:
            yield from _records(one, depth + 1)
    elif isinstance(value, dict):
        inner = [
            value[key] for key in ("Instances", "Reservations", "data", "items", "rdmaTopologyData") if key in value
        ]
        if inner and not _own(value, "instanceId", "id"):
            for one in inner:
                yield from _records(one, depth + 1)
        else:
            yield value


def _rest(document: Any) -> bool:
    return isinstance(document, dict) and bool(document.get("NextToken") or document.get("opc-next-page"))


def _own(record: Mapping[str, Any], *names: str) -> str:
    """The text of the first of these members, in any of the spellings instanceId, InstanceId and instance-id."""
    spelled = {key.replace("-", "").replace("_", "").lower(): value for key, value in record.items()}
    for name in names:
        value = spelled.get(name.lower())
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _instances(record: Mapping[str, Any]) -> Iterator[_Instance]:
    nodes = record.get("NetworkNodes", record.get("networkNodes"))
    if isinstance(nodes, list):
        yield _Instance(_own(record, "instanceId"), _distinct([str(node) for node in nodes if node]))
        return
    status = record.get("resourceStatus")
    if isinstance(status, dict):
        topology = status.get("physicalHostTopology")
        layers: list[str] = []
        if isinstance(topology, dict):
            layers = [str(topology[key]) for key in _GOOGLE if topology.get(key)]
        elif isinstance(status.get("physicalHost"), str):
            # /cluster/block/host
            layers = [part for part in status["physicalHost"].split("/") if part][:-1]
        # Two blocks of different clusters may have one number.
        yield _Instance(_own(record, "name"), tuple("/".join(layers[: i + 1]) for i in range(len(layers))))
        return
    blocks = [_own(record, *names) for names in _ORACLE]
    if any(blocks):
        name = _own(record, "instanceId", "id")
        if name:
            yield _Instance(name, _distinct([block for block in blocks if block]))


def _distinct(layers: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(layers))


def _host_name(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (instance, host) where a record tells both: AWS's private name, Oracle's host label or display name."""
    identity = _own(record, "instanceId", "id")
    host = _own(record, "privateDnsName", "hostnameLabel", "displayName")
    if identity and host:
        yield identity, host.split(".")[0]


def _is_number(name: str) -> bool:
    return name.startswith(("i-", "ocid1."))


def _groups(instances: list[_Instance], names: Mapping[str, str]) -> dict[str, Group]:
    groups: dict[str, Group] = {}
    below: dict[str, set[str]] = {}
    for one in instances:
        for outer, inner in zip(("", *one.layers), one.layers, strict=False):
            group = groups.setdefault(inner, Group(inner))
            if outer and inner not in below.setdefault(outer, set()):
                below[outer].add(inner)
                groups[outer].below.append(inner)
        group.hosts.append(names.get(one.name, one.name))
    return groups


def _count(instances: list[_Instance]) -> int:
    return len(Counter(layer for one in instances for layer in one.layers))
