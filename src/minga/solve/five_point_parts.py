"""The entries of a matrix on a grid of two axes, field by field: where they lie, and how equations are scaled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minga.solve.five_point import FivePoint
from minga.solve.refinement import Term
from minga.space.field import Field

__all__ = ["Part", "parts_of", "scales", "terms"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Part:
    """One field of the matrix: entry (i, j) of the blocks that lead `offset` cells away, in the cells `inside`."""

    field: Field
    equation: int
    unknown: int
    inside: tuple[slice, slice]
    offset: tuple[int, int]

    @property
    def there(self) -> tuple[slice, ...]:
        """The cells of the unknown."""
        return tuple(slice(s.start + d, s.stop + d) for s, d in zip(self.inside, self.offset, strict=True))


def parts_of(matrix: FivePoint) -> list[Part]:
    """Return all fields of a matrix, with the entries that do not reach beyond the grid."""
    k, (rows, columns) = matrix.unknowns, matrix.grid.shape
    everywhere = (slice(0, rows), slice(0, columns))
    full = [(i, j) for i in range(k) for j in range(k)]
    found = [Part(item, i, j, everywhere, (0, 0)) for item, (i, j) in zip(matrix.diagonal, full, strict=True)]
    for axis, size in enumerate(matrix.grid.shape):
        for part, inside, offset in (
            (matrix.lower[axis], slice(1, size), -1),
            (matrix.upper[axis], slice(0, size - 1), 1),
        ):
            cells = (inside, everywhere[1]) if axis == 0 else (everywhere[0], inside)
            way = (offset, 0) if axis == 0 else (0, offset)
            found += [Part(item, i, j, cells, way) for item, (i, j) in zip(part, matrix.places, strict=True)]
    return found


def scales(parts: Sequence[Part], values: Mapping[Field, Floats], k: int, shape: tuple[int, ...]) -> Floats:
    """Return a power of two for each equation that brings its largest entry near 1, of shape (k, rows, columns)."""
    largest = np.zeros((k, *shape))
    for part in parts:
        inside = (part.equation, *part.inside)
        largest[inside] = np.maximum(largest[inside], np.abs(values[part.field][part.inside]))
    with np.errstate(invalid="ignore"):
        exponents = np.frexp(np.where(np.isfinite(largest) & (largest > 0.0), largest, 1.0))[1]
    scale: Floats = np.ldexp(1.0, np.clip(-exponents, -1000, 1000))
    return scale


def terms(parts: Sequence[Part], values: Mapping[Field, Floats], scale: Floats) -> list[Term]:
    """Return the entries of a matrix, its equations scaled."""
    return [
        Term(p.equation, p.unknown, p.inside, p.there, (scale[p.equation] * values[p.field])[p.inside]) for p in parts
    ]
