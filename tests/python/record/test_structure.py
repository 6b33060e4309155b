"""Functions, inlined calls and loops of planted programs, at each level of optimisation, by each reader."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from palmette.record.structure import module as module_of
from palmette.record.structure.branches import Code, Disassembler, Instruction
from palmette.record.structure.loops import Nest
from palmette.record.structure.module import CodePosition, Module

PROGRAMS = Path(__file__).parent / "programs"
MARK = re.compile(r"(?:/\*|//|!) (loop|in) ([^*\n]+?)(?: \*/)?$")
COMPILERS = {
    ".c": ("cc", "gcc", "clang"), ".cpp": ("c++", "g++", "clang++"), ".f90": ("gfortran",), ".rs": ("rustc",),
}  # fmt: skip
LEVELS = ("0", "1", "2", "3")


def compiled(source: Path, folder: Path, level: str, *more: str) -> Path:
    """Compile a program with debug information."""
    compiler = next((found for name in COMPILERS[source.suffix] if (found := shutil.which(name))), None)
    if compiler is None:
        pytest.skip(f"no compiler of {source.suffix[1:]}")
    program = folder / f"{source.stem}{source.suffix[1:]}{level}"
    if source.suffix == ".rs":
        command = [compiler, "-g", "-C", f"opt-level={level}", *more, str(source), "-o", str(program)]
    else:
        command = [compiler, "-g", f"-O{level}", *more, str(source), "-o", str(program)]
    made = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if made.returncode and source.suffix == ".rs" and "linker" in made.stderr:
        pytest.skip("rustc can't link here")
    assert made.returncode == 0, made.stderr
    return program


def marks(source: Path) -> dict[int, str]:
    """Return what is around the marked statements, by line: names of functions and `loop at FILE:LINE`."""
    found = [(number, MARK.search(text)) for number, text in enumerate(source.read_text("utf-8").splitlines(), 1)]
    loops = {mark[2]: f"loop at {source.name}:{number}" for number, mark in found if mark and mark[1] == "loop"}
    # Of functions with spaces in their names the words are one.
    return {
        number: " > ".join(
            loops.get(word, word) for word in mark[2].replace("(anonymous namespace)", "(anonymous~namespace)").split()
        ).replace("~", " ")
        for number, mark in found if mark and mark[1] == "in"
    }  # fmt: skip


def instructions(program: Path) -> Iterator[int]:
    """Give the addresses of all instructions of the program's functions; of Rust's library none."""
    with program.open("rb") as file:
        elf = ELFFile(file)
        text = elf.get_section_by_name(".text")
        begin, data = text["sh_addr"], text.data()
        symbols = list(elf.get_section_by_name(".symtab").iter_symbols())
        is_rust = any("7planted4main" in one.name for one in symbols)
        parts = {
            (one["st_value"], data[one["st_value"] - begin :][: one["st_size"]])
            for one in symbols
            if one["st_info"]["type"] == "STT_FUNC" and one["st_size"] and begin <= one["st_value"] < begin + len(data)
            and (not is_rust or "7planted" in one.name)
        }  # fmt: skip
        disassembler = Disassembler(elf["e_machine"], is_little_endian=elf.little_endian)
    yield from (one.address for one in disassembler.read([Code(tuple(sorted(parts)))])[0])


def told(around: list[CodePosition]) -> tuple[int, str]:
    """Return the innermost line, and the functions and loops around it as `marks` has them."""
    words = []
    for one in reversed(around):
        words += [re.sub(r"(?<=[\w>])\(.*\)( const)?$", "", one.function), *(loop[0] for loop in one.loops)]
    return around[0].line, " > ".join(words)


def by_line(program: Path, source: Path) -> dict[int, Counter[str]]:
    """Return what is around the instructions of each line, with how many of them."""
    addresses = list(instructions(program))
    with closing(Module(program)) as module:
        found = dict(module.places(addresses)) | dict(module.loops(addresses))
    assert not [note for note in module.notes if "libdw isn't here" not in note], module.notes
    lines: dict[int, Counter[str]] = defaultdict(Counter)
    for around in found.values():
        if Path(around[0].file).name == source.name:
            line, text = told(around)
            lines[line][text] += 1
    return lines


def is_part(found: list[str], whole: list[str]) -> bool:
    # What a function is inlined in is nobody's mark.
    found = found[next((at for at, word in enumerate(found) if word == whole[0]), 0) :]
    left = iter(whole)
    return all(word in left for word in found)


def check(program: Path, source: Path) -> None:
    """Compare what is around marked statements. An optimiser moves some of their instructions out of loops, and makes
    copies for first and last elements: these have fewer loops around them, and never others.
    """
    lines = by_line(program, source)
    wrong = []
    for number, expected in marks(source).items():
        counts = lines[number]
        whole = expected.split(" > ")
        is_there = any(found.endswith(expected) for found in counts)
        if not is_there or not all(is_part(found.split(" > "), whole) for found in counts):
            wrong.append(f"{source.name}:{number}: {expected!r} wanted, {dict(counts)} found")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("suffix", list(COMPILERS))
def test_planted_loops_and_inlined_calls(tmp_path: Path, suffix: str, level: str) -> None:
    source = PROGRAMS / f"planted{suffix}"
    check(compiled(source, tmp_path, level), source)


@pytest.mark.parametrize("suffix", [".c", ".cpp"])
def test_without_libdw_the_same_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    source = PROGRAMS / f"planted{suffix}"
    program = compiled(source, tmp_path, "2")
    with_libdw = by_line(program, source)

    def none(path: Path) -> None:
        raise OSError(f"{path}: no libdw")

    monkeypatch.setattr(module_of, "Libdw", none)
    assert by_line(program, source) == with_libdw


@pytest.mark.parametrize(
    "more",
    [("-no-pie",), ("-gdwarf-4",), ("-gz",), ("-gsplit-dwarf",), ("-gsplit-dwarf", "-gdwarf-4"),
     ("-ffunction-sections", "-Wl,--gc-sections")],
    ids=["fixed address", "dwarf 4", "compressed", "split", "split dwarf 4", "sections"],
)  # fmt: skip
def test_other_forms_of_files(tmp_path: Path, more: tuple[str, ...]) -> None:
    source = PROGRAMS / "planted.c"
    check(compiled(source, tmp_path, "1", *more), source)


@pytest.mark.parametrize("way", ["link", "build id", "debuginfod"])
def test_separate_debug_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    if shutil.which("objcopy") is None:
        pytest.skip("no binutils")
    source = PROGRAMS / "planted.c"
    program = compiled(source, tmp_path, "1", "-Wl,--build-id")
    wanted = by_line(program, source)
    debug = tmp_path / "planted.debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["objcopy", "--strip-debug", program], check=True)
    assert not by_line(program, source)
    with program.open("rb") as file:
        from palmette.record.structure.symbol_table import build_id

        number = build_id(ELFFile(file))
    if way == "link":
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True, cwd=tmp_path)
    elif way == "build id":
        from palmette.record.structure import debug_files

        monkeypatch.setattr(debug_files, "DEBUG", tmp_path / "debug")
        (tmp_path / "debug/.build-id" / number[:2]).mkdir(parents=True)
        debug.rename(tmp_path / "debug/.build-id" / number[:2] / f"{number[2:]}.debug")
    else:
        monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
        (tmp_path / "cache" / number).mkdir(parents=True)
        debug.rename(tmp_path / "cache" / number / "debuginfo")
    assert by_line(program, source) == wanted


def test_without_debug_information_functions_and_loops_are_told_by_addresses(tmp_path: Path) -> None:
    program = compiled(PROGRAMS / "planted.c", tmp_path, "1")
    subprocess.run(["strip", "--strip-debug", program], check=True)
    with closing(Module(program)) as module:
        looped = dict(module.loops(list(instructions(program))))
    depths = Counter(around[0].function for around in looped.values() if len(around[0].loops) == 2)
    assert depths["stencil"] and depths["matrix_sum"] and depths["interpret"]
    assert all(re.fullmatch(r"loop at \+0x[0-9a-f]+", loop[0]) for one in looped.values() for loop in one[0].loops)


@pytest.mark.parametrize(
    ("successors", "innermost", "outer"),
    [
        # 0 -> 1 <-> 2, out to 3
        ([[1], [2, 3], [1], []], [-1, 1, 1, -1], {1: -1}),
        # A loop in a loop.
        ([[1], [2], [2, 3], [1, 4], []], [-1, 1, 2, 1, -1], {1: -1, 2: 1}),
        # Two that leave together, and one that goes on in the middle.
        ([[1], [2], [3, 1], [1, 4], []], [-1, 1, 1, 1, -1], {1: -1}),
        # By itself.
        ([[0, 1], []], [0, -1], {0: -1}),
        # Two entries: one loop.
        ([[1, 2], [2], [1, 3], []], [-1, 1, 1, -1], {1: -1}),
    ],
    ids=["one", "nested", "continued", "itself", "two entries"],
)
def test_nests_of_blocks(successors: list[list[int]], innermost: list[int], outer: dict[int, int]) -> None:
    nest = Nest(successors, [0])
    assert nest.innermost == innermost
    assert {header: nest.outer(header) for header in outer} == outer


def test_deep_chains_of_blocks_are_no_recursion() -> None:
    count = 20000
    nest = Nest([[at + 1, 0] for at in range(count)] + [[]], [0])
    assert nest.innermost == [0] * count + [-1]


def test_branches_of_parts_of_a_function_lead_from_one_to_the_other() -> None:
    if shutil.which("objdump") is None:
        pytest.skip("no binutils")
    # test %edi,%edi; jne 0x1000 + 0x0ffc; ret, and far from it: nop; jmp 0x1008
    hot = bytes.fromhex("85ff 0f85f60f0000 c3".replace(" ", ""))
    cold = bytes.fromhex("90 e902f0ffff".replace(" ", ""))
    (found,) = Disassembler("EM_X86_64", is_little_endian=True).read([Code(((0x1000, hot), (0x1FFE, cold)))])
    assert [one.kind for one in found] == ["", "conditional", "leave", "", "jump"]
    assert found[1] == Instruction(0x1002, 0x1008, 0x1FFE, "conditional")
    assert found[4].target == 0x1006
