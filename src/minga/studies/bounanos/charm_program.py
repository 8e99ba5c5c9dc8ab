"""Program started by charmrun: chares that hold one segment each. See :mod:`minga.studies.bounanos.charm`.

python -m charmrun.start +p2 charm_program.py order.pickle answer.pickle [+balancer GreedyRefineLB]
"""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

from charm4py import Array, Chare, Reducer, charm

from minga.studies.bounanos.segment import Segment


class SegmentChare(Chare):  # type: ignore[misc]
    """A segment, its iteration, and rows received for later iterations."""

    def __init__(self, orders: list[Any], every: int, balance: int, main: Any) -> None:
        self.segment = Segment(orders[self.thisIndex[0]])
        self.every, self.balance, self.main = every, balance, main
        self.last = len(orders) - 1
        self.iteration = 0
        self.verdict = 0  # last iteration after which the run is known to continue
        self.heard: dict[tuple[int, str], Any] = {}
        self.moved = 0
        self.waiting = False

    def begin(self) -> None:
        """Run the next iteration and send the boundary rows to the neighbours."""
        self.iteration += 1
        change = self.segment.iterate()
        here = self.thisIndex[0]
        if here > 0:
            self.thisProxy[here - 1].receive(self.iteration, "high", self.segment.boundary("low"))
        if here < self.last:
            self.thisProxy[here + 1].receive(self.iteration, "low", self.segment.boundary("high"))
        if self.iteration % self.every == 0:
            self.reduce(self.main.tested, change, Reducer.max)
        else:
            self.verdict = self.iteration
        self.waiting = True
        self.advance()

    def receive(self, iteration: int, side: str, row: Any) -> None:
        """Receive a neighbour's row after an iteration; the neighbour may be ahead of this chare."""
        self.heard[iteration, side] = row
        self.advance()

    def judged(self, iteration: int) -> None:
        """Receive the verdict that the run continues after an iteration."""
        self.verdict = iteration
        self.advance()

    def advance(self) -> None:
        """Start the next iteration if everything it needs has arrived."""
        here = self.thisIndex[0]
        sides = [side for side, there in (("low", here > 0), ("high", here < self.last)) if there]
        if not self.waiting or self.verdict < self.iteration:
            return
        if any((self.iteration, side) not in self.heard for side in sides):
            return
        for side in sides:
            self.segment.receive(side, self.heard.pop((self.iteration, side)))  # type: ignore[arg-type]
        self.waiting = False
        if self.balance and self.iteration % self.balance == 0:
            self.AtSync()
        else:
            self.begin()

    def resumeFromSync(self) -> None:
        """Continue after the balancer has finished."""
        self.begin()

    def migrated(self) -> None:
        """Count a migration; charm4py calls this in the new process of the chare."""
        self.moved += 1

    def finish(self) -> None:
        """Send all results to the main chare."""
        self.main.collect(self.thisIndex[0], self.segment.state(), self.moved)


class Main(Chare):  # type: ignore[misc]
    """Main chare, which starts the segments, tests for convergence, and collects the results."""

    def __init__(self, arguments: list[str]) -> None:
        self.answer = Path(arguments[2])
        self.orders, self.how, self.every, balance = pickle.loads(Path(arguments[1]).read_bytes())
        self.parts: dict[int, Any] = {}
        self.migrations, self.iterations, self.change = 0, 0, float("inf")
        self.chares = Array(
            SegmentChare, len(self.orders), args=[self.orders, self.every, balance, self.thisProxy],
            useAtSync=balance > 0,
        )  # fmt: skip
        self.start = time.perf_counter()
        self.chares.begin()

    def tested(self, change: float) -> None:
        """Receive the largest change of all segments in an iteration."""
        self.iterations += self.every
        self.change = change
        if change >= self.how.tolerance and self.iterations < self.how.limit:
            self.chares.judged(self.iterations)
        else:
            self.seconds = time.perf_counter() - self.start
            self.chares.finish()

    def collect(self, number: int, state: Any, moved: int) -> None:
        """Receive the rows of a segment."""
        self.parts[number] = state
        self.migrations += moved
        if len(self.parts) == len(self.orders):
            found = {
                "parts": [self.parts[k] for k in range(len(self.parts))],
                "iterations": self.iterations,
                "change": self.change,
                "seconds": self.seconds,
                "migrations": self.migrations,
            }
            self.answer.write_bytes(pickle.dumps(found))
            charm.exit()


if __name__ == "__main__":
    charm.start(Main)
