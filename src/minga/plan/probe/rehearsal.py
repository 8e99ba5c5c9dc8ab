"""A few steps of a model on a part of its grid, alone, to see how long they take.

The part is one block of a layout whose other blocks belong to a rank that is not there. So the step is the model's
own: its kernels, its boundaries where the part reaches them, shell and interior, packing and unpacking; only nothing
travels.
Loops that end by a condition do a fixed number of rounds, those that work is planned with (minga.plan.work.recorded),
as a part would converge sooner than the whole. All tiles are computed, also where a step leaves out those that cannot
change: how many these are depends on the state and not on the machine. Python functions that a step calls are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Final, Self

import numpy as np

from minga.engine.active import on_all_cells
from minga.engine.begin import start
from minga.engine.comm import Channel, Envelope, SerialComm
from minga.engine.engine import Engine, FieldValue, Outcome
from minga.engine.model import Model
from minga.engine.program import Call, Operation, Program, Repeat, When
from minga.plan.work.recorded import UNKNOWN_ROUNDS
from minga.plan.work.work import Work
from minga.space.box import Box
from minga.space.field import Register, Slot
from minga.space.layout import Layout

__all__ = ["Rehearsal", "Sample", "part_of"]

_CHUNK: Final = 2e-3
"""Seconds of steps between two looks at the clock."""
_COUNT: Final = Register("@rehearsed", "i8")
_ROUNDS: Final = 4
"""Of preparation at most: in each one more exchange of a step sees good values from those before it."""
_THICK: Final = 16
"""Cells along axes other than the innermost one below which rows are cut."""
_BUSY: Final = 0.9
"""A rank that computed for less than this part of the time was kept from it: by a quota, or by other programs."""


class _Alone(SerialComm):
    """The first of two ranks, the other of which is not there. It reads back what it sends."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.channels: list[_Echo] = []

    def channel(self, sends: Sequence[Envelope], receives: Sequence[Envelope], tag: int) -> Channel:
        echo = _Echo(tuple(sends), tuple(receives))
        self.channels.append(echo)
        return echo


