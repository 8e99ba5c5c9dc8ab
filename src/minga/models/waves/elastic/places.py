"""Points on the staggered grid: the cells of a component that represent a point, with their weights.

Weights are those of `minga.models.waves.interpolation`, at each component's own places. Cells beyond the ends are taken
by those that the component's image there consists of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.waves.boundary import Free, Pairs, Rigid
from minga.models.waves.domain import Domain
from minga.models.waves.elastic.layout import Component, images
from minga.models.waves.elastic.stencils import Image, extrapolated
from minga.models.waves.interpolation import Interpolation, Placed, reach, taps
from minga.models.waves.medium import Floats

__all__ = ["place_component"]

_SOURCE: Final = "source"


def place_component(
    point: Sequence[float],
    component: Component,
    domain: Domain,
    faces: Pairs,
    interpolation: Interpolation,
    what: str,
) -> Placed:
    """Return the cells of a component that represent a point inside the model.

    Parameters
    ----------
    point
        Position along each axis, m from the first cell of the model.
    component
        The component.
    domain
        Domain of the waves.
    faces
        Boundaries of all faces.
    interpolation
        "sinc" or "linear".
    what
        "source" or "receiver": near a free surface a source of stress leaves out the surface itself, where stress is
        prescribed, and a force on the surface acts on half a cell.
    """
    first, weights, base = [], [], []
    for axis, (x, h) in enumerate(zip(point, domain.spacing, strict=True)):
        place = x / h - (0.5 if component.half[axis] else 0.0)
        below, cells, found = taps(place, interpolation)
        layer, length = domain.low[axis], domain.cells[axis]
        cells = cells + layer
        low, high = images(component, axis, faces)
        surface = axis == 0 and isinstance(faces[0][0], Free)
        start = 0
        if surface and component.normal:
            start, low = int(what == _SOURCE), extrapolated(int(what == _SOURCE))
        if not ((cells >= start) & (cells < length)).all():
            if domain.periodic[axis]:
                raise _too_near(domain, axis, reach(len(cells)))
            cells, found = _folded(cells, found, (start, length), (low, high))
        if surface and what == _SOURCE and component.velocity and not component.half[0]:
            found = np.where(cells == 0, 2.0 * found, found)
        if component.half[axis] and isinstance(faces[axis][1], Rigid):
            found = np.where(cells == length - 1, 0.0, found)  # these places lie on the wall, where it is 0
        first.append(int(cells[0]))
        weights.append(np.round(found, 12))
        base.append(min(max(below + layer, 0), length - 1))
    return Placed(tuple(first), tuple(weights), tuple(base))


def _folded(
    cells: NDArray[np.int64], weights: Floats, ends: tuple[int, int], beyond: tuple[Image, Image]
) -> tuple[NDArray[np.int64], Floats]:
    """Return cells between two ends and their weights, with those beyond taken by the cells of their images."""
    start, length = ends
    found: dict[int, float] = {}
    for cell, weight in zip(cells.tolist(), weights.tolist(), strict=True):
        if cell < start:
            shares = {n: float(factor) for n, factor in beyond[0](-cell).items()}
        elif cell >= length:
            shares = {length - 1 - n: float(factor) for n, factor in beyond[1](cell - length + 1).items()}
        else:
            shares = {cell: 1.0}
        for n, share in shares.items():
            found[n] = found.get(n, 0.0) + share * weight
    kept = np.arange(min(found, default=start), max(found, default=start) + 1)
    return kept, np.array([found.get(cell, 0.0) for cell in kept.tolist()])


def _too_near(domain: Domain, axis: int, near: str) -> CaseError:
    return CaseError(
        f"a point lies within {near} of the periodic ends of {domain.axes[axis]}",
        key="elastic.boundary",
        remedy="put it farther inside: components lie between cells, and need the cells around them",
    )
