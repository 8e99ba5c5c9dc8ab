"""Pictures as cells: states read from PNG files.

A picture with a palette holds states: the number of a pixel's colour is the state of the cell, as in the pictures and
PNG files that minga makes of states. In a grey-level picture black is state 0, white is the highest state, and the
others lie evenly between, rounded to the nearest; cells of floats get 0 for black and 1 for white. The picture's upper
left pixel is the first cell.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError

__all__ = ["read_picture"]

MOST_PIXELS: Final = 1 << 28
_WHITE: Final = {"1": 255, "L": 255, "I;16": 65535, "I": 65535, "RGB": 255, "RGBA": 255, "LA": 255}


def read_picture(path: Path, states: int | None, key: str) -> NDArray[Any]:
    """Read the cells of a PNG file: whole numbers below `states`, or f8 from 0 to 1 if `states` is None.

    Raises
    ------
    CaseError
        If the file is not a PNG file, or the picture is in colour.
    """
    from PIL import Image

    try:
        with Image.open(path, formats=("PNG",)) as image:
            if image.width * image.height > MOST_PIXELS:
                raise CaseError(f"{path.name} is {image.width} x {image.height} pixels large", key=key)
            mode = image.mode
            pixels = np.asarray(image.convert("L") if mode == "1" else image)
    except CaseError:
        raise
    except Exception as error:  # a damaged file may fail in many ways
        raise CaseError(f"{path.name} is not a readable PNG picture: {error}", key=key) from error
    if mode == "P":
        return pixels
    if mode not in _WHITE:
        raise CaseError(f"{path.name} is a picture of kind {mode}", key=key, remedy="save it with grey levels")
    if pixels.ndim == 3:
        colours = pixels[..., :3] if mode in ("RGB", "RGBA") else pixels[..., :1]
        if (colours != colours[..., :1]).any():
            raise CaseError(
                f"{path.name} is in colour, and colours do not tell which state they stand for",
                key=key,
                remedy="save it with a palette, whose colours are numbered as the states, or in grey",
            )
        pixels = colours[..., 0]
    level = pixels.astype(np.float64) / _WHITE[mode]
    return level if states is None else np.floor(level * (states - 1) + 0.5)
