"""The machine code of the reduction kernels: vector instructions, and none that would round differently.

What the compiler makes of a loop isn't to be seen in its results, so the disassembly of the library is read.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PALMETTE_TEST_BUILD", ROOT / "build" / "release"))

Code = dict[str, list[tuple[str, str]]]
"""Function without namespace and arguments -> its instructions: mnemonic and operands."""

FUNCTION = re.compile(r"^[0-9a-f]+ <void palmette::kernels::kernels_(?P<set>\w+)::(?P<name>.+)\(void const\*, .*\)>:$")
INSTRUCTION = re.compile(r"^\s+[0-9a-f]+:\t(?:[0-9a-f]{2} )+\s*\t(?P<mnemonic>\S+)\s*(?P<operands>[^#<]*)")

REGISTER = {"baseline": "xmm", "avx2": "ymm", "avx512": "zmm"}

# Loop -> what must be among its instructions, on vector registers; a leading v is AVX's.
EVERYWHERE = {
    "loop<Sum, float>": "addps",
    "loop<Sum, double>": "addpd",
    "loop<Prod, float>": "mulps",
    "loop<Prod, double>": "mulpd",
    "loop<Sum, unsigned char>": "paddb",
    "loop<Sum, unsigned short>": "paddw",
    "loop<Sum, unsigned int>": "paddd",
    "loop<Sum, unsigned long>": "paddq",
    "loop<Prod, unsigned short>": "pmullw",
    "loop<BitAnd, unsigned char>": "pand[dq]?",
    "loop<BitOr, unsigned int>": "por[dq]?",
    "loop<BitXor, unsigned long>": "pxor[dq]?",
    "loop<LogicalAnd, unsigned char>": "pcmp(eq|neq)b",
    "loop<LogicalOr, unsigned int>": "pcmp(eq|neq)d",
    "loop<LogicalXor, unsigned short>": "pcmp(eq|neq)w",
    "loop<Min, float>": "(minps|cmp\\w*ps)",
    "loop<Max, double>": "(maxpd|cmp\\w*pd)",
    "loop<Min, unsigned char>": "pminub",
    "loop<Max, short>": "pmaxsw",
    "loop<Min, int>": "(pminsd|pcmpgtd)",
    "complex_sum<float>": "addps",
    "bfloat16_loop<Sum>": "addps",
    "location_loop<Less, float, int>": "cmp\\w*ps",
}
# What SSE2 has no instruction for.
FROM_AVX2 = {
    "loop<Min, long>": "(pminsq|pcmpgtq)",
    "loop<Max, unsigned int>": "pmaxud",
    "location_loop<Greater, double, double>": "cmp\\w*pd",
}
BY_SET = {
    "baseline": {"complex_product<float>": "mulps", "float16_loop<Sum>": "addps"},
    "avx2": {"complex_product<double>": "mulpd", "float16_loop<Sum>": "addps", **FROM_AVX2},
    "avx512": FROM_AVX2,  # AVX2's loops serve for products of complex numbers
}


def disassembled(library: Path, objdump: str) -> dict[str, Code]:
    """Return instruction set -> code."""
    text = subprocess.run(
        [objdump, "--disassemble", "--demangle", library], check=True, capture_output=True, text=True
    ).stdout
    found: dict[str, Code] = {name: defaultdict(list) for name in REGISTER}
    current: list[tuple[str, str]] | None = None
    for line in text.splitlines():
        if line.endswith(">:"):
            start = FUNCTION.match(line)
            current = None
            if start is not None:
                name = start["name"].replace(f"palmette::kernels::kernels_{start['set']}::", "")
                current = found[start["set"]][name]
        elif current is not None and (instruction := INSTRUCTION.match(line)) is not None:
            current.append((instruction["mnemonic"], instruction["operands"]))
    return found


@pytest.fixture(scope="module")
def code() -> dict[str, Code]:
    """The kernels of the build."""
    if os.uname().machine != "x86_64":
        pytest.skip("the instructions looked for are those of x86-64")
    objdump = shutil.which("objdump")
    if objdump is None:
        pytest.skip("no objdump: it comes with binutils")
    library = BUILD / "libpalmette_kernels.a"
    if not library.is_file():
        pytest.skip(f"no {library}: run `make build`")
    if b"__asan_init" in library.read_bytes():
        pytest.skip("a sanitizer's checks stand in the way of vector code")
    return disassembled(library, objdump)


@pytest.mark.parametrize("instruction_set", REGISTER)
def test_loops_are_vector_code(code: dict[str, Code], instruction_set: str) -> None:
    scalar = []
    for loop, mnemonic in {**EVERYWHERE, **BY_SET[instruction_set]}.items():
        instructions = code[instruction_set].get(loop)
        assert instructions, f"{loop} isn't in the library; those are: {sorted(code[instruction_set])}"
        register = REGISTER[instruction_set]
        if not any(re.fullmatch(f"v?{mnemonic}", name) and register in operands for name, operands in instructions):
            scalar.append(f"{loop}: no {mnemonic} on {register}")
    assert not scalar, "\n".join(scalar)


@pytest.mark.parametrize("instruction_set", ["avx2", "avx512"])
def test_halves_are_converted_by_the_processor(code: dict[str, Code], instruction_set: str) -> None:
    for op in ("Sum", "Prod", "Min", "Max"):
        names = {name for name, _ in code[instruction_set][f"float16_loop<{op}>"]}
        assert {"vcvtph2ps", "vcvtps2ph"} <= names


def test_nothing_is_fused(code: dict[str, Code]) -> None:
    fused = [
        f"{instruction_set} {loop}: {name}"
        for instruction_set, loops in code.items()
        for loop, instructions in loops.items()
        for name, _ in instructions
        if re.match(r"vfn?m(add|sub)", name)
    ]
    assert not fused, "results would depend on the processor:\n" + "\n".join(fused)


def test_each_instruction_set_has_code_of_its_own(code: dict[str, Code]) -> None:
    assert {name: len(loops) > 60 for name, loops in code.items()} == dict.fromkeys(REGISTER, True)
    for loops, unknown in ((code["baseline"], "[yz]mm"), (code["avx2"], "zmm")):
        for loop, instructions in loops.items():
            assert not any(re.search(unknown, operands) for _, operands in instructions), f"{loop} uses {unknown}"
