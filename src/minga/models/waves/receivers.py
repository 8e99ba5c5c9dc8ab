"""Receivers: samples of p at points, as one observable for all of them (docs/decisions/receivers.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from minga.engine.engine import Engine
from minga.engine.model import Traces
from minga.errors import CaseError
from minga.models.waves.domain import Domain
from minga.models.waves.interpolation import Interpolation, Placed, check_point, place_all
from minga.models.waves.medium import Floats
from minga.space.box import Box
from minga.space.field import Field

__all__ = ["Receivers", "Taps", "spread", "taken", "traces_of"]

Index = tuple[NDArray[np.intp], ...]


@dataclass(frozen=True, slots=True)
class Receivers:
    """Positions at which p is recorded.

    Parameters
    ----------
    positions
        Position of each receiver along each axis, (z, y, x) or (z, x), in m from the first cell of the model.
    every
        Steps from one sample to the next; give the same value as `observe=` of a run.
    interpolation
        Interpolation for points between cells: "sinc" or "linear".
    """

    positions: Sequence[tuple[float, ...]]
    every: int = 1
    interpolation: Interpolation = "sinc"

    def __post_init__(self) -> None:
        if not isinstance(self.positions, list | tuple | np.ndarray):
            raise CaseError(
                f"the positions of receivers are {self.positions!r}",
                key="fletcher.receivers.positions",
                remedy="give a list of one point each, along the axes in metres: [(20.0, 500.0), (20.0, 510.0)]",
            )
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1:
            raise CaseError(
                f"receivers record every {self.every!r} steps",
                key="fletcher.receivers.every",
                remedy="give a whole number, 1 or more",
            )

    def placed(self, domain: Domain) -> list[Placed]:
        """Return their places on a grid; raise CaseError for those outside the model.

        Parameters
        ----------
        domain
            Domain of the waves.

        Returns
        -------
        list of Placed
            One entry for each receiver.
        """
        return place_all(self.positions, domain, self.interpolation, "receiver")

    def taps(self, domain: Domain) -> Taps:
        """Return the cells that represent them; raise CaseError for receivers outside the model.

        Parameters
        ----------
        domain
            Domain of the waves.

        Returns
        -------
        Taps
            Their taps, which are remembered: the waves of a shot are often set up again in another medium.
        """
        points = tuple(check_point(point, domain, self.interpolation, "receiver") for point in self.positions)
        return _taps(points, domain, self.interpolation)


@dataclass(frozen=True, slots=True, eq=False)
class Taps:
    """Cells that represent points, as arrays: `cells` of (axis, tap, point), `weights` of (tap, point).

    Parameters
    ----------
    cells
        Cells, int64 of shape (axes, taps, points).
    weights
        Weights, f8 of shape (taps, points).
    bases
        Cells (axis, point) whose owner is in charge of a point.
    reach
        Largest distance of a tap from its base along an axis.
    """

    cells: NDArray[np.int64]
    weights: Floats
    bases: NDArray[np.int64]
    reach: int

    @classmethod
    def of(cls, placed: Sequence[Placed]) -> Taps:
        """Return taps with the same number for all points; unused ones have the weight 0, at the base cell.

        Parameters
        ----------
        placed
            The points.

        Returns
        -------
        Taps
            Their taps.
        """
        bases = np.array([p.base for p in placed], np.int64).T
        most = max((p.box.size for p in placed), default=1)
        cells = np.repeat(bases[:, None, :], most, axis=1)
        weights = np.zeros((most, len(placed)))
        for number, point in enumerate(placed):
            each = point.products
            weights[: len(each), number] = each
            places = np.indices(point.box.shape).reshape(len(bases), -1)
            cells[:, : len(each), number] = places + np.array(point.first)[:, None]
        reach = int(np.abs(cells - bases[:, None]).max(initial=0))
        return cls(cells, weights, bases, reach)

    def sample(self, engine: Engine, field: Field) -> Floats:
        """Return a field's values at all points; collective, equal on all ranks. Its halo must be valid to `reach`.

        Each value is summed by one rank in the order of its taps, so that no layout changes a bit.

        Parameters
        ----------
        engine
            The engine.
        field
            The field.

        Returns
        -------
        ndarray
            Values, f8 of shape (points,).
        """
        found = np.zeros(self.weights.shape[1])
        self.sample_own(engine, field, found)
        words = found.view(np.int64)
        engine.comm.allreduce(words, "sum")  # all ranks but one have the bits of 0
        return found

    def sample_own(self, engine: Engine, field: Field, found: Floats) -> None:
        """Store the values of a field at the points in this rank's charge.

        Parameters
        ----------
        engine
            The engine.
        field
            The field.
        found
            Where the values are stored, f8 of shape (points,).
        """
        for block in engine.storage.stored(field).blocks.values():
            mine, at, weights = taken(self, block.owned, block.box.lo)
            if len(mine):
                values = block.array(field.now.index)
                # `add.accumulate` adds in order; a sum would pair terms depending on their number.
                found[mine] = np.add.accumulate(weights * values[at], axis=0)[-1]

    def inject(self, engine: Engine, fields: Sequence[Field], amounts: Floats) -> None:
        """Add amounts at points to the owned cells of fields: the transpose of `sample`.

        Parameters
        ----------
        engine
            The engine.
        fields
            The fields.
        amounts
            Amounts, f8 of shape (points,).
        """
        for field in fields:
            for box, values in engine.blocks(field, write=True):
                at, which, weights, point = spread(self, box)
                added = np.bincount(which, weights * amounts[point], len(at[0]))
                values[at] += added.astype(values.dtype)


@lru_cache(maxsize=64)
def taken(taps: Taps, owned: Box, origin: tuple[int, ...]) -> tuple[NDArray[np.int64], Index, Floats]:
    """Return the numbers of the points in a block's charge, their cells in its array, and the weights."""
    low, high = (np.array(x).reshape(-1, 1) for x in (owned.lo, owned.hi))
    mine = np.flatnonzero(((taps.bases >= low) & (taps.bases < high)).all(axis=0))
    return mine, tuple(taps.cells[:, :, mine] - np.array(origin).reshape(-1, 1, 1)), taps.weights[:, mine]


