"""Interpolation between grids: what it keeps, and that restriction is its transpose."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm, run_virtual
from minga.solve.coarsening import choose_factors, matches, settle, snap
from minga.solve.transfers import GridTransfer, axis_weights
from minga.space.cuts import best_cartesian, bisection, slabs

DIRICHLET, NEUMANN = ("dirichlet", "dirichlet"), ("neumann", "neumann")


def matrices(
    grid: mg.Grid, factors: tuple[int, ...], walls: tuple[tuple[str, str], ...]
) -> tuple[np.ndarray, np.ndarray]:
    """P and R of a transfer as the engine applies them, from what they do to every unit vector."""
    coarse = grid.coarsen(factors)
    transfer = GridTransfer(grid, coarse, factors, walls, "t")
    below = mg.Field("below", coarse, boundary=mg.fixed(0.0))
    above = mg.Field("above", grid, boundary=mg.fixed(0.0))
    up, down = mg.Program("up"), mg.Program("down")
    transfer.prolong(up, below, above)
    transfer.restrict(down, above, below)
    with mg.Engine({g: mg.Layout.single(g.box, 1) for g in (grid, coarse)}) as engine:
        for item, values in transfer.constants.items():
            engine.set(item, values)

        def column(program: mg.Program, source: mg.Field, target: mg.Field, cell: int) -> np.ndarray:
            unit = np.zeros(source.grid.size)
            unit[cell] = 1.0
            engine.set(source, unit.reshape(source.grid.shape))
            engine.set(target, 0.0)
            engine.run(program)
            found = engine.gather(target)
            assert found is not None
            return found.ravel()

        prolong = np.stack([column(up, below, above, c) for c in range(coarse.size)], axis=1)
        restrict = np.stack([column(down, above, below, c) for c in range(grid.size)], axis=1)
    return prolong, restrict


@pytest.mark.parametrize(
    ("grid", "factors"),
    [
        (mg.Grid((9,)), (2,)),
        (mg.Grid((5, 6)), (2, 2)),
        (mg.Grid((4, 7)), (1, 2)),
        (mg.Grid((4, 7)), (2, 1)),
        (mg.Grid((3, 2, 5)), (2, 2, 2)),
        (mg.Grid((5, 4), periodic=True), (2, 2)),
        (mg.Grid((3, 7), periodic=(False, True)), (2, 2)),
        (mg.Grid((2, 2), periodic=True), (2, 2)),
        (mg.Grid((5, 3), spacing=[[1.0, 2.0, 4.0, 3.0, 1.0], 0.5]), (2, 2)),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [DIRICHLET, NEUMANN, ("neumann", "dirichlet")])
def test_restriction_is_the_transpose(grid: mg.Grid, factors: tuple[int, ...], kind: tuple[str, str]) -> None:
    prolong, restrict = matrices(grid, factors, (kind,) * grid.ndim)
    np.testing.assert_array_equal(restrict > 0, prolong.T > 0)
    np.testing.assert_allclose(restrict, prolong.T, rtol=1e-15)


def test_constants_pass_where_no_wall_holds_a_value() -> None:
    prolong, _ = matrices(mg.Grid((5, 6)), (2, 2), (NEUMANN, NEUMANN))
    np.testing.assert_allclose(prolong.sum(axis=1), 1.0, rtol=1e-15)
    prolong, _ = matrices(mg.Grid((5, 7), periodic=True), (2, 2), (NEUMANN, NEUMANN))
    np.testing.assert_allclose(prolong.sum(axis=1), 1.0, rtol=1e-15)


@pytest.mark.parametrize("cells", [8, 9, 2, 3])
def test_straight_lines_from_a_wall_at_zero_pass(cells: int) -> None:
    grid = mg.Grid((cells,), spacing=[np.linspace(1, 2, cells)])
    coarse = grid.coarsen(2)
    weights = axis_weights(grid, coarse, 0, ("dirichlet", "neumann"))
    line = np.concatenate(([0.0], coarse.centres(0), [0.0]))
    even = weights.own[0] * line[1:-1] + weights.aside[0] * line[:-2]
    np.testing.assert_allclose(even, grid.centres(0)[::2], rtol=1e-14)
    inner = cells // 2 - (cells % 2 == 0)  # at the neumann wall the last odd child repeats its coarse cell
    odd = weights.own[1] * line[1:-1] + weights.aside[1] * line[2:]
    np.testing.assert_allclose(odd[:inner], grid.centres(0)[1::2][:inner], rtol=1e-14)


def test_layouts_that_do_not_lie_on_one_another_are_refused() -> None:
    grid = mg.Grid((33, 33))
    coarse = grid.coarsen(2)
    transfer = GridTransfer(grid, coarse, (2, 2), (DIRICHLET, DIRICHLET), "t")
    fine = mg.Field("residual", grid, boundary=mg.fixed(0.0))
    program = mg.Program("down")
    transfer.restrict(program, fine, mg.Field("below", coarse))
    layout = slabs(grid.box, 3)  # cut at 11 and 22

    def work(comm: Comm) -> None:
        with mg.Engine({grid: layout, coarse: layout.coarsen(2)}, comm=comm) as engine:
            engine.run(program)

    with pytest.raises(mg.LayoutError, match=r"(?s)'residual'.*do not match at stride \(2, 2\).*P.move"):
        run_virtual(3, work)


def test_axes_of_narrow_cells_are_coarsened_first() -> None:
    assert choose_factors(mg.Grid((8, 8, 8))) == (2, 2, 2)
    assert choose_factors(mg.Grid((8, 8), spacing=(1.0, 4.0))) == (2, 1)
    assert choose_factors(mg.Grid((8, 8), spacing=(1.0, 1.4))) == (2, 2)
    assert choose_factors(mg.Grid((1, 8), spacing=(1.0, 4.0))) == (1, 2)
    assert choose_factors(mg.Grid((1, 1))) == (1, 1)


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
@pytest.mark.parametrize("granule", [1, 2, 4, 16])
def test_rounded_cuts_still_tile(ranks: int, granule: int) -> None:
    box = mg.Box.of((33, 21, 50))
    for layout in (
        slabs(box, ranks, granule=1),
        best_cartesian(box, ranks, granule=1),
        bisection(box, [1.0 + n for n in range(ranks)], granule=1),
    ):
        rounded = snap(layout, granule)
        rounded.check()
        assert matches(rounded, (granule,) * 3)


def test_levels_go_to_fewer_ranks_when_little_is_left() -> None:
    layout = slabs(mg.Box.of((64, 64)), 4)
    assert settle(layout, (2, 2), 1024) is layout
    assert len(set(settle(layout, (2, 2), 2048).owner.tolist())) == 2
    assert len(set(settle(layout, (2, 2), 4096).owner.tolist())) == 1
    uneven = slabs(mg.Box.of((33, 64)), 4)
    assert matches(settle(uneven, (2, 2), 16), (2, 2))
    assert settle(uneven, (1, 2), 16) is uneven
