"""Gummel's iteration: one equation after the other, each linear in its unknown, repeated until converged.

First Poisson's equation with fixed quasi-Fermi potentials (by Newton's method with clipped corrections), then the
electron and hole densities in the new potential, with recombination and ionisation lagged. Each is a balance of fluxes
(`minga.solve.balances`), so densities stay positive from any start. Convergence is slow where carriers and potential
are strongly coupled, as in illuminated devices and at high currents (H. K. Gummel, IEEE Trans. Electron Devices 11,
1964).

Quasi-Fermi potentials computed from densities have rounding errors relative to the potential. Where a doped layer meets
a strong field, drift and diffusion of its majority carriers nearly cancel: the remainder is rounding error, and so are
the pairs that it would generate. These would change in each round, and the minority density with them, so that the
iteration would not converge. The pairs of an edge are therefore kept unless they change by more than rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader
from minga.lang.expr import where
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.solver.gummel_kernels import balance, flows, held_pairs, level, moved_potential, poisson
from minga.models.photodiode.solver.lowering import lowered_potential, row_of, taken
from minga.models.photodiode.solver.newton import NEVER, Newton, row
from minga.models.photodiode.solver.physics import EdgeValues, fields_of
from minga.solve.balances import Balances
from minga.space.boundary import fixed
from minga.space.field import Field, Register, Slot

__all__ = ["Gummel", "rescue_of"]

Readers = Sequence[CellReader]

RESCUED: Final = 1e-3
"""Change, kT/q, below which an iterate is close enough for Newton's method."""
RESCUES: Final = 50
"""Iterations after which Newton's method continues in any case."""
POISSON: Final = 5
"""Corrections of the potential in one round."""


