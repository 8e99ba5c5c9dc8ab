"""The elliptic operator with masks, its V-cycle, and both on any layout, cut anew and with new coefficients."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm, run_virtual
from minga.solve.elliptic import Elliptic
from minga.solve.elliptic_multigrid import EllipticMultigrid
from minga.space.cuts import bisection, blocks, slabs
from minga.space.layout import Layout
from thinned import thinned

from .elliptic_problems import (
    GLASS,
    METAL,
    Coefficients,
    Solved,
    coefficients,
    give,
    recorded,
    rough,
    solve_elliptic,
)


def random_coefficients(grid: mg.Grid, solid: float = 0.0, held: tuple[str, ...] = ()) -> Coefficients:
    rng = np.random.default_rng(3)
    kinds = rng.choice([0, METAL, GLASS], grid.shape, p=[1 - 2 * solid, solid, solid])
    return coefficients(grid, 10.0 ** rng.uniform(-1, 1, grid.shape), kinds, held)


SMALL = {
    "flat": (mg.Grid((6, 7)), 0.1, (), None),
    "torus": (mg.Grid((7, 5), periodic=True), 0.0, (), None),
    "box": (mg.Grid((5, 3, 6), periodic=(False, False, True)), 0.1, ("z",), None),
    "lines": (mg.Grid((7, 6)), 0.1, (), "y"),
    "free lines": (mg.Grid((5, 5)), 0.0, (), "y"),
    "line": (mg.Grid((9,)), 0.0, ("x",), None),
    "closing": (mg.Grid((5, 6), periodic=(True, False)), 0.0, ("x",), None),
    "closing around solids": (mg.Grid((7, 6), periodic=(True, False)), 0.15, ("x",), None),
    "one layer": (mg.Grid((3, 1, 4), spacing=(1.0, 2.0, 3.0)), 0.0, ("x",), None),
    "pairs": (mg.Grid((2, 2), periodic=True), 0.0, (), None),
    "four axes": (mg.Grid((3, 2, 3, 4)), 0.05, (), None),
}


def cycle_matrix(grid: mg.Grid, given: Coefficients, lines: str | None) -> np.ndarray:
    """One V-cycle, entry by entry."""
    found = recorded(grid, lines=lines, solids=not given.active.all())
    program = mg.Program("cycle")
    found.multigrid(program, found.b, found.x)
    whole = []
    with mg.Engine(found.model.layouts_like(Layout.single(grid.box, 1))) as engine:
        give(engine, found, given)
        setup = mg.Program("setup")
        found.multigrid.setup(setup)
        engine.run(setup)
        for unit in np.eye(grid.size):
            engine.set(found.b, unit.reshape(grid.shape))
            engine.run(program)
            whole.append(engine.gather(found.x).ravel())
    return np.stack(whole, axis=1)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", thinned(SMALL, "flat", "torus", "line"))
def test_the_operator_is_its_matrix(name: str) -> None:
    grid, solid, held, _ = SMALL[name]
    given = random_coefficients(grid, solid, held)
    elliptic = Elliptic(grid)
    u, image = mg.Field("u", grid, boundary=mg.fixed(7.0)), mg.Field("image", grid)
    program = mg.Program("apply")
    product = elliptic(program, u, image)
    values = np.random.default_rng(1).standard_normal(grid.shape)
    with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
        for item, face in zip(elliptic.faces, given.faces, strict=True):
            engine.set(item, face)
        engine.set(elliptic.diagonal, given.walls)
        engine.set(u, values)
        engine.run(program)
        expected = given.matrix() @ values.ravel()
        np.testing.assert_allclose(engine.gather(image).ravel(), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
        assert engine.read(product) == pytest.approx(values.ravel() @ expected, rel=1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", thinned(SMALL, "flat", "lines"))
def test_the_cycle_is_symmetric_and_positive_definite(name: str) -> None:
    grid, solid, held, lines = SMALL[name]
    given = random_coefficients(grid, solid, held)
    inverse = cycle_matrix(grid, given, lines)
    active = given.active.ravel()
    assert not inverse[~active].any()
    assert not inverse[:, ~active].any()
    scale = np.abs(inverse).max()
    assert np.abs(inverse - inverse.T).max() < 1e-13 * scale
    # Positive definite where the operator is: constants of parts that nothing holds are mapped to anything.
    matrix = given.matrix()
    values, vectors = np.linalg.eigh(matrix)
    held_part = vectors[:, values > 1e-10 * values.max()]
    assert np.linalg.eigvalsh(held_part.T @ inverse @ held_part).min() > 0
    spectrum = np.linalg.eigvals(inverse @ matrix).real
    assert spectrum.max() < 3


def fingers(grid: mg.Grid, kind: int) -> np.ndarray:
    """Three needles of one cell from the low end of the first axis."""
    kinds = np.zeros(grid.shape, int)
    for part in (0.2, 0.5, 0.8):
        middle = tuple(n // 2 for n in grid.shape[1:-1])
        kinds[(slice(0, int(0.6 * grid.shape[0])), *middle, int(part * grid.shape[-1]))] = kind
    return kinds


def plates(grid: mg.Grid) -> np.ndarray:
    """A labyrinth: plates of one cell across the first axis, each with a gap at another end of the last."""
    kinds = np.zeros(grid.shape, int)
    n, m = grid.shape[0], grid.shape[-1]
    for number, part in enumerate((0.27, 0.52, 0.78)):
        closed = slice(0, m - m // 8) if number % 2 == 0 else slice(m // 8, None)
        kinds[int(part * n), ..., closed] = GLASS
    return kinds


def smooth(grid: mg.Grid) -> np.ndarray:
    """A coefficient that varies by 1e3."""
    waves = [np.sin(2 * np.pi * (np.arange(n) + 0.5) / n) for n in grid.shape]
    return 10.0 ** (1.5 * functools.reduce(np.multiply.outer, waves))


def applied(given: Coefficients, x: np.ndarray) -> np.ndarray:
    """A x."""
    total = given.walls * x
    for axis, face in enumerate(given.faces):
        n = given.grid.shape[axis]
        flow = np.take(face, range(n), axis) * (x - np.roll(x, 1, axis))
        total += flow - np.roll(flow, -1, axis)
    return total


FLAT, BOX, THIN = mg.Grid((96, 70)), mg.Grid((40, 33, 28)), mg.Grid((200, 8), spacing=(25.0, 1.0))
LAYERS = mg.Grid((60, 50), spacing=(np.diff(np.tanh(np.linspace(-3.0, 3.0, 61))), 0.04))
PROBLEMS = {
    "constant": lambda: coefficients(BOX, held=("z",)),
    "all walls": lambda: coefficients(BOX, held=("z", "y", "x")),
    "smooth": lambda: coefficients(BOX, smooth(BOX), held=("z",)),
    "metal fingers": lambda: coefficients(BOX, 1.0, fingers(BOX, METAL), held=("z",)),
    "plates": lambda: coefficients(FLAT, 1.0, plates(FLAT)),
    "more plates": lambda: coefficients(BOX, 1.0, plates(BOX)),
    "held plates": lambda: coefficients(FLAT, 1.0, plates(FLAT), ("y",)),
    "glass fingers": lambda: coefficients(BOX, 1.0, fingers(BOX, GLASS)),
    "random metal": lambda: random_coefficients(BOX, 0.05, ("z",)),
    "thin": lambda: coefficients(THIN, held=("y",)),
    "thin, nothing held": lambda: coefficients(THIN),
    "nothing held": lambda: coefficients(FLAT),
    "flat": lambda: coefficients(FLAT, smooth(FLAT), fingers(FLAT, METAL), ("y",)),
    "periodic": lambda: coefficients(mg.Grid((33, 31), periodic=(False, True)), held=("y",)),
    "layers": lambda: coefficients(LAYERS, 1.0, fingers(LAYERS, METAL), held=("y",)),
    "layers, nothing held": lambda: coefficients(LAYERS, smooth(LAYERS)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(PROBLEMS, "thin", "plates"))
def test_iterations(name: str) -> None:
    given = PROBLEMS[name]()
    solids = not given.active.all()
    found = solve_elliptic(given, rough(given), singular=not given.walls.any(), solids=solids)
    assert found.reason == "converged"
    assert found.relative <= 1e-8
    assert found.iterations <= 15
    assert not found.x[~given.active].any()
    left = (rough(given) - applied(given, found.x))[given.active]
    assert np.linalg.norm(left) <= 1.1e-8 * np.linalg.norm(rough(given))


def test_a_line_takes_one_iteration() -> None:
    grid = mg.Grid((165,))
    given = coefficients(grid, 10.0 ** (3.0 * np.sin(np.arange(165.0))), held=("x",))
    found = solve_elliptic(given, rough(given))
    assert (found.reason, found.iterations) == ("converged", 1)


@pytest.mark.slow
def test_the_solution_is_that_of_the_matrix() -> None:
    grid = mg.Grid((9, 8), spacing=(1.0, 0.5))
    given = random_coefficients(grid, 0.1, ("y",))
    b = rough(given)
    found = solve_elliptic(given, b, tolerance=1e-13)
    expected = np.linalg.lstsq(given.matrix(), b.ravel(), rcond=None)[0]
    np.testing.assert_allclose(found.x.ravel(), expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.slow
def test_a_singular_system_gets_the_solution_without_a_constant() -> None:
    grid = mg.Grid((9, 8))
    given = coefficients(grid, 1.0, fingers(grid, GLASS))
    b = rough(given) + np.where(given.active, 3.0, 0.0)
    found = solve_elliptic(given, b, tolerance=1e-12, singular=True)
    assert found.reason == "converged"
    assert abs(found.x.sum()) < 1e-10 * np.abs(found.x).sum()
    expected = np.linalg.lstsq(given.matrix(), b.ravel(), rcond=None)[0]
    np.testing.assert_allclose(found.x.ravel(), expected, rtol=0, atol=1e-9 * np.abs(expected).max())


# Any layout ----------------------------------------------------------------------------------------------------------
CUT = mg.Grid((17, 70))
UNEVEN = {
    "slabs": lambda: slabs(CUT.box, 2),
    "weighted": lambda: bisection(CUT.box, [1.0, 2.0, 0.5, 3.0, 1.0]),
    "blocks": lambda: blocks(CUT.box, 2, 3),
    "seven": lambda: bisection(CUT.box, [1.0 + n for n in range(7)]),
    "last rank": lambda: Layout.single(CUT.box, 3, 2),
}


@functools.cache
def problem() -> Coefficients:
    return coefficients(CUT, smooth(CUT), np.maximum(fingers(CUT, METAL), plates(CUT)), ("y",))


@functools.cache
def serial() -> tuple[int, bytes]:
    found = solve_elliptic(problem(), rough(problem()), solids=True)
    assert found.reason == "converged"
    return bits(found)


def bits(found: Solved) -> tuple[int, bytes]:
    return found.iterations, found.x.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("layout", thinned(UNEVEN, "weighted"))
def test_layouts(layout: str) -> None:
    found = solve_elliptic(problem(), rough(problem()), UNEVEN[layout](), cells_per_rank=128, solids=True)
    assert bits(found) == serial()


@pytest.mark.slow
def test_engine_options() -> None:
    found = solve_elliptic(problem(), rough(problem()), UNEVEN["slabs"](), threads=2, halo_depth=2, solids=True)
    assert bits(found) == serial()


@pytest.mark.slow
def test_cut_anew_with_new_coefficients() -> None:
    """A finger grows, ranks change: the same step solves the new problem with the bits of one rank."""
    grown = coefficients(CUT, smooth(CUT), fingers(CUT, METAL) | np.roll(fingers(CUT, METAL), 1, 1), ("y",))
    b = rough(grown)

    def work(comm: Comm) -> tuple[bytes, bytes]:
        found = recorded(CUT, cells_per_rank=128, solids=True)
        with mg.Engine(found.model.layouts_like(slabs(CUT.box, comm.size)), comm=comm) as run:
            give(run, found, problem())
            run.set(found.b, rough(problem()))
            assert run.run(found.model.step).ok
            first = run.gather(found.x)
            run.relayout(found.model.layouts_like(bisection(CUT.box, [3.0, 1.0])))
            give(run, found, grown)
            run.set(found.b, b)
            run.set(found.x, 0.0)
            assert run.run(found.model.step).ok
            second = run.gather(found.x)
            return (first.tobytes(), second.tobytes()) if comm.rank == 0 else (b"", b"")

    first, second = run_virtual(2, work)[0]
    assert first == serial()[1]
    assert second == solve_elliptic(grown, b, solids=True).x.tobytes()


def test_plans_cut_the_model_s_grid_and_levels_follow() -> None:
    model = recorded(CUT).model
    assert model.planned_grid == CUT
    assert model.cut_grids == (CUT,)
    layout = bisection(CUT.box, [1.0, 2.0, 0.5])
    layouts = model.layouts_like(layout)
    assert layouts[CUT] is layout
    assert set(model.grids) <= set(layouts)
    assert {grid: each.fingerprint() for grid, each in model.layouts("slabs", 3).items()}.keys() == layouts.keys()
    coarsest = layouts[model.hierarchies[0].grids[len(model.hierarchies[0].levels) - 1]]  # type: ignore[attr-defined]
    assert coarsest.domain.size == 1


def test_mistakes_are_named() -> None:
    grid = mg.Grid((8, 8))
    with pytest.raises(mg.LayoutError, match="0 steps"):
        EllipticMultigrid(Elliptic(grid), steps=0)
    with pytest.raises(mg.LayoutError, match="shifted torus"):
        EllipticMultigrid(Elliptic(mg.Grid((8, 8), periodic=True, shift={"y": {"x": 2}})))
    with pytest.raises(mg.LayoutError, match="the layout is for"):
        EllipticMultigrid(Elliptic(grid)).layouts(Layout.single(mg.Box((0, 0), (8, 9)), 1))
    other = mg.Field("r", mg.Grid((8, 8), label="other"))
    with pytest.raises(mg.ProgramError, match="is applied to"):
        EllipticMultigrid(Elliptic(grid))(mg.Program("p"), other, other)
