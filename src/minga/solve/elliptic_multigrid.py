"""Multigrid for `Elliptic`: coefficients that vary or change, masked cells, thin gaps, any layout.

:class:`minga.solve.Multigrid` is its public form. Levels halve the resolution of the axes of strongest coupling first,
down to a single cell. Transfers and coarse operators follow the coefficients (see `minga.solve.elliptic_kernels`);
kernels compute them, so that a Program recomputes them after cells have turned solid. The error is relaxed as in
`minga.solve.laplacian_multigrid`, and this cycle is symmetric and positive definite as well.

Nothing about layouts is known when the cycle is recorded: each level has a grid with a label of its own, which `move`
reaches, and `layouts` returns the layouts of these grids for any layout of the finest one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from minga.engine.program import Program
from minga.solve.coarsening import (
    chebyshev_weights,
    check_levels,
    check_vectors,
    choose_factors,
    follow_levels,
    rough_share,
    stretched_axis,
)
from minga.solve.elliptic import Elliptic, live_axes, outside_axis
from minga.solve.elliptic_kernels import (
    coarse_faces,
    coarse_walls,
    copy_active,
    find_behind,
    find_cuts,
    find_shares,
    first_step,
    jacobi_step,
    left_over,
    prolongation,
    restriction,
    sum_diagonal,
    take_faces,
)
from minga.solve.lines import Lines
from minga.space.boundary import fixed
from minga.space.field import Field, Slot
from minga.space.grid import Grid
from minga.space.layout import Layout

__all__ = ["EllipticMultigrid"]


@dataclass(frozen=True, slots=True, eq=False)
class EllipticLevel:
    """One level of the hierarchy; all its fields lie at cells.

    Parameters
    ----------
    grid
        The grid of the level.
    factors
        2 for each axis along which the next level has half the cells; all 1 on the coarsest level.
    weights
        Weights of the relaxation steps.
    faces, walls, diagonal
        The conductance of the face below each cell, for each axis; the coefficient of the walls; the whole diagonal.
    u
        The correction, in two slots between which the relaxation alternates.
    f, r
        The right side and the residual.
    shares
        The fractions that cells take from their coarse neighbours, for each coarsened axis.
    lines
        The solver of whole lines that relaxes the error; None for point relaxation.
    landing
        A field on the next level's cells in the layout of this level; everything that is exchanged with the next level
        passes through it.
    cuts
        u1: cells that are cut off from their coarse cell, if there may be solid cells.
    behind
        u1: 1 in solid cells whose coarse cell is also solid, where the correction is always 0; then the same for the
        cells of `landing`: 1 if it holds for all their fine cells.
    """

    grid: Grid
    factors: tuple[int, ...]
    weights: tuple[float, ...]
    faces: tuple[Field, ...]
    walls: Field
    diagonal: Field
    u: Field
    f: Field
    r: Field
    shares: tuple[Field, ...]
    lines: Lines | None
    landing: Field | None
    cuts: tuple[Field, ...]
    behind: tuple[Field, Field] | tuple[None, None]

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields of the level."""
        landing = tuple(item for item in (self.landing, *self.behind) if item is not None)
        lines = self.cuts if self.lines is None else (*self.cuts, *self.lines.fields)
        return (*self.faces, self.walls, self.diagonal, self.u, self.f, self.r, *self.shares, *lines, *landing)

    @property
    def closing(self) -> tuple[int, ...]:
        """Coarsened periodic axes with an odd number of cells: the last cell has no partner and precedes the first."""
        halved = (axis for axis, factor in enumerate(self.factors) if factor == 2)
        return tuple(axis for axis in halved if self.grid.periodic[axis] and self.grid.shape[axis] % 2)

    @property
    def ends(self) -> Mapping[str, Any]:
        """The last index of each axis of the next level, as the scalars n0 to n3 of kernels."""
        assert self.landing is not None
        shape = self.landing.grid.shape
        return {f"n{axis}": shape[axis] - 1 if axis < len(shape) else -1 for axis in range(4)}


