"""Pairs generated in a device, from a table of positions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.photodiode.structure.mesh import Mesh

__all__ = ["Pairs"]

Floats = NDArray[np.float64]

_KEY: Final = "photodiode.light.generation"


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs generated at the points of a rectangular table, interpolated linearly along each axis.

    Parameters
    ----------
    name
        Name of the table, for messages.
    places
        Ascending positions along x, or along x and y, in cm, f8 of shape (K,) each, two or more; they reach from end to
        end of the device.
    values
        Pairs, 1/cm3 s, f8 of shape (K,), or (K, L) with two axes.
    """

    name: str
    places: tuple[Floats, ...]
    values: Floats

    def over(self, *meshes: Mesh) -> Floats:
        """Return the mean over each node's volume, which is exact for what the table describes.

        Parameters
        ----------
        *meshes
            Meshes along the axes of the device.

        Returns
        -------
        numpy.ndarray
            Pairs at the nodes, 1/cm3 s, f8.

        Raises
        ------
        CaseError
            If the table has other axes than the device, or does not reach from end to end.
        """
        if len(meshes) != len(self.places):
            raise CaseError(
                f"{self.name} has {' and '.join('xy'[: len(self.places)])}, the device has "
                f"{'one axis' if len(meshes) == 1 else 'two axes'}",
                key=_KEY,
                remedy="give columns x, G for one axis, and x, y, G for two",
            )
        found = self.values
        for axis, (mesh, places) in enumerate(zip(meshes, self.places)):
            self._check("xy"[axis], mesh, places)
            found = np.moveaxis(_means(np.moveaxis(found, axis, 0), places, mesh), 0, axis)
        return np.ascontiguousarray(found)

    def _check(self, axis: str, mesh: Mesh, places: Floats) -> None:
        start, end = mesh.ends
        if places[0] > start + mesh.room or places[-1] < end - mesh.room:
            raise CaseError(
                f"{self.name} reaches from {1e4 * places[0]:g} to {1e4 * places[-1]:g} um along {axis}, the device "
                f"from {1e4 * start:g} to {1e4 * end:g} um",
                key=_KEY,
                remedy="add the missing points, with G = 0 where there is no light",
            )


def _means(values: Floats, places: Floats, mesh: Mesh) -> Floats:
    """Return the means over the cells of a mesh of what is piecewise linear along the first axis."""
    inner = places[(places > mesh.faces[0]) & (places < mesh.faces[-1])]
    cuts = np.unique(np.concatenate((mesh.faces, inner)))
    low, high = cuts[:-1], cuts[1:]
    middle = 0.5 * (low + high)
    # Simpson's rule is exact: the product of two linear functions is a parabola.
    parts = sum(
        _column(weight * (2.0 * math.pi * at if mesh.radial else 1.0) * (high - low) / 6.0, values)
        * _between(values, places, at)
        for at, weight in ((low, 1.0), (middle, 4.0), (high, 1.0))
    )
    owners = np.searchsorted(mesh.faces, middle, side="right") - 1
    found = np.zeros((mesh.nodes.size, *values.shape[1:]))
    np.add.at(found, owners, parts)
    return found / _column(mesh.sections, values)


def _between(values: Floats, places: Floats, at: Floats) -> Floats:
    """Return values interpolated linearly along the first axis; those of the ends beyond them."""
    k = (np.searchsorted(places, at, side="right") - 1).clip(0, places.size - 2)
    share = _column(((at - places[k]) / (places[k + 1] - places[k])).clip(0.0, 1.0), values)
    found: Floats = values[k] * (1.0 - share) + values[k + 1] * share
    return found


def _column(line: Floats, values: Floats) -> Floats:
    """Return an array along the first axis that broadcasts against `values`."""
    return line.reshape(-1, *[1] * (values.ndim - 1))
