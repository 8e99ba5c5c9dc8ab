"""Problems whose answers are known, and one way to run a recorded solve on any layout."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import minga as mg
from minga.engine.comm import Comm, run_virtual
from minga.solve.krylov import conjugate_gradients
from minga.solve.laplacian import Laplacian
from minga.solve.multigrid import Multigrid
from minga.space.grid import Grid
from minga.space.layout import Layout

Walls = tuple[tuple[str, str], ...]


def line_matrix(grid: Grid, axis: int, walls: tuple[str, str]) -> np.ndarray:
    """-d2/dx2 of finite volumes along one axis, entry by entry."""
    width, n = grid.widths(axis), grid.shape[axis]
    matrix = np.zeros((n, n))
    for i, (side, kind) in itertools.product(range(n), ((-1, walls[0]), (1, walls[1]))):
        j = i + side
        if 0 <= j < n or grid.periodic[axis]:
            flow = 1.0 / (0.5 * (width[i] + width[j % n])) / width[i]
            matrix[i, i] += flow
            matrix[i, j % n] -= flow
        elif kind == "dirichlet":
            matrix[i, i] += 1.0 / (0.5 * width[i]) / width[i]
    return matrix


def dense_laplacian(grid: Grid, walls: Walls, shift: float = 0.0) -> np.ndarray:
    """The matrix of `Laplacian`, by Kronecker products."""
    size = grid.size
    total = shift * np.eye(size)
    for axis in range(grid.ndim):
        parts = [line_matrix(grid, a, walls[a]) if a == axis else np.eye(n) for a, n in enumerate(grid.shape)]
        total += functools.reduce(np.kron, parts)
    return volumes(grid).reshape(-1, 1) * total


def volumes(grid: Grid) -> np.ndarray:
    """Volume of every cell."""
    return functools.reduce(np.multiply.outer, [grid.widths(a) for a in range(grid.ndim)])


@dataclass(frozen=True)
class Solved:
    reason: str
    iterations: int
    relative: float
    """|b - A x| / |b| as the solver knows it."""
    x: np.ndarray


def solve(
    grid: Grid,
    right_side: np.ndarray,
    *,
    walls: object = "dirichlet",
    shift: float = 0.0,
    layout: Callable[[mg.Box, int], Layout] = Layout.single,
    ranks: int = 1,
    cells_per_rank: int = 4096,
    preconditioned: bool = True,
    tolerance: float = 1e-8,
    limit: int = 60,
    **engine: object,
) -> Solved:
    """Solve A x = right_side on virtual ranks, with multigrid and conjugate gradients."""

    def work(comm: Comm) -> Solved:
        return solve_on(
            comm, grid, right_side, layout(grid.box, ranks), walls, shift, cells_per_rank, preconditioned, tolerance,
            limit, **engine,
        )  # fmt: skip

    return run_virtual(ranks, work)[0]


def solve_on(
    comm: Comm,
    grid: Grid,
    right_side: np.ndarray,
    layout: Layout,
    walls: object = "dirichlet",
    shift: float = 0.0,
    cells_per_rank: int = 4096,
    preconditioned: bool = True,
    tolerance: float = 1e-8,
    limit: int = 60,
    **engine: object,
) -> Solved:
    """One rank's part of `solve`; the solution is there on rank 0."""
    multigrid = Multigrid(Laplacian(grid, walls, shift), layout, cells_per_rank=cells_per_rank)
    x = mg.Field("x", grid, boundary=mg.fixed(0.0))
    b = mg.Field("b", grid)
    program = mg.Program("solve")
    solution = conjugate_gradients(
        program,
        multigrid.operator,
        x,
        b,
        preconditioner=multigrid if preconditioned else None,
        tolerance=tolerance,
        limit=limit,
    )
    with mg.Engine(multigrid.layouts(layout), comm=comm, **engine) as run:
        multigrid.load(run)
        run.set(b, right_side)
        reason = run.run(program).reason
        relative = (run.read(solution.residual) / run.read(solution.reference)) ** 0.5
        return Solved(reason, run.read(solution.iterations), relative, run.gather(x))


def noise(grid: Grid, seed: int = 1) -> np.ndarray:
    """A right side with all wavelengths and no mean."""
    values = np.random.default_rng(seed).standard_normal(grid.shape)
    return values - values.mean()
