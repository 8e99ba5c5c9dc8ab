"""Newton's method for all equations of a device together.

Corrections of the potential are clipped: up to 1 kT/q they are applied unchanged, beyond that as 1 plus their
logarithm, and at most as 5, so that exponentials never overflow. Rates are almost linear in densities and exponential
in levels: levels are changed such that densities change as the linearised equations say in a given potential, n to
n (1 + r), by a factor of at most exp(5) or exp(-5). With layers that float, levels and potential may then go around in
a circle: if sixteen corrections are not enough, all that follow are clipped.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, where
from minga.lang.kernel import Kernel
from minga.lang.math import log, log1p
from minga.models.photodiode.solver.assembly import node_equations, pattern
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.solver.densities import carriers
from minga.models.photodiode.solver.history import History
from minga.models.photodiode.solver.linear import LinearSolver, linear_solver
from minga.models.photodiode.solver.lowering import lowered_equations, row_of
from minga.models.photodiode.solver.physics import EdgeValues, edge_values, fields_of
from minga.models.photodiode.solver.problem import Linear
from minga.models.photodiode.solver.terminal import inner_edges
from minga.models.photodiode.solver.thresholds import DeadSpace
from minga.space.boundary import fixed
from minga.space.box import Box
from minga.space.field import Field, Register, Slot

__all__ = ["Newton", "clipped", "row"]

Readers = Sequence[CellReader]

LARGEST_STEP: Final = 5.0
"""Largest correction, kT/q."""
FALL: Final = 0.0067 - 1.0
"""Smallest relative change of a density by a correction, about exp(-LARGEST_STEP) - 1."""
RISE: Final = 147.0
"""Largest relative change, about exp(LARGEST_STEP) - 1."""
BY_DENSITY: Final = 16
"""Number of corrections after which levels are clipped as the potential is, until the iteration ends."""
ROUND_OFF: Final = 1e-12
"""Residual that is round-off, kT/q."""
INSENSITIVE: Final = 1e-3
"""Largest correction, kT/q, of levels that hardly matter: of a layer between barriers that no current can charge."""
STILL: Final = 4
"""Iterations with residuals of round-off after which such corrections count as those of a solution."""
NEVER: Final = 1e30
"""Stands for a change before the first iteration, kT/q."""
WILD: Final = 1e12
"""Correction beyond which the iteration is given up, kT/q."""


@dataclass(frozen=True, eq=False)
class Newton:
    """Recorder of iterations of Newton's method, with the fields and registers that they need.

    Attributes
    ----------
    ionisation
        Whether impact ionisation is included.
    tolerance
        Tolerance of corrections, and of residuals over their coefficients, kT/q.
    limit
        Largest number of iterations.
    linear
        Linear solver with two axes.
    keep
        Whether its factors serve several right sides.
    space
        Threshold energies of ionisation; None: it is local.
    history
        Recorder of its coefficients, or None.
    n, p
        Densities of the last evaluated state, 1/cm3.
    activities
        Activities of that state as defined by `carriers`; empty with Boltzmann statistics.
    edges
        Fields of EdgeValues of that state, for each axis.
    iterations, converged, change, residual, place, worst
        Of the last solution: the number of iterations, success (1) or failure (0), the last correction and residual in
        kT/q, and the places of the largest correction (`place`) and residual (`worst`).
    """

    coefficients: Coefficients
    ionisation: bool
    tolerance: float
    limit: int
    name: str = "newton"
    linear: Linear = "auto"
    keep: bool = False
    space: DeadSpace | None = None
    history: History | None = field(init=False)
    n: Field = field(init=False)
    p: Field = field(init=False)
    activities: tuple[Field, ...] = field(init=False)
    edges: tuple[EdgeValues, ...] = field(init=False)
    right: tuple[Field, ...] = field(init=False)
    lines: LinearSolver = field(init=False)
    iterations: Register = field(init=False)
    converged: Register = field(init=False)
    change: Register = field(init=False)
    residual: Register = field(init=False)
    place: Register = field(init=False)
    worst: Register = field(init=False)

    def __post_init__(self) -> None:
        grid = self.coefficients.device.grid
        put = object.__setattr__
        put(self, "history", None if self.space is None else History(self.coefficients, self.space))
        put(self, "n", Field(f"{self.name} n", grid))
        put(self, "p", Field(f"{self.name} p", grid))
        put(self, "activities", tuple(
            Field(f"{self.name} {what} of {carrier}", grid)
            for what in ("ln gamma", "d ln n") for carrier in ("electrons", "holes") if self.coefficients.states
        ))  # fmt: skip
        count = 17 if self.ionisation else 10
        put(self, "edges", tuple(
            EdgeValues.of([Field(f"{self.name} edge {axis}{k}", grid, centre=axis) for k in range(count)])
            for axis in grid.axes
        ))  # fmt: skip
        put(self, "right", tuple(Field(f"{self.name} right {k}", grid, boundary=fixed(0.0)) for k in range(3)))
        put(self, "lines", linear_solver(
            self.linear, self.coefficients.device, pattern(self.ionisation, self.coefficients.tunnelling),
            self.coefficients.held, f"{self.name} lines", keep=self.keep,
        ))  # fmt: skip
        for item in ("iterations", "converged", "place", "worst"):
            put(self, item, Register(f"{self.name} {item}", "i8"))
        for item in ("change", "residual"):
            put(self, item, Register(f"{self.name} {item}"))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return (
            self.n,
            self.p,
            *self.activities,
            *(item for edge in self.edges for item in edge.all),
            *self.right,
            *self.lines.fields,
            *(() if self.history is None else self.history.fields),
        )

    def densities(
        self, program: Program, state: Sequence[Slot], bias: Any, n: Field | None = None, p: Field | None = None
    ) -> None:
        """Record the densities of a state into `n` and `p`, by default the own fields."""
        c = self.coefficients
        program.apply(
            carriers(c.device.grid.ndim), list(state), c.nodes.theta_n, c.nodes.theta_p, c.states, n or self.n,
            p or self.p, self.activities, bias=bias,
        )  # fmt: skip

    def inner(self, axis: int) -> Box:
        """Return the edges along an axis that lie between two nodes."""
        return inner_edges(self.coefficients.device.grid.shape, axis)

    def fluxes(self, program: Program, state: Sequence[Slot], bias: Any) -> None:
        """Record the densities and the contributions of the edges."""
        self.densities(program, state, bias)
        self.through_edges(program, state)
        if self.history is not None:
            self.history.record(program, state, self.edges[0])
            self.through_edges(program, state)

    def through_edges(self, program: Program, state: Sequence[Slot], change: Sequence[Field] = ()) -> None:
        """Record the contributions of the edges for a state, or its increments, and the densities in `n` and `p`."""
        c, grid = self.coefficients, self.coefficients.device.grid
        thetas = (c.nodes.theta_n, c.nodes.theta_p)
        for axis in range(grid.ndim):
            made, models = self._edge_kernel(axis)
            program.apply(
                made, list(state), list(change), self.n, self.p, *thetas, self.activities, row(c.edges[axis]), models,
                list(self.edges[axis].all), region=self.inner(axis),
            )  # fmt: skip

    @functools.cached_property
    def _edge_kernels(self) -> dict[int, tuple[Kernel, list[Field]]]:
        return {}

    def _edge_kernel(self, axis: int) -> tuple[Kernel, list[Field]]:
        """Return the kernel of the edges along an axis, and the fields of its models."""
        c = self.coefficients
        if axis not in self._edge_kernels:
            saturation = None if c.saturation is None else c.saturation[axis]
            ionising = c.ionising[axis] if self.history is None else self.history.pieces
            pieces = ionising if self.ionisation else None
            models = [item for pair in (saturation, pieces) if pair for part in pair for item in fields_of(part)]
            self._edge_kernels[axis] = edge_values(c.device.grid.ndim, axis, pieces, saturation), models
        return self._edge_kernels[axis]

    def evaluate(self, program: Program, state: Sequence[Slot], bias: Any, light: Any) -> None:
        """Record the equations at a state: their residual and matrix."""
        self.fluxes(program, state, bias)
        self.assemble(program, state, bias, light)

    def assemble(self, program: Program, state: Sequence[Slot], bias: Any, light: Any) -> None:
        """Record the residual and the matrix for a state whose densities and contributions of edges are known."""
        c = self.coefficients
        program.apply(
            node_equations(c.device.grid.ndim, self.ionisation, c.tunnelling), list(state), self.n, self.p,
            self.activities, row(c.nodes),
            [edge.coupling for edge in c.edges], [item for edge in self.edges for item in edge.all],
            c.tunnelling_fields, c.gradients, c.surface, c.dopants, *self.lines.matrix, self.right,
            bias=bias, light=light,
            into={"largest": self.residual, "place": self.worst},
        )  # fmt: skip
        for barrier in c.barriers:
            lower, diagonal, upper = self.lines.matrix
            found = program.apply(
                lowered_equations(barrier), state[0], c.nodes.neutral, c.nodes.contact, fields_of(barrier.heights),
                self.right[0], diagonal[0], (upper if barrier.inward > 0 else lower)[0], bias=bias,
                region=row_of(barrier, c.device.grid.shape),
            )  # fmt: skip
            program.let(self.residual, mg.max(self.residual, found))

    def solve(self, program: Program, state: Sequence[Slot], bias: Any, light: Any) -> None:
        """Record the iteration, starting from the contents of `state`, contacts included."""
        over, still = (Register(f"{self.name} {what}", "i8") for what in ("over", "still"))
        program.let(self.iterations, 0)
        program.let(self.change, NEVER)
        program.let(over, 0)
        program.let(still, 0)
        found = (self.change <= self.tolerance) & (self.residual <= self.tolerance)
        found = found | ((still >= STILL) & (self.change <= INSENSITIVE))
        lost = (self.iterations >= self.limit) | ~(self.change <= NEVER) | ~(self.residual < WILD)
        with program.repeat(until=over > 0):
            self.evaluate(program, state, bias, light)
            program.let(still, where(self.residual <= ROUND_OFF, still + 1, 0))
            program.let(over, where(found | lost, 1, 0))
            with program.when(over == 0):
                self.lines.setup(program)
                self.lines.solve(program, self.right, self.right)
                program.apply(
                    corrected(self.coefficients.device.grid.ndim), self.right, list(state),
                    clipping=where(self.iterations >= BY_DENSITY, 1, 0),
                    into={"largest": self.change, "place": self.place},
                )  # fmt: skip
                program.let(self.iterations, self.iterations + 1)
        program.let(self.converged, where(found, 1, 0))


def clipped(correction: Node) -> Node:
    """Return the clipped correction."""
    size = mg.abs(correction)
    most = mg.min(1.0 + log(mg.max(size, 1.0)), LARGEST_STEP)
    taken = where(size <= 1.0, size, most)
    return where(correction < 0.0, -taken, taken)


def level_change(level: Node, potential: Node, rising: float) -> Node:
    """Return the correction of a level that is applied; `rising` is -1 if its density falls with it.

    What it has in common with the potential changes no density.
    """
    common = where(level * potential > 0.0, where(mg.abs(level) < mg.abs(potential), level, potential), 0.0)
    grown = log1p(mg.min(mg.max(rising * (level - common), FALL), RISE))
    return clipped(common) + rising * grown


def row(numbers: Any) -> list[Field]:
    """Return the fields of NodeCoefficients or EdgeCoefficients."""
    return [getattr(numbers, name) for name in numbers.__dataclass_fields__]


@functools.cache
def corrected(ndim: int) -> Kernel:
    """Return the kernel that corrects a state; it yields the largest correction that was found and its place."""
    here = (0,) * ndim

    def correct(correction: Readers, state: Readers, *, clipping: Node) -> dict[str, Reduced]:
        potential, electron, hole = (x[here] for x in correction)
        levels = (
            where(clipping > 0, clipped(level), level_change(level, potential, rising))
            for level, rising in ((electron, -1.0), (hole, 1.0))
        )
        applied = clipped(potential), *levels
        for item, taken in zip(state, applied, strict=True):
            item[here] = item[here] + taken
        worst = mg.max(mg.max(mg.abs(potential), mg.abs(electron)), mg.abs(hole))
        return {"largest": mg.max(worst), "place": mg.argmax(worst)}

    return Kernel(correct, name="correction of a state")
