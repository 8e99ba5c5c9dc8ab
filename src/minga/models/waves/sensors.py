"""Sensors: quantities at receivers, each the mean of some fields with a sign, and the transpose of their recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.models.waves.medium import Floats
from minga.models.waves.receivers import Taps
from minga.space.field import Field

__all__ = ["Recorded", "Sensors"]


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

    def refresh(self, program: Program, of: Mapping[Field, Field] | None = None) -> tuple[Field, ...]:
        """Record in a Program that halos become valid for `sample`; return the fields that it reads.

        Parameters
        ----------
        program
            The Program.
        of
            Fields that stand in for those of the waves; None: these themselves.
        """
        read = []
        for field, taps in self._chosen(of):
            read.append(field)
            if taps.reach:
                program.refresh(field, taps.reach)
        return tuple(read)

    def sample(self, engine: Engine, of: Mapping[Field, Field] | None = None) -> Floats:
        """Return all samples, quantity after quantity; collective, equal on all ranks.

        Parameters
        ----------
        engine
            The engine.
        of
            Fields that stand in for those of the waves; None: these themselves.

        Returns
        -------
        ndarray
            Samples, f8 of shape (quantities * points,).
        """
        chosen = self._chosen(of)
        return self.joined(
            {own: taps.sample(engine, field) for own, (field, taps) in zip(self.taps, chosen, strict=True)}
        )

    def inject(self, engine: Engine, of: Mapping[Field, Field], amounts: Floats) -> None:
        """Add amounts for each sample to fields: the transpose of `sample`.

        Parameters
        ----------
        engine
            The engine.
        of
            Fields that stand in for those of the waves.
        amounts
            Amounts, f8 of shape (quantities * points,).
        """
        for field, part in self.parted(amounts).items():
            if part.any():
                self.taps[field].inject(engine, [of[field]], part)

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

    def _chosen(self, of: Mapping[Field, Field] | None) -> Sequence[tuple[Field, Taps]]:
        return [(field if of is None else of[field], taps) for field, taps in self.taps.items()]
