"""Tridiagonal systems along each axis against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm, run_virtual
from minga.solve.tridiagonal import solve_tridiagonal
from minga.space.cuts import slabs
from thinned import thinned


def solve(grid: mg.Grid, axis: str, values: dict[str, np.ndarray], ranks: int = 1, cut: int = 0) -> np.ndarray:
    fields = {name: mg.Field(name, grid, boundary=mg.fixed(0.0)) for name in ("low", "diagonal", "high", "b", "x")}
    program = mg.Program("lines")
    solve_tridiagonal(program, axis, *fields.values())

    def work(comm: Comm) -> np.ndarray | None:
        with mg.Engine(slabs(grid.box, comm.size, cut, granule=1), grid=grid, comm=comm) as engine:
            for name, value in values.items():
                engine.set(fields[name], value)
            engine.run(program)
            return engine.gather(fields["x"])

    found = run_virtual(ranks, work)[0]
    assert found is not None
    return found


def random_system(shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    low, high, b = (rng.uniform(-1, 1, shape) for _ in range(3))
    return {"low": low, "diagonal": 2.5 + rng.random(shape), "high": high, "b": b}


@pytest.mark.few(2)
@pytest.mark.parametrize("axis", ["z", "y", "x"])
def test_lines_along_every_axis(axis: str) -> None:
    grid = mg.Grid((5, 6, 7))
    number = grid.axis(axis)
    system = random_system(grid.shape)
    x = solve(grid, axis, system)
    lines = {name: np.moveaxis(value, number, -1).reshape(-1, grid.shape[number]) for name, value in system.items()}
    for line, found in enumerate(np.moveaxis(x, number, -1).reshape(-1, grid.shape[number])):
        low, diagonal, high, b = (lines[name][line] for name in ("low", "diagonal", "high", "b"))
        matrix = np.diag(diagonal) + np.diag(low[1:], -1) + np.diag(high[:-1], 1)
        np.testing.assert_allclose(found, np.linalg.solve(matrix, b), rtol=0, atol=1e-14)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("axis", "cut", "ranks"),
    thinned(itertools.product("yx", [0, 1], [2, 3]), ("y", 0, 2), ("y", 1, 3), ("x", 0, 3), ("x", 1, 2)),
)
def test_the_same_bits_when_lines_are_cut(axis: str, cut: int, ranks: int) -> None:
    grid = mg.Grid((11, 13))
    system = random_system(grid.shape)
    assert solve(grid, axis, system, ranks, cut).tobytes() == solve(grid, axis, system).tobytes()


def test_mistakes_are_named() -> None:
    grid = mg.Grid((4, 4), periodic=(True, False))
    fields = [mg.Field(name, grid, boundary=mg.fixed(0.0)) for name in "abcdx"]
    with pytest.raises(mg.ProgramError, match="along 'y', which is periodic"):
        solve_tridiagonal(mg.Program("p"), "y", *fields)
    other = mg.Field("e", mg.Grid((4, 5)), boundary=mg.fixed(0.0))
    with pytest.raises(mg.ProgramError, match="one grid"):
        solve_tridiagonal(mg.Program("p"), "x", other, *fields[1:])
