"""What the observables of an automaton are: counts and values of cells, which have no units."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from minga.models.observed import quantities

__all__ = ["units_of"]

_WORDS: Final = {
    "population": "cells that are not 0",
    "histogram": "cells of each state",
    "entropy": "entropy of the histogram, bits",
    "sum": "sum over all cells",
    "mean": "mean over all cells",
    "min": "least value of a cell",
    "max": "largest value of a cell",
    "residual": "what the last step changed: cells, or of floats the largest change",
    "changed": "cells that the last step changed",
    "bounding_box": "lowest, then highest indices of cells that are not 0",
    "avalanches": "avalanches that are over",
    "avalanche_size": "size of the last avalanche",
    "avalanche_duration": "steps of the last avalanche",
    "avalanche_largest": "size of the largest avalanche",
    "avalanche_sizes": "avalanches by size, in powers of two",
}


def units_of(names: Iterable[str], fields: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Units and descriptions of observables by name; with several fields their names stand before."""
    known = {name: ("1", words) for name, words in _WORDS.items()}
    known |= {f"{field}_{name}": ("1", f"{words}, of {field}") for field in fields for name, words in _WORDS.items()}
    return quantities(names, {**known, "*": ("1", "{}, as the case defines it")})
