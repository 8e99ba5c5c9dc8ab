"""The V-cycle: a rate that does not depend on size, a symmetric positive definite preconditioner."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.solve.coarsening import chebyshev_weights
from minga.solve.elliptic import Elliptic
from minga.solve.five_point import FivePoint
from minga.solve.krylov import conjugate_gradients
from minga.solve.laplacian import Laplacian
from minga.solve.multigrid import Multigrid
from minga.space.cuts import slabs
from minga.space.layout import Layout

from .problems import noise, solve

SIZES = [
    (31,), (100,), (1025,),
    (15, 15), (33, 65), (129, 129),
    (15, 15, 15), (33, 47, 21), (63, 63, 63),
]  # fmt: skip


@pytest.mark.slow
def test_the_rate_does_not_depend_on_size() -> None:
    counts = {}
    for shape in SIZES:
        grid = mg.Grid(shape)
        found = solve(grid, noise(grid))
        assert found.reason == "converged"
        assert found.relative <= 1e-8
        counts[shape] = found.iterations
    assert max(counts.values()) <= 10, counts
    for ndim in (1, 2, 3):
        same = [count for shape, count in counts.items() if len(shape) == ndim]
        assert max(same) - min(same) <= 2, counts


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("grid", "walls"),
    [
        (mg.Grid((33, 47, 21)), "neumann"),
        (mg.Grid((17, 23, 11)), {"x": ("dirichlet", "neumann"), "y": "neumann", "z": ("neumann", "dirichlet")}),
        pytest.param(mg.Grid((33, 47, 21), periodic=True), "dirichlet", marks=pytest.mark.slow),
        (mg.Grid((33, 47, 21), periodic=(True, False, False)), "dirichlet"),
        pytest.param(mg.Grid((33, 47, 21), spacing=(1.0, 4.0, 9.0)), "dirichlet", marks=pytest.mark.slow),
        (mg.Grid((63, 63), spacing=(1.0, 1.45)), "dirichlet"),
        pytest.param(mg.Grid((63, 63), spacing=(1.0, 1.55)), "dirichlet", marks=pytest.mark.slow),
        (mg.Grid((63, 63, 2)), "neumann"),
        (mg.Grid((2, 200)), "dirichlet"),
        (mg.Grid((5, 7), periodic=True), "dirichlet"),
    ],
    ids=str,
)
def test_walls_periods_and_unequal_spacings(grid: mg.Grid, walls: object) -> None:
    found = solve(grid, noise(grid), walls=walls)
    assert found.reason == "converged"
    assert found.iterations <= 10


def test_moderately_stretched_cells_converge() -> None:
    widths = np.geomspace(1.0, 10.0, 63)
    grid = mg.Grid((63, 63), spacing=[widths, widths])
    found = solve(grid, noise(grid))
    assert found.reason == "converged"
    assert found.iterations <= 25


def test_a_shift_helps() -> None:
    grid = mg.Grid((33, 29))
    found = solve(grid, noise(grid), walls="neumann", shift=1.0)
    assert found.reason == "converged"
    assert found.iterations <= 8


@pytest.mark.parametrize(
    "grid",
    [
        mg.Grid((9,)),
        mg.Grid((6, 7)),
        mg.Grid((5, 6), periodic=(True, False)),
        mg.Grid((3, 5, 4), spacing=(1.0, 2.0, 3.0)),
    ],
    ids=str,
)
@pytest.mark.parametrize("steps", [1, 2])
def test_the_cycle_is_symmetric_and_positive_definite(grid: mg.Grid, steps: int) -> None:
    layout = Layout.single(grid.box, 1)
    multigrid = Multigrid(Laplacian(grid), layout, steps=steps)
    r, z = mg.Field("r", grid), mg.Field("z", grid)
    program = mg.Program("cycle")
    multigrid(program, r, z)
    columns = []
    with mg.Engine(multigrid.layouts(layout)) as engine:
        multigrid.load(engine)
        for unit in np.eye(grid.size):
            engine.set(r, unit.reshape(grid.shape))
            engine.run(program)
            columns.append(engine.gather(z).ravel())
    matrix = np.stack(columns, axis=1)
    scale = np.abs(matrix).max()
    assert np.abs(matrix - matrix.T).max() < 1e-14 * scale
    assert np.linalg.eigvalsh(0.5 * (matrix + matrix.T)).min() > 1e-3 * scale / grid.size


def test_chebyshev_weights_damp_evenly() -> None:
    for low, steps in ((1 / 3, 2), (0.5, 3), (1.0, 1)):
        weights = chebyshev_weights(low, 2.0, steps)
        values = np.linspace(low, 2.0, 1001)
        left = np.abs(np.prod([1.0 - w * values for w in weights], axis=0))
        middle = (2.0 + low) / (2.0 - low)
        assert left.max() == pytest.approx(1.0 / np.cosh(steps * np.arccosh(middle)), rel=1e-12)


def test_a_level_tells_where_it_lives() -> None:
    grid = mg.Grid((64, 64))
    text = repr(Multigrid(Laplacian(grid), slabs(grid.box, 4), cells_per_rank=256))
    assert "64 x 64 cells on 4 ranks\n" in text
    assert "16 x 16 cells on 1 ranks, moved" in text


def test_mistakes_are_named() -> None:
    grid = mg.Grid((8, 8))
    layout = Layout.single(grid.box, 1)
    with pytest.raises(mg.LayoutError, match="the layout is for"):
        Multigrid(Laplacian(mg.Grid((8, 9))), layout)
    with pytest.raises(mg.LayoutError, match="0 steps"):
        Multigrid(Laplacian(grid), layout, steps=0)
    twisted = mg.Grid((8, 8), periodic=True, shift={"y": {"x": 2}})
    with pytest.raises(mg.LayoutError, match="shifted torus"):
        Multigrid(Laplacian(twisted), layout)
    other = mg.Field("r", mg.Grid((8, 8), label="other"))
    with pytest.raises(mg.ProgramError, match="is applied to"):
        Multigrid(Laplacian(grid), layout)(mg.Program("p"), other, other)


def test_one_class_serves_every_operator() -> None:
    grid = mg.Grid((8, 6))
    layout = Layout.single(grid.box, 1)
    held = mg.Field("held", grid, "u1")
    matrix = FivePoint(grid, 2, ((True, True), (True, True)))
    for levels in (Multigrid(Laplacian(grid), layout), Multigrid(Elliptic(grid)), Multigrid(matrix, held=held)):
        assert levels.grid == grid
        assert {item.grid for item in levels.fields} <= {grid, *levels.grids}
        assert set(levels.grids) <= levels.layouts(layout).keys()
        assert levels.levels[0].grid.shape == grid.shape
        assert set(levels.initial) <= set(levels.fields)
    assert len(levels.vector("x")) == 2


def test_the_levels_of_a_laplacian_work_in_a_model() -> None:
    grid = mg.Grid((9, 7))
    layout = Layout.single(grid.box, 1)
    operator = Laplacian(grid)
    levels = Multigrid(operator, layout)
    x, b = mg.Field("x", grid, boundary=mg.fixed(0.0)), mg.Field("b", grid)
    step = mg.Program("solve")
    solution = conjugate_gradients(step, operator, x, b, preconditioner=levels)
    model = mg.Model(
        "poisson", grid, (*operator.fields, *levels.fields, x, b), step, output=("x",), hierarchies=(levels,),
        initial={**operator.initial, **levels.initial, b: 1.0},
    )  # fmt: skip
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        mg.drive(model, engine, 1)
        assert 0 < engine.read(solution.iterations) <= 8
    with pytest.raises(mg.LayoutError, match="another layout"):
        model.layouts("slabs", 2)


WHOLE = Layout.single(mg.Box((0, 0), (8, 8)), 1)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((mg.Grid((8, 8)), WHOLE), {}, r"give the operator first"),
        ((Laplacian(mg.Grid((8, 8))),), {}, "without layout="),
        ((Laplacian(mg.Grid((8, 8))), WHOLE), {"solids": True}, "option of Elliptic"),
        ((Elliptic(mg.Grid((8, 8))), WHOLE), {}, "option of Laplacian"),
        ((FivePoint(mg.Grid((8, 8)), 1, ((True,),)),), {}, "without held="),
        ((mg.Grid((8, 8)), WHOLE), {"walls": "neumann"}, r"write Multigrid\(Laplacian\(grid, walls, shift\), layout\)"),
    ],
)  # fmt: skip
def test_options_of_other_operators_are_refused(arguments: tuple, options: dict, message: str) -> None:
    with pytest.raises(mg.ProgramError, match=message):
        Multigrid(*arguments, **options)
