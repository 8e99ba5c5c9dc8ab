"""Positions in a wave: whatever calls access, no cell is computed before one that it must follow."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from minga.engine.skew import Position, Touch, positions

ARRAYS, LENGTH = 3, 7
OFFSETS = st.tuples(*[st.tuples(st.integers(-2, 2), st.integers(-2, 2)).map(sorted)] * 2)


@st.composite
def touches(draw: st.DrawFn) -> Touch:
    ends = [sorted(draw(st.tuples(st.integers(-2, LENGTH), st.integers(-2, LENGTH)))) for _ in range(2)]
    lo, hi = (tuple(end[k] + k for end in ends) for k in (0, 1))

    def spans(most: int) -> dict[int, tuple[tuple[int, ...], tuple[int, ...]]]:
        arrays = draw(st.sets(st.integers(0, ARRAYS - 1), max_size=most))
        return {a: tuple(zip(*draw(OFFSETS), strict=True)) for a in arrays}  # type: ignore[misc]

    return Touch(lo, hi, spans(2), dict.fromkeys(spans(1), ((0, 0), (0, 0))))


def executed(
    calls: list[Touch], places: list[list[Position]], width: tuple[int, int]
) -> dict[tuple[int, int, int], int]:
    """Return when each cell (call, row, column) is computed; cells of one call in one band share a time."""
    ranges = [[p.range(c.lo[a], c.hi[a]) for c, p in zip(calls, places[a], strict=True)] for a in (0, 1)]
    bands = [
        range(min(r[0] for r in along), max(r[1] for r in along), w) for along, w in zip(ranges, width, strict=True)
    ]
    found: dict[tuple[int, int, int], int] = {}
    for time, (outer, inner, number) in enumerate(itertools.product(bands[1], bands[0], range(len(calls)))):
        call = calls[number]
        for cell in itertools.product(*(range(call.lo[a], call.hi[a]) for a in (0, 1))):
            at = [places[a][number].range(cell[a], cell[a] + 1)[0] for a in (0, 1)]
            if inner <= at[0] < inner + width[0] and outer <= at[1] < outer + width[1]:
                assert (number, *cell) not in found
                found[number, *cell] = time
    return found


@given(st.lists(touches(), min_size=2, max_size=5), st.tuples(st.integers(1, 4), st.integers(1, 4)))
def test_cells_that_depend_on_each_other_keep_their_order(calls: list[Touch], width: tuple[int, int]) -> None:
    times = executed(calls, [positions(calls, axis) for axis in (0, 1)], width)
    assert len(times) == sum((c.hi[0] - c.lo[0]) * (c.hi[1] - c.lo[1]) for c in calls)
    users: dict[tuple[int, int, int], list[tuple[int, bool, int]]] = {}
    for (number, row, column), time in times.items():
        for writes, spans in ((False, calls[number].reads), (True, calls[number].writes)):
            for array, (low, high) in spans.items():
                for y, x in itertools.product(range(low[0], high[0] + 1), range(low[1], high[1] + 1)):
                    users.setdefault((array, row + y, column + x), []).append((number, writes, time))
    for found in users.values():
        for (one, stores, first), (other, also, second) in itertools.combinations(sorted(found), 2):
            if one < other and (stores or also):
                assert first <= second


def test_a_stencil_lags_by_its_reach_and_pointwise_calls_do_not() -> None:
    """The lag of the next level is the reach; sources, mirrored ghost cells and damping add nothing."""
    reach = {0: ((-4, -4), (4, 4))}
    here = {1: ((0, 0), (0, 0))}
    stencil = Touch((0, 0), (50, 40), reach, here)
    source = Touch((20, 20), (21, 21), here, here)
    damp = Touch((0, 0), (10, 40), here, here)
    mirrors = [Touch((-k, 0), (1 - k, 40), {1: ((2 * k - 1, 0), (2 * k - 1, 0))}, here) for k in (1, 2, 3, 4)]
    following = Touch((0, 0), (50, 40), {1: reach[0]}, {0: ((0, 0), (0, 0))})
    found = positions([stencil, source, damp, *mirrors, following], 0)
    assert found[0] == Position(0, False)
    assert found[1] == Position(20, True)
    assert found[2] == Position(0, False)
    assert [place.place for place in found[3:7]] == [0, 1, 2, 3]
    assert found[-1] == Position(4, False)
