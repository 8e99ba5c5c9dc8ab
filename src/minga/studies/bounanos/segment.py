"""A self-contained segment of a device, for processes that exchange messages with its neighbours.

It has its rows, and a ghost row on each side that belongs to another segment. The kernels are those of the pointwise
scheme; ghost rows are fixed like contacts, so that an iteration sees its neighbours in their state before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.errors import CaseError, RunError
from minga.models.photodiode.pointwise.scheme import Curve, Pointwise, check_supported
from minga.models.photodiode.pointwise.setup import Setup, anode_side
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.solver.problem import Curve as CurveName
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.ionisation import EdgeIonisation
from minga.space.grid import Grid
from minga.space.layout import Layout

__all__ = ["STATE", "Boundary", "Order", "Segment", "part_of"]

Floats = NDArray[np.float64]
Boundary = tuple[float, float, float]
Side = Literal["low", "high"]

STATE = ("phi", "electrons", "holes")
"""Entries of a boundary row sent to a neighbour, in this order."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Rows of a segment in its device, and the rows that it stores, including ghost rows where it has neighbours."""

    first: int
    end: int
    low: int
    high: int

    @classmethod
    def of(cls, ends: Sequence[int], number: int) -> Reach:
        """Return the rows of segment `number` of those between `ends`."""
        first, end = ends[number], ends[number + 1]
        return cls(first, end, max(first - 1, 0), min(end + 1, ends[-1]))

    @property
    def own(self) -> slice:
        """The segment's own rows among those it stores."""
        return slice(self.first - self.low, self.end - self.low)


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Definition of a segment, small enough to be sent: its part of the device, and the start of its iteration.

    Attributes
    ----------
    part
        Part of the device, ghost rows included.
    reach
        Rows of the segment.
    rise
        Initial potential of each stored row, beyond that of the device at zero voltage, kT/q.
    curve
        "dark" or "lit".
    how
        Options of the scheme.
    """

    part: Device
    reach: Reach
    rise: Floats
    curve: CurveName
    how: Pointwise

    @classmethod
    def of(
        cls, device: Device, ends: Sequence[int], number: int, voltage: float, curve: CurveName, how: Pointwise
    ) -> Order:
        """Return the order of segment `number` of those between `ends`, for a device at a voltage.

        The options `segments` and `across` of the scheme are ignored.

        Raises
        ------
        CaseError
            For convergence tests that involve more than one segment.
        """
        if how.test != "max":
            raise CaseError(
                f"single segments cannot apply the test {how.test!r}",
                key="photodiode.pointwise.test",
                remedy='use test = "max"',
            )
        check_supported(device, replace(how, segments=tuple(ends)))
        reach = Reach.of(ends, number)
        rows = slice(reach.low, reach.high)
        first, end = (min(max(row - reach.low, 0), reach.high - reach.low) for row in how.heavy)
        own = replace(how, segments=None, across="exact", heavy=(first, end))
        rise = voltage / device.thermal_voltage * anode_side(device)[rows]
        return cls(part_of(device, reach.low, reach.high), reach, rise, curve, own)


class Segment:
    """A segment that iterates by itself as defined by an :class:`Order`. It can be pickled, and continue elsewhere."""

    def __init__(self, order: Order) -> None:
        self.order, self.reach = order, order.reach
        setup, coefficients = Setup.of(order.part, order.how), Coefficients(order.part)
        self._curve = Curve.of(order.curve, order.part, coefficients, setup, False, order.how)
        self._program = Program("an iteration")
        self._curve.iteration(self._program)
        grid = order.part.grid
        self._engine = Engine(Layout.single(grid.box, 1), grid=grid, threads=1)
        for item, value in {**coefficients.values, **setup.values}.items():
            self._engine.set(item, value)
        started = self._curve.initial(order.part)
        for name, item in zip(STATE, self._curve.state, strict=True):
            value = started[item.now] + (order.rise if name == "phi" else 0.0)
            for slot in (item.now, item.next):
                self._engine.set(slot, value)
        self._engine.prepare(self._program, looped=False)

    def __reduce__(self) -> tuple[Any, ...]:
        saved = [view.copy() for view in (*self._views(), self._steps())]
        return _elsewhere, (self.order, saved, int(self._engine.read(self._curve.total)))

    def iterate(self) -> float:
        """Run one iteration.

        Returns
        -------
        float
            The largest change of this segment's rows.

        Raises
        ------
        RunError
            If values are no longer finite.
        """
        outcome = self._engine.run(self._program)
        if not outcome.ok:
            raise RunError(
                f"rows {self.reach.first} to {self.reach.end} of the device ended with {outcome.reason!r}",
                remedy="use a smaller over-relaxation weight",
            )
        return float(self._engine.read(self._curve.change))

    def boundary(self, side: Side) -> Boundary:
        """Return the row at one side of this segment, for the neighbour there."""
        place = self.reach.own.start if side == "low" else self.reach.own.stop - 1
        phi, n, p = (float(view[place]) for view in self._views())
        return phi, n, p

    def receive(self, side: Side, row: Sequence[float]) -> None:
        """Store a neighbour's row in the ghost row on a side."""
        place = 0 if side == "low" else -1
        for view, value in zip(self._views(write=True), row, strict=True):
            view[place] = value

    def state(self) -> dict[str, Floats]:
        """Return this segment's rows: phi in kT/q, electrons and holes in 1/cm3, and the Newton steps so far."""
        named = dict(zip(STATE, self._views(), strict=True))
        found = {name: view[self.reach.own].copy() for name, view in named.items()}
        return found | {"newton_steps": self._steps()[self.reach.own].copy()}

    def resume(self, saved: Sequence[NDArray[Any]], iterations: int) -> None:
        """Take over the state of another segment of the same order, ghost rows included."""
        for view, values in zip((*self._views(write=True), self._steps(write=True)), saved, strict=True):
            view[...] = values
        self._engine.write(self._curve.total, iterations)

    def close(self) -> None:
        """Release the resources of the engine."""
        self._engine.close()

    def _views(self, *, write: bool = False) -> list[Floats]:
        return [self._engine.blocks(item.now, write=write)[0][1] for item in self._curve.state]

    def _steps(self, *, write: bool = False) -> NDArray[Any]:
        return self._engine.blocks(self._curve.steps, write=write)[0][1]


