"""Run on MPI ranks by test_panels_mpi.py: panels by every route, natively and interpreted, with equal bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import minga as mg
from minga.engine.routes import Broadcasting
from minga.space.cuts import slabs
from minga.space.layout import Layout

ROWS, COLUMNS, WIDTH = 40, 3000, 6
MATRIX = mg.Grid((ROWS, COLUMNS))
PANEL = mg.Grid((WIDTH, COLUMNS)).relabel("panel")
RESULT = mg.Grid((1, ROWS)).relabel("result")
BOXES = [mg.Box((lo, 0), (min(lo + WIDTH, ROWS), COLUMNS)) for lo in range(0, ROWS, WIDTH)]


class Before4(MPI.Intracomm):
    """A communicator of a library without persistent collectives."""

    def Bcast_init(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


class Group:
    """A group that broadcasts by itself: here by MPI, in the engine's thread."""

    def __init__(self, comm: mg.MPIComm) -> None:
        self.communicator = comm.communicator.Dup()

    def bcast(self, data: Any, root: int = 0, *, wait: str = "all") -> Any:
        request = self.communicator.Ibcast([data, MPI.BYTE], root=root)
        while not request.Test():
            pass

    def close(self) -> None:
        self.communicator.Free()


def recorded() -> tuple[mg.Program, mg.Field, mg.Field]:
    b, panel, out = mg.Field("b", MATRIX), mg.Field("p", PANEL, slots=2), mg.Field("c", RESULT)
    k = mg.Register("k", "i8")

    def use(engine: mg.Engine) -> None:
        number = engine.read(k)
        ((_, view),) = engine.blocks(panel.now)
        ((box, target),) = engine.blocks(out)
        for row in range(BOXES[number].lo[0], BOXES[number].hi[0]):
            engine.progress()
            if box.lo[1] <= row < box.hi[1]:
                target[0, row - box.lo[1]] = np.add.reduce(view[row - BOXES[number].lo[0]] * np.arange(COLUMNS))

    program = mg.Program("product")
    program.let(k, 0)
    program.move(b, panel.now, BOXES[0])
    with program.repeat(len(BOXES)):
        program.move(b, panel.next, BOXES, number=k + 1)
        program.call(use, reads=(panel.now,), writes=(out,))
        program.rotate(panel)
        program.let(k, k + 1)
    return program, b, out


def main() -> None:
    comm = mg.MPIComm()
    old = mg.MPIComm()
    old.communicator = Before4(old.communicator)
    whole = np.random.default_rng(3).random(MATRIX.shape)
    expected = np.add.reduce(whole * np.arange(COLUMNS), axis=1)
    layouts = {
        MATRIX: _slabs(comm),
        PANEL: Layout.everywhere(PANEL.box, comm.size),
        RESULT: slabs(RESULT.box, comm.size, 1, granule=1),
    }
    group: Broadcasting = Group(comm)
    sizes: list[tuple[int, int]] = []

    def choose(nbytes: int, receivers: int) -> str:
        sizes.append((nbytes, receivers))
        return "chain:9000"

    ways: list[tuple[mg.MPIComm, dict[str, Any]]] = [
        (comm, {}),
        (comm, {"route": "pairwise"}),
        (comm, {"route": "collective"}),
        (comm, {"route": "collective", "native": False}),
        (old, {"route": "collective"}),
        (comm, {"route": choose}),
        (comm, {"route": "chain", "native": False}),
        (comm, {"route": "group:0", "group": group}),
        (comm, {"route": "group:0", "group": Group}),
        (comm, {"route": "collective", "overlap": False}),
    ]
    for ranks, settings in ways:
        program, b, out = recorded()
        with mg.Engine(layouts, comm=ranks, trace=1 << 10, **settings) as engine:
            engine.set(b, whole)
            for _ in range(2):
                assert engine.run(program).ok
                result = engine.gather(out)
                assert result is None or result.tobytes() == expected[None].tobytes(), settings
            events = engine.events
            assert events is not None
            told = [events.entries[row[0]].category for row in events.rows.tolist()]
            rounds = [word for word in told if word in ("send", "call", "wait")]
            first = rounds.index("call")
            between = ["call", "wait", "send", "call"] if settings.get("overlap", True) else ["call", "send"]
            assert rounds[first : first + len(between)] == between, (settings, rounds)
    group.close()
    assert {receivers for _, receivers in sizes} == {comm.size - 1}
    assert max(nbytes for nbytes, _ in sizes) == WIDTH * COLUMNS * 8
    program, b, _ = recorded()
    own = ("pairwise", "chain")[comm.rank % 2]
    with (
        mg.Engine(layouts, comm=comm, route=lambda nbytes, receivers: own) as engine,
        pytest.raises(mg.errors.LayoutError, match="different routes on different ranks"),
    ):
        engine.run(program)
    print("ok")


def _slabs(comm: mg.MPIComm) -> Layout:
    """Rows on all ranks but the last, which has none."""
    some = slabs(MATRIX.box, max(1, comm.size - 1))
    return Layout(MATRIX.box, comm.size, some.lo, some.hi, some.owner)


if __name__ == "__main__":
    main()