@lru_cache(maxsize=64)
def spread(taps: Taps, box: Box) -> tuple[Index, NDArray[np.int64], Floats, NDArray[np.int64]]:
    """Return the distinct cells of a box that represent points; for each tap in it, its cell, weight and point."""
    lo, hi = (np.array(x).reshape(-1, 1, 1) for x in (box.lo, box.hi))
    inside = ((taps.cells >= lo) & (taps.cells < hi)).all(axis=0) & (taps.weights != 0)
    tap, point = np.nonzero(inside)
    cells = np.ravel_multi_index(tuple(taps.cells[:, tap, point] - lo[:, :, 0]), box.shape)
    distinct, which = np.unique(cells, return_inverse=True)
    return np.unravel_index(distinct, box.shape), which, taps.weights[tap, point], point


@lru_cache(maxsize=64)
def _taps(points: tuple[tuple[float, ...], ...], domain: Domain, interpolation: Interpolation) -> Taps:
    return Taps.of(place_all(points, domain, interpolation, "receiver"))


def traces_of(
    receivers: Receivers | None, record: Sequence[str], dt: float, domain: Domain,
    sources: Sequence[Sequence[float] | None],
) -> Traces | None:  # fmt: skip
    """Return the description of the samples of receivers for files and data sets; None without any receivers.

    Parameters
    ----------
    receivers
        The receivers.
    record
        Quantities that they record.
    dt
        Seconds of a step.
    domain
        Domain of the waves.
    sources
        Positions of the sources; None: in the middle.
    """
    if receivers is None or not len(receivers.positions):
        return None
    every = list(record) != ["p"]
    late = f"velocities are those half a step, {500 * dt:g} ms, before the time"
    return Traces(
        "receivers",
        _in_space([*receivers.positions] * len(record), domain.axes),
        receivers.every,
        dt,
        _in_space([domain.middle if point is None else point for point in sources], domain.axes),
        tuple(name for name in record for _ in receivers.positions) if every else (),
        (late,) if every else (),
    )


def _in_space(points: Sequence[Sequence[float]], axes: str) -> tuple[tuple[float, ...], ...]:
    """Return points along z, y, x; an axis that the model lacks has the position 0."""
    return tuple(tuple(float(point[axes.index(name)]) if name in axes else 0.0 for name in "zyx") for point in points)
