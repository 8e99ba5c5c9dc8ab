"""Options of the pointwise scheme, and the fields shared by its curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.photodiode.pointwise.kernels import Across
from minga.models.photodiode.solver.coefficient_values import neutral_potential
from minga.models.photodiode.structure.device import Device
from minga.space.boundary import fixed
from minga.space.field import Field

__all__ = ["DIRECTIONS", "MARKS", "Pointwise", "Setup", "anode_side", "marks"]

Floats = NDArray[np.float64]
Test = Literal["max", "paper", "current", "residual"]

DIRECTIONS: Final = {"phi": 1, "u": 1, "v": -1}
"""Sweep directions, down (1) or up (-1) the rows; the paper states that they differ, but not how."""


@dataclass(frozen=True, slots=True)
class Pointwise:
    """Options of the iteration.

    Parameters
    ----------
    directions
        Directions of the sweeps phi, u and v along x: 1 or -1.
    across
        "exact": blocks of different ranks form a pipeline and yield the bits of a single process. "block": they use the
        other blocks' values from before the iteration; with cuts at the ends of segments, any layout yields the same
        bits.
    segments
        Ends of segments in ascending order from 0 to N. At the ends, neighbours' values are those from before the
        iteration, as in the paper's parallel versions. None: a single segment.
    inner_sweeps
        Sweeps of each equation per iteration: 1 as in the paper; many sweeps approach Gummel's iteration.
    weight
        Over-relaxation factor of phi.
    test
        "max": the largest change of phi, ln n and ln p. "paper": the |sums| of the changes of phi, Fn and Fp, in which
        errors may cancel. "current": like "max", and in addition (Jmax - Jmin)/|J| <= 1e-3 where J is resolved above
        rounding errors, because small changes may be merely slow ones. "residual": the residual of the equations.
    tolerance
        Tolerance of the test, kT/q.
    limit
        Largest number of iterations.
    cost
        "measured": nodes cost what their equation costs. "synthetic": `heavy` nodes (first and end) cost more as
        iterations proceed, by a factor exp(growth (2 k/expected - 1)) from half of `expected` iterations on, as in the
        paper's Fig. 14. Results do not depend on it.
    heavy
        The first heavy node and the one after the last, for synthetic costs.
    growth
        The growth of synthetic costs, see `cost`.
    expected
        The number of iterations that synthetic costs are made for.
    labour
        Number of times that each Newton step is repeated, for machines that would otherwise only exchange data.
    """

    directions: tuple[int, int, int] = (DIRECTIONS["phi"], DIRECTIONS["u"], DIRECTIONS["v"])
    across: Across = "exact"
    segments: tuple[int, ...] | None = None
    inner_sweeps: int = 1
    weight: float = 1.0
    test: Test = "max"
    tolerance: float = 1e-6
    limit: int = 2_000_000
    cost: Literal["measured", "synthetic"] = "measured"
    heavy: tuple[int, int] = (0, 0)
    growth: float = 4.0
    expected: int = 10_000
    labour: int = 1

    def __post_init__(self) -> None:
        for name, good, remedy in (
            ("directions", all(d in (1, -1) for d in self.directions), "each is 1 (down the rows) or -1"),
            ("inner_sweeps", self.inner_sweeps >= 1, "choose 1 or more"),
            ("weight", 0.0 < self.weight < 2.0, "choose one between 0 and 2"),
            ("tolerance", 0.0 < self.tolerance < np.inf, "give a positive number such as 1e-6"),
            ("limit", self.limit >= 1, "allow one iteration or more"),
            ("labour", self.labour >= 1, "choose 1 or more"),
            ("expected", self.expected >= 2, "give the expected number of iterations, 2 or more"),
            ("growth", 0.0 <= self.growth <= 20.0, "choose one between 0 and 20"),
        ):
            if not good:
                raise CaseError(f"{name} is {getattr(self, name)!r}", key=f"photodiode.pointwise.{name}", remedy=remedy)


@dataclass(frozen=True, eq=False)
class Setup:
    """Data shared by all curves.

    Attributes
    ----------
    first, last
        Marks of the first and last nodes of segments.
    heavy
        Marks of heavy nodes.
    share
        Share of a change of the voltage that each node takes.
    theta
        Band parameters as fields that can also be read beyond the ends.
    values
        Values of these fields.
    """

    first: Field
    last: Field
    heavy: Field
    share: Field
    theta: tuple[Field, Field]
    values: dict[Field, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, device: Device, how: Pointwise) -> Setup:
        """Return the shared data for a device and options of the scheme."""
        grid = device.grid
        first, last, heavy = (Field(name, grid, "u1", boundary=fixed(0)) for name in (*MARKS, "heavy"))
        share = Field("share of the voltage", grid)
        nodes = grid.shape[0]
        begins, ends = marks(how.segments or (0, nodes), nodes).values()
        costly = np.zeros(nodes, np.uint8)
        costly[how.heavy[0] : how.heavy[1]] = 1
        theta = (Field("bands n", grid, boundary=fixed(0.0)), Field("bands p", grid, boundary=fixed(0.0)))
        values: dict[Field, NDArray[Any]] = {first: begins, last: ends, heavy: costly, share: anode_side(device)}
        return cls(first, last, heavy, share, theta, {**values, theta[0]: device.theta_n, theta[1]: device.theta_p})

    @property
    def fields(self) -> tuple[Field, ...]:
        """All shared fields."""
        return tuple(self.values)


MARKS: Final = ("segment begins", "segment ends")
"""Names of the fields that mark the nodes next to a cut."""


def marks(ends: Sequence[int] | NDArray[np.int64], nodes: int) -> dict[str, NDArray[np.uint8]]:
    """Return the values of the fields `MARKS` for segments with `ends`, which include 0 and `nodes`."""
    inside = np.asarray(ends, np.int64)[1:-1]
    begins, finishes = np.zeros(nodes, np.uint8), np.zeros(nodes, np.uint8)
    begins[inside], finishes[inside - 1] = 1, 1
    return dict(zip(MARKS, (begins, finishes), strict=True))


def anode_side(device: Device) -> Floats:
    """Return the initial share of each node's potential in a change of the voltage.

    It is 1 where the neutral potential is closer to the anode's than to the cathode's, and 0 elsewhere; if the two
    contacts have the same neutral potential, it falls linearly along the device.
    """
    neutral, depth = neutral_potential(device), device.nodes[0]
    if abs(neutral[0] - neutral[-1]) < 1.0:
        return np.asarray((depth[-1] - depth) / (depth[-1] - depth[0]))
    nearer = np.abs(neutral - neutral[0]) < np.abs(neutral - neutral[-1])
    return np.asarray(nearer, np.float64)
