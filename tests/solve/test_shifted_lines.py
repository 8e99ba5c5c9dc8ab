"""Block-tridiagonal systems with an imaginary part, against a dense solution by NumPy."""

from __future__ import annotations

import numpy as np

import minga as mg
from minga.engine.comm import Comm
from minga.solve.block_tridiagonal import BlockLines
from minga.solve.shifted_lines import ShiftedLines

PLACES = ((0, 0), (1, 0), (2, 2))
COUPLING = ((True, False, False), (True, True, False), (True, True, True))
K, N, W = 3, 37, 1.7


def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    lower, upper = (rng.normal(size=(K, K, N)) * np.array(COUPLING)[:, :, None] for _ in range(2))
    diagonal = rng.normal(size=(K, K, N)) + 8.0 * np.eye(K)[:, :, None]
    return lower, diagonal, upper, rng.normal(size=(len(PLACES), N)), rng.normal(size=(2 * K, N))


def dense() -> np.ndarray:
    lower, diagonal, upper, storage, b = problem()
    matrix = np.zeros((N, K, N, K), complex)
    for i in range(N):
        matrix[i, :, i, :] = diagonal[:, :, i]
        for (row, column), values in zip(PLACES, storage, strict=True):
            matrix[i, row, i, column] += 1j * W * values[i]
        if i:
            matrix[i, :, i - 1, :] = lower[:, :, i]
        if i < N - 1:
            matrix[i, :, i + 1, :] = upper[:, :, i]
    right = (b[:K] + 1j * b[K:]).T.reshape(-1)
    return np.linalg.solve(matrix.reshape(N * K, N * K), right).reshape(N, K).T


def solution(ranks: int) -> np.ndarray:
    grid = mg.Grid((N,), axes=("x",))
    lines = BlockLines(grid, "x", K, coupling=COUPLING)
    shifted = ShiftedLines(lines, PLACES)
    x = [mg.Field(f"x{k}", grid, boundary=mg.fixed(0.0)) for k in range(2 * K)]
    program = mg.Program("solve")
    shifted.setup(program, W)
    shifted.solve(program, x, x)
    lower, diagonal, upper, storage, b = problem()

    def work(comm: Comm) -> np.ndarray:
        layout = mg.plan.parse_layout("slabs", grid.box, comm.size, 1)
        with mg.Engine(layout, grid=grid, comm=comm, threads=1) as engine:
            for part, values in ((lines.lower, lower), (lines.upper, upper), (lines.diagonal, diagonal)):
                for i in range(K):
                    for j in range(K):
                        if (item := part[i][j]) is not None:
                            engine.set(item, values[i, j])
            for item, values in (*zip(shifted.storage, storage, strict=True), *zip(x, b, strict=True)):
                engine.set(item, values)
            engine.run(program)
            return np.array([engine.gather(item) for item in x])

    found: np.ndarray = mg.run_virtual(ranks, work)[0]
    return found


def test_it_is_the_dense_solution() -> None:
    found, expected = solution(1), dense()
    assert np.abs(found[:K] + 1j * found[K:] - expected).max() < 1e-13


def test_same_bits_on_any_number_of_ranks() -> None:
    one = solution(1)
    for ranks in (2, 3):
        assert np.array_equal(solution(ranks), one)
