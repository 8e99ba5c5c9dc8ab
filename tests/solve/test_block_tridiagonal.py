"""Block-tridiagonal systems against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm, run_virtual
from minga.solve.block_tridiagonal import BlockLines, Pattern
from minga.space.cuts import slabs
from thinned import thinned

SPARSE: Pattern = ((True, False, False), (True, True, False), (True, False, True))


def system(shape: tuple[int, ...], k: int, pattern: Pattern, *, scale: float = 1.0) -> dict[str, np.ndarray]:
    """Blocks (k, k, *shape) whose unknowns dominate their own equations, which are scaled unevenly; two right sides."""
    rng = np.random.default_rng(5)
    mask = np.array(pattern, float).reshape(k, k, *[1] * len(shape))
    made = {name: rng.uniform(-1, 1, (k, k, *shape)) * mask for name in ("lower", "upper")}
    made["diagonal"] = rng.uniform(-1, 1, (k, k, *shape))
    for i in range(k):
        made["diagonal"][i, i] += 3.5 * k * np.where(rng.random(shape) < 0.5, -1, 1)
    made["b"] = rng.uniform(-1, 1, (2, k, *shape))
    factors = scale ** rng.integers(-6, 7, (k, *shape)).astype(float)
    for name in ("lower", "diagonal", "upper"):
        made[name] = made[name] * factors[:, None]
    made["b"] = made["b"] * factors
    return made


def solve(
    grid: mg.Grid, axis: str, values: dict[str, np.ndarray], pattern: Pattern, ranks: int = 1, threads: int = 1
) -> np.ndarray:
    """Both solutions, (2, k, *shape)."""
    k = len(pattern)
    lines = BlockLines(grid, axis, k, coupling=pattern)
    b, x = ([[mg.Field(f"{n}{c}{i}", grid, boundary=mg.fixed(0.0)) for i in range(k)] for c in "ab"] for n in "bx")
    program = mg.Program("block lines")
    lines.setup(program)
    for right, left in zip(b, x):
        lines.solve(program, right, left)

    def work(comm: Comm) -> np.ndarray | None:
        layout = slabs(grid.box, comm.size, grid.axis(axis), granule=1)
        with mg.Engine(layout, grid=grid, comm=comm, threads=threads) as engine:
            for name in ("lower", "diagonal", "upper"):
                for i, row in enumerate(getattr(lines, name)):
                    for j, item in enumerate(row):
                        if item is not None:
                            engine.set(item, values[name][i, j])
            for right, value in zip(b, values["b"]):
                for item, array in zip(right, value):
                    engine.set(item, array)
            engine.run(program)
            return np.array([[engine.gather(item) for item in left] for left in x])

    found = run_virtual(ranks, work)[0]
    assert found is not None
    return found


def dense(values: dict[str, np.ndarray], axis: int) -> np.ndarray:
    """The same by NumPy, line by line."""
    lines = {name: np.moveaxis(array, array.ndim - values["b"].ndim + 2 + axis, -1) for name, array in values.items()}
    k, n = values["b"].shape[1], lines["b"].shape[-1]
    found = np.zeros_like(lines["b"])
    for place in np.ndindex(*lines["b"].shape[2:-1]):
        matrix = np.zeros((n, k, n, k))
        for i in range(n):
            matrix[i, :, i] = lines["diagonal"][(slice(None), slice(None), *place, i)]
            if i:
                matrix[i, :, i - 1] = lines["lower"][(slice(None), slice(None), *place, i)]
            if i < n - 1:
                matrix[i, :, i + 1] = lines["upper"][(slice(None), slice(None), *place, i)]
        for c in range(2):
            right = lines["b"][(c, slice(None), *place)].T.reshape(-1)
            found[(c, slice(None), *place)] = np.linalg.solve(matrix.reshape(n * k, n * k), right).reshape(n, k).T
    return np.moveaxis(found, -1, 2 + axis)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("shape", "axis", "k"), [((40,), "x", 3), ((9, 12), "y", 3), ((9, 12), "x", 2), ((7,), "x", 1)]
)
def test_lines_of_blocks(shape: tuple[int, ...], axis: str, k: int) -> None:
    grid = mg.Grid(shape)
    pattern = SPARSE if k == 3 else ((True,) * k,) * k
    values = system(shape, k, pattern)
    found = solve(grid, axis, values, pattern)
    number = grid.axis(axis)
    for name in ("lower", "upper", "diagonal"):
        values[name] = values[name].reshape(k, k, *shape)
    np.testing.assert_allclose(found, dense(values, number), rtol=0, atol=1e-14)


def test_scaled_equations_have_the_same_solution() -> None:
    grid = mg.Grid((30,))
    one, other = (solve(grid, "x", system((30,), 3, SPARSE, scale=s), SPARSE) for s in (1.0, 1e5))
    np.testing.assert_allclose(other, one, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "threads"), thinned([(2, 1), (3, 2)], (3, 2)))
@pytest.mark.parametrize("axis", thinned(["y", "x"], "x"))
def test_the_same_bits_when_lines_are_cut(axis: str, ranks: int, threads: int) -> None:
    grid = mg.Grid((11, 13))
    values = system((11, 13), 3, SPARSE)
    assert solve(grid, axis, values, SPARSE, ranks, threads).tobytes() == solve(grid, axis, values, SPARSE).tobytes()


def test_mistakes_are_named() -> None:
    with pytest.raises(mg.ProgramError, match="along 'y', which is periodic"):
        BlockLines(mg.Grid((4, 4), periodic=(True, False)), "y", 3)
    with pytest.raises(mg.ProgramError, match="2 unknowns a cell"):
        BlockLines(mg.Grid((4, 4)), "x", 2, coupling=((True,),))
