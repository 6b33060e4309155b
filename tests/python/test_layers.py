"""The layers of ARCHITECTURE.md: an #include or an import that points up fails here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

ORDER = (
    "base",
    "trace",
    "topology",
    "plan",
    "compose",
    "collectives",
    "model",
    "select",
    "kernels",
    "aggregate",
    "device",
    "node",
    "execute",
    "mpi",
    "runtime",
    "interpose",
    "record",
)
"""From the bottom up: a layer may include itself and what stands before it."""
WITH_MPI = ("mpi", "runtime", "interpose", "record")
BINDINGS_TOP = "select"

CPP_ROOMS = {
    "runtime": (
        ("data",),
        ("observe", "check", "transport"),
        ("settings",),
        ("start", "network", "nccl", "compare"),
        ("state", "ways", "lengths", "neighbours", "report"),
        ("call",),
        ("serve",),
        ("composed", "reorder"),
    ),
    "topology": (("",), ("mapping",)),
    "aggregate": (("",), ("client", "sharp", "kept"), ("daemon",)),
    "model": (("",), ("bound", "graph"), ("estimate", "play", "flow")),
    "collectives": (
        ("",),
        ("trees",),
        ("exchanges",),
        ("allgather", "allreduce", "alltoall", "barrier", "bcast", "gather_scatter", "one_node", "reduce"),
        ("reduce_scatter", "scan", "neighbours"),
    ),
}
"""Rooms inside of a layer, from the bottom up; "" are the headers that stand in the layer's folder itself."""

