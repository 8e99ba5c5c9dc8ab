"""Neighbourhoods: the cells around a cell that a rule reads, in any number of dimensions."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.lang.expr import author_error

__all__ = ["Neighbourhood", "circular", "hex", "moore", "offsets", "von_neumann", "weights"]

Offset = tuple[int, ...]
Belongs = Callable[[Sequence[NDArray[Any]]], Any]
"""Function of one array of offsets for each axis that selects those of a neighbourhood."""
MOST_CELLS = 1 << 21
"""Maximum number of cells that a neighbourhood is selected from: twice a box of radius 500 in two dimensions."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The cells around a cell, without the cell itself.

    Two neighbourhoods are equal if their names are equal.

    Attributes
    ----------
    name
        The neighbourhood as an expression, e.g. "moore(1)".
    ndim
        The only number of dimensions that the neighbourhood is defined in, or None for any.
    weights
        The weights given to `mg.weights`, by offset; they may include the weight of the cell itself.
    """

    name: str
    ndim: int | None
    _offsets: Callable[[int], tuple[Offset, ...]] = field(repr=False, compare=False)
    weights: Mapping[Offset, int | float] = field(default_factory=dict, repr=False, compare=False)

    def around(self, ndim: int) -> tuple[Offset, ...]:
        """Return the offsets in `ndim` dimensions, in row-major order.

        Raises
        ------
        KernelError
            If the neighbourhood is defined in another number of dimensions.
        """
        if self.ndim not in (None, ndim):
            raise author_error(
                f"the neighbourhood {self.name} has {self.ndim} dimensions, the grid has {ndim}",
                f"use a grid of {self.ndim} dimensions, or mg.moore(r), which fits any",
            )
        return self._offsets(ndim)

    def __str__(self) -> str:
        return self.name


def moore(radius: int = 1) -> Neighbourhood:
    """Return the box around the cell: offsets of at most `radius` along every axis.

    With radius 1, it has 8 cells in two dimensions and 26 in three.

    Parameters
    ----------
    radius
        The radius in cells.

    Returns
    -------
    Neighbourhood
        The neighbourhood.
    """
    return _inside(f"moore({_checked(radius)})", radius, lambda _: True)


def von_neumann(radius: int = 1) -> Neighbourhood:
    """Return the diamond around the cell: offsets whose absolute values sum to at most `radius`.

    With radius 1, it has 4 cells in two dimensions.

    Parameters
    ----------
    radius
        The radius in cells.

    Returns
    -------
    Neighbourhood
        The neighbourhood.
    """
    return _inside(f"von_neumann({_checked(radius)})", radius, lambda o: sum(map(builtins.abs, o)) <= radius)


def circular(radius: int) -> Neighbourhood:
    """Return the disc (ball) around the cell: offsets of Euclidean length below `radius` + 1/2, as in Golly.

    Parameters
    ----------
    radius
        The radius in cells.

    Returns
    -------
    Neighbourhood
        The neighbourhood.
    """
    return _inside(f"circular({_checked(radius)})", radius, lambda o: sum(x * x for x in o) <= radius * (radius + 1))


def hex() -> Neighbourhood:
    """Return six neighbours on a square array: Moore without north-east (-1, 1) and south-west (1, -1), as in Golly.

    Returns
    -------
    Neighbourhood
        The neighbourhood.
    """
    inside = _box(1, lambda o: o[0] != -o[1])
    return Neighbourhood("hex()", 2, inside)


def offsets(cells: Iterable[int | Sequence[int]]) -> Neighbourhood:
    """Return a neighbourhood of arbitrary cells other than the cell itself.

    Parameters
    ----------
    cells
        Offsets with one integer per axis; in one dimension, plain integers.

    Returns
    -------
    Neighbourhood
        The neighbourhood.

    Raises
    ------
    KernelError
        If there is no offset, one is the cell itself, or they have different numbers of axes.
    """
    given = [(c,) if isinstance(c, int) else tuple(c) for c in cells]
    if not given:
        raise author_error("mg.offsets() contains no cell", "list offsets: mg.offsets([(0, -1), (0, 1)])")
    ndim = len(given[0])
    for offset in given:
        if len(offset) != ndim or not all(isinstance(x, int) and not isinstance(x, bool) for x in offset):
            raise author_error(
                f"mg.offsets: {offset} does not match {given[0]}", "give every offset as integers, one for each axis"
            )
        if not any(offset):
            raise author_error(
                f"mg.offsets: {offset} is the cell itself", "leave it out: a rule gets the cell as its first parameter"
            )
    chosen = tuple(sorted(set(given)))
    return Neighbourhood(f"offsets({[*chosen]})", ndim, lambda _: chosen)


def weights(array: object) -> Neighbourhood:
    """Return a neighbourhood with weights, for `near.weighted()`.

    Parameters
    ----------
    array
        Weights by offset from the middle of the array, with as many axes as the grid has and an odd number of entries
        along each. The neighbourhood consists of the cells whose weight is not 0. Integers stay integers.

    Returns
    -------
    Neighbourhood
        The neighbourhood.

    Raises
    ------
    KernelError
        If the array has no middle, contains no neighbour, or is not an array of finite numbers.
    """
    try:
        given: NDArray[Any] = np.asarray(array)
    except ValueError as error:
        raise author_error(f"mg.weights: {error}", "give rows of equal length") from error
    if given.dtype.kind not in "biuf" or not 1 <= given.ndim <= 4 or not np.isfinite(given).all():
        raise author_error(
            f"mg.weights: found {array!r}", "give an array of finite numbers with one axis for each axis of the grid"
        )
    if any(n % 2 == 0 for n in given.shape):
        raise author_error(
            f"mg.weights: an array of shape {given.shape} has no middle",
            "give it an odd number of entries along each axis",
        )
    values = given.astype(np.int64 if given.dtype.kind in "biu" else np.float64)
    chosen: dict[Offset, int | float] = {
        tuple(int(i) - n // 2 for i, n in zip(place, values.shape)): values[tuple(place)].item()
        for place in np.argwhere(values)
    }
    around = tuple(offset for offset in chosen if any(offset))
    if not around:
        raise author_error("mg.weights: no neighbour has a weight", "give entries beside the middle that are not 0")
    return Neighbourhood(f"weights({values.tolist()})", values.ndim, lambda _: around, MappingProxyType(chosen))


def _checked(radius: int) -> int:
    if isinstance(radius, bool) or not isinstance(radius, int) or radius < 1:
        raise author_error(f"a neighbourhood's radius is a positive integer, found {radius!r}", "use 1 for the nearest")
    return radius


def _inside(name: str, radius: int, belongs: Belongs) -> Neighbourhood:
    return Neighbourhood(name, None, _box(radius, belongs))


def _box(radius: int, belongs: Belongs) -> Callable[[int], tuple[Offset, ...]]:
    @functools.cache
    def around(ndim: int) -> tuple[Offset, ...]:
        if (cells := (2 * radius + 1) ** ndim) > MOST_CELLS:
            raise author_error(
                f"a neighbourhood of radius {radius} in {ndim} dimensions is selected from {cells} cells",
                f"use a smaller radius: at most {MOST_CELLS} cells",
            )
        along = np.arange(-radius, radius + 1)
        every = np.meshgrid(*[along] * ndim, indexing="ij")
        chosen = belongs(every) & np.logical_or.reduce([x != 0 for x in every])
        return tuple(zip(*(x[chosen].tolist() for x in every), strict=True))

    return around
