"""A geometric multigrid V-cycle for the Laplacian of finite volumes: a solver's preconditioner, or a solver.

Levels halve the resolution (of the axes of strongest coupling first) down to a single cell. On each one the error is
relaxed by a few damped Jacobi steps whose weights are the roots of a Chebyshev polynomial, before and after the
correction from the next level: the same polynomial of the same symmetric operator. The transfers are each other's
transpose, so the cycle is symmetric and positive definite, as conjugate gradients require. Nothing in it depends on who
owns a cell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from minga.engine.program import Program
from minga.errors import LayoutError, ProgramError
from minga.solve.coarsening import choose_factors, matches, rough_share, settle
from minga.solve.laplacian import Laplacian, Walls, as_walls
from minga.solve.transfers import GridTransfer
from minga.space.boundary import fixed
from minga.space.field import Field, Slot
from minga.space.grid import Grid
from minga.space.layout import Layout

if TYPE_CHECKING:
    from minga.engine.engine import Engine


def chebyshev_weights(low: float, high: float, steps: int) -> tuple[float, ...]:
    """Weights of Jacobi steps that damp eigenvalues in [low, high] best: the inverse roots of a Chebyshev polynomial.

    Saad, Iterative Methods for Sparse Linear Systems (2nd edition, 2003), section 12.3.
    """
    middle, half = 0.5 * (high + low), 0.5 * (high - low)
    return tuple(1.0 / (middle + half * math.cos(math.pi * (2 * k + 1) / (2 * steps))) for k in range(steps))


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One resolution.

    u         the correction, in two slots between which the relaxation goes to and fro
    f         the right side
    r         what is left of it, as the next level gets it
    transfer  to and from the next level; None on the coarsest
    landing   right side and correction where the level above left and fetches them, if that is another layout
    """

    operator: Laplacian
    layout: Layout
    weights: tuple[float, ...]
    u: Field
    f: Field
    r: Field
    transfer: GridTransfer | None
    landing: tuple[Field, Field] | None

    @property
    def grid(self) -> Grid:
        return self.operator.grid


