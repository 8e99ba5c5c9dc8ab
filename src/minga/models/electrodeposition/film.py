"""Resistance of a film on a metal, such as an oxide or a salt, in series with the reactions.

The film takes the part d = -(R/A) I of the potential difference at a face, I being the current that crosses it upwards
in the direction of the axis, which depends on the rest of the difference. Each pass takes a step of Newton's method,

    d = d0 - h/(1 + r) + r/(1 + r) (difference - difference0),      h = d0 + (R/A) I,      r = (R/A) s,

with s = -dI/d(difference); the next pass evaluates the line at its own potential. What the film leaves for the
reactions changes by a few RT/F at most in a pass, because their currents are exponentials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from minga.lang import functions as mg
from minga.lang.cell import CellReader
from minga.lang.expr import Node, where
from minga.models.electrodeposition.faces import FaceValues
from minga.models.electrodeposition.problem import Problem
from minga.space.field import Field

__all__ = ["Covered", "behind", "covered", "film_fields"]

Readers = Sequence[CellReader]
LARGEST: Final = 4.0
"""Largest step of Newton's method, and largest change of what the film leaves, RT/F."""


def film_fields(problem: Problem) -> tuple[tuple[Field, ...], ...]:
    """Return the fields of the line of each axis, none where no metal has a film.

    They are its beginning (V), its slope, and the difference that the film left in the last pass (V).
    """
    grid = problem.grid
    names = ("film", "film slope", "left by film") if problem.cathode.film or problem.anode.film else ()
    return tuple(tuple(Field(f"{name} {a}", grid, centre=a) for name in names) for a in grid.axes)


def behind(problem: Problem, face: FaceValues, film: Readers, equilibrium: Readers = ()) -> FaceValues:
    """Return the face with the potential difference that its film leaves, and the local equilibrium beside it."""
    if equilibrium:
        face = replace(face, equilibrium=equilibrium)
    if not film or face.above is None or face.below is None:
        return face
    return replace(face, difference=face.difference - _part(problem, face, film))


def _part(problem: Problem, face: FaceValues, film: Readers) -> Node:
    assert face.above is not None
    assert face.below is not None
    base, slope, last = film
    here, largest = (0,) * len(base.axes), LARGEST / problem.beta
    change = face.difference - (base[here] + slope[here] * face.difference) - last[here]
    left = last[here] + mg.max(mg.min(change, largest), -largest)
    return where(face.above | face.below, face.difference - left, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Covered:
    """A face of a metal with a film.

    Attributes
    ----------
    current, slope
        The current upwards and its derivative, A and A/V, of film and reactions in series.
    missing
        Difference of the film's part from that of the current, V.
    """

    current: Node
    slope: Node
    missing: Node


def covered(problem: Problem, face: FaceValues, film: Readers, current: Node, slope: Node) -> Covered:
    """Return the series of film and reactions, and store the line of the next pass.

    Parameters
    ----------
    problem, face
        The problem, and the face with its whole potential difference.
    film
        Readers of the line.
    current, slope
        Current of the reactions upwards, A, and minus its derivative by the potential difference, A/V.
    """
    assert face.above is not None
    assert face.below is not None
    assert face.cathode is not None
    base, line, last = film
    here = (0,) * len(base.axes)
    metal = face.above | face.below
    resistance = where(face.cathode, problem.cathode.film, problem.anode.film) / face.area
    part = _part(problem, face, film)
    off = where(metal, part + resistance * current, 0.0)
    ratio = where(metal, resistance * slope, 0.0)
    share = ratio / (1.0 + ratio)
    largest = LARGEST / problem.beta
    step = mg.max(mg.min(off / (1.0 + ratio), largest), -largest)
    base[here] = where(metal, part - step - share * face.difference, 0.0)
    line[here] = where(metal, share, 0.0)
    last[here] = where(metal, face.difference - part, 0.0)
    return Covered(current - slope * step, slope / (1.0 + ratio), mg.abs(off))
