"""Schedules of checkpoints: which states are kept while steps are reversed one by one.

With c checkpoints at hand, a number of steps is reversed by storing the state after some of them, reversing those after
it, and then those before it. The positions are those with the fewest steps computed again: with r repetitions at most,
C(c + r, c) steps can be reversed. Source: A. Griewank, A. Walther, "Algorithm 799: revolve", ACM Trans. Math. Software
26(1), 2000.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

__all__ = ["first_positions", "middle", "reversed_steps"]

Task = Literal["restore", "advance", "store", "reverse", "drop"]


def middle(steps: int, free: int) -> int:
    """Return after how many of some steps the next checkpoint is stored, with the first state already stored.

    Parameters
    ----------
    steps
        Number of steps, 2 or more.
    free
        Number of checkpoints that are free, 1 or more.
    """
    held = free + 1
    rounds = 1
    while math.comb(held + rounds, held) < steps:
        rounds += 1
    longest_before = math.comb(held + rounds - 1, held)
    least_after = math.comb(held - 1 + rounds - 1, held - 1)
    return max(1, min(longest_before, steps - least_after, steps - 1))


def first_positions(steps: int, most: int) -> list[int]:
    """Return the states that are stored on the way to the last one, the first of them 0; `most` at once."""
    found = [0]
    while len(found) < most and steps - found[-1] > 1:
        found.append(found[-1] + middle(steps - found[-1], most - len(found)))
    return found


def reversed_steps(steps: int, most: int) -> Iterator[tuple[Task, int]]:
    """Yield what reverses some steps, given the states of `first_positions`.

    Parameters
    ----------
    steps
        Number of steps.
    most
        The most states that are stored at once.

    Yields
    ------
    tuple
        ("restore", state), ("advance", number of steps), ("store", state), ("reverse", step) or ("drop", state).
    """
    held = first_positions(steps, most)
    while steps:
        begin = held[-1]
        yield "restore", begin
        if steps - begin > 1 and len(held) < most:
            held.append(begin + middle(steps - begin, most - len(held)))
            yield "advance", held[-1] - begin
            yield "store", held[-1]
            continue
        if steps - 1 > begin:
            yield "advance", steps - 1 - begin
        steps -= 1
        yield "reverse", steps
        if steps == begin:
            yield "drop", held.pop()
