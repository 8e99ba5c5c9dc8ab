"""Timing of a few steps of a model on a part of its grid, without other ranks.

The part is one block of a layout whose other blocks belong to a rank that does not exist. Thus the step is the model's
own, with its kernels, its boundaries where the part reaches them, shell and interior, packing and unpacking; but
nothing is sent. Loops that end by a condition do a fixed number of iterations, the one that work is planned with
(minga.plan.work.recorded), as a part would converge sooner than the whole grid. All tiles are computed, even if a step
leaves out those that cannot change: their number depends on the state and not on the machine. Python functions that a
step calls are left out.
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
from minga.plan.work.recorded import planned_rounds
from minga.plan.work.work import Work
from minga.space.box import Box
from minga.space.field import Register, Slot
from minga.space.layout import Layout

__all__ = ["Rehearsal", "Sample", "part_of"]

_CHUNK: Final = 2e-3
"""Seconds of steps between two readings of the clock."""
_COUNT: Final = Register("@rehearsed", "i8")
_ROUNDS: Final = 4
"""Maximum number of preparation rounds: in each one, one more exchange of a step gets good values from earlier ones."""
_THICK: Final = 16
"""Number of cells along axes other than the innermost one below which rows are cut."""
_BUSY: Final = 0.9
"""Share of the time below which a rank that computed counts as hindered by a quota or by other programs."""


class _Alone(SerialComm):
    """The first of two ranks, the second of which does not exist. It receives what it sends."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.channels: list[_Echo] = []

    def channel(self, sends: Sequence[Envelope], receives: Sequence[Envelope], tag: int) -> Channel:
        """Return a channel without a partner."""
        echo = _Echo(tuple(sends), tuple(receives))
        self.channels.append(echo)
        return echo


@dataclass(slots=True, eq=False)
class _Echo:
    """Messages without a partner: sent values are received again, as far as lengths agree."""

    sends: tuple[Envelope, ...]
    receives: tuple[Envelope, ...]
    started: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))

    def reflect(self) -> None:
        """Fill the receive buffers with the values sent last, which are typical of the model."""
        for sent, received in zip(self.sends, self.receives, strict=False):
            received.buffer[...] = np.resize(sent.buffer, received.buffer.shape)

    def start(self) -> None:
        """Do nothing, since there is no partner."""
        return

    def test(self) -> bool:
        """Return True, since no message is pending."""
        return True

    def wait(self) -> None:
        """Do nothing, since no message is pending."""
        return

    def close(self) -> None:
        """Do nothing, since there is nothing to release."""
        return


@dataclass(frozen=True, slots=True)
class Sample:
    """Times of steps, in the order of measurement.

    Attributes
    ----------
    seconds
        Seconds per step, each a mean over ``steps`` steps.
    compute
        The same, but counting only the time in which the rank had its processor.
    steps
        Number of steps of each measurement.
    busy
        Share of the whole time in which the rank had its processor, 0 to 1.
    """

    seconds: tuple[float, ...]
    compute: tuple[float, ...]
    steps: tuple[int, ...]
    busy: float

    @property
    def throttled(self) -> bool:
        """True if the rank was kept from computing by a quota, other ranks on its core, or other programs."""
        return self.busy < _BUSY

    @property
    def least(self) -> float:
        """Seconds per step if nothing else runs on this host."""
        return min(self.seconds)

    @property
    def typical(self) -> float:
        """Seconds per step to expect in a run.

        This is the shortest time, since disturbances only make it longer. If the rank was throttled, it is extended by
        the time that the rank had to wait, since this continues in the run.
        """
        return min(self.compute) / self.busy if self.throttled else self.least


class Rehearsal:
    """An engine that holds a part of a model and does steps of it; used in a ``with`` statement.

    Parameters
    ----------
    model, work
        The model and its work.
    part
        Cells of ``work.domain``, as returned by :func:`part_of`.
    threads, cpus
        Number of threads of this rank, and their processors.
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
        # One binding for any number of steps, so that received values are kept.
        steps = on_all_cells(_bounded(model.step.operations))
        self._steps = Program(model.step.name, [Repeat(steps, _COUNT, None)])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.close()

    def prepare(self, seconds: float = np.inf, stop: Callable[[], bool] | None = None) -> None:
        """Compile, touch all memory once, and fill receive buffers with values that are typical of the model.

        It takes some rounds until these are good: at least two, but no further one is begun after ``seconds`` seconds.
        If ``stop`` returns True, a single round is enough.
        """
        began = np.inf
        for number in range(self._rounds):
            if number == 1:
                began = time.perf_counter()  # the first round compiles
            if number and ((stop is not None and stop()) or time.perf_counter() - began > seconds):
                break
            self._begin()
            for _ in range(2):  # the second time, halos are valid already, which is another binding
                self._run(1)
            for channel in self._comm.channels:
                channel.reflect()
        self._begin()

    def _begin(self) -> None:
        """Set the initial values, which are computed only once: that may take longer than many steps."""
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
        """Time steps for so many seconds, and at least ``fewest`` samples, from the present state of the model on.

        If the state becomes not finite, the model starts again from its initial values.
        """
        # The threads of a team belong to this process; virtual ranks are threads of one process.
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
    """Return a part of about so many cells in the middle of ``work.domain``, as a layout could cut it.

    Its rows along the innermost axis are whole, as plans prefer them, unless it would then be thinner than 16 cells.
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
    """Copy the values of boxes; return them as a function of the box."""
    return {box: values.copy() for box, values in pieces}.__getitem__


def _rounded(length: float, granule: int) -> int:
    return max(1, round(length / granule)) * granule


def _bounded(operations: Sequence[Operation]) -> list[Operation]:
    """Return the same operations with fixed iteration counts for loops that end by a condition, as in planned work.

    Python functions are left out: they may write files, or communicate with other ranks, which do another number of
    steps.
    """
    changed: list[Operation] = []
    for operation in operations:
        if isinstance(operation, Call):
            continue
        if isinstance(operation, Repeat):
            limit = operation.limit if operation.until is None else planned_rounds(operation)
            operation = Repeat(_bounded(operation.body), limit, None)
        elif isinstance(operation, When):
            operation = replace(operation, body=_bounded(operation.body))
        changed.append(operation)
    return changed
