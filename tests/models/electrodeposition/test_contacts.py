"""What touches what: solution that joins the electrodes, whatever the solid parts in it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.electrodeposition.contacts import check_joined
from minga.models.electrodeposition.problem import FLUID, INSULATOR
from minga.space.grid import Grid

Kinds = NDArray[np.uint8]


def leads_through(kinds: Kinds, periodic: tuple[bool, ...]) -> bool:
    """Whether solution joins both ends of the first axis, cell by cell."""
    todo = [tuple(place) for place in np.argwhere(kinds == FLUID) if place[0] == 0]
    seen = set(todo)
    while todo:
        place = todo.pop()
        if place[0] == kinds.shape[0] - 1:
            return True
        for axis in range(kinds.ndim):
            for side in (-1, 1):
                beside = list(place)
                beside[axis] += side
                if periodic[axis]:
                    beside[axis] %= kinds.shape[axis]
                near = tuple(beside)
                inside = all(0 <= i < n for i, n in zip(near, kinds.shape, strict=True))
                if inside and kinds[near] == FLUID and near not in seen:
                    seen.add(near)
                    todo.append(near)
    return False


def joined(kinds: Kinds, periodic: tuple[bool, ...]) -> bool:
    axes = ("y", "z", "x")[: kinds.ndim]
    try:
        check_joined(kinds, Grid(kinds.shape, axes=axes, periodic=periodic), "electrodeposition.solids")
    except CaseError as error:
        return "no solution leads" not in error.message
    return True


@pytest.mark.parametrize(
    ("shape", "periodic", "share"),
    [((12, 9), (False, False), 0.4), ((12, 9), (False, True), 0.45), ((8, 5, 6), (False, True, False), 0.62)],
)
def test_solution_joins_the_electrodes_where_a_walk_through_it_does(
    shape: tuple[int, ...], periodic: tuple[bool, ...], share: float
) -> None:
    random = np.random.default_rng(5)
    found = []
    for _ in range(40):
        kinds = np.where(random.uniform(size=shape) < share, INSULATOR, FLUID).astype(np.uint8)
        found.append(joined(kinds, periodic))
        assert found[-1] == leads_through(kinds, periodic)
    assert 5 <= sum(found) <= 35


def test_a_way_that_winds() -> None:
    kinds = np.zeros((9, 7), np.uint8)
    kinds[1::4, :-1] = INSULATOR
    kinds[3::4, 1:] = INSULATOR
    assert joined(kinds, (False, False))
    kinds[3] = INSULATOR
    assert not joined(kinds, (False, False))


def test_a_way_around_joined_ends() -> None:
    kinds = np.full((4, 5), INSULATOR, np.uint8)
    kinds[:2, 0] = FLUID
    kinds[1:, -1] = FLUID
    assert not joined(kinds, (False, False))
    assert joined(kinds, (False, True))
