"""Geometric multigrid for the Laplacian of finite volumes; :class:`minga.solve.Multigrid` is its public form.

Levels halve the resolution (of the axes of strongest coupling first) down to a single cell. On each level the error is
relaxed by a few damped Jacobi steps whose weights are the inverse roots of a Chebyshev polynomial, before and after the
correction from the next level: the same polynomial of the same symmetric operator. Restriction and prolongation are
each other's transpose, so the cycle is symmetric and positive definite, as conjugate gradients require. No result
depends on which rank owns a cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from minga.engine.program import Program
from minga.errors import LayoutError
from minga.solve.coarsening import (
    chebyshev_weights,
    check_levels,
    check_vectors,
    choose_factors,
    matches,
    rough_share,
    settle,
)
from minga.solve.laplacian import Laplacian, as_walls
from minga.solve.transfers import GridTransfer
from minga.space.boundary import fixed
from minga.space.field import Field, Slot
from minga.space.grid import Grid
from minga.space.layout import Layout

if TYPE_CHECKING:
    from minga.engine.engine import Engine


@dataclass(frozen=True, slots=True, eq=False)
class LaplacianLevel:
    """One level of the hierarchy.

    Parameters
    ----------
    operator, layout
        The Laplacian of the level's grid, and the layout of that grid.
    weights
        Weights of the relaxation steps.
    u
        The correction, in two slots between which the relaxation alternates.
    f
        The right side.
    r
        The residual, which the next level receives.
    transfer
        Restriction to and prolongation from the next level; None on the coarsest level.
    landing
        Right side and correction in the layout that follows from the level above, if this level has another layout.
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
        """The grid of the level."""
        return self.operator.grid

    @property
    def constants(self) -> dict[Field, Any]:
        """The fields of one axis, which hold coefficients, and their values."""
        transfer = {} if self.transfer is None else self.transfer.constants
        return {**self.operator.constants, **transfer}


@dataclass(frozen=True, eq=False)
class LaplacianMultigrid:
    """The levels below the grid of a Laplacian, for one layout, and the V-cycle over them.

    Parameters
    ----------
    operator
        The Laplacian whose approximate inverse the V-cycle is.
    layout
        The layout of the operator's grid.
    steps
        Relaxation steps before and after each coarse correction.
    cells_per_rank
        A level with fewer cells a rank moves to fewer ranks: messages would take longer than its work.
    name
        The beginning of the names of all fields.
    """

    operator: Laplacian
    layout: Layout
    steps: int = 2
    cells_per_rank: int = 4096
    name: str = "multigrid"
    levels: tuple[LaplacianLevel, ...] = field(init=False)
    _layouts: Mapping[Grid, Layout] = field(init=False)

    def __post_init__(self) -> None:
        if self.layout.domain != self.grid.box:
            raise LayoutError(f"the layout is for {self.layout.domain}, the grid has {self.grid.box}")
        check_levels(self.grid, self.steps, self.cells_per_rank)
        layouts: dict[Grid, Layout] = {self.grid: self.layout}
        object.__setattr__(self, "levels", tuple(self._build(layouts)))
        object.__setattr__(self, "_layouts", layouts)

    @property
    def grid(self) -> Grid:
        """The grid of the operator."""
        return self.operator.grid

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of the levels that are not the operator's."""
        return tuple(grid for grid in self._layouts if grid != self.grid)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields of the levels."""
        vectors = (item for one in self.levels for item in (one.u, one.f, one.r, *(one.landing or ())))
        return (*self.initial, *vectors)

    @property
    def initial(self) -> Mapping[Field, Any]:
        """The values of those fields that hold coefficients."""
        return {item: values for level in self.levels for item, values in level.constants.items()}

    def layouts(self, layout: Layout) -> Mapping[Grid, Layout]:
        """Return the layouts of all grids; LayoutError unless `layout` is the one that the levels were made for."""
        if layout != self.layout:
            raise LayoutError(
                f"multigrid {self.name!r} was made for another layout of its grid",
                remedy="make it for this layout; multigrid of an Elliptic operator follows any layout",
            )
        return self._layouts

    def setup(self, program: Program) -> None:
        """Record nothing: the coefficients of all levels are constants."""

    def _build(self, layouts: dict[Grid, Layout]) -> list[LaplacianLevel]:
        levels: list[LaplacianLevel] = []
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
                walls = as_walls(self.operator.walls, grid)
                transfer = GridTransfer(grid, below, factors, walls, f"{self.name} {number}")
            levels.append(
                LaplacianLevel(
                    operator=Laplacian(grid, self.operator.walls, self.operator.shift, f"{self.name} level {number}"),
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
        """Set all coefficients, those of the operator included; once for each engine, before it runs."""
        for item, values in {**self.operator.constants, **self.initial}.items():
            engine.set(item, values)

    def __call__(self, program: Program, residual: Field | Slot, correction: Field | Slot) -> None:
        """Record correction = M residual, one V-cycle from 0."""
        source, target = check_vectors(self.grid, residual, correction)
        first = self.levels[0]
        if first.landing is None:
            self._cycle(program, 0, source, target)
        else:
            program.move(source, first.f)
            program.move(self._cycle(program, 0, first.f.now, None), target)

    def _cycle(self, program: Program, number: int, f: Slot, target: Slot | None) -> Slot:
        """Record one V-cycle for level `number` and those below; return the correction's slot (`target`, if given)."""
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
        lines = [f"LaplacianMultigrid {self.name!r}, {self.steps} steps before and after each correction"]
        for level in self.levels:
            shape = " x ".join(map(str, level.grid.shape))
            moved = ", moved" if level.landing is not None else ""
            lines.append(f"  {shape} cells on {len(set(level.layout.owner.tolist()))} ranks{moved}")
        return "\n".join(lines)
