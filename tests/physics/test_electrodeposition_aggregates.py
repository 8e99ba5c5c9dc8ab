"""Deposits of three dimensions in the limit of diffusion, against aggregates of single random walkers."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest

from minga.models.electrodeposition import DepositHistory

from .evidence import Evidence
from .test_electrodeposition_patterns import cluster

REACH = 12
"""Distance up to which the cells around an aggregate know how far it is."""


def directions(rng: random.Random, ndim: int) -> list[float]:
    """A direction, uniform over the circle or the sphere."""
    while True:
        drawn = [rng.gauss(0.0, 1.0) for _ in range(ndim)]
        if length := math.hypot(*drawn):
            return [value / length for value in drawn]


def aggregate(ndim: int, count: int, seed: int, side: int) -> tuple[list[int], list[float]]:
    """Numbers of cells and radii of gyration of an aggregate that grows from the middle of a circle or a sphere.

    A walker starts on a circle around the aggregate, where those that come from the outer one first meet it alike, and
    is lost on the outer one. It joins where it is when its next step would lead into the aggregate, whose surface is
    half as far as the next cell, so that such a step is twice as likely. Cells are then drawn in proportion to their
    fluxes, as by the model. Far from the aggregate it takes steps as long as nothing can be hit.
    """
    rng, whole, bound = random.Random(seed), side + 2 * REACH, side / 2 - 3.0
    half = whole // 2
    near = np.full((whole,) * ndim, REACH, np.int8)
    around = np.abs(np.indices((2 * REACH + 1,) * ndim) - REACH).max(axis=0).astype(np.int8)
    far, strides = memoryview(near.reshape(-1)), [whole ** (ndim - 1 - axis) for axis in range(ndim)]
    pairs = [(axis, way) for axis in range(ndim) for way in (-1, 1)]
    offsets = [way * strides[axis] for axis, way in pairs]
    sums, square, outer = [0.0] * ndim, 0.0, 0.0
    cells: list[int] = []
    radii: list[float] = []

    def add(place: Sequence[int]) -> None:
        nonlocal square, outer
        box = tuple(slice(p - REACH, p + REACH + 1) for p in place)
        np.minimum(near[box], around, out=near[box])
        off = [float(p - half) for p in place]
        for axis in range(ndim):
            sums[axis] += off[axis]
        square, outer = square + sum(x * x for x in off), max(outer, math.hypot(*off))
        number = len(cells) + 1
        cells.append(number)
        radii.append(math.sqrt(max(square / number - sum((s / number) ** 2 for s in sums), 0.0)))

    def started() -> list[int]:
        return [half + round(min(outer + 3.0, bound) * x) for x in directions(rng, ndim)]

    add([half] * ndim)
    place = started()
    while len(cells) < count:
        away = math.hypot(*(p - half for p in place))
        if away > bound:
            place = started()
            continue
        index = sum(p * s for p, s in zip(place, strides, strict=True))
        free = max(far[index] - 1, int(min(away - outer, bound + 1.0 - away) - 1.0))
        if free > 2:
            place = [p + round(free * x) for p, x in zip(place, directions(rng, ndim), strict=True)]
            continue
        into = [far[index + offset] == 0 for offset in offsets]
        if rng.random() * (len(offsets) + sum(into)) < 2 * sum(into):
            add(place)
            place = started()
        else:
            axis, way = rng.choice([pair for pair, hit in zip(pairs, into, strict=True) if not hit])
            place[axis] += way
    return cells, radii


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_deposits_in_space_are_as_wide_as_aggregates_of_walkers(evidence: Evidence) -> None:
    """Radii of gyration at equal numbers of cells, in the same sphere of 42 cells, averaged over seeds."""
    walkers = np.mean([np.log(aggregate(3, 900, seed, 48)[1][1:]) for seed in range(1, 13)], axis=0)
    ratios = []
    for seed in range(1, 7):
        cells, radii = cluster(seed, 48, 4.0, 3, 0.5)
        pairs = [(n, radius) for n, radius in zip(cells, radii, strict=True) if 100 <= n <= 900]
        ratios.append(np.mean([math.log(radius) - walkers[n - 2] for n, radius in pairs]))
    wider = float(np.exp(np.mean(ratios)))
    evidence.relative(
        "deposits", "radius of gyration in a sphere, over that of aggregates of walkers", wider, 1.0, 0.05
    )


def dimension(cells: Sequence[int], radii: Sequence[float], fewest: int) -> float:
    """The dimension by the frames at which the aggregate is a tenth larger than in the last one."""
    chosen = np.unique(np.geomspace(fewest, len(cells), 50).astype(int)) - 1
    nothing = np.zeros(chosen.size)
    history = DepositHistory(
        nothing, np.array(cells)[chosen], nothing, nothing, nothing, np.array(radii)[chosen], np.ones(1, bool)
    )  # fmt: skip
    return history.dimension(fewest)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_aggregates_in_space_have_the_dimension_of_diffusion(evidence: Evidence) -> None:
    """2.5 in three dimensions (Nicolas-Carlock and Carrillo-Estrada, 2019); the measure is that of deposits."""
    found = [dimension(*aggregate(3, 40_000, seed, 300), 1000) for seed in (1, 2, 3)]
    what = "dimension of aggregates of 40,000 walkers in space, three seeds"
    evidence.absolute("deposits", what, np.mean(found), 2.5, 0.1)
