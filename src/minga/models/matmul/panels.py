"""Panels of B, each sent from its owner to all ranks of a team while the previous one is used.

A Program does this: it moves a box from a field of the owners to a field that every rank holds. The latter has two
slots, so that the engine starts a panel before the call that uses the previous one, and completes it afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from minga.engine.comm import Comm
from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.engine.routes import Broadcasting
from minga.models.matmul.operands import Array
from minga.space.box import Box
from minga.space.cuts import slabs
from minga.space.field import Field, Register
from minga.space.grid import Grid
from minga.space.layout import Layout

__all__ = ["Panels", "while_polling"]

Result = TypeVar("Result")


class Panels:
    """Transfer of panels from their owners to all ranks of a communicator.

    Parameters
    ----------
    comm
        The ranks.
    dtype
        Type of the elements.
    sizes, owners
        Number of elements of each panel, and the rank that owns it.
    fill
        ``fill(number, flat)`` puts a panel into memory, on its owner.
    use
        ``use(number, flat, progress)`` works with a panel, on every rank. ``progress()``, called now and then by one
        thread, advances the transfer of the next panel and returns True once it has arrived.
    route
        Route of the panels, see :mod:`minga.engine.routes`. "group" is the network's own broadcast.
    """

    def __init__(
        self,
        comm: Comm,
        dtype: np.dtype[Any],
        sizes: Sequence[int],
        owners: Sequence[int],
        fill: Callable[[int, Array], None],
        use: Callable[[int, Array, Callable[[], bool]], None],
        *,
        route: str = "auto",
    ) -> None:
        self._rank, self._sizes, self._owners = comm.rank, tuple(sizes), tuple(owners)
        self._fill, self._use = fill, use
        self._dtype = dtype
        numbers = dtype.itemsize // np.dtype(dtype.type(0).real.dtype).itemsize
        self._numbers = numbers  # real numbers of an element: fields are real
        real = f"f{dtype.itemsize // numbers}"
        longest = numbers * max(sizes)
        at_owners = Grid((comm.size, longest)).relabel("owners")
        everywhere = Grid((1, longest)).relabel("panel")
        self._owned = Field("owned", at_owners, real)
        self._panel = Field("panel", everywhere, real, slots=2)
        self._number = Register("number", "i8")
        self._program = self._recorded()
        self._engine = Engine(
            {at_owners: slabs(at_owners.box, comm.size), everywhere: Layout.everywhere(everywhere.box, comm.size)},
            comm=comm, route=route, group=_group if route == "group" else None, native=False,
        )  # fmt: skip

    def _recorded(self) -> Program:
        lengths = [self._numbers * size for size in self._sizes]
        boxes = [Box((owner, 0), (owner + 1, long)) for owner, long in zip(self._owners, lengths, strict=True)]
        program, panel, k = Program("panels"), self._panel, self._number
        program.let(k, 0)
        program.call(self._first, writes=(self._owned,))
        program.move(self._owned, panel.now, boxes[0])
        with program.repeat(len(boxes)):
            program.call(self._next, writes=(self._owned,))
            program.move(self._owned, panel.next, boxes, number=k + 1)
            program.call(self._turn, reads=(panel.now,))
            program.rotate(panel)
            program.let(k, k + 1)
        return program

    def run(self) -> None:
        """Transfer and use all panels, one after the other. Collective."""
        self._engine.run(self._program)

    def close(self) -> None:
        """Release all messages and memory."""
        self._engine.close()

    def _first(self, engine: Engine) -> None:
        self._put(engine, 0)

    def _next(self, engine: Engine) -> None:
        self._put(engine, int(engine.read(self._number)) + 1)

    def _put(self, engine: Engine, number: int) -> None:
        if number < len(self._sizes) and self._owners[number] == self._rank:
            ((_, owned),) = engine.blocks(self._owned)
            self._fill(number, self._elements(owned, number))

    def _turn(self, engine: Engine) -> None:
        number = int(engine.read(self._number))
        ((_, panel),) = engine.blocks(self._panel.now)
        self._use(number, self._elements(panel, number), engine.progress)

    def _elements(self, block: Array, number: int) -> Array:
        return block[0, : self._numbers * self._sizes[number]].view(self._dtype)


def _group(comm: Comm) -> Broadcasting:
    """Return the network's own broadcast among the ranks."""
    from minga.network.broadcast import Group

    return cast(Broadcasting, Group.of(comm))


def while_polling(work: Callable[[], Result], progress: Callable[[], bool], interval: float) -> Result:
    """Do some work while a thread polls for progress until everything has arrived.

    MPI advances most messages only while it is being called; BLAS is one long call that lets other threads run.

    Parameters
    ----------
    work
        The work to do.
    progress
        Advances messages and returns True once all of them are complete.
    interval
        Seconds between two polls.

    Returns
    -------
    object
        The result of ``work``.
    """
    if progress() or not _threads_may_talk():
        return work()
    over, faults = threading.Event(), list[BaseException]()

    def look() -> None:
        try:
            while not over.wait(interval) and not progress():
                pass
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=look, name="transfers", daemon=True)
    thread.start()
    try:
        return work()
    finally:
        over.set()
        thread.join()
        if faults:
            raise faults[0]


def _threads_may_talk() -> bool:
    """Return whether a thread other than the main one may call MPI, as long as no two do so at once."""
    import sys

    if "mpi4py.MPI" not in sys.modules:
        return True
    from mpi4py import MPI

    return not MPI.Is_initialized() or bool(MPI.Query_thread() >= MPI.THREAD_SERIALIZED)