@dataclass(frozen=True, eq=False)
class EllipticMultigrid:
    """The levels below the grid of an `Elliptic` operator, and the V-cycle over them.

    Parameters
    ----------
    elliptic
        The operator whose approximate inverse the V-cycle is.
    lines
        An axis whose lines are solved exactly in each relaxation step, which makes steps twice as long; ``"auto"``: the
        only axis, or the most stretched one if it is stretched much; None: no lines.
    steps
        Relaxation steps before and after each coarse correction.
    cells_per_rank
        A level with fewer cells a rank moves to fewer ranks: messages would take longer than its work.
    solids
        Whether some rows, or the conductances of inner faces, are or may become zero: such cells are then left out, and
        regions that thin plates separate stay separate on coarse grids.
    name
        The beginning of the names of all fields.
    """

    elliptic: Elliptic
    lines: str | int | None = "auto"
    steps: int = 2
    cells_per_rank: int = 4096
    solids: bool = False
    name: str = "multigrid"
    grid: Grid = field(init=False)
    scratch: Field = field(init=False)
    levels: tuple[EllipticLevel, ...] = field(init=False)

    def __post_init__(self) -> None:
        grid = self.elliptic.grid
        check_levels(grid, self.steps, self.cells_per_rank)
        put = object.__setattr__
        put(self, "grid", grid)
        put(self, "scratch", Field(f"{self.name} scratch", grid))
        put(self, "levels", tuple(self._build()))

    def _build(self) -> list[EllipticLevel]:
        levels: list[EllipticLevel] = []
        grid = self.grid
        along = stretched_axis(grid) if self.lines == "auto" else None if self.lines is None else grid.axis(self.lines)
        while True:
            number = len(levels)
            grid = grid.relabel(f"{self.name} {number}")
            halved = choose_factors(grid, along)
            factors = _fewer_kinds(grid, halved, along)
            last = max(factors) == 1
            holds = self.solids and not last
            coarse = grid.coarsen(factors).relabel(f"{self.name} below {number}")

            def vector(kind: str, on: Grid = grid, slots: int = 1, number: int = number) -> Field:
                return Field(f"{self.name} {number} {kind}", on, slots=slots, boundary=fixed(0.0))

            levels.append(
                EllipticLevel(
                    grid=grid,
                    factors=factors,
                    weights=(1.0,) if last else chebyshev_weights(rough_share(grid, halved, along), 2.0, self.steps),
                    faces=tuple(vector(f"faces {axis}") for axis in grid.axes),
                    walls=vector("walls"),
                    diagonal=vector("diagonal"),
                    u=vector("correction", slots=2),
                    f=vector("right side"),
                    r=vector("residual"),
                    shares=tuple(vector(f"shares {grid.axes[a]}") for a, f in enumerate(factors) if f == 2),
                    lines=None if along is None else Lines(grid, along, f"{self.name} {number} lines"),
                    landing=None if last else vector("landing", coarse),
                    cuts=(Field(f"{self.name} {number} cuts", grid, "u1", boundary=fixed(0)),) if holds else (),
                    behind=self._masks(number, grid, coarse) if holds else (None, None),
                )
            )
            if last:
                return levels
            grid = coarse

    def _masks(self, number: int, grid: Grid, coarse: Grid) -> tuple[Field, Field]:
        fine = Field(f"{self.name} {number} behind", grid, "u1")
        return fine, Field(f"{self.name} {number} whole behind", coarse, "u1")

    # For Models and Engines ------------------------------------------------------------------------------------------
    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields of the levels, for a Model."""
        return (self.scratch, *(item for level in self.levels for item in level.fields))

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of all levels, and of the fields exchanged between them."""
        landings = (level.landing.grid for level in self.levels if level.landing is not None)
        return (*(level.grid for level in self.levels), *landings)

    def layouts(self, layout: Layout) -> Mapping[Grid, Layout]:
        """Return the layouts of `grids` for a layout of the operator's grid."""
        levels = (
            (level.grid, level.factors, None if level.landing is None else level.landing.grid) for level in self.levels
        )
        return follow_levels(layout, self.grid, levels, self.cells_per_rank)

    # In Programs -----------------------------------------------------------------------------------------------------
    def setup(self, program: Program) -> None:
        """Record the computation of all levels' coefficients from the operator's.

        It has to run before the first cycle, and again whenever the operator's fields have changed.
        """
        first, ndim = self.levels[0], self.grid.ndim
        for source, target in zip(self.elliptic.faces, first.faces, strict=True):
            program.apply(take_faces(ndim), source, self.scratch)
            program.move(self.scratch, target)
        program.move(self.elliptic.diagonal, first.walls)
        for level, below in zip(self.levels, (*self.levels[1:], None), strict=True):
            program.apply(sum_diagonal(ndim, live_axes(level.grid)), level.faces, level.walls, level.diagonal)
            if level.lines is not None:
                faces = level.faces[level.lines.along]
                program.apply(outside_axis(level.grid, level.lines.along), level.faces, level.walls, level.r)
                level.lines.setup(program, faces, faces, level.r)
            if below is None or level.landing is None:
                break
            for cuts in level.cuts:
                program.apply(find_cuts(level.factors), level.faces, level.walls, level.diagonal, level.landing, cuts)
            program.apply(find_shares(level.factors), level.faces, level.landing, level.cuts, level.shares)
            for axis in range(ndim):
                made = coarse_faces(level.factors, axis, level.closing)
                program.apply(made, level.faces[axis], level.cuts, level.landing, **level.ends)
                program.move(level.landing, below.faces[axis])
            made = coarse_walls(level.factors, level.closing)
            program.apply(made, level.faces, level.walls, level.landing, **level.ends)
            program.move(level.landing, below.walls)
        for level, below in zip(self.levels[:-1], self.levels[1:], strict=True):
            fine, whole = level.behind
            if fine is not None and whole is not None and level.landing is not None:
                program.move(below.diagonal, level.landing)
                program.apply(find_behind(level.factors), level.diagonal, level.landing, fine, whole)

    def __call__(self, program: Program, residual: Field | Slot, correction: Field | Slot) -> None:
        """Record correction = M residual, one V-cycle from 0; it is 0 in solid cells."""
        source, target = check_vectors(self.grid, residual, correction)
        program.move(source, self.levels[0].f)
        program.move(self._cycle(program, 0), target)

    def _cycle(self, program: Program, number: int) -> Slot:
        """Record one V-cycle for level `number` and those below; return the slot of the correction."""
        level = self.levels[number]
        weights = level.weights
        old, new = level.u.slot(0), level.u.slot(1)
        fine, whole = level.behind
        with program.masked(fine):
            _first_step(program, level, old, weights[0])
            if level.landing is None:
                return old
            for weight in weights[1:]:
                _step(program, level, old, new, weight)
                old, new = new, old
            _left_over(program, level, old)
        below = self.levels[number + 1]
        made = restriction(level.factors, level.closing)
        with program.masked(whole):
            program.apply(made, level.r, level.shares, level.landing, **level.ends)
        program.move(level.landing, below.f)
        program.move(self._cycle(program, number + 1), level.landing)
        with program.masked(whole):
            program.apply(prolongation(level.factors), level.landing, level.shares, old)
        with program.masked(fine):
            for weight in weights[::-1]:
                _step(program, level, old, new, weight)
                old, new = new, old
        return old

    def __repr__(self) -> str:
        lines = [f"EllipticMultigrid {self.name!r}, {self.steps} steps before and after each correction"]
        return "\n".join([*lines, *("  " + " x ".join(map(str, level.grid.shape)) for level in self.levels)])


