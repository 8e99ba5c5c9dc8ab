"""Sensors: quantities at receivers, and the transpose of their recording.

A quantity is the mean of some fields with a sign, or the sum of the samples of fields at all steps before.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from minga.engine.comm import Comm
from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.errors import RunError
from minga.models.waves.medium import Floats
from minga.models.waves.point_table import PointTable
from minga.models.waves.receivers import Taps
from minga.space.field import Field

__all__ = ["Recorded", "SensorTable", "Sensors", "Summed"]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded quantity: the sum of some fields, divided by a number.

    Parameters
    ----------
    name
        Its name.
    fields
        The fields.
    divisor
        The number.
    """

    name: str
    fields: tuple[Field, ...]
    divisor: float = 1.0

    def mean(self, values: Mapping[Field, Floats]) -> Floats:
        """Return the quantity from the values of fields.

        Parameters
        ----------
        values
            Values of each field, f8 of the same shape.

        Returns
        -------
        ndarray
            The quantity, f8 of this shape.
        """
        total = values[self.fields[0]]
        for field in self.fields[1:]:
            total = total + values[field]
        return total / self.divisor


@dataclass(frozen=True, slots=True, eq=False)
class Summed:
    """A recorded quantity: the sum of the samples of fields at all steps before, times a factor.

    Parameters
    ----------
    name
        Its name.
    parts
        The fields that are sampled, each with the cells that represent the points; their samples are added.
    factor
        The factor.
    depends
        Quantities of the medium from which the weights follow.
    """

    name: str
    parts: tuple[tuple[Field, Taps], ...]
    factor: float
    depends: tuple[str, ...] = ()

    def same(self, other: Summed) -> bool:
        """Return whether another sum has the same weights of the same cells.

        Parameters
        ----------
        other
            The other sum, of the same points.
        """
        pairs = zip(self.parts, other.parts, strict=False)
        return (len(self.parts), self.factor) == (len(other.parts), other.factor) and all(
            a.name == b.name and np.array_equal(first.weights, second.weights) for (a, first), (b, second) in pairs
        )

    def summed(self, samples: Floats, every: int) -> Floats:
        """Return the rows of a table from samples at each position.

        Parameters
        ----------
        samples
            Samples, f8 of shape (positions, points).
        every
            Positions from one row to the next.

        Returns
        -------
        ndarray
            Rows, f8 of shape (rows, points).
        """
        total = np.zeros_like(samples)
        np.add.accumulate(samples[:-1] * self.factor, axis=0, out=total[1:])
        return total[::every]

    def spread(self, amounts: Floats, every: int) -> Floats:
        """Return amounts at each position from those of the rows of a table: the transpose of `summed`.

        Parameters
        ----------
        amounts
            Amounts, f8 of shape (rows, points).
        every
            As for `summed`.

        Returns
        -------
        ndarray
            Amounts, f8 of shape (positions, points).
        """
        total = np.zeros(((len(amounts) - 1) * every + 1, amounts.shape[1]))
        total[::every] = amounts
        total[:-1] = np.add.accumulate(total[:0:-1], axis=0)[::-1]
        total[-1] = 0.0
        return total * self.factor


@dataclass(frozen=True, slots=True, eq=False)
class Sensors:
    """Quantities that are recorded at some points.

    Parameters
    ----------
    quantities
        The quantities.
    taps
        For each field of the means, the cells that represent the points.
    """

    quantities: tuple[Recorded | Summed, ...]
    taps: Mapping[Field, Taps]

    @property
    def fields(self) -> tuple[Field, ...]:
        """Fields that are sampled."""
        sums = (f for quantity in self.quantities if isinstance(quantity, Summed) for f, _ in quantity.parts)
        return tuple(dict.fromkeys((*self.taps, *sums)))

    def sample(self, engine: Engine) -> Floats:
        """Return all samples, quantity after quantity; collective, equal on all ranks. Halos must be valid.

        Parameters
        ----------
        engine
            The engine.

        Returns
        -------
        ndarray
            Samples, f8 of shape (traces,).
        """
        values = {field: taps.sample(engine, field) for field, taps in self.taps.items()}
        found = []
        for quantity in self.quantities:
            assert isinstance(quantity, Recorded)  # sums need the samples of all steps
            found.append(quantity.mean(values))
        return np.concatenate(found, axis=-1)


