"""Elliptic problems on any grid: conductances of a coefficient with masks and walls, the matrix, and a solution."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import minga as mg
from minga.engine.comm import Comm, run_virtual
from minga.engine.model import Model
from minga.solve.elliptic import Elliptic
from minga.solve.elliptic_multigrid import EllipticMultigrid
from minga.solve.krylov import conjugate_gradients
from minga.space.layout import Layout

FLUID, METAL, GLASS = 0, 1, 2


def _at(array: np.ndarray, axis: int, index: object) -> np.ndarray:
    return array[(slice(None),) * axis + (index,)]


@dataclass
class Coefficients:
    """Conductances of the faces, and to walls."""

    grid: mg.Grid
    faces: list[np.ndarray]
    walls: np.ndarray

    @property
    def active(self) -> np.ndarray:
        total = self.walls.copy()
        for axis, face in enumerate(self.faces):
            n = self.grid.shape[axis]
            total += _at(face, axis, slice(None, n)) + np.roll(face, -1, axis)[tuple(map(slice, total.shape))]
        return total > 0

    def matrix(self) -> np.ndarray:
        """The operator, entry by entry."""
        shape = self.grid.shape
        matrix = np.diag(self.walls.ravel())
        for axis, face in enumerate(self.faces):
            for cell in itertools.product(*map(range, shape)):
                below = tuple((i - (a == axis)) % n for a, (i, n) in enumerate(zip(cell, shape, strict=True)))
                if cell[axis] == 0 and not self.grid.periodic[axis]:
                    continue
                p, n = (int(np.ravel_multi_index(c, shape)) for c in (cell, below))
                if p != n:
                    k = face[cell]
                    matrix[p, p] += k
                    matrix[n, n] += k
                    matrix[p, n] -= k
                    matrix[n, p] -= k
        return matrix


def coefficients(
    grid: mg.Grid, k: np.ndarray | float = 1.0, kinds: np.ndarray | None = None, held: Sequence[str] = ()
) -> Coefficients:
    """Finite volumes: harmonic means of `k`; metal is a wall at the face, glass lets nothing pass.

    held  axes whose two ends are walls
    """
    k = np.broadcast_to(k, grid.shape).astype(float)
    kinds = np.zeros(grid.shape, int) if kinds is None else kinds
    walls, faces = np.zeros(grid.shape), []
    for axis in range(grid.ndim):
        area = np.ones(grid.shape)
        for other in range(grid.ndim):
            width = grid.widths(other).reshape([-1 if a == other else 1 for a in range(grid.ndim)])
            if other == axis:
                half = 0.5 * width / k
            else:
                area = area * width
        half = half / area
        around = [np.concatenate([_at(x, axis, slice(-1, None)), x], axis) for x in (half, kinds)]
        low_half, low_kind = (_at(x, axis, slice(None, -1)) for x in around)
        face = np.where((kinds == FLUID) & (low_kind == FLUID), 1.0 / (half + low_half), 0.0)
        to_low = np.where((kinds == FLUID) & (low_kind == METAL), 1.0 / half, 0.0)
        from_low = np.where((kinds == METAL) & (low_kind == FLUID), 1.0 / low_half, 0.0)
        if not grid.periodic[axis]:
            for each in (face, to_low, from_low):
                _at(each, axis, slice(0, 1))[...] = 0.0
        walls += to_low + np.roll(from_low, -1, axis)
        if grid.axes[axis] in held:
            for end in (slice(0, 1), slice(-1, None)):
                _at(walls, axis, end)[...] += np.where(_at(kinds, axis, end) == FLUID, 1.0 / _at(half, axis, end), 0.0)
        closed = [face] if grid.periodic[axis] else [face, _at(face, axis, slice(0, 1))]
        faces.append(np.concatenate(closed, axis))
    return Coefficients(grid, faces, walls)


@dataclass
class Recorded:
    """A model whose step makes the coarse levels and solves, and what to look at."""

    model: Model
    elliptic: Elliptic
    multigrid: EllipticMultigrid
    x: mg.Field
    b: mg.Field
    iterations: mg.Register
    residual: mg.Register
    reference: mg.Register


def recorded(
    grid: mg.Grid,
    *,
    singular: bool = False,
    limit: int = 60,
    cells_per_rank: int = 4096,
    tolerance: float = 1e-8,
    lines: str | None = "auto",
    solids: bool = False,
) -> Recorded:
    """The program of a solve, for any layout."""
    elliptic = Elliptic(grid)
    multigrid = EllipticMultigrid(elliptic, lines, cells_per_rank=cells_per_rank, solids=solids)
    x, b, active = mg.Field("x", grid, boundary=mg.fixed(0.0)), mg.Field("b", grid), mg.Field("active", grid)
    step = mg.Program("solve")
    multigrid.setup(step)
    if singular:
        elliptic.active(step, active)
    null = active if singular else None
    found = conjugate_gradients(
        step, elliptic, x, b, preconditioner=multigrid, tolerance=tolerance, limit=limit, null=null
    )
    fields = (*elliptic.fields, *multigrid.fields, x, b)
    model = Model("solve", grid, fields, step, output=("x",), hierarchies=(multigrid,))
    return Recorded(model, elliptic, multigrid, x, b, found.iterations, found.residual, found.reference)


@dataclass
class Solved:
    reason: str
    iterations: int
    relative: float
    x: np.ndarray


def give(run: mg.Engine, found: Recorded, given: Coefficients) -> None:
    """Hand the coefficients to an engine."""
    for item, values in zip(found.elliptic.faces, given.faces, strict=True):
        run.set(item, values)
    run.set(found.elliptic.diagonal, given.walls)


def solve_elliptic(
    given: Coefficients, right_side: np.ndarray, layout: Layout | None = None, **options: object
) -> Solved:
    """Solve on as many virtual ranks as the layout has; rank 0's answer."""
    engine = {key: options.pop(key) for key in ("threads", "halo_depth", "native", "overlap") if key in options}

    def work(comm: Comm) -> Solved:
        found = recorded(given.grid, **options)  # type: ignore[arg-type]
        where = layout or Layout.single(given.grid.box, 1)
        with mg.Engine(found.model.layouts_like(where), comm=comm, **engine) as run:  # type: ignore[arg-type]
            give(run, found, given)
            run.set(found.b, right_side)
            reason = run.run(found.model.step).reason
            relative = (run.read(found.residual) / run.read(found.reference)) ** 0.5
            return Solved(reason, run.read(found.iterations), relative, run.gather(found.x))

    return run_virtual(1 if layout is None else layout.ranks, work)[0]


def rough(given: Coefficients, seed: int = 1) -> np.ndarray:
    """A right side with all wavelengths, 0 in solid cells, and no mean if nothing goes to walls."""
    values = np.where(given.active, np.random.default_rng(seed).standard_normal(given.grid.shape), 0.0)
    if not given.walls.any():
        values -= np.where(given.active, values.sum() / given.active.sum(), 0.0)
    return values
