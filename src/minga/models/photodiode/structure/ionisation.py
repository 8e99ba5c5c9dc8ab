"""Impact ionisation coefficients: named sets, and their values on the edges of a mesh."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from minga.compile import portable
from minga.schema import validate

__all__ = ["EdgeIonisation", "IonisationSet", "Piece", "SetSettings", "coefficient", "on_edges", "shipped_sets"]

Floats = NDArray[np.float64]
_HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a coefficient, alpha = a E^power exp(-(b/E)^m) for fields below `to`; alpha in 1/cm, E in V/cm."""

    a: float
    b: float
    m: float = 1.0
    power: float = 0.0
    to: float = math.inf


@dataclass(frozen=True, slots=True)
class IonisationSet:
    """Coefficients from one source.

    Attributes
    ----------
    materials
        Materials in which the set was measured or to which it is applied.
    low, high
        Range of measured fields, V/cm.
    electrons, holes
        Pieces in order of ascending fields; the last one extends to infinity.
    heat
        Okuto and Crowell's c and d in a (1 + c (T - 300)) and b (1 + d (T - 300)), for both carriers; None if the set
        is valid at 300 K only.
    """

    name: str
    materials: tuple[str, ...]
    low: float
    high: float
    electrons: tuple[Piece, ...]
    holes: tuple[Piece, ...]
    source: str
    heat: tuple[tuple[float, float], tuple[float, float]] | None = None

    def at(self, temperature: float) -> IonisationSet:
        """Return the set at another temperature; the set itself at 300 K or if its dependence is unknown."""
        if self.heat is None or temperature == 300.0:
            return self
        change = temperature - 300.0
        warm = [
            tuple(Piece(p.a * (1 + c * change), p.b * (1 + d * change), p.m, p.power, p.to) for p in pieces)
            for pieces, (c, d) in zip((self.electrons, self.holes), self.heat)
        ]
        return IonisationSet(self.name, self.materials, self.low, self.high, warm[0], warm[1], self.source, self.heat)


@dataclass(frozen=True, slots=True, eq=False)
class EdgeIonisation:
    """Coefficients of one carrier on the edges along one axis, with `pieces` entries per edge.

    The arrays a, b, m, power and to are f8 of shape (pieces, *edges) with the meanings of `Piece`; the first piece
    with E < to applies. a is 0 on edges without ionisation: between two materials, in materials without coefficients,
    and at the outer edges.
    """

    a: Floats
    b: Floats
    m: Floats
    power: Floats
    to: Floats

    @property
    def pieces(self) -> int:
        """Number of pieces per edge."""
        return int(self.a.shape[0])

    def at(self, field: Floats) -> Floats:
        """Return alpha on the edges, 1/cm, for fields above 0 on them, V/cm."""
        chosen = (self.to <= field).sum(axis=0, keepdims=True).clip(max=self.pieces - 1)
        a, b, m, power = (np.take_along_axis(item, chosen, axis=0)[0] for item in (self.a, self.b, self.m, self.power))
        found: Floats = a * portable.power(field, power) * portable.exp(-portable.power(b / field, m))
        return found


def coefficient(pieces: Sequence[Piece], field: Floats | float) -> Floats:
    """Return alpha in 1/cm for fields in V/cm."""
    strength = np.abs(np.asarray(field, np.float64))
    found = np.zeros_like(strength)
    low = -1.0
    for piece in pieces:
        inside = (strength >= low) & (strength < piece.to) & (strength > 0)
        e = np.where(inside, strength, 1.0)
        value = piece.a * portable.power(e, piece.power) * portable.exp(-portable.power(piece.b / e, piece.m))
        found = np.where(inside, value, found)
        low = piece.to
    return found


def on_edges(number: NDArray[np.int64], sets: Sequence[Sequence[Piece]]) -> EdgeIonisation:
    """Return a carrier's coefficients on edges; an edge has the pieces `sets[number]`, or none if number is -1."""
    count = max([1, *(len(pieces) for pieces in sets)])
    shape = (count, *number.shape)
    a, m, power = np.zeros(shape), np.ones(shape), np.zeros(shape)
    b, to = np.ones(shape), np.full(shape, np.inf)
    for k, pieces in enumerate(sets):
        here = number == k
        for j in range(count):
            piece = pieces[min(j, len(pieces) - 1)]
            for array, value in ((a, piece.a), (b, piece.b), (m, piece.m), (power, piece.power), (to, piece.to)):
                array[j][here] = value
    return EdgeIonisation(a, b, m, power, to)


# Files ---------------------------------------------------------------------------------------------------------------
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Number = Annotated[float, Field(allow_inf_nan=False)]


class PieceSettings(BaseModel):
    """One piece, `{a = 7.03e5, b = 1.231e6}`; m, power and to default to 1, 0 and infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    a: Annotated[Positive, Field(description="1/cm, or 1/V where power = 1")]
    b: Annotated[Positive, Field(description="V/cm")]
    m: Annotated[float, Field(gt=0, le=10, description="m = 1.0")] = 1.0
    power: Annotated[float, Field(ge=0, le=10, description="power = 0.0")] = 0.0
    to: Annotated[Positive | None, Field(description="upper limit of the piece, V/cm; omitted in the last one")] = None


class HeatSettings(BaseModel):
    """Okuto and Crowell's c and d of electrons and of holes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    electrons: tuple[Number, Number]
    holes: tuple[Number, Number]


class SetSettings(BaseModel):
    """A coefficient set in a file."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    electrons: Annotated[
        tuple[PieceSettings, ...], Field(min_length=1, max_length=8, description="[{a = ..., b = ...}]")
    ]
    holes: Annotated[tuple[PieceSettings, ...], Field(min_length=1, max_length=8, description="[{a = ..., b = ...}]")]
    low: Annotated[float, Field(ge=0, alias="from", description="lowest measured field, V/cm")] = 0.0
    to: Annotated[Positive | None, Field(description="highest measured field, V/cm")] = None
    materials: tuple[str, ...] = ()
    heat: HeatSettings | None = None
    source: str = ""

    @model_validator(mode="after")
    def _ascend(self) -> SetSettings:
        for pieces in (self.electrons, self.holes):
            ends = [math.inf if piece.to is None else piece.to for piece in pieces]
            if ends[-1] != math.inf or any(b <= a for a, b in pairwise(ends)):
                raise ValueError("pieces with ascending to, of which the last one has none")
        return self

    def made(self, name: str) -> IonisationSet:
        """Return the set under a name."""
        return IonisationSet(
            name,
            self.materials,
            self.low,
            math.inf if self.to is None else self.to,
            _pieces(self.electrons),
            _pieces(self.holes),
            self.source,
            None if self.heat is None else (self.heat.electrons, self.heat.holes),
        )


def _pieces(entries: Sequence[PieceSettings]) -> tuple[Piece, ...]:
    return tuple(Piece(e.a, e.b, e.m, e.power, math.inf if e.to is None else e.to) for e in entries)


@cache
def shipped_sets() -> dict[str, IonisationSet]:
    """Return the sets shipped with minga, by name."""
    tables = tomllib.loads((_HERE / "ionisation.toml").read_text(encoding="utf-8"))
    return {name: validate(SetSettings, table, name).made(name) for name, table in tables.items()}
