"""Images as sixels, the graphics of DEC terminals that xterm, foot, mlterm, WezTerm, Windows Terminal and others show.

A sixel is a column of six pixels of one colour, encoded as a character from ``?`` (none of them set) on; ``!5~``
repeats one five times, ``#3`` chooses a colour, ``$`` goes back to the left, ``-`` to the next six rows. Source:
VT330/VT340 Programmer Reference Manual, volume 2, chapter 14.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["sixels"]

Colours = NDArray[np.uint8]

_ROWS = 6
_NOTHING = 63


def sixels(numbers: Colours, palette: Colours) -> str:
    """Return the text that draws an image.

    Parameters
    ----------
    numbers
        Colour index of each pixel, shape (height, width).
    palette
        Red, green and blue of each colour, shape (colours, 3), at most 256.
    """
    height, width = numbers.shape
    used = np.unique(numbers)
    colours = "".join(f"#{n};2;{';'.join(str(round(100 * int(c) / 255)) for c in palette[n])}" for n in used.tolist())
    bands = "-".join(_band(numbers[top : top + _ROWS]) for top in range(0, height, _ROWS))
    return f'\x1bP0;1;0q"1;1;{width};{height}{colours}{bands}\x1b\\'


def _band(rows: Colours) -> str:
    """Return six rows: one line of sixels for each colour in them, drawn over one another."""
    weights = (1 << np.arange(len(rows)))[:, np.newaxis]
    lines = []
    for colour in np.unique(rows).tolist():
        codes = _NOTHING + ((rows == colour) * weights).sum(axis=0)
        lines.append(f"#{colour}" + "".join(_runs(codes)))
    return "$".join(lines)


def _runs(codes: NDArray[np.int64]) -> Iterator[str]:
    ends = np.append(np.flatnonzero(np.diff(codes)) + 1, len(codes))
    start = 0
    for end in ends.tolist():
        character, length = chr(int(codes[start])), end - start
        yield f"!{length}{character}" if length > 3 else character * length
        start = end