@dataclass(slots=True, eq=False)
class _Echo:
    """Messages to and from nobody: what comes in is what went out, as far as lengths agree."""

    sends: tuple[Envelope, ...]
    receives: tuple[Envelope, ...]
    started: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))

    def reflect(self) -> None:
        """Fill what is received with what was sent last: values of the model's own kind."""
        for sent, received in zip(self.sends, self.receives, strict=False):
            received.buffer[...] = np.resize(sent.buffer, received.buffer.shape)

    def start(self) -> None:
        return None

    def test(self) -> bool:
        return True

    def wait(self) -> None:
        return None

    def close(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Sample:
    """Times of steps, in the order measured.

    seconds  of a step, a mean over ``steps`` steps each
    compute  likewise, but only while the rank had its processor
    busy     part of the whole time in which it had it, 0 to 1
    """

    seconds: tuple[float, ...]
    compute: tuple[float, ...]
    steps: tuple[int, ...]
    busy: float

    @property
    def throttled(self) -> bool:
        """Whether something kept the rank from computing: a quota, other ranks on its core, or other programs."""
        return self.busy < _BUSY

    @property
    def least(self) -> float:
        """Seconds of a step when nothing else happens on this host."""
        return min(self.seconds)

    @property
    def typical(self) -> float:
        """Seconds of a step as a run will see them.

        The least of all, as what disturbs only makes it longer; where the rank was throttled, so much longer as it had
        to wait, since that goes on in the run.
        """
        return min(self.compute) / self.busy if self.throttled else self.least


class Rehearsal:
    """An engine that holds a part of a model and does steps of it; used in a ``with`` statement.

    part     cells of ``work.domain``, as :func:`part_of` makes them
    threads  workers of this rank
    """

    def __init__(
        self, model: Model, work: Work, part: Box, threads: int = 1, cpus: Sequence[int] | None = None
    ) -> None:
        self.model = model
        self.cells = part.size * work.points
        rest = work.domain.subtract(part)
        self._comm = _Alone(2 if rest else 1)
        self._rounds = min(_ROUNDS, 2 + work.rounds) if rest else 1
        layout = Layout.from_boxes(work.domain, [part, *rest], [0] + [1] * len(rest), self._comm.size)
        self._engine = Engine(model.layouts_like(layout, anywhere=True), comm=self._comm, threads=threads, cpus=cpus)
        self._initial: list[tuple[Slot, FieldValue]] | None = None
        # One binding for any number of steps, so that what it receives is kept.
        steps = on_all_cells(_bounded(model.step.operations))
        self._steps = Program(model.step.name, [Repeat(steps, _COUNT, None)])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.close()

    def prepare(self, seconds: float = np.inf, stop: Callable[[], bool] | None = None) -> None:
        """Compile, go once through all memory, and fill what is received with values of the model's own kind.

        It takes some rounds until these are good; two at least, and no other one after so many seconds. Where ``stop``
        says yes, one will do.
        """
        began = np.inf
        for number in range(self._rounds):
            if number == 1:
                began = time.perf_counter()  # the first one compiles
            if number and ((stop is not None and stop()) or time.perf_counter() - began > seconds):
                break
            self._begin()
            for _ in range(2):  # the second time halos are valid already, which is another binding
                self._run(1)
            for channel in self._comm.channels:
                channel.reflect()
        self._begin()

    def _begin(self) -> None:
        """Put in the initial values, which are worked out once: that may take longer than many steps."""
        start(self.model, self._engine, self._initial)
        if self._initial is None:
            self._initial = [
                (slot, value if isinstance(value, int | float) else _copied(self._engine.blocks(slot)))
                for slot, value in self.model.start_values()
            ]

    def _run(self, count: int) -> Outcome:
        self._engine.write(_COUNT, count)
        return self._engine.run(self._steps)

    def sample(self, seconds: float, fewest: int = 2) -> Sample:
        """Do steps for so many seconds, and ``fewest`` samples at least; the model's state goes on from where it was.

        Where it becomes not finite, it starts again.
        """
        # A team's threads are this process's; virtual ranks are threads of one process.
        threads = self._engine.threads
        processor = time.thread_time if threads == 1 else time.process_time
        times: list[tuple[float, float, int]] = []
        count, began, began_cpu = 1, time.perf_counter(), processor()
        while True:
            before, before_cpu = time.perf_counter(), processor()
            outcome = self._run(count)
            now, cpu = time.perf_counter(), processor()
            good = outcome.ok or outcome.reason == "limit"
            if good or count == 1:
                times.append(((now - before) / count, max(cpu - before_cpu, 1e-9) / (count * threads), count))
            if not good:
                self._begin()
                count = max(1, count // 2)
            elif cpu - before_cpu < _CHUNK * threads:
                count *= 2
            if now - began >= seconds and len(times) >= fewest:
                break
        busy = (processor() - began_cpu) / ((time.perf_counter() - began) * threads)
        wall, compute, steps = zip(*times, strict=True)
        return Sample(wall, compute, steps, min(1.0, max(busy, 1e-3)))


def part_of(work: Work, cells: float) -> Box:
    """About so many cells in the middle of ``work.domain``, as a layout could cut them out.

    Its rows along the innermost axis are whole, as plans prefer them, unless it were thinner than 16 cells then.
    """
    whole, granule, ndim = work.domain.shape, work.granule, work.domain.ndim
    least = [min(n, max(low, _THICK if axis < ndim - 1 else g))
             for axis, (n, low, g) in enumerate(zip(whole, work.least, granule, strict=True))]  # fmt: skip
    lengths, left = list(whole), cells / whole[-1]
    for axis in reversed(range(ndim - 1)):
        scale = min(1.0, left / np.prod(whole[: axis + 1])) ** (1 / (axis + 1))
        lengths[axis] = min(whole[axis], max(least[axis], _rounded(scale * whole[axis], granule[axis])))
        left /= lengths[axis]
    others = int(np.prod(lengths[:-1]))
    lengths[-1] = min(whole[-1], max(least[-1], _rounded(min(whole[-1], cells / others), granule[-1])))
    lo = [
        low + (n - length) // 2 // g * g
        for low, n, length, g in zip(work.domain.lo, whole, lengths, granule, strict=True)
    ]
    return Box(tuple(lo), tuple(low + length for low, length in zip(lo, lengths, strict=True)))


def _copied(pieces: Sequence[tuple[Box, np.ndarray]]) -> Callable[[Box], np.ndarray]:
    """The values of boxes as they are now, as a function of the box."""
    return {box: values.copy() for box, values in pieces}.__getitem__


def _rounded(length: float, granule: int) -> int:
    return max(1, round(length / granule)) * granule


def _bounded(operations: Sequence[Operation]) -> list[Operation]:
    """The same operations, where loops that end by a condition do as many rounds as work is planned with.

    Python functions are left out: they may write files, or talk to other ranks, which do another number of steps.
    """
    changed: list[Operation] = []
    for operation in operations:
        if isinstance(operation, Call):
            continue
        if isinstance(operation, Repeat):
            limit = operation.limit
            if operation.until is not None:
                limit = min(limit, UNKNOWN_ROUNDS) if isinstance(limit, int) else UNKNOWN_ROUNDS
            operation = Repeat(_bounded(operation.body), limit, None)
        elif isinstance(operation, When):
            operation = replace(operation, body=_bounded(operation.body))
        changed.append(operation)
    return changed
