"""Routes of equal payloads on virtual ranks: the same bits by each, and what is counted as sent."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm
from minga.engine.routes import Chain, Routes, Spread
from minga.errors import LayoutError
from minga.space.cuts import slabs
from minga.space.layout import Layout

MATRIX = mg.Grid((9, 500))
PANEL = mg.Grid((7, 500)).relabel("panel")
BOX = mg.Box((1, 0), (8, 500))


class Wire:
    """What the members of a fake group share; every broadcast is one transmission."""

    def __init__(self, ranks: int) -> None:
        self.meet = threading.Barrier(ranks)
        self.payload = b""
        self.transmissions: list[tuple[int, int]] = []


class Member:
    """One member: all of them must broadcast in the same order, and nobody returns before all have all."""

    def __init__(self, wire: Wire, rank: int) -> None:
        self.wire, self.rank = wire, rank
        self.closed = False

    def bcast(self, data: Any, root: int = 0, *, wait: str = "all") -> None:
        assert wait == "all"
        if self.rank == root:
            self.wire.payload = bytes(data)
            self.wire.transmissions.append((root, data.nbytes))
        self.wire.meet.wait(timeout=60)
        if self.rank != root:
            assert len(self.wire.payload) == data.nbytes
            data[...] = np.frombuffer(self.wire.payload, np.uint8)
        self.wire.meet.wait(timeout=60)

    def close(self) -> None:
        self.closed = True


def moved(ranks: int, **settings: Any) -> tuple[list[bytes], list[tuple[int, int]]]:
    """What every rank holds of a panel after two moves, and the messages and bytes that each has sent."""
    b, p = mg.Field("b", MATRIX, "f4"), mg.Field("p", PANEL, "f4")
    program = mg.Program("panel")
    program.move(b, p, BOX)
    whole = np.random.default_rng(5).random(MATRIX.shape).astype("f4")

    def body(comm: Comm) -> tuple[bytes, tuple[int, int]]:
        layouts = {MATRIX: slabs(MATRIX.box, ranks), PANEL: Layout.everywhere(PANEL.box, ranks)}
        with mg.Engine(layouts, comm=comm, **settings) as engine:
            for times in (1, 2):
                engine.set(b, whole * times)
                engine.run(program)
            ledger = engine.ledger
            return engine.blocks(p)[0][1].tobytes(), (ledger.messages, ledger.bytes)

    results = mg.run_virtual(ranks, body)
    assert results[0][0] == (whole * 2)[1:8].tobytes()
    return [held for held, _ in results], [counts for _, counts in results]


def rows_of(ranks: int) -> list[int]:
    """Rows of the panel that each rank owns: they add up to 7, and no two ranks own the same."""
    layout = slabs(MATRIX.box, ranks)
    rows = [(layout.box(block) & BOX).shape[0] for block in range(ranks)]
    assert sum(rows) == 7
    return rows


@pytest.mark.few(2)
@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_every_route_brings_the_same_bits(ranks: int) -> None:
    expected = moved(ranks, route="pairwise")[0]
    assert len(set(expected)) == 1
    for route in ("auto", "collective", "chain", "chain:99", "chain:1000000", lambda nbytes, receivers: "chain:333"):
        assert moved(ranks, route=route)[0] == expected


def test_a_group_sends_once_what_goes_to_all() -> None:
    wire, made = Wire(4), []

    def member(comm: Comm) -> Member:
        made.append(Member(wire, comm.rank))
        return made[-1]

    expected, pairwise = moved(4, route="pairwise")
    held, counts = moved(4, route="group:0", group=member)
    assert held == expected
    assert wire.transmissions == [(root, rows * 2000) for root, rows in enumerate(rows_of(4))] * 2
    assert counts == pairwise  # what arrives is counted, however it came
    assert all(each.closed for each in made)
    assert len(made) == 4


def test_a_chain_sends_every_byte_once_from_each_rank_but_the_last() -> None:
    _, counts = moved(3, route="chain:2000")
    rows = rows_of(3)
    for rank, (messages, size) in enumerate(counts):
        passed = sum(rows) - rows[(rank + 1) % 3]  # it is the last one for what its successor owns
        assert (messages, size) == (2 * passed, 2 * 2000 * passed)


def test_an_error_of_the_group_reaches_those_who_wait() -> None:
    class Broken:
        def bcast(self, data: Any, root: int = 0, *, wait: str = "all") -> None:
            raise mg.errors.RunError("member 2 is lost")

        def close(self) -> None:
            return None

    with pytest.raises(mg.errors.RunError, match="member 2 is lost"):
        moved(4, route="group:0", group=Broken())


def test_pieces_are_passed_on_before_the_last_one_came() -> None:
    """The middle rank of a chain forwards piece after piece: the end has the first ones while the root holds back."""
    size, piece = 40, 8

    class Holding:
        """A communicator whose channels remember what left; pieces arrive when the test says so."""

        def __init__(self) -> None:
            self.rank, self.size = 1, 3
            self.arrived = 0
            self.incoming: list[_Pipe] = []
            self.outgoing: list[_Pipe] = []

        def channel(self, sends: Sequence[Any], receives: Sequence[Any], tag: int) -> Any:
            kind = self.outgoing if sends else self.incoming
            kind.append(_Pipe(self, len(kind), bool(sends)))
            return kind[-1]

    comm: Any = Holding()
    chain = Chain(comm, Spread(0, np.zeros(size, np.uint8)), 1, piece)
    chain.start()
    sent = []
    for comm.arrived in range(size // piece + 1):
        done = chain.test()
        sent.append(sum(pipe.begun for pipe in comm.outgoing))
    assert sent == [0, 1, 2, 3, 4, 5]
    assert done


class _Pipe:
    def __init__(self, comm: Any, number: int, sends: bool) -> None:
        self.comm, self.number, self.sends, self.begun = comm, number, sends, 0

    def start(self) -> None:
        self.begun = 1

    def test(self) -> bool:
        return self.sends or self.number < self.comm.arrived

    def close(self) -> None:
        return None


@pytest.mark.parametrize("word", ["fastest", "chain:0", "chain:few", "pairwise:3", ""])
def test_words_that_are_no_route_are_refused(word: str) -> None:
    with pytest.raises(LayoutError, match="pairwise"):
        Routes(word)


def test_a_group_is_needed_for_its_route() -> None:
    with pytest.raises(LayoutError, match="group="):
        Routes("group")
    with pytest.raises(LayoutError, match="group="):
        moved(3, route=lambda nbytes, receivers: "group")