def _elsewhere(order: Order, saved: Sequence[NDArray[Any]], iterations: int) -> Segment:
    """Return the segment restored from a pickle."""
    segment = Segment(order)
    segment.resume(saved, iterations)
    return segment


def part_of(device: Device, low: int, high: int) -> Device:
    """Return some rows of a device with one axis; the first and the last take the place of its contacts."""
    nodes = device.nodes[0][low:high]
    lengths = device.lengths[0][low : high + 1]
    inside = np.ones(high - low + 1)
    inside[[0, -1]] = 0.0
    rows = slice(low, high)
    arrays: dict[str, Any] = {
        name: getattr(device, name)[rows]
        for name in (
            "permittivity", "doping", "theta_n", "theta_p", "nie", "nc", "nv", "mobility_n", "mobility_p",
            "velocity_n", "velocity_p", "exponent_n", "exponent_p", "tau_n", "tau_p", "radiative", "auger_n",
            "auger_p", "generation", "absorption", "layer", "volumes",
        )
    }  # fmt: skip
    terminals = []
    for terminal in device.terminals:
        marks = np.zeros(high - low, np.bool_)
        marks[0 if terminal.name == "anode" else -1] = True
        terminals.append(replace(terminal, nodes=marks))
    widths = device.grid.spacing[0]
    spacing = widths if isinstance(widths, float) else np.asarray(widths)[rows]
    grid = Grid([high - low], axes=device.grid.axes, spacing=[spacing], units="um")
    return replace(
        device,
        grid=grid,
        nodes=(nodes,),
        lengths=(lengths,),
        areas=(inside,),
        ionisation_n=(_edges_of(device.ionisation_n[0], low, high),),
        ionisation_p=(_edges_of(device.ionisation_p[0], low, high),),
        terminals=tuple(terminals),
        **arrays,
    )


def _edges_of(given: EdgeIonisation, low: int, high: int) -> EdgeIonisation:
    arrays = (given.a, given.b, given.m, given.power, given.to)
    return EdgeIonisation(*(item[:, low : high + 1] for item in arrays))
