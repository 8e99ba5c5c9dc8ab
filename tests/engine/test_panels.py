"""Panels: boxes of a field that every rank gets whole, one after the other, while the one before is used."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import minga as mg
from fake_device import FakeDevice
from minga.engine.backend import Host
from minga.engine.comm import Comm
from minga.engine.command import Kernel
from minga.engine.in_flight import moves_in_flight
from minga.engine.infer import infer
from minga.engine.program import Program
from minga.engine.schedule import FinishMove, Item, Loop, StartMove
from minga.space.cuts import bisection, cartesian, slabs
from minga.space.layout import Layout

DTYPES = ("bool", "u1", "i2", "i4", "i8", "u4", "u8", "f4", "f8")
WIDE = mg.Grid((13, 70))
PANEL = mg.Grid((4, 70)).relabel("panel")
ROWS = mg.Grid((1, 13)).relabel("rows")
BOXES = [mg.Box((lo, 0), (min(lo + 4, 13), 70)) for lo in range(0, 13, 4)]


def values(dtype: str) -> np.ndarray:
    bits = np.random.default_rng(7).integers(0, 256, (*WIDE.shape, 8), np.uint8)
    if dtype == "bool":
        return bits[..., 0] > 127
    return np.ascontiguousarray(bits[..., : np.dtype(dtype).itemsize]).view(dtype)[..., 0]


def bits(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def sources(ranks: int) -> list[Layout]:
    """Layouts of the matrix: rows, columns, blocks, everything on the last rank, and everywhere."""
    found = [slabs(WIDE.box, ranks), slabs(WIDE.box, ranks, 1, granule=1), bisection(WIDE.box, [1.0] * ranks)]
    return [*found, Layout.single(WIDE.box, ranks, ranks - 1), Layout.everywhere(WIDE.box, ranks)]


def engine_of(comm: Comm, layout: Layout, **settings: Any) -> mg.Engine:
    layouts = {WIDE: layout, PANEL: Layout.everywhere(PANEL.box, comm.size)}
    return mg.Engine(layouts, comm=comm, **settings)


@pytest.mark.few(2)
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_every_rank_gets_the_whole_panel(ranks: int) -> None:
    fields = {dtype: (mg.Field(f"b-{dtype}", WIDE, dtype), mg.Field(f"p-{dtype}", PANEL, dtype)) for dtype in DTYPES}
    program = Program("one")
    for source, target in fields.values():
        program.move(source, target, BOXES[1])

    for layout in sources(ranks):

        def body(comm: Comm, layout: Layout = layout) -> list[bytes]:
            with engine_of(comm, layout) as engine:
                for dtype, (source, _) in fields.items():
                    engine.set(source, values(dtype))
                engine.run(program)
                found = []
                for _, target in fields.values():
                    ((box, view),) = engine.blocks(target)
                    assert box == PANEL.box
                    found.append(bits(view))
                return found

        expected = [bits(values(dtype)[4:8]) for dtype in DTYPES]
        assert mg.run_virtual(ranks, body) == [expected] * ranks


def test_a_panel_goes_back_and_is_reduced_once() -> None:
    """What is computed on a replicated layout is the same on every rank; sums count it once, and it moves back."""

    @mg.kernel
    def double(p):
        p[0, 0] = 2 * p[0, 0] + p[0, 0] * mg.index(0, "i8")

    @mg.kernel
    def total(p):
        return mg.sum(p[0, 0])

    b, p = mg.Field("b", WIDE, "i8"), mg.Field("p", PANEL, "i8")
    small = mg.Field("s", PANEL.relabel("spread"), "i8")
    program = Program("back")
    program.move(b, p, BOXES[0])
    program.apply(double, p)
    summed = program.apply(total, p)
    program.move(p, small, PANEL.box)
    panel = values("i8")[:4] // 4
    expected = panel * (2 + np.arange(4)[:, None])

    def body(comm: Comm) -> tuple[bytes, int]:
        layouts = {
            WIDE: slabs(WIDE.box, comm.size),
            PANEL: Layout.everywhere(PANEL.box, comm.size),
            small.grid: slabs(PANEL.box, comm.size, 1, granule=1),
        }
        with mg.Engine(layouts, comm=comm) as engine:
            engine.set(b, values("i8") // 4)
            engine.run(program)
            whole, copied = engine.gather(small), engine.gather(p)
            if comm.rank == 0:
                assert bits(whole) == bits(copied) == bits(expected)
            return bits(engine.blocks(p)[0][1]), engine.read(summed)

    for ranks in (1, 2, 3):
        results = mg.run_virtual(ranks, body)
        assert results == [(bits(expected), int(expected.sum()))] * ranks


# Double buffering ----------------------------------------------------------------------------------------------------
def product(unrolled: bool, use: Callable[[mg.Engine, mg.Field, int], None]) -> tuple[Program, mg.Field, mg.Field]:
    """A Program that brings every panel of a matrix to all ranks, and uses one while the next one travels."""
    b, panel = mg.Field("b", WIDE), mg.Field("p", PANEL, slots=2)
    out = mg.Field("c", ROWS)
    k = mg.Register("k", "i8")
    program = Program("product")
    if unrolled:
        for number, box in enumerate(BOXES):
            slot = panel.slot(number % 2)
            program.move(b, slot, box)
            program.call(lambda engine, n=number, s=slot: use(engine, s, n), reads=(slot,), writes=(out,))
        return program, b, out

    def turn(engine: mg.Engine) -> None:
        use(engine, panel.now, engine.read(k))

    program.let(k, 0)
    program.move(b, panel.now, BOXES[0])
    with program.repeat(len(BOXES)):
        program.move(b, panel.next, BOXES, number=k + 1)
        program.call(turn, reads=(panel.now,), writes=(out,))
        program.rotate(panel)
        program.let(k, k + 1)
    return program, b, out


def add_up(engine: mg.Engine, slot: Any, number: int) -> None:
    ((_, view),) = engine.blocks(slot)
    out = next(f for f in engine.storage.fields if f.name == "c")
    for box, target in engine.blocks(out):
        rows = BOXES[number].lo[0], BOXES[number].hi[0]
        for row in range(max(box.lo[1], rows[0]), min(box.hi[1], rows[1])):
            target[0, row - box.lo[1]] += np.add.reduce(view[row - rows[0]] * np.arange(70.0))


def run_product(
    ranks: int, program: Program, b: mg.Field, out: mg.Field, device: type[FakeDevice] | None = None, **settings: Any
) -> list[Any]:
    def body(comm: Comm) -> tuple[Any, float, int]:
        layouts = {
            WIDE: bisection(WIDE.box, [1.0] * ranks),
            PANEL: Layout.everywhere(PANEL.box, ranks),
            ROWS: slabs(ROWS.box, ranks, 1, granule=1),
        }
        own = {} if device is None else {"device": device()}
        with mg.Engine(layouts, comm=comm, **own, **settings) as engine:
            engine.set(b, values("f8").view("u8") % 1000 / 7.0)
            engine.set(out, 0.0)
            assert engine.run(program).ok
            assert engine.run(program).ok
            return engine.gather(out), engine.ledger.bytes, engine.ledger.messages

    return mg.run_virtual(ranks, body)


@pytest.mark.few(2)
@pytest.mark.parametrize("unrolled", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_the_next_panel_travels_while_one_is_used_with_equal_bits(unrolled: bool, ranks: int) -> None:
    program, b, out = product(unrolled, add_up)
    whole = values("f8").view("u8") % 1000 / 7.0
    expected = 2 * np.add.reduce(whole * np.arange(70.0), axis=1)
    for settings in ({}, {"overlap": False}, {"route": "chain:64"}, {"native": False}):
        results = run_product(ranks, program, b, out, **settings)
        assert bits(results[0][0]) == bits(expected[None])


def order(items: Sequence[Item]) -> list[str]:
    """What a schedule does, in short: moves by the slot that they fill."""
    told = []
    for item in items:
        match item:
            case StartMove():
                told.append(f"start {item.move.target.index}")
            case FinishMove():
                told.append(f"finish {item.move.target.index}")
            case Loop():
                told += ["loop", *order(item.rounds[0]), "end"]
            case _:
                told.append(type(item).__name__.lower())
    return told


def test_a_loop_starts_the_next_panel_before_the_present_one_is_used() -> None:
    program, *_ = product(False, add_up)
    assert order(infer(program.operations).items) == [
        "start 0", "let", "finish 0", "loop", "let", "start 1", "call", "finish 1", "rotate", "let", "end",
    ]  # fmt: skip
    assert "start 1" not in order(infer(program.operations, overlap=False).items)


def test_moves_written_behind_what_computes_start_before_it() -> None:
    program, *_ = product(True, add_up)
    assert order(infer(program.operations).items) == [
        "move", "start 1", "call", "finish 1", "start 0", "call", "finish 0", "start 1", "call", "finish 1", "call",
    ]  # fmt: skip


def test_moves_stay_behind_what_makes_their_source_and_before_what_may_look() -> None:
    @mg.kernel
    def fill(u):
        u[0, 0] = 1.0

    @mg.kernel
    def copy(u, v):
        v[0, 0] = u[0, 0]

    there = WIDE.relabel("there")
    u, w, v, free = mg.Field("u", WIDE), mg.Field("w", there), mg.Field("v", there), mg.Field("free", WIDE)

    def schedule(record: Callable[[Program], None]) -> list[str]:
        program = Program("order")
        record(program)
        return order(infer(program.operations).items)

    def behind_its_source(p: Program) -> None:
        p.apply(fill, free)
        p.apply(fill, u)
        p.apply(fill, free)
        p.move(u, w)
        p.apply(fill, free)
        p.apply(copy, w, v)

    assert schedule(behind_its_source) == ["stage", "stage", "start 0", "stage", "stage", "finish 0", "stage"]

    def unknown_calls(p: Program) -> None:
        p.call(lambda engine: None)
        p.move(u, w)
        p.call(lambda engine: None)

    assert schedule(unknown_calls) == ["call", "move", "call"]

    def one_place(p: Program) -> None:
        p.move(u, w)
        p.move(free, w)

    assert schedule(one_place) == ["move", "move"]

    def conditions(p: Program) -> None:
        with p.when(mg.Register("r") > 0):
            p.apply(fill, free)
            p.move(u, w)
        p.apply(fill, free)

    program = Program("order")
    conditions(program)
    branch, stage = moves_in_flight(infer(program.operations, overlap=False).items)
    assert order(branch.body) == ["start 0", "stage", "finish 0"]
    assert order([stage]) == ["stage"]


def test_messages_come_while_a_call_goes_on() -> None:
    """Every rank's call waits for the panel of the next round: it can, as all of them have sent it already."""
    seen: list[tuple[int, int]] = []
    lock = threading.Lock()

    def use(engine: mg.Engine, slot: Any, number: int) -> None:
        while not engine.progress():
            pass
        with lock:
            seen.append((number, len(engine._access.moving)))
        add_up(engine, slot, number)

    program, b, out = product(False, use)
    ahead = run_product(3, program, b, out)[0][0]
    assert sorted(seen) == [(number, 1) for number in range(4) for _ in range(6)]
    seen.clear()
    assert bits(run_product(3, program, b, out, overlap=False)[0][0]) == bits(ahead)
    assert sorted(seen) == [(number, 0) for number in range(4) for _ in range(6)]