ROOMS = (
    ("files", "units", "regions", "settings", "settings_files", "_core", "__version__"),
    ("present",),
    ("topology",),
    ("mpi",),
    ("aggregator", "run"),
    ("doctor", "plan"),
    ("measure",),
    ("bound", "predict", "flow", "map", "calibrate", "export"),
    ("discover", "bench", "patterns", "tune", "compose"),
    ("show", "record"),
    ("analysis",),
    ("bench_page", "explain", "app", "runs"),
    ("cli",),
)
"""Packages and modules of palmette, from the bottom up: one may import those of its own line and of lines below."""
LAB_ROOMS = (("lab",), ("traffic",), ("sets", "place"), ("simulate",), ("cli",))
"""Packages of palmette_lab from the bottom up. It stands on palmette, which never imports it."""
FLOOR = {("palmette", room): floor for floor, rooms in enumerate(ROOMS) for room in rooms} | {
    ("palmette_lab", room): floor for floor, rooms in enumerate(LAB_ROOMS, len(ROOMS)) for room in rooms
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?P<open>["<])(?P<path>[^">]+)[">]', re.MULTILINE)
CPP_SUFFIXES = (".hpp", ".cpp", ".h", ".c", ".inc", ".in")


@dataclass(frozen=True)
class Violation:
    """One forbidden arrow: the file, its line, and why it is forbidden."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


def allowed_layers(layer: str) -> tuple[str, ...]:
    """Return the layers that `layer` may include, itself among them."""
    if layer == "bindings":
        return (*ORDER[: ORDER.index(BINDINGS_TOP) + 1], "bindings")
    return ORDER[: ORDER.index(layer) + 1]


def includes(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield line, path and whether quotes (not angle brackets) stand around it, for every #include of a source."""
    for found in INCLUDE.finditer(text):
        yield text.count("\n", 0, found.start("path")) + 1, found["path"], found["open"] == '"'


def room_above(layer: str, here: str, there: str) -> str:
    """Return why a file in room `here` of a layer mustn't include one in `there`, or nothing."""
    floors = {room: floor for floor, rooms in enumerate(CPP_ROOMS[layer]) for room in rooms}
    for room in (here, there):
        if room not in floors:
            return f"{layer}/{room} has no place in CPP_ROOMS"
    return f"the arrow goes up from {here} to {there}" if floors[there] > floors[here] else ""


def cpp_violations(root: Path) -> list[Violation]:
    """Check every source in `root`/src/palmette."""
    sources = root / "src" / "palmette"
    result = []
    for file in sorted(sources.rglob("*")):
        if file.suffix not in CPP_SUFFIXES or not file.is_file():
            continue
        name = str(file.relative_to(root))
        layer = file.relative_to(sources).parts[0]
        if layer != "bindings" and layer not in ORDER:
            result.append(Violation(name, 1, f"{layer} is no layer of ARCHITECTURE.md"))
            continue
        for line, path, quoted in includes(file.read_text(encoding="utf-8")):
            parts = path.split("/")
            inside = file.relative_to(sources / layer).parts
            top = len(inside) == 1 and file.suffix == ".cpp"  # lists what is in the rooms
            if parts[:2] == ["palmette", layer] and layer in CPP_ROOMS and not top:
                above = room_above(layer, inside[0] if len(inside) > 1 else "", parts[2] if len(parts) > 3 else "")
                if above:
                    result.append(Violation(name, line, f"includes {path}: {above}"))
            if parts[0] == "palmette" and len(parts) > 2 and parts[1] not in allowed_layers(layer):
                result.append(Violation(name, line, f"{layer} includes {path}: the arrow goes up to {parts[1]}"))
            elif parts[0] != "palmette" and quoted:
                result.append(Violation(name, line, f'"{path}" is not from the include root: "palmette/{layer}/..."'))
            elif parts[-1] == "mpi.h" and layer not in WITH_MPI:
                result.append(Violation(name, line, f"{layer} includes mpi.h, which is known from mpi on"))
    return result


def imported(tree: ast.Module, package: str) -> Iterator[tuple[int, str]]:
    """Yield line and absolute module name for each import in a module of `package`, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def python_violations(root: Path) -> list[Violation]:
    """Check every module of `root`/python/palmette: rooms in their order, no tests, no MPI."""
    sources = root / "python"
    result = []
    for file in sorted(sources.rglob("*.py")):
        name = str(file.relative_to(root))
        package = ".".join(file.relative_to(sources).parts[:-1])
        tree = ast.parse(file.read_text(encoding="utf-8"), filename=name)
        product, room = (*file.relative_to(sources).with_suffix("").parts, "__init__")[:2]
        if (product, room) not in FLOOR and room != "__init__":
            result.append(Violation(name, 1, f"{room} has no place in ROOMS"))
            continue
        for line, module in imported(tree, package):
            parts = module.split(".")
            there = parts[1] if len(parts) > 1 else ""
            above = FLOOR.get((parts[0], there), len(ROOMS) if parts[0] == "palmette_lab" else 0)
            if room != "__init__" and above > FLOOR.get((product, room), 0):
                result.append(Violation(name, line, f"imports {module}: the arrow goes up from {room} to {there}"))
            elif parts[0] in ("tests", "mpi4py"):
                result.append(Violation(name, line, f"imports {module}, which the package must not need"))
    return result


def violations(root: Path) -> list[Violation]:
    """Return every forbidden arrow of the tree at `root`."""
    return cpp_violations(root) + python_violations(root)


def test_no_include_or_import_points_up() -> None:
    assert (ROOT / "src" / "palmette" / "base").is_dir(), "the sources have moved; correct ROOT"
    found = violations(ROOT)
    assert not found, "\n" + "\n".join(map(str, found))


def test_no_room_of_python_imports_another_in_a_circle() -> None:
    sources = ROOT / "python"
    needs: dict[str, set[str]] = {}
    for file in sources.rglob("*.py"):
        product, room = (*file.relative_to(sources).with_suffix("").parts, "__init__")[:2]
        package = ".".join(file.relative_to(sources).parts[:-1])
        for _, module in imported(ast.parse(file.read_text(encoding="utf-8")), package):
            parts = module.split(".")
            here, there = f"{product}.{room}", ".".join(parts[:2])
            if parts[0] in ("palmette", "palmette_lab") and len(parts) > 1 and there != here and room != "__init__":
                needs.setdefault(here, set()).add(there)
    TopologicalSorter(needs).prepare()  # raises CycleError, which names the circle


def file_needs(root: Path) -> dict[str, set[str]]:
    """Return for each C++ file the files that it includes, and for each Python module those that it imports."""
    sources = root / "src"
    needs: dict[str, set[str]] = {}
    for file in (sources / "palmette").rglob("*"):
        if file.suffix in CPP_SUFFIXES and file.is_file():
            paths = (path for _, path, _ in includes(file.read_text(encoding="utf-8")))
            needs[str(file.relative_to(sources))] = {path for path in paths if path.startswith("palmette/")}
    modules = {
        ".".join(file.relative_to(root / "python").with_suffix("").parts).removesuffix(".__init__"): file
        for file in (root / "python").rglob("*.py")
    }
    for name, file in modules.items():
        package = name if file.stem == "__init__" else name.rpartition(".")[0]
        found = imported(ast.parse(file.read_text(encoding="utf-8")), package)
        # A name that is no module is defined in the package; the products' own packages import what is asked for.
        files = {module if module in modules else module.rpartition(".")[0] for _, module in found}
        needs[name] = {module for module in files & modules.keys() if "." in module and module != name}
    return needs


def test_no_file_needs_another_in_a_circle() -> None:
    TopologicalSorter(file_needs(ROOT)).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize(
    "files",
    [
        {
            "src/palmette/base/a.hpp": '#include "palmette/base/b.hpp"\n',
            "src/palmette/base/b.hpp": '#include "palmette/base/a.hpp"\n',
        },
        {
            "python/palmette/units.py": "from palmette import files\n",
            "python/palmette/files.py": "import palmette.units\n",
        },
        {
            "python/palmette/tune/a.py": "def f() -> None:\n    from .b import c\n",
            "python/palmette/tune/b.py": "from palmette.tune.a import f\n",
        },
    ],
)
def test_a_circle_of_files_is_caught(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(CycleError):
        TopologicalSorter(file_needs(make_tree(tmp_path, files))).prepare()


OTHER_NAMESPACES = {"interpose": ("palmette", "palmette::interpose", "palmette::settings")}
"""Layers whose namespace isn't their folder's: palmette.hpp is for programs."""


def test_namespaces_follow_folders() -> None:
    for file in (ROOT / "src" / "palmette").rglob("*"):
        if file.suffix not in (".hpp", ".cpp") or not file.is_file():
            continue
        layer = file.relative_to(ROOT / "src" / "palmette").parts[0]
        own = OTHER_NAMESPACES.get(layer, (f"palmette::{layer}",))
        for name in re.findall(r"^namespace (palmette(?:::\w+)*)", file.read_text(encoding="utf-8"), re.MULTILINE):
            known = name in own or name.startswith(tuple(f"{one}::" for one in own if one != "palmette"))
            assert known, f"{file.relative_to(ROOT)} defines {name}, not {' or '.join(own)}"


HANGING = re.compile(r'^\s*(?:///|""")\s*(Of|The same)\b.*', re.MULTILINE)
"""A documentation comment that can't be read without the line above it."""


