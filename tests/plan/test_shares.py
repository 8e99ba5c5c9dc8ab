"""Whole shares are optimal, whatever the times; real ones are done at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from minga.errors import LayoutError
from minga.plan.shares import assign, equal_time
from minga.plan.speed import Speed
from rank_groups import group_of


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to share ``total`` units."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


def whole(shares: Sequence[int], granule: int) -> bool:
    """Whether all shares but the last one that is not empty are multiples of a granule."""
    some = [share for share in shares if share]
    return not any(share % granule for share in some[:-1])


@pytest.mark.slow
def test_assign_is_as_good_as_the_best_of_all_shares() -> None:
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(400):
        parts, total = int(rng.integers(2, 5)), int(rng.integers(4, 19))
        # Any times that do not fall, with level stretches and jumps.
        steps = rng.uniform(0.0, 3.0, (parts, total + 1)) * (rng.random((parts, total + 1)) < 0.7)
        table = np.cumsum(steps, axis=1)
        granule = int(rng.choice([1, 1, 2, 3, 5]))
        least = rng.integers(0, max(1, total // parts), parts)
        most = np.maximum(least, rng.integers(total // parts, total + 2, parts))

        def times(shares: np.ndarray) -> np.ndarray:
            return table[np.arange(len(shares)), shares]

        allowed = [
            float(times(np.array(shares)).max())
            for shares in compositions(total, parts)
            if (np.array(shares) >= least).all() and (np.array(shares) <= most).all() and whole(shares, granule)
        ]
        if not allowed:
            refused += 1
            with pytest.raises(LayoutError, match="cannot be shared"):
                assign(total, times, least, most, granule)
            continue
        found = assign(total, times, least, most, granule)
        assert found.sum() == total
        assert (found >= least).all()
        assert (found <= most).all()
        assert whole(found.tolist(), granule)
        assert times(found).max() <= min(allowed) * (1 + 1e-12)
    assert refused < 200


def test_rounding_real_shares_would_be_worse() -> None:
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(400):
        parts, total = int(rng.integers(2, 5)), int(rng.integers(5, 23))
        cost = rng.uniform(0.2, 3.0, parts)
        real = total / cost / (1 / cost).sum()
        rounded = np.floor(real)
        rounded[np.argsort(rounded - real, kind="stable")[: total - int(rounded.sum())]] += 1
        best = assign(total, lambda shares, cost=cost: shares * cost, np.zeros(parts))
        ratios.append((rounded * cost).max() / (best * cost).max())
    assert min(ratios) > 1 - 1e-12
    assert sum(ratio > 1 + 1e-9 for ratio in ratios) > 80
    assert max(ratios) > 1.4


def test_the_example_of_milano() -> None:
    """Powers 20, 5 and 5: 60 layers are 40, 10 and 10, done in 2 instead of 4 (Milano et al., section 2.1)."""
    power = np.array([20.0, 5.0, 5.0])
    assert assign(60, lambda layers: layers / power, [1, 1, 1]).tolist() == [40, 10, 10]


def test_granules_and_many_parts() -> None:
    found = assign(1000, lambda cells: cells / np.array([3.0, 1.0]), [0, 0], granule=64)
    assert found.sum() == 1000
    assert found[0] % 64 == 0
    # The last part is the short one: two units for it are less than two for the first.
    assert assign(129, lambda cells: cells.astype(float), [1, 1], granule=64).tolist() == [64, 65]
    many = assign(10**9, lambda cells: cells / np.linspace(1, 4, 5000), np.ones(5000))
    assert many.sum() == 10**9
    assert np.ptp(many / np.linspace(1, 4, 5000)) < 2


def test_equal_time_follows_curves_and_room() -> None:
    slow_when_large = Speed.measured([1e3, 1e5, 1e6], [1e-5, 1e-3, 1e-1])
    group = group_of("2x1", [slow_when_large, 1e8], [0, 1])
    shares = equal_time(group, 1e6, np.array([np.inf, np.inf]))
    times = [float(group.speeds[rank].time(share)) for rank, share in enumerate(shares)]
    assert times[0] == pytest.approx(times[1], rel=1e-6)
    assert shares.sum() == pytest.approx(1e6)
    assert equal_time(group, 1e6, np.array([5e4, np.inf])).tolist() == pytest.approx([5e4, 9.5e5])