def test_the_number_of_a_box_beyond_the_last_one_moves_nothing() -> None:
    b, p = mg.Field("b", WIDE), mg.Field("p", PANEL)
    n = mg.Register("n", "i8")
    program = Program("some")
    program.move(b, p, BOXES, number=n)

    def body(comm: Comm) -> list[bytes]:
        found = []
        with engine_of(comm, slabs(WIDE.box, comm.size)) as engine:
            engine.set(b, values("f8"))
            for number in (2, -1, 4, 3, 1 << 40):
                engine.write(n, number)
                engine.run(program)
                found.append(bits(engine.blocks(p)[0][1]))
        return found

    whole = values("f8")
    third, last = whole[8:12].copy(), whole[8:12].copy()
    last[:1] = whole[12:]
    expected = [bits(third)] * 3 + [bits(last)] * 2
    assert mg.run_virtual(3, body) == [expected] * 3


def test_kernels_look_at_what_travels() -> None:
    @mg.kernel
    def fill(u):
        u[0, 0] = 1.0

    b, p, u = mg.Field("b", WIDE), mg.Field("p", PANEL), mg.Field("u", WIDE)
    program = Program("looked at")
    program.move(b, p, BOXES[0])
    program.apply(fill, u)

    def body(comm: Comm) -> list[int]:
        found = []
        for poll in ("auto", "off"):
            with engine_of(comm, slabs(WIDE.box, comm.size), poll=poll) as engine:
                commands = engine.prepare(program, looped=False).binding.commands
                found += [len(c.polls) for c in commands if isinstance(c, Kernel) and c.label == "fill"]
        return found

    assert mg.run_virtual(3, body) == [[1, 0]] * 3


