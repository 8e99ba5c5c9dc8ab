"""Systems of two axes with an imaginary part, against a dense solution by NumPy."""

from __future__ import annotations

import numpy as np

import minga as mg
from minga.engine.comm import Comm
from minga.solve.five_point import FivePoint
from minga.solve.shifted_planes import ShiftedPlanes

K, SHAPE, W = 2, (7, 5), 0.7
COUPLING = ((True, False), (True, True))
PLACES = ((0, 0), (1, 0), (1, 1))


def solution(ranks: int, factors: tuple[float, ...] = (W,)) -> tuple[np.ndarray, np.ndarray]:
    """The last solution, and that by NumPy."""
    grid = mg.Grid(SHAPE, axes=("x", "y"))
    matrix = FivePoint(grid, K, COUPLING, "given")
    planes = ShiftedPlanes(grid, matrix.matrix, COUPLING, PLACES)
    x = [mg.Field(f"x{k}", grid) for k in range(2 * K)]
    b = [mg.Field(f"b{k}", grid) for k in range(2 * K)]
    program = mg.Program("solve")
    for factor in factors:
        planes.setup(program, factor)
        planes.solve(program, b, x)
    rng = np.random.default_rng(5)
    values = {item: rng.normal(size=SHAPE) for item in (*matrix.fields, *planes.storage, *b)}
    for k in range(K):
        values[matrix.diagonal[k * K + k]] += 9.0

    def work(comm: Comm) -> np.ndarray:
        layout = mg.plan.parse_layout("slabs", grid.box, comm.size, 1)
        with mg.Engine(layout, grid=grid, comm=comm, threads=1) as engine:
            for item, value in values.items():
                engine.set(item, value)
            assert engine.run(program).ok
            return np.array([engine.gather(item) for item in x])

    found: np.ndarray = mg.run_virtual(ranks, work)[0]
    dense = np.zeros((*SHAPE, K, *SHAPE, K), complex)
    for i, j in np.ndindex(*SHAPE):
        for n, item in enumerate(matrix.diagonal):
            dense[i, j, n // K, i, j, n % K] = values[item][i, j]
        for place, item in zip(PLACES, planes.storage, strict=True):
            dense[i, j, place[0], i, j, place[1]] += 1j * factors[-1] * values[item][i, j]
        for axis in range(2):
            for part, way in ((matrix.lower, -1), (matrix.upper, 1)):
                u, v = (i + way, j) if axis == 0 else (i, j + way)
                if 0 <= u < SHAPE[0] and 0 <= v < SHAPE[1]:
                    for (row, column), item in zip(matrix.places, part[axis], strict=True):
                        dense[i, j, row, u, v, column] = values[item][i, j]
    right = np.stack([values[b[k]] + 1j * values[b[K + k]] for k in range(K)], axis=-1)
    size = K * SHAPE[0] * SHAPE[1]
    expected = np.linalg.solve(dense.reshape(size, size), right.reshape(size)).reshape(*SHAPE, K)
    return found, np.moveaxis(expected, -1, 0)


def test_it_is_the_dense_solution() -> None:
    found, expected = solution(1)
    assert np.abs(found[:K] + 1j * found[K:] - expected).max() < 1e-14


def test_kept_factors_are_those_of_the_matrix() -> None:
    found, expected = solution(1, (2.0, 2.0, W))
    assert np.abs(found[:K] + 1j * found[K:] - expected).max() < 1e-14


def test_same_bits_on_any_number_of_ranks() -> None:
    assert np.array_equal(solution(2)[0], solution(1)[0])
