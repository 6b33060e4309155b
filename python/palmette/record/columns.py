"""Columns of numbers in a page's document: little-endian raw values, compressed, as text."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import numpy as np
from numpy.typing import NDArray


def packed(values: NDArray[Any], kind: str) -> str:
    """Return a column of `kind` (numpy's code, such as u4) as base64 of gzip. Values beyond the kind's are cut off."""
    dtype = np.dtype(kind).newbyteorder("<")
    if dtype.kind in "ui":
        limits = np.iinfo(dtype)
        values = np.clip(np.nan_to_num(np.asarray(values)), limits.min, limits.max)
    # A fixed time stamp: the same run gives the same page.
    return base64.b64encode(gzip.compress(np.ascontiguousarray(values).astype(dtype).tobytes(), 6, mtime=0)).decode()


def unpacked(text: str, kind: str) -> NDArray[Any]:
    """Return the values of such a column."""
    return np.frombuffer(gzip.decompress(base64.b64decode(text)), np.dtype(kind).newbyteorder("<"))
