"""Solid cells that solvers leave out: no bit of a solution is another one."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.engine import engine, masks
from minga.space.cuts import slabs

from .elliptic_problems import FLUID, GLASS, METAL, Coefficients, coefficients, solve_elliptic


def half_solid(grid: mg.Grid) -> Coefficients:
    """Metal below, glass beside it, and a plate."""
    kinds = np.full(grid.shape, FLUID)
    half = grid.shape[0] // 2
    kinds[:half] = METAL
    kinds[half - 4 : half, ..., :64] = GLASS
    kinds[half + 2, ..., 64:] = METAL
    return coefficients(grid, np.random.default_rng(0).uniform(0.5, 2.0, grid.shape), kinds)


@pytest.mark.slow
@pytest.mark.parametrize("lines", [None, "y"])
def test_the_solution_is_that_with_all_cells(lines: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = mg.Grid((24, 70), axes=("y", "x"))
    given = half_solid(grid)
    b = np.where(given.active, np.random.default_rng(1).random(grid.shape), 0.0)
    monkeypatch.setattr(masks, "PRICE", 0)
    left_out = [solve_elliptic(given, b, layout, lines=lines, solids=True) for layout in (None, slabs(grid.box, 2))]
    monkeypatch.setattr(
        engine, "settle_masks", lambda operations, possible: masks.settle_masks(operations, possible=False)
    )
    whole = solve_elliptic(given, b, lines=lines, solids=True)
    assert whole.reason == "converged"
    for found in left_out:
        assert found.iterations == whole.iterations
        assert found.x.tobytes() == whole.x.tobytes()
