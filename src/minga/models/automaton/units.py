"""Units and descriptions of the observables of an automaton: counts and values of cells, which have no units."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from minga.case.observed import quantities

__all__ = ["units_of"]

_WORDS: Final = {
    "population": "cells that are not 0",
    "histogram": "cells of each state",
    "entropy": "entropy of the histogram, bits",
    "sum": "sum over all cells",
    "mean": "mean over all cells",
    "min": "least value of a cell",
    "max": "largest value of a cell",
    "residual": "change in the last step: number of cells, or for floats the largest change",
    "changed": "cells that the last step changed",
    "bounding_box": "lowest, then highest indices of cells that are not 0",
    "avalanches": "finished avalanches",
    "avalanche_size": "size of the last avalanche",
    "avalanche_duration": "steps of the last avalanche",
    "avalanche_largest": "size of the largest avalanche",
    "avalanche_sizes": "avalanches by size, in powers of two",
}


def units_of(names: Iterable[str], fields: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return units and descriptions of observables by name; with several fields the names begin with the field."""
    known = {name: ("1", words) for name, words in _WORDS.items()}
    known |= {f"{field}_{name}": ("1", f"{words}, of {field}") for field in fields for name, words in _WORDS.items()}
    return quantities(names, {**known, "*": ("1", "{}, as the case defines it")})