def _fewer_kinds(grid: Grid, factors: tuple[int, ...], along: int | None) -> tuple[int, ...]:
    """Return the factors with 2 also for axes of one cell, which keep it: levels then share more of their kernels."""
    if max(factors) == 1:
        return factors
    single = [n == 1 and not grid.periodic[axis] and axis != along for axis, n in enumerate(grid.shape)]
    return tuple(2 if one else factor for one, factor in zip(single, factors, strict=True))


# Relaxation ----------------------------------------------------------------------------------------------------------
def _first_step(program: Program, level: EllipticLevel, result: Slot, weight: float) -> None:
    """Record a relaxation step from 0."""
    ndim = level.grid.ndim
    if level.lines is None:
        program.apply(first_step(ndim), level.f, level.diagonal, result, weight=weight)
        return
    program.apply(copy_active(ndim), level.f, level.diagonal, level.r)
    level.lines.relax(program, level.faces[level.lines.along], level.diagonal, level.r, None, result, weight)


def _step(program: Program, level: EllipticLevel, u: Slot, result: Slot, weight: float) -> None:
    """Record a relaxation step from `u`."""
    if level.lines is None:
        made = jacobi_step(level.grid.ndim, live_axes(level.grid))
        program.apply(made, u, level.f, level.faces, level.diagonal, result, weight=weight)
        return
    _left_over(program, level, u)
    level.lines.relax(program, level.faces[level.lines.along], level.diagonal, level.r, u, result, weight)


def _left_over(program: Program, level: EllipticLevel, u: Slot) -> None:
    """Record r = f - A u."""
    made = left_over(level.grid.ndim, live_axes(level.grid))
    program.apply(made, u, level.f, level.faces, level.diagonal, level.r)
