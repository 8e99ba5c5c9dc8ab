"""Sensors: quantities at receivers, each the mean of some fields with a sign, and the transpose of their recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from minga.engine.comm import Comm
from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.errors import RunError
from minga.models.waves.medium import Floats
from minga.models.waves.point_table import PointTable
from minga.models.waves.receivers import Taps
from minga.space.field import Field

__all__ = ["Recorded", "SensorTable", "Sensors"]


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


@dataclass(frozen=True, slots=True, eq=False)
class Sensors:
    """Quantities that are recorded at some points.

    Parameters
    ----------
    quantities
        The quantities.
    taps
        For each field in them, the cells that represent the points.
    """

    quantities: tuple[Recorded, ...]
    taps: Mapping[Field, Taps]

    @property
    def count(self) -> int:
        """Number of points."""
        return int(next(iter(self.taps.values())).weights.shape[1])

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
        return self.joined({field: taps.sample(engine, field) for field, taps in self.taps.items()})

    def joined(self, values: Mapping[Field, Floats]) -> Floats:
        """Return the traces of all quantities from the values of their fields at the points.

        Parameters
        ----------
        values
            For each field an array whose last axis are the points.

        Returns
        -------
        ndarray
            Samples, f8, whose last axis are the traces, quantity after quantity.
        """
        found = []
        for quantity in self.quantities:
            total = values[quantity.fields[0]]
            for field in quantity.fields[1:]:
                total = total + values[field]
            found.append(total / quantity.divisor)
        return np.concatenate(found, axis=-1)

    def parted(self, amounts: Floats) -> dict[Field, Floats]:
        """Return amounts at the points for each field: the transpose of `joined`.

        Parameters
        ----------
        amounts
            Amounts, f8, whose last axis are the traces.

        Returns
        -------
        dict
            For each field an array whose last axis are the points.
        """
        found: dict[Field, Floats] = {}
        for quantity, part in zip(self.quantities, np.split(amounts, len(self.quantities), axis=-1), strict=True):
            share = part / quantity.divisor
            found |= {field: found[field] + share if field in found else share for field in quantity.fields}
        return found


class SensorTable:
    """A table of the samples of sensors, a row for each: one `PointTable` for each field.

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
        self.sensors = sensors
        self.tables = {field: PointTable(taps, rows, every, blocks=blocks) for field, taps in sensors.taps.items()}

    @property
    def steps(self) -> int:
        """Position of the last row."""
        return next(iter(self.tables.values())).steps

    def rewind(self) -> None:
        """Make an empty table, and let its Programs begin again."""
        for table in self.tables.values():
            table.rewind()

    def sampling(self, of: Mapping[Field, Field] | None = None) -> Program:
        """Return a Program that samples fields into the row of its position, if it has one, and advances from 0.

        Parameters
        ----------
        of
            Fields that stand in for those of the waves; None: these themselves.
        """
        program = Program("sample")
        for own, table in self.tables.items():
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
        for own, table in self.tables.items():
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
        for table in self.tables.values():
            table.combine(comm)
        traces = self.sensors.joined({field: table.values for field, table in self.tables.items()})
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
        for field, values in self.sensors.parted(amounts).items():
            self.tables[field].values[...] = values
