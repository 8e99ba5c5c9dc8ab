"""Boundaries of the wave model: layers of cells around the model that suppress reflections from the ends of the grid.

Layers are added to the requested shape, with the same number of cells at both ends of each axis. Beyond the last cell
all waves are 0. Profiles are rounded to 12 decimals: libraries differ in further bits, and runs must not.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.errors import CaseError
from minga.lang.random import threefry
from minga.models.waves.medium import Floats
from minga.space.box import Box

__all__ = ["Boundary", "Cpml", "Random", "Release", "Rigid", "Sponge", "depth", "layer_boxes", "scrambled"]


@dataclass(frozen=True, slots=True)
class Release:
    """No layers: pressure release, as at the surface of water.

    Waves are 0 beyond the ends, and are reflected with the opposite sign.
    """

    @property
    def cells(self) -> int:
        """Number of cells of a layer: 0."""
        return 0


def Rigid() -> Release:
    """Return `Release()`, whose former name this is; it is no rigid wall, at which waves would keep their sign.

    Returns
    -------
    Release
        The boundary.
    """
    warnings.warn(
        "Rigid() is now called Release(), with the same results: waves are 0 beyond the ends (pressure release)",
        FutureWarning,
        stacklevel=2,
    )
    return Release()


@dataclass(frozen=True, slots=True)
class Random:
    """Layers of random velocities, which scatter waves but conserve their energy, so that a run is reversible in time.

    At a distance of d cells from the model the velocity is v (1 - w) + v_max U w, where w = d / cells, v is the
    velocity of the nearest cell of the model, v_max the largest velocity of the model, and U uniform in [0, 1). Source:
    R. G. Clapp, "Reverse time migration with random boundaries", SEG 2009.

    Parameters
    ----------
    cells
        Number of cells of a layer.
    seed
        Seed of U, which depends only on it and on the position of the cell.
    """

    cells: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        _check_cells("random", self.cells)


@dataclass(frozen=True, slots=True)
class Sponge:
    """Layers in which all waves are multiplied by exp(-(strength d / cells)^2) after each step, d cells deep.

    Source: C. Cerjan, D. Kosloff, R. Kosloff, M. Reshef, "A nonreflecting boundary condition for discrete acoustic and
    elastic wave equations", Geophysics 50(4), 1985.

    Parameters
    ----------
    cells
        Cells of the layers.
    strength
        The strength of the damping.
    """

    cells: int = 40
    strength: float = 0.16

    def __post_init__(self) -> None:
        _check_cells("sponge", self.cells)
        if not (math.isfinite(self.strength) and self.strength > 0):
            raise CaseError(
                f"the sponge's strength is {self.strength}", key="fletcher.boundary.strength", remedy="0.16 is usual"
            )

    def factors(self, length: int) -> Floats:
        """Return the factor of each cell along an axis with `length` cells.

        Parameters
        ----------
        length
            Cells along the axis, layers included.

        Returns
        -------
        ndarray
            Factors, f8 of shape (length,).
        """
        away = depth(np.arange(length), length, self.cells)
        return _rounded(portable.exp(-np.square(self.strength * away / self.cells)))


@dataclass(frozen=True, slots=True)
class Cpml:
    """Perfectly matched layers for media that are isotropic or have a vertical symmetry axis.

    Source: D. Pasalic, R. McGarry, "Convolutional perfectly matched layer for isotropic and anisotropic acoustic wave
    equations", SEG 2010; parameters by D. Komatitsch, R. Martin, Geophysics 72(5), 2007.

    Parameters
    ----------
    cells
        Number of cells of a layer.
    reflection
        Theoretical reflection coefficient at normal incidence.
    frequency
        Frequency, Hz, at which waves that travel along a layer are damped as well; None: that of the sources.
    """

    cells: int = 12
    reflection: float = 1e-5
    frequency: float | None = None

    def __post_init__(self) -> None:
        _check_cells("cpml", self.cells)
        if not 0 < self.reflection < 1:
            raise CaseError(
                f"the reflection of the CPML is {self.reflection}",
                key="fletcher.boundary.reflection",
                remedy="give a number between 0 and 1: 1e-5",
            )

    def coefficients(
        self, length: int, spacing: float, fastest: float, dt: float, frequency: float
    ) -> tuple[Floats, Floats]:
        """Return a and b of each cell along an axis: memory = b * memory + a * derivative; a is 0 outside layers.

        Parameters
        ----------
        length
            Cells along the axis, layers included.
        spacing
            Metres between cells.
        fastest
            The largest velocity, m/s.
        dt
            Seconds of a step.
        frequency
            Frequency, Hz.

        Returns
        -------
        tuple of ndarray
            A and b, f8 of shape (length,) each.
        """
        width = self.cells * spacing
        away = depth(np.arange(length), length, self.cells) / self.cells
        damping = -3 * fastest * portable.log(self.reflection) / (2 * width) * (away * away)
        slow = math.pi * frequency * (1 - away)
        b = portable.exp(-(damping + slow) * dt)
        with np.errstate(invalid="ignore"):
            a = np.where(damping > 0, damping / (damping + slow) * (b - 1), 0.0)
        return _rounded(a), _rounded(b)


Boundary = Release | Random | Sponge | Cpml


def _check_cells(name: str, cells: int) -> None:
    if isinstance(cells, bool) or not isinstance(cells, int) or cells < 1:
        raise CaseError(
            f"the {name} boundary has {cells!r} cells",
            key="fletcher.boundary.cells",
            remedy='give a whole number, 1 or more; boundary = "release" has none',
        )


def _rounded(values: Floats) -> Floats:
    return np.asarray(np.round(values, 12), np.float64)


def depth(index: NDArray[np.int64], length: int, cells: int) -> NDArray[np.int64]:
    """Return the depth of cells of an axis in a layer: 0 inside the model, 1 next to it."""
    return np.maximum(0, np.maximum(cells - index, index - (length - 1 - cells)))


def layer_boxes(shape: Sequence[int], cells: int) -> Iterator[Box]:
    """Yield boxes that together cover all layers, with each cell in exactly one of them."""
    whole = Box((0,) * len(shape), tuple(shape))
    inside = Box((cells,) * len(shape), tuple(n - cells for n in shape))
    yield from whole.subtract(inside)


def scrambled(vp: Floats, fastest: float, box: Box, shape: Sequence[int], boundary: Random) -> Floats:
    """Return the velocities of a box with random layers; `vp` are those of the nearest cells of the model."""
    along = [depth(np.arange(lo, hi), n, boundary.cells) for lo, hi, n in zip(box.lo, box.hi, shape, strict=True)]
    z, y, x = np.ix_(*along)
    weight = np.maximum(np.maximum(z, y), x) / boundary.cells
    planes, rows, row = (np.arange(lo, hi, dtype=np.uint32) for lo, hi in zip(box.lo, box.hi, strict=True))
    number = (planes[:, None] * np.uint32(shape[1]) + rows)[..., None]
    seed = (boundary.seed & 0xFFFFFFFF, boundary.seed >> 32 & 0xFFFFFFFF)
    key = (np.full(1, seed[0], np.uint32), np.full(1, seed[1], np.uint32))
    counter = (np.broadcast_to(row, box.shape).copy(), np.broadcast_to(number, box.shape).copy())
    uniform = threefry(key, counter)[0] * 2.0**-32
    return np.where(weight > 0, vp * (1 - weight) + fastest * uniform * weight, vp)
