"""What is looked at: a phantom of ellipsoids, or a head."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Volume = NDArray[np.float32]

# Value, half axes, centre, turn around z in degrees: Shepp and Logan's ellipsoids in three dimensions (Kak and Slaney),
# with the contrasts of Toft.
ELLIPSOIDS = (
    (1.0, (0.69, 0.92, 0.81), (0.0, 0.0, 0.0), 0.0),
    (-0.8, (0.6624, 0.874, 0.78), (0.0, -0.0184, 0.0), 0.0),
    (-0.2, (0.11, 0.31, 0.22), (0.22, 0.0, 0.0), -18.0),
    (-0.2, (0.16, 0.41, 0.28), (-0.22, 0.0, 0.0), 18.0),
    (0.1, (0.21, 0.25, 0.41), (0.0, 0.35, -0.15), 0.0),
    (0.1, (0.046, 0.046, 0.05), (0.0, 0.1, 0.25), 0.0),
    (0.1, (0.046, 0.046, 0.05), (0.0, -0.1, 0.25), 0.0),
    (0.1, (0.046, 0.023, 0.05), (-0.08, -0.605, 0.0), 0.0),
    (0.1, (0.023, 0.023, 0.02), (0.0, -0.606, 0.0), 0.0),
    (0.1, (0.023, 0.046, 0.02), (0.06, -0.605, 0.0), 0.0),
)


def shepp_logan(cells: int, slices: int) -> Volume:
    """Return the phantom's middle, as rows x columns x slices."""
    axis = (np.arange(cells) + 0.5) / cells * 2 - 1
    y, x, z = np.meshgrid(-axis, axis, (np.arange(slices) + 0.5) / slices - 0.5, indexing="ij")
    out = np.zeros_like(x)
    for value, half, centre, degrees in ELLIPSOIDS:
        angle = np.deg2rad(degrees)
        dx, dy = x - centre[0], y - centre[1]
        along, across = dx * np.cos(angle) + dy * np.sin(angle), dy * np.cos(angle) - dx * np.sin(angle)
        out[(along / half[0]) ** 2 + (across / half[1]) ** 2 + ((z - centre[2]) / half[2]) ** 2 <= 1] += value
    return out.astype(np.float32)


def head(cells: int, slices: int) -> Volume:
    """Return slices of the MNI template, an average of 152 heads, which is in nilearn's wheel."""
    import nibabel

    found = importlib.util.find_spec("nilearn")
    if found is None or found.origin is None:
        raise SystemExit("the head is in nilearn's wheel: pip install nilearn, or take --object shepp-logan")
    folder = Path(found.origin).parent / "datasets" / "data"
    brain = nibabel.load(folder / "mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz").get_fdata(dtype=np.float32)
    brain = np.rot90(brain)
    side = max(brain.shape[:2])
    square = np.zeros((side, side, brain.shape[2]), dtype=np.float32)
    above, left = (side - brain.shape[0]) // 2, (side - brain.shape[1]) // 2
    square[above : above + brain.shape[0], left : left + brain.shape[1]] = brain
    # Cells of the template that are nearest to the centres of ours; the disc leaves a margin.
    at = np.clip(((np.arange(cells) + 0.5) / cells * 1.1 - 0.05) * side, 0, side - 1).astype(int)
    levels = ((np.arange(slices) + 0.5) / slices * 0.4 + 0.35) * brain.shape[2]
    out = square[np.ix_(at, at, levels.astype(int))]
    return np.ascontiguousarray(out / out.max())


OBJECTS = {"shepp-logan": shepp_logan, "head": head}
