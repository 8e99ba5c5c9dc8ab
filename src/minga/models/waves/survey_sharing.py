"""Sharing of the shots of a survey over ranks of different speeds, in rounds that are of similar length for all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from minga.errors import CaseError
from minga.models.waves.domain import is_number

__all__ = ["Speeds", "shared_out"]


class Speeds:
    """Speeds of ranks, in cells of shots a second, as measured so far.

    Parameters
    ----------
    ranks
        Number of ranks.
    weights
        Relative speeds of the ranks before they are measured; a rank of weight 0 computes nothing. None: equal ones.
    """

    def __init__(self, ranks: int, weights: Sequence[float] | None = None) -> None:
        self._weights = [1.0] * ranks if weights is None else _checked(weights, ranks)
        self._known: list[float | None] = [None] * ranks

    def measured(self, rank: int, cells: int, seconds: float) -> None:
        """Take note of the cells of the shots that a rank has computed in a round, and of the seconds it took."""
        if cells:
            self._known[rank] = cells / max(seconds, 1e-9)

    def each(self) -> list[float]:
        """Return a speed for each rank; those of ranks that have computed nothing follow from their weights.

        A unit of weight counts as much as that of the fastest rank by its weight.
        """
        pairs = list(zip(self._known, self._weights, strict=True))
        unit = max((speed / weight for speed, weight in pairs if speed is not None and weight), default=1.0)
        return [unit * weight if speed is None else speed for speed, weight in pairs]


def _checked(weights: object, ranks: int) -> list[float]:
    """Return weights as numbers; raise CaseError for those that cannot be."""
    given = list(weights) if isinstance(weights, list | tuple) else []
    if len(given) != ranks or not all(is_number(each) and 0 <= each < math.inf for each in given) or not any(given):
        raise CaseError(
            f"the weights of {ranks} ranks are {weights!r}",
            key="weights",
            remedy="give a number for each rank, 0 or more and not all of them 0",
        )
    return [float(each) for each in given]


def shared_out(costs: Mapping[int, int], speeds: Sequence[float]) -> list[list[int]]:
    """Return the shots that each rank computes in the next round.

    All shots that are left are given, the largest first, to the rank that would finish it first. Of these a rank
    computes in this round those that it finishes before the last of the ranks has finished its first one.

    Parameters
    ----------
    costs
        Cells of the shots that are left, by their numbers.
    speeds
        Cells a second of each rank, of one or more greater than 0; ranks of speed 0 get no shots.

    Returns
    -------
    list of list of int
        Numbers of shots; none for a rank without which the others are done sooner.
    """
    ends = [0.0 if speed else math.inf for speed in speeds]
    given: list[list[tuple[int, float]]] = [[] for _ in speeds]
    for number in sorted(costs, key=lambda number: (-costs[number], number)):
        after = [end + costs[number] / (speed or 1.0) for end, speed in zip(ends, speeds, strict=True)]
        rank = after.index(min(after))
        ends[rank] = after[rank]
        given[rank].append((number, after[rank]))
    until = max((own[0][1] for own in given if own), default=0.0)
    return [[number for k, (number, end) in enumerate(own) if k == 0 or end <= until] for own in given]
