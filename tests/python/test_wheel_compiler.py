"""What depends on a compiler is compiled, and told to the linker, by that of the wheels, too: PyPI's ziglang.

`make wheel` compiles everything by it and takes long; these are the sources that speak to the processor, and each set
of the linker's options, with the flags of build/release.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
ZIG = importlib.util.find_spec("ziglang")

pytestmark = [
    pytest.mark.skipif(ZIG is None, reason="ziglang isn't here: make build brings it"),
    pytest.mark.skipif(not (BUILD / "compile_commands.json").is_file(), reason="build/release isn't configured"),
]

TELLING = re.compile(
    r'attribute__\(\(target|\basm volatile\("\w|\basm\("\w+ #|__builtin_(ia32|cpu)|intrin\.h>|cpuid\.h>'
)
"""What a source has that speaks to the processor."""
OF_GCC = {"-fpch-preprocess", "-Winvalid-pch", "-Werror", "-DNDEBUG"}


def zig(words: list[str], source: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Compile a source as a wheel's build does, without optimizing."""
    assert ZIG is not None and ZIG.submodule_search_locations
    name = "cc" if source.suffix == ".c" else "c++"
    command = [ROOT / "tools" / "zig" / name, *words, "-O0", "-g0", "-fno-sanitize=all"]
    return subprocess.run(
        [*command, "-c", source, "-o", folder / "made.o"],
        env=os.environ | {"PALMETTE_ZIG": str(Path(ZIG.submodule_search_locations[0]) / "zig")},
        cwd=BUILD if BUILD.is_dir() else folder,
        capture_output=True,
        text=True,
        check=False,
    )


def sources_of(compiled: Path) -> list[Path]:
    """Return what is compiled as `compiled`: itself, or the sources of a batch that CMake has written."""
    if compiled.parent.name != "Unity":
        return [compiled]
    return [Path(name) for name in re.findall(r'^#include "(.+)"$', compiled.read_text(encoding="utf-8"), re.MULTILINE)]


@cache
def flags() -> dict[str, list[str]]:
    """Return the compiler's flags for each source of src, by its path; the first ABI's where there are several."""
    if not (BUILD / "compile_commands.json").is_file():
        return {}
    found: dict[str, list[str]] = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8")):
        words = shlex.split(entry["command"])
        sources = [source for source in sources_of(Path(entry["file"])) if source.is_relative_to(ROOT / "src")]
        if not sources or "/smpi/" in entry["command"]:
            continue
        words = words[next(at for at, word in enumerate(words) if word.startswith("-")) : words.index("-o")]
        kept = [word for word in words if word not in OF_GCC and not word.startswith("-O")]
        for at in [at for at, word in enumerate(kept) if "cmake_pch" in word]:
            kept[at - 1 : at + 1] = ["", ""]
        for source in sources:
            found.setdefault(str(source.relative_to(ROOT)), [word for word in kept if word])
    return found


def telling() -> list[str]:
    """Return the sources that speak to the processor or are compiled for some; for a header, one that includes it."""
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in sorted(flags())}
    chosen = {path for path, text in texts.items() if TELLING.search(text)}
    chosen |= {path for path, words in flags().items() if any(word.startswith("-m") for word in words)}
    for header in [file for suffix in ("hpp", "h") for file in (ROOT / "src").rglob(f"*.{suffix}")]:
        if TELLING.search(header.read_text(encoding="utf-8")):
            including = re.compile(rf'#include "(\S+/)?{re.escape(header.name)}"')
            users = [path for path, text in texts.items() if including.search(text)]
            if not chosen.intersection(users):
                chosen.update(users[:1])
    return sorted(chosen)


def link_options() -> list[str]:
    """Return the different options with which what lies in the package is linked."""
    if not (BUILD / "build.ninja").is_file():
        return []
    text = (BUILD / "build.ninja").read_text(encoding="utf-8")
    edge = r"^build (\S+): \w+_(?:SHARED|MODULE|EXECUTABLE)\w*_LINKER\S* .*\n((?:  .*\n)*)"
    found = re.findall(edge, text, re.MULTILINE)
    return sorted(
        {
            options[1]
            for output, variables in found
            if not output.startswith(("tests/", "studies/", "bin/simbench"))
            and (options := re.search(r"^  LINK_FLAGS = (.+)$", variables, re.MULTILINE))
        }
    )


@pytest.mark.parametrize("path", telling())
def test_it_compiles_what_speaks_to_the_processor(path: str, tmp_path: Path) -> None:
    done = zig(flags()[path], ROOT / path, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


def test_its_linker_knows_every_option(tmp_path: Path) -> None:
    source = tmp_path / "empty.c"
    source.write_text("int nothing;\n")
    assert len(link_options()) >= 3
    for options in link_options():
        # Options are read before anything is done, and nothing has to be linked for that.
        done = zig(shlex.split(options), source, tmp_path)
        assert done.returncode == 0, f"{options}: {done.stderr[-1000:]}"


@pytest.mark.parametrize(("script", "library"), [("exports", "mpich"), ("exports_record", "record_mpich")])
def test_each_name_that_a_version_script_says_is_in_its_library(script: str, library: str) -> None:
    # The wheels' linker refuses others; GNU's leaves them out without a word.
    text = re.sub(r"#.*", "", (ROOT / "cmake" / f"{script}.map").read_text(encoding="utf-8"))
    names = {name for name in re.findall(r"[\w*]+(?=;)", text) if "*" not in name}
    path = ROOT / "python" / "palmette" / "lib" / f"libpalmette_{library}.so"
    if not path.is_file():
        pytest.skip(f"{path} isn't built")
    there = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    assert names <= {line.split()[-1].partition("@")[0] for line in there.splitlines()}


def test_an_instruction_without_its_feature_and_an_unknown_option_are_found(tmp_path: Path) -> None:
    source = tmp_path / "crc.c"
    source.write_text(
        "#include <nmmintrin.h>\n"
        '__attribute__((target("sse4.2"))) unsigned next(unsigned a, unsigned char b) { return _mm_crc32_u8(a, b); }\n'
    )
    if os.uname().machine == "x86_64":
        assert "target feature" in zig([], source, tmp_path).stderr
    source.write_text("int nothing;\n")
    assert "exclude-libs" in zig(["-shared", "-Wl,--exclude-libs,ALL"], source, tmp_path).stderr


def test_the_sources_that_are_known_to_speak_to_the_processor_are_among_them() -> None:
    wanted = {"src/palmette/aggregate/crc32c.cpp", "src/palmette/kernels/avx2.cpp", "src/palmette/kernels/kernels.cpp"}
    assert wanted <= set(telling())
