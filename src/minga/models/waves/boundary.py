"""What keeps waves from coming back from the ends of the grid: layers of cells around the model.

Layers are added to the shape that was asked for, equally many cells at both ends of each axis. Beyond the last cell all
waves are 0. Profiles are rounded to 12 decimals: libraries differ in bits beyond, and runs must not.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.lang.random import threefry
from minga.models.waves.medium import Floats
from minga.space.box import Box

__all__ = ["Boundary", "Cpml", "Random", "Release", "Rigid", "Sponge", "depth", "layer_boxes", "scrambled"]


@dataclass(frozen=True, slots=True)
class Release:
    """No layers: pressure release, as at the surface of water. Waves are 0 beyond the ends, and reflected with the
    opposite sign."""

    @property
    def cells(self) -> int:
        return 0


def Rigid() -> Release:
    """The former name of `Release`, which is no rigid wall: there waves would keep their sign."""
    warnings.warn(
        "Rigid() is Release() now, with the same results: waves are 0 beyond the ends, which is pressure release",
        FutureWarning,
        stacklevel=2,
    )
    return Release()


@dataclass(frozen=True, slots=True)
class Random:
    """Layers of random velocities, which scatter waves and keep their energy, so that a run can be turned back in time.

    At distance d from the model the velocity is v (1 - w) + v_max U w, where w = d / cells, v is that of the nearest
    cell of the model, v_max the model's largest, U uniform in [0, 1). Source: R. G. Clapp, "Reverse time migration with
    random boundaries", SEG 2009.

    cells  of a layer
    seed   of U, which depends on it and the cell's place alone
    """

    cells: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        _check_cells("random", self.cells)


@dataclass(frozen=True, slots=True)
class Sponge:
    """Layers in which all waves are made smaller after each step, by exp(-(strength d / cells)^2) at distance d.

    Source: C. Cerjan, D. Kosloff, R. Kosloff, M. Reshef, "A nonreflecting boundary condition for discrete acoustic and
    elastic wave equations", Geophysics 50(4), 1985.
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
        """The factor of each cell along an axis of so many cells."""
        away = depth(np.arange(length), length, self.cells)
        return _rounded(np.exp(-np.square(self.strength * away / self.cells)))


@dataclass(frozen=True, slots=True)
class Cpml:
    """Perfectly matched layers for media that are isotropic, or whose axis is vertical.

    reflection  what a wave that meets the layer at a right angle comes back as, in theory
    frequency   Hz, at which waves that travel along a layer are damped as well; None: that of the sources

    Source: D. Pasalic, R. McGarry, "Convolutional perfectly matched layer for isotropic and anisotropic acoustic wave
    equations", SEG 2010; parameters by D. Komatitsch, R. Martin, Geophysics 72(5), 2007.
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
        """a and b of each cell along an axis: memory = b * memory + a * derivative. a is 0 outside the layers."""
        width = self.cells * spacing
        away = depth(np.arange(length), length, self.cells) / self.cells
        damping = -3 * fastest * math.log(self.reflection) / (2 * width) * away**2
        slow = math.pi * frequency * (1 - away)
        b = np.exp(-(damping + slow) * dt)
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
    """How deep cells of an axis lie in a layer: 0 in the model, 1 next to it."""
    return np.maximum(0, np.maximum(cells - index, index - (length - 1 - cells)))


def layer_boxes(shape: Sequence[int], cells: int) -> Iterator[Box]:
    """Boxes that together are all layers, each cell once."""
    whole = Box((0,) * len(shape), tuple(shape))
    inside = Box((cells,) * len(shape), tuple(n - cells for n in shape))
    yield from whole.subtract(inside)


def scrambled(vp: Floats, fastest: float, box: Box, shape: Sequence[int], boundary: Random) -> Floats:
    """Velocities of a box of a grid of a shape, where `vp` are those of the nearest cells of the model."""
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
