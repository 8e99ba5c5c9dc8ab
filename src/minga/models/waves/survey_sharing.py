"""Sharing of the shots of a survey over ranks of different speeds, in rounds that are of similar length for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["Speeds", "shared_out"]


class Speeds:
    """Speeds of ranks, in cells of shots a second, as measured so far.

    Parameters
    ----------
    ranks
        Number of ranks.
    """

    def __init__(self, ranks: int) -> None:
        self._known: list[float | None] = [None] * ranks

    def measured(self, rank: int, cells: int, seconds: float) -> None:
        """Take note of the cells of the shots that a rank has computed in a round, and of the seconds it took."""
        if cells:
            self._known[rank] = cells / max(seconds, 1e-9)

    def each(self) -> list[float]:
        """Return a speed for each rank; ranks that have computed nothing count as the fastest."""
        fastest = max((speed for speed in self._known if speed is not None), default=1.0)
        return [fastest if speed is None else speed for speed in self._known]


def shared_out(costs: Mapping[int, int], speeds: Sequence[float]) -> list[list[int]]:
    """Return the shots that each rank computes in the next round.

    All shots that are left are given, the largest first, to the rank that would finish it first. Of these a rank
    computes in this round those that it finishes before the last of the ranks has finished its first one.

    Parameters
    ----------
    costs
        Cells of the shots that are left, by their numbers.
    speeds
        Cells a second of each rank.

    Returns
    -------
    list of list of int
        Numbers of shots; none for a rank without which the others are done sooner.
    """
    ends = [0.0] * len(speeds)
    given: list[list[tuple[int, float]]] = [[] for _ in speeds]
    for number in sorted(costs, key=lambda number: (-costs[number], number)):
        after = [end + costs[number] / speed for end, speed in zip(ends, speeds, strict=True)]
        rank = after.index(min(after))
        ends[rank] = after[rank]
        given[rank].append((number, after[rank]))
    until = max((own[0][1] for own in given if own), default=0.0)
    return [[number for k, (number, end) in enumerate(own) if k == 0 or end <= until] for own in given]
