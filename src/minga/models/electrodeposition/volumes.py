"""Solids read from files: pictures of a plane, and arrays of the whole grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minga.case.files import find_file
from minga.errors import CaseError
from minga.models.electrodeposition.problem import INSULATOR

__all__ = ["read_image", "read_volume"]


def read_image(name: str, directory: Path, key: str) -> NDArray[np.bool_]:
    """Return where a PNG picture is darker than middle grey and not transparent; the first row is at the top."""
    from PIL import Image, UnidentifiedImageError

    path = find_file(name, directory, key)
    try:
        with Image.open(path) as picture:
            pixels = np.asarray(picture.convert("LA"))
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise CaseError(f"{name} cannot be read as a picture: {error}", key=key, remedy="give a PNG file") from error
    return np.asarray((pixels[..., 0] < 128) & (pixels[..., 1] >= 128))


def read_volume(name: str, shape: tuple[int, ...], directory: Path, key: str, *, marks: bool) -> NDArray[np.uint8]:
    """Return an array of the grid's shape from a .npy file.

    It holds the kind of every cell, 0 to 3, or, with `marks`, 1 where the cell is solid.
    """
    path = find_file(name, directory, key)
    if path.suffix != ".npy":
        raise CaseError(
            f"{name} is not a .npy file", key=key, remedy="write one with numpy.save, or give a PNG file as image"
        )
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise CaseError(f"{name} cannot be read: {error}", key=key, remedy="write it with numpy.save") from error
    if values.shape != shape:
        raise CaseError(
            f"{name} has the shape {list(values.shape)}, but the grid has {list(shape)}",
            key=key,
            remedy=f"give one value for each cell, or grid.shape = {list(values.shape)}",
        )
    if values.dtype.kind not in "bui":
        raise CaseError(f"{name} holds {values.dtype} numbers", key=key, remedy="give integers or booleans")
    if marks:
        return np.asarray(values != 0, np.uint8)
    if values.dtype.kind == "b":
        raise CaseError(
            f"{name} says which cells are solid, but not of which kind",
            key=key.removesuffix("file") + "kind",
            remedy='write kind = "cathode"',
        )
    if values.size and (values.min() < 0 or values.max() > INSULATOR):
        raise CaseError(
            f"{name} holds values from {values.min()} to {values.max()}",
            key=key,
            remedy="give 0 for solution, 1 cathode, 2 anode, 3 insulator, or the kind of all nonzero cells: "
            'kind = "cathode"',
        )
    return np.asarray(values).astype(np.uint8)
