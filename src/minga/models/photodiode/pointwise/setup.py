"""How the pointwise scheme goes, and the fields that its curves share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.photodiode.pointwise.kernels import Across
from minga.models.photodiode.solver.coefficients import neutral_potential
from minga.models.photodiode.structure.device import Device
from minga.space.boundary import fixed
from minga.space.field import Field

__all__ = ["DIRECTIONS", "MARKS", "Pointwise", "Setup", "anode_side", "marks"]

Floats = NDArray[np.float64]
Test = Literal["max", "paper", "current", "residual"]

DIRECTIONS: Final = {"phi": 1, "u": 1, "v": -1}
"""Down the rows or up; the paper says that they differ, and not how."""


@dataclass(frozen=True, slots=True)
class Pointwise:
    """How the iterations go.

    directions    of the sweeps phi, u and v along x: 1 or -1
    across        "exact": blocks of other ranks form a pipeline, with the bits of one process. "block": they use what
                  the others had before; with cuts where segments end, these are the bits of any layout
    segments      where the nodes are cut, ends in ascending order from 0 to N; at the ends neighbours' values are those
                  before the iteration, as in the paper's parallel versions. None: nowhere
    inner_sweeps  of each equation in an iteration: 1 as in the paper; many make it Gummel's iteration
    weight        of over-relaxation of phi
    test          "max": of changes of phi, ln n and ln p; "paper": of |sums| of changes of phi, Fn and Fp, where errors
                  may cancel; "current": as "max", and (Jmax - Jmin)/|J| is at most 1e-3 where rounding lets J be seen,
                  as slow changes may be small ones; "residual": of what the equations leave over
    tolerance     of the test, kT/q
    limit         iterations at most
    cost          "measured": nodes take what their equation takes; "synthetic": `heavy` nodes (first and end) take more
                  as iterations go on, exp(growth (2 k/expected - 1)) times from half of `expected` iterations on, as
                  in the paper's Fig. 14. Results do not depend on it
    labour        how many times each step of Newton's method is done, for machines that would do nothing but exchange
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
            ("inner_sweeps", self.inner_sweeps >= 1, "do one or more"),
            ("weight", 0.0 < self.weight < 2.0, "choose one between 0 and 2"),
            ("tolerance", 0.0 < self.tolerance < np.inf, "give a positive number such as 1e-6"),
            ("limit", self.limit >= 1, "allow one iteration or more"),
            ("labour", self.labour >= 1, "do everything once or more"),
            ("expected", self.expected >= 2, "say how many iterations there will be, 2 or more"),
            ("growth", 0.0 <= self.growth <= 20.0, "choose one between 0 and 20"),
        ):
            if not good:
                raise CaseError(f"{name} is {getattr(self, name)!r}", key=f"photodiode.pointwise.{name}", remedy=remedy)


@dataclass(frozen=True, eq=False)
class Setup:
    """What all curves share: where segments begin and end, which nodes are heavy, how a voltage is shared out, and the
    band parameters as fields that neighbours are read of, also at the ends."""

    first: Field
    last: Field
    heavy: Field
    share: Field
    theta: tuple[Field, Field]
    values: dict[Field, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, device: Device, how: Pointwise) -> Setup:
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
        return tuple(self.values)


MARKS: Final = ("segment begins", "segment ends")
"""Fields that mark the nodes beside a cut."""


def marks(ends: Sequence[int] | NDArray[np.int64], nodes: int) -> dict[str, NDArray[np.uint8]]:
    """Values of the fields `MARKS` for segments between `ends`, 0 and `nodes` included."""
    inside = np.asarray(ends, np.int64)[1:-1]
    begins, finishes = np.zeros(nodes, np.uint8), np.zeros(nodes, np.uint8)
    begins[inside], finishes[inside - 1] = 1, 1
    return dict(zip(MARKS, (begins, finishes), strict=True))


def anode_side(device: Device) -> Floats:
    """What part of a change of the voltage each node's potential takes at first: all of it where the neutral potential
    is nearer to the anode's than to the cathode's; even along the device where those are the same."""
    neutral, depth = neutral_potential(device), device.nodes[0]
    if abs(neutral[0] - neutral[-1]) < 1.0:
        return np.asarray((depth[-1] - depth) / (depth[-1] - depth[0]))
    nearer = np.abs(neutral - neutral[0]) < np.abs(neutral - neutral[-1])
    return np.asarray(nearer, np.float64)