def test_documentation_comments_stand_alone() -> None:
    files = (file for folder in SOURCES for file in (ROOT / folder).rglob("*"))
    found = [
        f"{file.relative_to(ROOT)}: {match[0].strip()}"
        for file in files
        if file.suffix in (".hpp", ".cpp", ".h", ".c", ".py") and file.is_file() and "/lib/" not in str(file)
        for match in HANGING.finditer(file.read_text(encoding="utf-8"))
        if "include/palmette.hpp" not in str(file)  # installed from src
    ]
    assert not found, "\n".join(found)


LONGEST = 500
SOURCES = ("src", "python", "tools", "studies", "tests")


def test_no_source_is_long_without_a_reason() -> None:
    for top in SOURCES:
        for file in (ROOT / top).rglob("*"):
            if file.suffix not in (".cpp", ".hpp", ".c", ".h", ".py", ".sh") or not file.is_file():
                continue
            lines = file.read_text(encoding="utf-8").splitlines()
            reason = any("Long because" in line for line in lines[:12])
            assert len(lines) <= LONGEST or reason, f"{file.relative_to(ROOT)} has {len(lines)} lines: split it"


def make_tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("src/palmette/base/a.hpp", '#include "palmette/plan/step.hpp"\n', "the arrow goes up to plan"),
        ("src/palmette/plan/a.cpp", "\n #  include <palmette/select/table.hpp>\n", "the arrow goes up to select"),
        ("src/palmette/select/a.cpp", '#include "palmette/runtime/state.hpp"\n', "the arrow goes up to runtime"),
        ("src/palmette/runtime/a.cpp", '#include "palmette/interpose/report.hpp"\n', "the arrow goes up to interpose"),
        ("src/palmette/model/a.cpp", '#include "palmette/bindings/module.hpp"\n', "the arrow goes up to bindings"),
        ("src/palmette/bindings/a.cpp", '#include "palmette/runtime/state.hpp"\n', "the arrow goes up to runtime"),
        ("src/palmette/select/a.cpp", "#include <mpi.h>\n", "known from mpi on"),
        ("src/palmette/bindings/a.cpp", "#include <mpi.h>\n", "known from mpi on"),
        ("src/palmette/plan/a.cpp", '#include "step.hpp"\n', "not from the include root"),
        ("src/palmette/misc/a.cpp", "\n", "no layer"),
        ("src/palmette/runtime/data/a.hpp", '#include "palmette/runtime/state/process.hpp"\n', "up from data to state"),
        (
            "src/palmette/collectives/trees/a.cpp",
            '#include "palmette/collectives/bcast/a.hpp"\n',
            "up from trees to bcast",
        ),
        ("src/palmette/runtime/news/a.cpp", '#include "palmette/runtime/data/a.hpp"\n', "runtime/news has no place"),
        ("python/palmette/measure/a.py", "from palmette.cli import common\n", "the arrow goes up from measure to cli"),
        ("python/palmette/measure/a.py", "from ..cli.common import fail\n", "the arrow goes up from measure to cli"),
        ("python/palmette/units.py", "def f() -> None:\n    import palmette.cli.main\n", "up from units to cli"),
        ("python/palmette/units.py", "from . import tune\n", "up from units to tune"),
        ("python/palmette/cli/a.py", "import palmette_lab\n", "up from cli to "),
        ("python/palmette/cli/a.py", "from palmette_lab.lab import Lab\n", "up from cli to lab"),
        ("python/palmette_lab/lab/a.py", "from palmette_lab.cli import main\n", "up from lab to cli"),
        ("python/palmette/topology/a.py", "from palmette.mpi.install import find\n", "up from topology to mpi"),
        ("python/palmette/measure/a.py", "from palmette.bench.run import run\n", "up from measure to bench"),
        ("python/palmette/news/a.py", "\n", "news has no place in ROOMS"),
        ("python/palmette/units.py", "import mpi4py.MPI\n", "must not need"),
    ],
)
def test_an_arrow_that_goes_up_is_caught(tmp_path: Path, file: str, text: str, reason: str) -> None:
    found = violations(make_tree(tmp_path, {file: text}))
    assert [v.file for v in found] == [file]
    assert reason in found[0].reason