class SensorTable:
    """A table of the samples of sensors, a row for each.

    There is one `PointTable` for each field, and one with all positions for each sum over steps.

    Parameters
    ----------
    sensors
        The sensors.
    rows
        Number of rows.
    every
        Positions from one row to the next.
    blocks
        As for `PointTable`.
    """

    def __init__(self, sensors: Sensors, rows: int, every: int, *, blocks: bool = True) -> None:
        self.sensors, self.every = sensors, every
        self.steps = (rows - 1) * every
        """Position of the last row."""
        self.tables = {field: PointTable(taps, rows, every, blocks=blocks) for field, taps in sensors.taps.items()}
        self.sums = {
            quantity.name: [
                (field, PointTable(taps, self.steps + 1, 1, blocks=blocks)) for field, taps in quantity.parts
            ]
            for quantity in sensors.quantities
            if isinstance(quantity, Summed)
        }

    @property
    def _all(self) -> list[tuple[Field, PointTable]]:
        """All tables, each with the field that it samples."""
        return [*self.tables.items(), *(part for parts in self.sums.values() for part in parts)]

    def rewind(self) -> None:
        """Clear the table, and let its Programs begin again at their first positions."""
        for _, table in self._all:
            table.rewind()

    def sampling(self, of: Mapping[Field, Field] | None = None) -> Program:
        """Return a Program that samples fields into the row of its position, if it has one, and advances from 0.

        Parameters
        ----------
        of
            Fields that stand in for those of the waves; None: these themselves.
        """
        program = Program("sample")
        for own, table in self._all:
            field = own if of is None else of[own]
            if table.taps.reach:
                program.refresh(field, table.taps.reach)
            program.call(table.sampling(field), reads=(field,))
        return program

    def injection(self, of: Mapping[Field, Field]) -> Program:
        """Return a Program that adds the rows at the points, from the last to the first: the transpose of `sampling`.

        Parameters
        ----------
        of
            Fields that stand in for those of the waves.
        """
        program = Program("inject")
        for own, table in self._all:
            program.call(table.injection(of[own]), reads=(of[own],), writes=(of[own],))
        return program

    def traces(self, comm: Comm) -> Floats:
        """Return the samples after a sampling, f8 of shape (rows, traces), on all ranks; collective.

        Parameters
        ----------
        comm
            The ranks that have sampled.

        Raises
        ------
        RunError
            If a sample is not finite.
        """
        for _, table in self._all:
            table.combine(comm)
        values = {field: table.values for field, table in self.tables.items()}
        found = [
            quantity.mean(values)
            if isinstance(quantity, Recorded)
            else quantity.summed(
                reduce(operator.add, [table.values for _, table in self.sums[quantity.name]]), self.every
            )
            for quantity in self.sensors.quantities
        ]
        traces = np.concatenate(found, axis=-1)
        wrong = np.flatnonzero(~np.isfinite(traces).all(axis=1))
        if len(wrong):
            raise RunError(
                f"the waves have grown without limit: sample {wrong[0]} of {len(traces)} is not finite",
                remedy="choose a sponge where matched layers (cpml) let waves grow, or a shorter time step",
            )
        return traces

    def store(self, amounts: Floats) -> None:
        """Store amounts for an injection.

        Parameters
        ----------
        amounts
            Amounts, f8 of shape (rows, traces).
        """
        quantities = self.sensors.quantities
        for _, table in self._all:
            table.values[...] = 0.0
        for quantity, part in zip(quantities, np.split(amounts, len(quantities), axis=-1), strict=True):
            if isinstance(quantity, Summed):
                for _, table in self.sums[quantity.name]:
                    table.values[...] += quantity.spread(part, self.every)
            else:
                for field in quantity.fields:
                    self.tables[field].values[...] += part / quantity.divisor