def test_panels_on_a_device_have_the_processors_bits() -> None:
    program, b, out = product(False, add_up)
    expected = run_product(2, program, b, out)[0][0]
    assert bits(run_product(2, program, b, out, device=FakeDevice)[0][0]) == bits(expected)
    with pytest.raises(mg.errors.LayoutError, match="group"):
        run_product(2, program, b, out, device=FakeDevice, route="group:0", group=lambda comm: None)


@pytest.mark.parametrize("native", [True, False])
def test_one_rank_alone_takes_its_panels_natively_too(native: bool) -> None:
    program, b, out = product(False, add_up)
    n = mg.Register("n", "i8")
    chosen, p = Program("chosen"), mg.Field("q", PANEL)
    chosen.move(b, p, BOXES, number=n)
    layouts = {grid: Layout.single(grid.box, 1) for grid in (WIDE, PANEL, ROWS)}
    with mg.Engine(layouts, native=native) as engine:
        engine.set(b, values("f8").view("u8") % 1000 / 7.0)
        engine.set(out, 0.0)
        engine.run(program)
        whole = engine.gather(b)
        assert bits(engine.gather(out)) == bits(np.add.reduce(whole * np.arange(70.0), axis=1)[None])
        for number, expected in ((1, 1), (4, 1), (-1, 1), (0, 0), (1 << 62, 0)):
            engine.write(n, number)
            engine.run(chosen)
            assert bits(engine.gather(p)) == bits(whole[4 * expected : 4 * expected + 4])