@dataclass(frozen=True, eq=False)
class Multigrid:
    """The levels below a grid, and the V-cycle over them.

    grid, layout    of the fields it is applied to
    walls, shift    as for `Laplacian`, whose approximate inverse the V-cycle is
    steps           relaxation steps before and after each coarse correction
    cells_per_rank  a level with fewer is moved to fewer ranks: their messages would take longer than its work

    A `layouts` for the engine and the numbers given by `load` belong to it::

        multigrid = Multigrid(grid, layout)
        solution = conjugate_gradients(P, multigrid.operator, x, b, preconditioner=multigrid)
        with Engine(multigrid.layouts, comm=comm) as engine:
            multigrid.load(engine)
            engine.run(P)
    """

    grid: Grid
    layout: Layout
    walls: Walls = "dirichlet"
    shift: float = 0.0
    steps: int = 2
    cells_per_rank: int = 4096
    name: str = "multigrid"
    operator: Laplacian = field(init=False)
    levels: tuple[Level, ...] = field(init=False)
    layouts: Mapping[Grid, Layout] = field(init=False)

    def __post_init__(self) -> None:
        if self.layout.domain != self.grid.box:
            raise LayoutError(f"the layout is for {self.layout.domain}, the grid has {self.grid.box}")
        if self.grid.twisted:
            raise LayoutError(
                "multigrid on a shifted torus: its coarse grids would not join",
                remedy="use conjugate gradients without a preconditioner, or no shift",
            )
        if self.steps < 1 or self.cells_per_rank < 1:
            raise LayoutError(
                f"multigrid with {self.steps} steps and {self.cells_per_rank} cells a rank", remedy="give 1 or more"
            )
        put = object.__setattr__
        put(self, "operator", Laplacian(self.grid, self.walls, self.shift, self.name))
        layouts: dict[Grid, Layout] = {self.grid: self.layout}
        put(self, "levels", tuple(self._build(layouts)))
        put(self, "layouts", layouts)

    def _build(self, layouts: dict[Grid, Layout]) -> list[Level]:
        levels: list[Level] = []
        grid, given = self.grid, self.layout
        while True:
            factors = choose_factors(grid)
            last = max(factors) == 1
            layout = settle(given, factors, self.cells_per_rank)
            assert matches(layout, factors)
            landing = None
            number = len(levels)
            if layout != given:
                # Above lies `grid` as the level above left it; this level works on its own copy.
                landing = (self._vector("landed right side", number, grid), self._vector("landed", number, grid))
                layouts[grid] = given
                grid = grid.relabel(f"{self.name} {number} moved")
            layouts[grid] = layout
            transfer = None
            if not last:
                below = grid.coarsen(factors).relabel(f"{self.name} {number + 1}")
                walls = as_walls(self.walls, grid)
                transfer = GridTransfer(grid, below, factors, walls, f"{self.name} {number}")
            levels.append(
                Level(
                    operator=Laplacian(grid, self.walls, self.shift, f"{self.name} level {number}"),
                    layout=layout,
                    weights=(1.0,) if last else chebyshev_weights(rough_share(grid, factors), 2.0, self.steps),
                    u=self._vector("correction", number, grid, slots=2),
                    f=self._vector("right side", number, grid),
                    r=self._vector("residual", number, grid),
                    transfer=transfer,
                    landing=landing,
                )
            )
            if transfer is None:
                return levels
            grid, given = transfer.coarse, layout.coarsen(factors)

    def _vector(self, kind: str, number: int, grid: Grid, slots: int = 1) -> Field:
        return Field(f"{self.name} {number} {kind}", grid, slots=slots, boundary=fixed(0.0))

    def load(self, engine: Engine) -> None:
        """Give all one-axis fields their values; once for each engine, before it runs."""
        self.operator.load(engine)
        for level in self.levels:
            level.operator.load(engine)
            if level.transfer is not None:
                for item, values in level.transfer.constants.items():
                    engine.set(item, values)

    def __call__(self, program: Program, residual: Field | Slot, correction: Field | Slot) -> None:
        """Record correction = M residual, one V-cycle from 0."""
        source = residual.now if isinstance(residual, Field) else residual
        target = correction.now if isinstance(correction, Field) else correction
        for slot in (source, target):
            if slot.field.grid != self.grid or any(slot.field.centre) or slot.field.on is not None:
                raise ProgramError(
                    f"multigrid on {self.grid!r} is applied to {slot.field!r}",
                    remedy="apply it to fields with all cells of its grid",
                )
        first = self.levels[0]
        if first.landing is None:
            self._cycle(program, 0, source, target)
        else:
            program.move(source, first.f)
            program.move(self._cycle(program, 0, first.f.now, None), target)

    def _cycle(self, program: Program, number: int, f: Slot, target: Slot | None) -> Slot:
        """One V-cycle for level `number` and those below; returns where the correction is (`target`, if given)."""
        level = self.levels[number]
        operator, weights = level.operator, level.weights
        sides = [level.u.slot(0), level.u.slot(1)]
        if level.transfer is None:
            result = target or sides[0]
            operator.relax(program, None, f, result, weights[0])
            return result
        operator.relax(program, None, f, sides[0], weights[0])
        for weight in weights[1:]:
            operator.relax(program, sides[0], f, sides[1], weight)
            sides.reverse()
        operator.residual(program, sides[0], f, level.r)
        self._correct(program, number, sides[0])
        for weight in weights[:0:-1]:
            operator.relax(program, sides[0], f, sides[1], weight)
            sides.reverse()
        result = target or sides[1]
        operator.relax(program, sides[0], f, result, weights[0])
        return result

    def _correct(self, program: Program, number: int, u: Slot) -> None:
        """Add the correction of the next level to `u`."""
        transfer, below = self.levels[number].transfer, self.levels[number + 1]
        assert transfer is not None
        if below.landing is None:
            transfer.restrict(program, self.levels[number].r, below.f)
            transfer.prolong(program, self._cycle(program, number + 1, below.f.now, None), u)
            return
        right_side, landed = below.landing
        transfer.restrict(program, self.levels[number].r, right_side)
        program.move(right_side, below.f)
        program.move(self._cycle(program, number + 1, below.f.now, None), landed)
        transfer.prolong(program, landed, u)

    def __repr__(self) -> str:
        lines = [f"Multigrid {self.name!r}, {self.steps} steps before and after each correction"]
        for level in self.levels:
            shape = " x ".join(map(str, level.grid.shape))
            moved = ", moved" if level.landing is not None else ""
            lines.append(f"  {shape} cells on {len(set(level.layout.owner.tolist()))} ranks{moved}")
        return "\n".join(lines)
