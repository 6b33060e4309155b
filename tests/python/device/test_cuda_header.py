"""Numbers and layouts that are written down here are those of the real cuda.h."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from . import fake

CUDA_PACKAGE = "nvidia-cuda-runtime==13.*"


def cuda_header() -> Path:
    """Return the folder of the real cuda.h, of a small package of PyPI that is fetched once; skips without it."""
    folder = fake.ROOT / "build" / "cuda_header"
    include = folder / "nvidia" / "cu13" / "include"
    if not (include / "cuda.h").is_file():
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"),
                *("--target", str(folder), CUDA_PACKAGE),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode != 0:
            pytest.skip(f"no {CUDA_PACKAGE}: {done.stderr.strip()[-200:]}")
    return include


def test_numbers_and_layouts_are_those_of_the_real_header() -> None:
    include = cuda_header()
    compiler = os.environ.get("CXX", "c++")
    done = subprocess.run(
        [
            *(compiler, "-std=c++20", "-fsyntax-only", "-isystem", str(include), "-I", str(fake.ROOT / "src")),
            str(fake.ROOT / "tests" / "fakes" / "check_cuda_header.cpp"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