def test_boxes_go_to_ordinary_layouts_too() -> None:
    b, p = mg.Field("b", WIDE), mg.Field("p", PANEL)
    n = mg.Register("n", "i8")
    program = Program("parts")
    program.move(b, p, BOXES, number=n)

    def body(comm: Comm, layout: Layout, target: Layout) -> list[bytes | None]:
        with mg.Engine({WIDE: layout, PANEL: target}, comm=comm) as engine:
            engine.set(b, values("f8"))
            found = []
            for number in range(3):
                engine.write(n, number)
                engine.run(program)
                whole = engine.gather(p)
                found.append(None if whole is None else bits(whole))
            return found

    target = cartesian(PANEL.box, (1, 3), granule=1)
    for layout in sources(3):
        results = mg.run_virtual(3, lambda comm, layout=layout: body(comm, layout, target))
        assert results[0] == [bits(values("f8")[4 * k : 4 * k + 4]) for k in range(3)]


MISTAKES: dict[str, tuple[Callable[[Program], None], str]] = {
    "a box beyond the source": (
        lambda p: p.move(mg.Field("b", WIDE), mg.Field("p", PANEL), mg.Box((12, 0), (14, 70))), "inside",
    ),
    "a box that does not fit": (
        lambda p: p.move(mg.Field("b", WIDE), mg.Field("p", PANEL), mg.Box((0, 0), (5, 70))), "larger",
    ),
    "another type": (lambda p: p.move(mg.Field("b", WIDE), mg.Field("p", PANEL, "f4"), BOXES[0]), "same type"),
    "several boxes without a number": (lambda p: p.move(mg.Field("b", WIDE), mg.Field("p", PANEL), BOXES), "number="),
    "a number that is not whole": (
        lambda p: p.move(mg.Field("b", WIDE), mg.Field("p", PANEL), BOXES, mg.Register("x")), "i8",
    ),
    "a number without boxes": (
        lambda p: p.move(mg.Field("b", WIDE), mg.Field("c", WIDE.relabel("c")), number=1), "box=",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MISTAKES)
def test_moves_that_cannot_be_are_refused(what: str) -> None:
    record, remedy = MISTAKES[what]
    with pytest.raises(mg.errors.ProgramError, match=remedy):
        record(Program("wrong"))


def test_boxes_of_all_owners_share_the_memory_of_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that has one panel in a message has room for one, however many others own panels."""
    sizes, message = list[int](), Host.message

    def counted(self: Host, size: int) -> np.ndarray:
        sizes.append(size)
        return message(self, size)

    monkeypatch.setattr(Host, "message", counted)
    layout = slabs(WIDE.box, 4)
    boxes = [mg.Box(tuple(lo), tuple(hi)) for lo, hi in zip(layout.lo.tolist(), layout.hi.tolist())]
    b, p, n = mg.Field("b", WIDE), mg.Field("p", PANEL), mg.Register("n", "i8")
    program = Program("in turn")
    program.move(b, p, boxes, number=n)

    def body(comm: Comm) -> None:
        with engine_of(comm, layout) as engine:
            engine.set(b, values("f8"))
            for number, box in enumerate(boxes):
                engine.write(n, number)
                engine.run(program)
                held = engine.blocks(p)[0][1][: box.shape[0]]
                assert bits(held) == bits(values("f8")[box.lo[0] : box.hi[0]])

    mg.run_virtual(4, body)
    assert sum(sizes) <= 4 * 2 * max(box.size for box in boxes) * 8  # a larger one may take the place of the first
