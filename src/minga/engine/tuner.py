"""Choice among ways to execute a loop that have the same bits, by their times in the run itself.

A loop can be cut into blocks of several rounds (:mod:`minga.engine.time_blocks`) and its kernels compiled in several
ways (:mod:`minga.compile.alternative`). Which are fastest depends on the processor. Once a loop has run for a while, a
tuner tries one after the other in turns, on the rounds that are due anyway, and keeps what was faster. It remembers
its choice for later runs (:mod:`minga.compile.choices`).

Trying is limited: a way that is much slower than another gets one turn only, and a kernel is compiled again only once
the loop has run for many times as long as that is expected to take.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Final

import numpy as np

from minga.compile.alternative import ROWS, USUAL, WIDTHS, Alternative
from minga.compile.choices import Choice, choice_key, load_choice, store_choice
from minga.compile.llvm import Compiled, compile_kernel
from minga.compile.prefetch import fetches_planes
from minga.compile.rows import may_be_together, usual_rows
from minga.compile.schedule import schedule
from minga.compile.target import host_target
from minga.compile.vector import usual_lanes
from minga.engine.backend import KernelCall
from minga.engine.command import KERNELS, Category, Site
from minga.lang.graph import KernelGraph
from minga.lang.types import itemsize

__all__ = ["Tuner", "timed"]

AFTER: Final = 1.0
"""Seconds that a loop has run before anything is tried."""
TURN: Final = 0.005
"""Least seconds of a turn."""
TURNS: Final = 5
"""Turns of each way; the median of their times relative to the present way's turns beside them counts."""
GAIN: Final = 0.97
"""Time, relative to the present way, below which another way replaces it."""
HOPELESS: Final = 1.1
"""Time, relative to the fastest way, above which a way gets no further turn."""
TRYING: Final = 3.0
"""Time that a loop has run before cuts are tried, relative to that of a turn of each."""
PATIENCE: Final = 30.0
"""Time that a loop has run before its kernels are compiled again, relative to that of compiling."""
COMPILING: Final = 0.05, 0.001
"""Seconds to compile a kernel: for any one, and for each of its operations."""
SHARE: Final = 0.1
"""Least share of a loop's operations that a kernel has if it is compiled in other ways."""
_NEVER: Final = 1 << 62
"""More rounds than any loop has."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """One way to execute a loop: the number of its cut into blocks (-1: none), and the way of its kernels."""

    cut: int
    way: Alternative = USUAL


@dataclass(frozen=True, slots=True)
class _Turn:
    """A setting, and the seconds and rounds, at least, for which it is used."""

    setting: _Setting
    seconds: float
    rounds: int = 1


_Turns = Generator[_Turn, float, _Setting]
"""Turns; the seconds of a round are sent for each, and the setting to keep is returned."""


class Tuner:
    """The tuner of one loop of a bound Program.

    Parameters
    ----------
    cuts
        Rows, columns and rounds of each cut into blocks.
    usual
        Number of the cut that is used untuned, or -1.
    seconds
        Returns the seconds that kernels of this rank have taken so far.
    threads
        Number of threads.

    Attributes
    ----------
    rounds
        Word: rounds begun so far.
    due
        Word: rounds after which `turn` must be called before the next one.
    cut
        Word: number of the cut that is used.
    tuned
        True if nothing is left to try.
    """

    def __init__(
        self, cuts: Sequence[tuple[int, int, int]], usual: int, seconds: Callable[[], float], threads: int
    ) -> None:
        self.rounds, self.due, self.cut = np.zeros(1, np.int64), np.ones(1, np.int64), np.array([usual], np.int64)
        self.tuned = False
        self._cuts, self._seconds, self._threads = tuple(cuts), seconds, threads
        self._calls: list[tuple[KernelCall, Site]] = []
        self._graphs: list[KernelGraph] = []
        self._key = ""
        self._spent = self._since = self._compiling = 0.0
        self._gain = 1.0
        self._present = _Setting(usual)
        self._compiled: dict[tuple[str, bool, Alternative], Compiled] = {}
        self._functions: dict[tuple[str, bool, Alternative], int] = {}
        self._turns = self._all()
        self._turn = next(self._turns)
        self._start = 0.0, 0
        self._settling = False

    def begin(self, calls: Sequence[tuple[KernelCall, Site]]) -> None:
        """Tune these kernel calls, those of the loop, or use what was chosen for them in an earlier run."""
        self._calls = _main(calls)
        distinct = {call.graph.code_digest(): call for call, _ in self._calls}
        self._graphs = [call.graph for call in distinct.values()]
        if not distinct:
            self._end()
            return
        work = {call.graph.code_digest(): (call.graph, call.cells) for call, _ in calls if call.category in KERNELS}
        self._key = choice_key(list(work.values()), self._threads, self._cuts)
        for call, site in self._calls:
            self._functions[call.graph.code_digest(), call.reductions, USUAL] = site.function
        known = load_choice(self._key)
        if known is not None and (known.cut is None or known.cut in self._cuts):
            with self._guarded():
                self._use(_Setting(-1 if known.cut is None else self._cuts.index(known.cut), known.way))
            self._end()

    def enter(self) -> None:
        """Begin to count time: a run of the Program begins."""
        self._since = self._seconds()

    def leave(self) -> None:
        """Cease to count time: the run has ended."""
        self._spent, self._since = self._elapsed(), self._seconds()

    def turn(self) -> None:
        """End a turn if it has lasted long enough, and begin the next one. The loop calls this between two rounds."""
        spent, rounds = self._elapsed(), int(self.rounds[0])
        seconds, done = spent - self._start[0], rounds - self._start[1]
        if self._settling:  # the rounds before found the caches as another setting had left them
            self._settling = False
            self._start = spent, rounds
            self.due[0] = rounds + self._turn.rounds
            return
        if seconds < self._turn.seconds or done < self._turn.rounds:
            expected = math.ceil(done * self._turn.seconds / seconds) - done if seconds > 0 else 1
            self.due[0] = rounds + max(1, self._turn.rounds - done, min(expected, 4 * max(done, 1)))
            return
        self.due[0] = _NEVER
        with self._guarded():
            self._next(seconds / done)

    def _next(self, seconds: float) -> None:
        """Begin the turn after one whose rounds have taken so long, or keep the best setting after the last one."""
        try:
            self._turn = self._turns.send(seconds)
        except StopIteration as end:
            self._use(end.value)
            self._end()
            self._remember()
            return
        self._settling = self._turn.setting != self._present
        self._use(self._turn.setting)
        self._start = self._elapsed(), int(self.rounds[0])
        self.due[0] = self._start[1] + 1

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Stay with the present setting if anything fails: a run does not end because it is tuned."""
        try:
            yield
        except Exception as error:
            self._end()
            warnings.warn(f"a loop is tuned no further: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=2)

    def _elapsed(self) -> float:
        return self._spent + self._seconds() - self._since

    def _end(self) -> None:
        self.tuned = True
        self.due[0] = _NEVER

    # Turns -----------------------------------------------------------------------------------------------------------
    def _all(self) -> _Turns:
        """Try the cuts, then the ways to compile, each with the best of what was tried before."""
        present = self._present
        spent = yield _Turn(present, AFTER)
        rounds = 2 * len(self._cuts) * max((cut[2] for cut in self._cuts), default=0)
        yield from self._until(present, TRYING * rounds * spent)
        present = yield from self._fastest(present, [replace(present, cut=n) for n in range(-1, len(self._cuts))])
        for ways in (self._widths, self._rows, self._prefetching, self._storing):
            for way in ways(present):
                yield from self._until(present, PATIENCE * (self._compiling + self._expected()))
                present = yield from self._fastest(present, [replace(present, way=way)])
        return present

    def _until(self, present: _Setting, seconds: float) -> Generator[_Turn, float, None]:
        """Execute rounds in the present way until the loop has run for some seconds."""
        if (missing := seconds - self._elapsed()) > 0:
            yield _Turn(present, missing)

    def _fastest(self, present: _Setting, others: Sequence[_Setting]) -> _Turns:
        """Return the fastest setting, the present one if none is clearly faster."""
        times: dict[_Setting, list[float]] = {setting: [] for setting in [present, *others]}
        rounds = 2 * max((self._cuts[setting.cut][2] for setting in times if setting.cut >= 0), default=1)
        for _ in range(TURNS):
            if len(times) == 1:
                return present
            for setting, spent in times.items():
                spent.append((yield _Turn(setting, TURN, rounds)))
            most = HOPELESS * min(map(min, times.values()))
            times = {setting: spent for setting, spent in times.items() if min(spent) <= most or setting == present}
        usual = times[present]
        relative = {
            s: median(own / other for own, other in zip(spent, usual, strict=True)) for s, spent in times.items()
        }
        best = min(relative, key=relative.__getitem__)
        if relative[best] >= GAIN:
            return present
        self._gain /= relative[best]
        return best

    # Ways ------------------------------------------------------------------------------------------------------------
    def _widths(self, present: _Setting) -> list[Alternative]:
        """Return ways with vectors of other widths that the processor has."""
        target = host_target()
        usual = {usual_lanes(graph, target) for graph in self._graphs}
        widths = (width for width in WIDTHS if width <= target.lanes and usual != {width})
        return [replace(present.way, vector=width) for width in widths]

    def _rows(self, present: _Setting) -> list[Alternative]:
        """Return ways with other numbers of rows that are computed together, where a kernel permits it."""
        graphs = [graph for graph in self._graphs if may_be_together(graph, schedule(graph))]
        usual = set(map(usual_rows, graphs))
        return [replace(present.way, rows=rows) for rows in ROWS if graphs and usual != {rows}]

    def _prefetching(self, present: _Setting) -> list[Alternative]:
        """Return other ways to fetch data ahead, which concern kernels with locals or of three axes."""
        if not any(map(fetches_planes, self._graphs)):
            return []
        return [replace(present.way, prefetch="all"), replace(present.way, prefetch="none")]

    def _storing(self, present: _Setting) -> list[Alternative]:
        """Return the way whose stores do not bypass the caches, if others do."""
        sizes = [
            call.cells * itemsize(call.graph.params[param].dtype)
            for call, _ in self._calls
            for param in call.graph.written
        ]
        if present.cut >= 0 or max(sizes, default=0) <= host_target().cache:
            return []
        return [replace(present.way, stream=False)]

    def _expected(self) -> float:
        """Return the seconds that compiling all kernels in another way may take."""
        return sum(COMPILING[0] + COMPILING[1] * len(graph.nodes()) for graph in self._graphs)

    def _use(self, setting: _Setting) -> None:
        """Execute the loop in one way from now on."""
        if setting.way != self._present.way:
            functions = [self._function(call, setting.way) for call, _ in self._calls]
            for (_, site), function in zip(self._calls, functions, strict=True):
                site.use(function)
        self.cut[0] = setting.cut
        self._present = setting

    def _function(self, call: KernelCall, way: Alternative) -> int:
        """Return the address of a kernel's code, which is compiled once for each way."""
        key = call.graph.code_digest(), call.reductions, way
        if key not in self._functions:
            began = perf_counter()
            reductions = call.reductions and bool(call.graph.reductions)
            self._compiled[key] = code = compile_kernel(call.graph, reductions=reductions, way=way)
            self._functions[key] = code.address
            self._compiling += perf_counter() - began
        return self._functions[key]

    def _remember(self) -> None:
        cut = self._present.cut
        kernels = {graph.code_digest(): graph.name for graph in self._graphs}
        cells = max(call.cells for call, _ in self._calls)
        choice = Choice(None if cut < 0 else self._cuts[cut], self._present.way, self._gain, kernels, cells)
        store_choice(self._key, choice)


@contextmanager
def timed(tuners: Sequence[Tuner]) -> Iterator[None]:
    """Let tuners count the time of a run."""
    busy = [tuner for tuner in tuners if not tuner.tuned]
    for tuner in busy:
        tuner.enter()
    try:
        yield
    finally:
        for tuner in busy:
            tuner.leave()


def _main(calls: Sequence[tuple[KernelCall, Site]]) -> list[tuple[KernelCall, Site]]:
    """Return the calls of kernels that do much of the work."""
    work = {id(site): call.cells * len(call.graph.nodes()) for call, site in calls}
    computing = [(call, site) for call, site in calls if call.category is Category.COMPUTE]
    total = sum(work[id(site)] for _, site in computing)
    per: dict[str, int] = {}
    for call, site in computing:
        digest = call.graph.code_digest()
        per[digest] = per.get(digest, 0) + work[id(site)]
    return [(call, site) for call, site in computing if per[call.graph.code_digest()] >= SHARE * total]