@dataclass(frozen=True, eq=False)
class Gummel:
    """Recorder of rounds of Gummel's iteration, with the interface of `Newton`, whose densities and edges it uses.

    Attributes
    ----------
    newton
        Evaluates fluxes and the residual of the equations.
    tolerance
        Tolerance of the changes in one round, kT/q.
    limit
        Largest number of rounds.
    steady
        Whether pairs are kept unless they change by more than rounding, which small tolerances require.
    """

    newton: Newton
    tolerance: float
    limit: int
    name: str = "gummel"
    steady: bool = False
    balances: Balances = field(init=False)
    up: tuple[Field, ...] = field(init=False)
    down: tuple[Field, ...] = field(init=False)
    made: tuple[Field, ...] = field(init=False)
    rest: Field = field(init=False)
    right: Field = field(init=False)
    iterations: Register = field(init=False)
    converged: Register = field(init=False)
    change: Register = field(init=False)
    place: Register = field(init=False)

    def __post_init__(self) -> None:
        grid, put = self.coefficients.device.grid, object.__setattr__
        put(self, "balances", Balances(grid, f"{self.name} balances"))
        for item in ("up", "down"):
            put(self, item, tuple(Field(f"{self.name} {item} {axis}", grid, centre=axis) for axis in grid.axes))
        held = grid.axes if self.steady and self.newton.ionisation else ()
        put(self, "made", tuple(Field(f"{self.name} pairs {axis}", grid, centre=axis) for axis in held))
        for item in ("rest", "right"):
            put(self, item, Field(f"{self.name} {item}", grid, boundary=fixed(0.0)))
        for item in ("iterations", "converged", "place"):
            put(self, item, Register(f"{self.name} {item}", "i8"))
        put(self, "change", Register(f"{self.name} change"))

    @property
    def coefficients(self) -> Coefficients:
        """Coefficients of the device."""
        return self.newton.coefficients

    @property
    def edges(self) -> tuple[EdgeValues, ...]:
        """Edge values of the solved state."""
        return self.newton.edges

    @property
    def residual(self) -> Register:
        """Residual of the equations over their coefficients, kT/q."""
        return self.newton.residual

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return *self.newton.fields, *self.balances.fields, *self.up, *self.down, *self.made, self.rest, self.right

    def solve(self, program: Program, state: Sequence[Slot], bias: Any, light: Any) -> None:
        """Record the iteration, starting from the contents of `state`, contacts included."""
        moved, over = Register(f"{self.name} moved"), Register(f"{self.name} over", "i8")
        program.let(self.iterations, 0)
        program.let(self.change, NEVER)
        program.let(over, 0)
        with program.repeat(until=over > 0):
            self._potential(program, state, bias, moved)
            program.let(self.change, moved)
            self.newton.fluxes(program, state, bias)
            self._hold_pairs(program, state)
            for carrier in (1, 2):
                self._carriers(program, carrier, state, bias, light)
            program.let(self.iterations, self.iterations + 1)
            lost = (self.iterations >= self.limit) | ~(self.change < NEVER)
            program.let(over, where((self.change <= self.tolerance) | lost, 1, 0))
        program.let(self.converged, where(self.change <= self.tolerance, 1, 0))
        self.newton.evaluate(program, state, bias, light)

    def _potential(self, program: Program, state: Sequence[Slot], bias: Any, moved: Register) -> None:
        """Record Poisson's equation; `moved` receives the size of its first correction."""
        c, newton = self.coefficients, self.newton
        ndim, couplings = c.device.grid.ndim, [edge.coupling for edge in c.edges]
        last, rounds = Register(f"{self.name} correction"), Register(f"{self.name} corrections", "i8")
        for barrier in c.barriers:
            own = row_of(barrier, c.device.grid.shape)
            nodes = (c.nodes.neutral, c.nodes.contact, fields_of(barrier.heights))
            program.apply(lowered_potential(barrier), state[0], *nodes, self.right, bias=bias, region=own)
            program.apply(taken(ndim), self.right, state[0], region=own)
        program.let(last, NEVER)
        program.let(rounds, 0)
        with program.repeat(until=(last <= 0.1 * self.tolerance) | (rounds >= POISSON) | ~(last <= NEVER)):
            newton.densities(program, state, bias)
            program.apply(
                poisson(ndim), state[0], newton.n, newton.p, newton.activities, row(c.nodes), c.dopants, couplings,
                self.rest, self.right,
            )  # fmt: skip
            self.balances.solve(program, couplings, couplings, self.rest, self.right, self.right)
            program.apply(moved_potential(ndim), self.right, state[0], into={"largest": last, "place": self.place})
            with program.when(rounds == 0):
                program.let(moved, last)
            program.let(rounds, rounds + 1)
        newton.densities(program, state, bias)

    def _hold_pairs(self, program: Program, state: Sequence[Slot]) -> None:
        """Record the update of pairs that differ by more than rounding; in the first round of all pairs."""
        ndim = self.coefficients.device.grid.ndim
        for axis, made in enumerate(self.made):
            program.apply(
                held_pairs(ndim, axis), list(state), list(self.newton.edges[axis].pairs), made,
                fresh=where(self.iterations == 0, 1, 0), region=self.newton.inner(axis),
            )  # fmt: skip

    def _carriers(self, program: Program, carrier: int, state: Sequence[Slot], bias: Any, light: Any) -> None:
        """Record the densities of electrons (1) or holes (2) in the present potential."""
        c, newton = self.coefficients, self.newton
        ndim = c.device.grid.ndim
        theta = c.nodes.theta_n if carrier == 1 else c.nodes.theta_p
        density = newton.n if carrier == 1 else newton.p
        largest = Register(f"{self.name} change of {carrier}")
        for axis, edge in enumerate(c.edges):
            slow = () if c.saturation is None else c.saturation[axis][carrier - 1 :: 2]
            program.apply(
                flows(ndim, axis, carrier, slow),
                state[0],
                theta,
                newton.activities[carrier - 1 : carrier],
                [item for part in slow for item in fields_of(part)],
                row(edge),
                self.up[axis],
                self.down[axis],
                region=newton.inner(axis),
            )
        pairs = list(self.made) or [item for edge in newton.edges for item in edge.pairs[:1]]
        program.apply(
            balance(ndim, carrier, c.tunnelling), newton.n, newton.p, newton.activities[:2], row(c.nodes), pairs,
            list(state) if c.tunnelling else [], c.tunnelling_fields, c.gradients, c.surface, self.rest, self.right,
            light=light,
        )  # fmt: skip
        self.balances.solve(program, self.up, self.down, self.rest, self.right, self.right)
        program.apply(
            level(ndim, carrier), self.right, state[0], theta, newton.activities[carrier - 1 : carrier],
            c.nodes.contact, c.surface[2:], state[carrier], density, bias=bias,
            into=largest,
        )  # fmt: skip
        program.let(self.change, mg.max(self.change, largest))


def rescue_of(newton: Newton) -> Gummel:
    """Return the iteration that precedes Newton's method where its attempts keep failing."""
    return Gummel(newton, RESCUED, RESCUES, f"gummel of {newton.name}")
