"""What cells cost: declared by models, measured on blocks, added up over boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError, ProgramError
from minga.plan.work.weights import MOST_TILES, Weights, measured_weights, tile_of, weights_of
from minga.space.box import Box
from minga.space.cuts import blocks, slabs

GRID = mg.Grid((37, 70))
COST = np.random.default_rng(0).random(GRID.shape)
BOXES = [Box((0, 0), (37, 70)), Box((3, 5), (20, 60)), Box((36, 69), (37, 70))]


def model(cost: Any, **fields: Any) -> mg.Model:
    u, mask = mg.Field("u", GRID, slots=2), mg.Field("mask", GRID, "u1")
    return mg.Model("m", GRID, (u, mask), mg.Program(), cost=cost, **fields)


def of(weights: Weights, box: Box) -> float:
    return float(weights.of(np.array([box.lo]), np.array([box.hi]))[0])


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("cost", [COST, lambda box: COST[box.slices((0, 0))]])
def test_declared_costs(cost: Any, box: Box) -> None:
    weights = weights_of(model(cost))
    assert weights is not None
    assert of(weights, box) == pytest.approx(COST[box.slices((0, 0))].sum())
    assert weights.along(1) == pytest.approx(COST.sum(axis=0))


def test_a_mask_is_a_cost() -> None:
    start = COST > 0.4
    weights = weights_of(model("mask", initial={"mask": start}))
    assert weights is not None
    assert of(weights, BOXES[1]) == start[3:20, 5:60].sum()
    assert weights_of(model(None)) is None
    assert weights_of(model("mask", initial={"mask": 2})).cost.sum() == 2 * GRID.size  # type: ignore[union-attr]


def test_words_cost_what_their_cells_do() -> None:
    packed = mg.automaton("B3/S23", (10, 256), init={"soup": 0.5}, storage="bits")
    cost = np.zeros((10, 256))
    cost[:, 64:128] = 1.0
    cost[:, 128:] = 0.5
    object.__setattr__(packed, "cost", cost)
    weights = weights_of(packed)
    assert weights is not None
    assert weights.domain == packed.planned_grid.box
    assert weights.along(1).tolist() == [0, 10, 5, 5]


def test_large_grids_are_asked_in_pieces() -> None:
    grid = mg.Grid((5000, 3000))
    asked: list[int] = []

    def cost(box: Box) -> np.ndarray:
        asked.append(box.size)
        return np.broadcast_to(np.arange(box.lo[0], box.hi[0], dtype=float)[:, None], box.shape)

    weights = weights_of(mg.Model("m", grid, (mg.Field("u", grid),), mg.Program(), cost=cost))
    assert weights is not None
    assert weights.cost.size <= MOST_TILES
    assert max(asked) <= 1 << 22
    assert sum(asked) == grid.size
    assert of(weights, Box((0, 0), (5000, 3000))) == pytest.approx(3000 * 5000 * 4999 / 2)
    assert tile_of(Box((0,), (100,))) == (1,)


def test_costs_as_blocks_showed_them() -> None:
    layout = blocks(GRID.box, 2, 2, granule=1)
    sizes = (layout.hi - layout.lo).prod(axis=1)
    seconds = {0: 2.0 * sizes[0], 1: 1.0 * sizes[1], 3: 1.0 * sizes[3]}
    weights = measured_weights(layout, seconds)
    mean = sum(seconds.values()) / (sizes.sum() - sizes[2])
    found = [of(weights, layout.box(block)) / sizes[block] for block in range(4)]
    assert found == pytest.approx([2 / mean, 1 / mean, 1.0, 1 / mean])
    assert measured_weights(slabs(GRID.box, 2), {}).cost.sum() == GRID.size


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (COST - 0.5, "none negative"),
        (COST * np.nan, "finite"),
        (COST * 0, "not all zero"),
        (lambda box: np.ones(3), r"has shape \(3,\) for a box"),
        ("u", "not all zero"),
    ],
)
def test_costs_that_cannot_be_meant(cost: Any, message: str) -> None:
    with pytest.raises(CaseError, match=message):
        weights_of(model(cost))
    with pytest.raises(ProgramError, match="cost is an array of shape"):
        model(np.ones((3, 3)))
    with pytest.raises(ProgramError, match="no field 'nothing'"):
        model("nothing")
