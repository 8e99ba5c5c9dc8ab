"""Systems of two axes solved directly, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm, run_virtual
from minga.solve.planes import Planes
from minga.space.cuts import slabs

PATTERN = ((True, False), (True, True))
SHAPE = (7, 5)


def system() -> dict[str, np.ndarray]:
    """Blocks (2, 2, *SHAPE) of lower and upper of each axis and of the diagonal, and a right side."""
    rng = np.random.default_rng(2)
    mask = np.array(PATTERN, float)[:, :, None, None]
    made = {name: rng.uniform(-1, 1, (2, 2, *SHAPE)) * mask for name in ("lower0", "lower1", "upper0", "upper1")}
    made["diagonal"] = rng.uniform(-1, 1, (2, 2, *SHAPE)) + 9.0 * np.eye(2)[:, :, None, None]
    made["b"] = rng.uniform(-1, 1, (2, *SHAPE))
    scale = 10.0 ** rng.integers(-12, 13, (2, *SHAPE))
    for name in made:
        made[name] = made[name] * (scale if name == "b" else scale[:, None])
    return made


def solve(values: dict[str, np.ndarray], ranks: int = 1) -> np.ndarray:
    grid = mg.Grid(SHAPE)
    planes = Planes(grid, 2, PATTERN)
    b = [mg.Field(f"b{i}", grid) for i in range(2)]
    x = [mg.Field(f"x{i}", grid) for i in range(2)]
    program = mg.Program("planes")
    planes.setup(program)
    planes.solve(program, b, x)
    places = [(i, j) for i in range(2) for j in range(2) if PATTERN[i][j]]

    def work(comm: Comm) -> np.ndarray | None:
        with mg.Engine(slabs(grid.box, comm.size, 0, granule=1), grid=grid, comm=comm) as engine:
            for k, item in enumerate(planes.diagonal):
                engine.set(item, values["diagonal"][k // 2, k % 2])
            for axis in range(2):
                for name, fields in (("lower", planes.lower[axis]), ("upper", planes.upper[axis])):
                    for item, (i, j) in zip(fields, places, strict=True):
                        engine.set(item, values[f"{name}{axis}"][i, j])
            for item, value in zip(b, values["b"], strict=True):
                engine.set(item, value)
            engine.run(program)
            return np.array([engine.gather(item) for item in x])

    found = run_virtual(ranks, work)[0]
    assert found is not None
    return found


def test_it_solves() -> None:
    values = system()
    rows, cells = SHAPE
    matrix = np.zeros((2, rows, cells, 2, rows, cells))
    for row in range(rows):
        for cell in range(cells):
            matrix[:, row, cell, :, row, cell] = values["diagonal"][:, :, row, cell]
            for name, (down, across) in {
                "lower0": (-1, 0),
                "upper0": (1, 0),
                "lower1": (0, -1),
                "upper1": (0, 1),
            }.items():
                there = (row + down, cell + across)
                if 0 <= there[0] < rows and 0 <= there[1] < cells:
                    matrix[:, row, cell, :, there[0], there[1]] = values[name][:, :, row, cell]
    size = 2 * rows * cells
    scale = 1.0 / np.abs(matrix).max(axis=(3, 4, 5))
    whole = (matrix * scale[..., None, None, None]).reshape(size, size)
    exact = np.linalg.solve(whole, (values["b"] * scale).reshape(size)).reshape(2, rows, cells)
    np.testing.assert_allclose(solve(values), exact, rtol=0, atol=1e-14)


def test_the_same_bits_on_ranks() -> None:
    assert solve(system(), 3).tobytes() == solve(system()).tobytes()


def test_singular_blocks_are_not_solved() -> None:
    values = {name: value * 0.0 for name, value in system().items()}
    assert np.isnan(solve(values)).all()


def test_mistakes_are_named() -> None:
    with pytest.raises(mg.ProgramError, match="a grid of 1 axes"):
        Planes(mg.Grid((5,)), 2, PATTERN)