def test_arrows_that_go_down_pass(tmp_path: Path) -> None:
    tree = make_tree(
        tmp_path,
        {
            "src/palmette/base/a.cpp": '#include "palmette/base/a.hpp"\n#include <vector>\n',
            "src/palmette/select/a.cpp": '#include "palmette/model/a.hpp"\n#include "palmette/base/a.hpp"\n',
            "src/palmette/runtime/a.cpp": '#include <mpi.h>\n#include "palmette/select/a.hpp"\n',
            "src/palmette/interpose/a.cpp": '#include "palmette/runtime/a.hpp"\n',
            "src/palmette/bindings/a.cpp": '#include <nanobind/nanobind.h>\n#include "palmette/select/a.hpp"\n',
            "python/palmette/cli/a.py": "from palmette.cli.common import fail\nfrom palmette.tune import up\n",
            "python/palmette/tune/a.py": "import palmette._core\nfrom . import up\n",
            "python/palmette_lab/cli/a.py": "from palmette.cli.common import fail\n",
        },
    )
    assert violations(tree) == []


def test_a_violation_names_file_and_line(tmp_path: Path) -> None:
    text = '// one\n#include <vector>\n#include "palmette/plan/step.hpp"\n'
    (found,) = violations(make_tree(tmp_path, {"src/palmette/topology/a.hpp": text}))
    assert str(found).startswith("src/palmette/topology/a.hpp:3: topology includes palmette/plan/step.hpp")
