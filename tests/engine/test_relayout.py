"""Running simulations moved to other layouts: the same bits, in bounded pieces, with all that was counted kept."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import minga as mg
from minga.engine.comm import Comm, SerialComm, run_virtual
from minga.engine.live import dead_slots
from minga.engine.observables import observe as observe_now
from minga.engine.relayout import in_pieces
from minga.errors import LayoutError, ProgramError
from minga.space.box import Box
from minga.space.cuts import bisection, blocks, slabs
from minga.space.layout import Layout
from minga.space.transfer import Copy

from .test_random_programs import bits, eagerly
from .worlds import Draw, World, ways, worlds

pytestmark = pytest.mark.filterwarnings("ignore:Program .* draws random numbers")
"""Programs that hypothesis makes may draw the same numbers again; what is compared is unaffected."""

TIMES = 2


def wander(world: World, layouts: list[Layout], options: dict[str, Any], comm: Comm) -> Any:
    """Run all Programs of a world, and go to another layout before each one and at the end."""
    moves = iter(layouts[1:])
    with mg.Engine({world.grid: layouts[0]}, comm=comm, **options) as engine:
        engine.write(mg.SEED, 12345)
        for item in world.fields.values():
            values = world.initial(item)
            for k in range(item.slots):
                engine.set(item.slot(k), values[k])
        outcomes = []
        for program in world.programs:
            engine.relayout({world.grid: next(moves)}, piece_bytes=200)
            outcome = engine.run(program, 1)
            engine.relayout({world.grid: next(moves)}, piece_bytes=200)
            if outcome.reason != "not finite":
                rest = engine.run(program, TIMES - 1)
                outcome = outcome if (outcome.reason, rest.ok) == ("limit", True) else rest  # as one run would say
            outcomes.append((outcome.reason, outcome.place))
        engine.relayout({world.grid: next(moves)}, piece_bytes=200)
        arrays = {
            f"{n}.{k}": engine.gather(item.slot(k)) for n, item in world.fields.items() for k in range(item.slots)
        }
        registers = {
            name: engine.storage.register(name, engine.storage.dtypes[name])[0] for name in engine.storage.registers
        }
    return outcomes, arrays, registers


@st.composite
def routes(draw: Draw, world: World, ranks: int, count: int) -> list[Layout]:
    granule, box = 64 if world.float_sums else 1, world.grid.box
    found = []
    for _ in range(count):
        shares = draw(st.lists(st.integers(0, 3), min_size=ranks, max_size=ranks).filter(any))
        kind = draw(st.sampled_from(["slabs", "bisection", "blocks", "one"]))
        if kind == "slabs" or world.ordered:
            found.append(slabs(box, ranks, 0, shares, granule))
        elif kind == "bisection":
            found.append(bisection(box, shares, granule))
        elif kind == "blocks":
            found.append(blocks(box, ranks, 2, shares, granule))
        else:
            found.append(Layout.single(box, ranks, draw(st.integers(0, ranks - 1))))
    return found


@pytest.mark.slow
@given(st.data())
@settings(max_examples=2)
def test_random_programs_on_the_move(data: st.DataObject) -> None:
    check_on_the_move(data, data.draw(worlds()))


@pytest.mark.slow
@given(st.data())
@settings(max_examples=1)
def test_float_sums_on_the_move(data: st.DataObject) -> None:
    check_on_the_move(data, data.draw(worlds(float_sums=True)))


@pytest.mark.slow
@pytest.mark.timeout(7200)
@given(st.data())
@settings(max_examples=300)
def test_many_random_programs_on_the_move(data: st.DataObject) -> None:
    check_on_the_move(data, data.draw(worlds(length=9, float_sums=data.draw(st.integers(0, 9)) == 9)))


def check_on_the_move(data: st.DataObject, world: World) -> None:
    way = data.draw(ways(world.grid, 64 if world.float_sums else 1, 4))
    ranks = way.layout.ranks
    layouts = data.draw(routes(world, ranks, 2 + 2 * len(world.programs)))
    note(repr(world))
    note(repr(layouts))
    options = {"halo_depth": way.halo_depth, "overlap": way.overlap, "threads": way.threads}
    expected, arrays, registers = eagerly(world)
    results = run_virtual(ranks, lambda comm: wander(world, layouts, options, comm))
    for outcomes, _, values in results:
        assert outcomes == expected
        for name in registers.keys() & values.keys() - {"@times"}:
            assert (bits(registers[name]) == bits(values[name])).all(), name
    for name, array in arrays.items():
        assert np.array_equal(bits(array), bits(results[0][1][name])), name


# Models --------------------------------------------------------------------------------------------------------------
GRID = mg.Grid((24, 192), periodic=(True, False))


@mg.kernel
def heat(u: Any, new: Any, *, r: float) -> None:
    new[0, 0] = u[0, 0] + r * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


@mg.kernel
def total(u: Any) -> Any:
    return mg.sum(u[0, 0] * u[0, 0])


def warming(dtype: str = "f8") -> mg.Model:
    u = mg.Field("u", GRID, dtype, slots=2, boundary=mg.fixed(1.0))
    k = mg.Field("k", GRID, dtype)
    step, observe = mg.Program("step"), mg.Program("observe")
    step.apply(heat, u, u.next, r=0.2)
    step.rotate(u)
    energy = observe.apply(total, u)
    y, x = np.indices(GRID.shape)
    return mg.Model(
        "warming", GRID, (u, k), step, initial={"u": np.sin(0.1 * x) + y % 7, "k": 2.0}, observe=observe,
        observables={"energy": energy},
    )  # fmt: skip


def travelling(layouts: list[Layout], model: mg.Model, steps: int, comm: Comm, **options: Any) -> Any:
    """The model's state after so many steps on each layout in turn, what was moved, and the engine's account."""
    with mg.Engine(model.layouts_like(layouts[0]), comm=comm, **options) as engine:
        mg.drive(model, engine, 0)
        moves = []
        for layout in layouts:
            moves.append(engine.relayout(model.layouts_like(layout), dead=dead_slots(model), piece_bytes=4000))
            engine.run(model.step, steps)
        seen = observe_now(model, engine)
        whole = {item.name: engine.gather(item.now) for item in model.fields}
        return whole, seen, moves, engine.ledger, engine.skipped


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return all(a[name].tobytes() == b[name].tobytes() for name in a)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_a_model_goes_around(dtype: str) -> None:
    model, box = warming(dtype), GRID.box
    ways = [
        slabs(box, 3), slabs(box, 3, 1), Layout.single(box, 3, 2), blocks(box, 3, 2, [1, 2, 1]),
        bisection(box, [1.0, 0.0, 3.0]), slabs(box, 3, 0, [5, 1, 1]),
    ]  # fmt: skip
    alone = travelling([Layout.single(box, 1)] * len(ways), model, 3, SerialComm())
    results = run_virtual(3, lambda comm: travelling(ways, model, 3, comm))
    assert same(alone[0], results[0][0])
    assert all(result[1] == alone[1] for result in results)
    assert all(not moved.bytes for moved in alone[2])
    size = np.dtype(dtype).itemsize
    for number, (before, after) in enumerate(itertools.pairwise(ways), 1):
        gone = sum(
            (before.box(a) & after.box(b)).size
            for a in range(len(before))
            for b in range(len(after))
            if before.owner[a] != after.owner[b]
        )
        # One of u's slots is stored anew by the next step; k has one.
        assert sum(result[2][number].bytes for result in results) == 2 * size * gone
        for result in results:
            moved = result[2][number]
            assert moved.messages == 0 or moved.bytes / moved.messages <= 4000
            assert moved.peak >= moved.resting
            # Twice the larger of two fields at most, and what is under way.
            assert moved.peak <= 2 * 2 * 192 * 40 * size * 2 + 2 * 4000 + 60_000
    for whole, _, moves, ledger, _ in results:
        assert ledger.bytes >= sum(moved.bytes for moved in moves)
        assert ledger.bytes == sum(traffic.bytes for traffic in ledger.traffic.values())
        assert ledger.seconds["balance"] > 0
        assert whole is not None


@pytest.mark.few(2)
@pytest.mark.parametrize(("storage", "quiet"), [("bits", False), ("bytes", True), ("bits", True)])
def test_automata_go_around(storage: str, quiet: bool) -> None:
    """Bit-sliced ones, whose words' cells follow them, and ones that know which tiles cannot change."""
    init = {"soup": 0.3, "seed": 4}
    model = mg.automaton("B3/S23", (40, 300), init=init, storage=storage, skip_quiet=quiet, observe=["population"])
    box = model.planned_grid.box
    assert (model.planned_grid == model.grid) == (storage == "bytes")
    ways = [slabs(box, 2, 0, [1, 2], 1), slabs(box, 2, 1, [2, 1], 1), Layout.single(box, 2, 1), slabs(box, 2, 0)]
    alone = travelling([Layout.single(box, 1)] * len(ways), model, 6, SerialComm())
    found = run_virtual(2, lambda comm: travelling(ways, model, 6, comm))
    assert same(alone[0], found[0][0])
    assert found[0][1] == alone[1]
    looked = sum(result[4][1] for result in found)
    assert looked == (4 * 6 * box.size if quiet else 0)  # what was counted before a move still is


def test_other_grids_follow() -> None:
    fine, coarse, odd = mg.Grid((8, 256)), mg.Grid((4, 128)), mg.Grid((3, 100), label="odd")
    fields = (mg.Field("u", fine), mg.Field("c", coarse, slots=2), mg.Field("o", odd), mg.Field("row", fine, axes="x"))
    model = mg.Model("three grids", fine, fields, mg.Program())
    assert model.planned_grid == fine
    layout = slabs(fine.box, 2, 0, [3, 1])
    layouts = model.layouts_like(layout)
    assert layouts[coarse] == layout.coarsen(2)
    assert layouts[odd].cuts == ((0, 3), (0,)) or layouts[odd].cells().sum() == 300
    packed = mg.automaton("B3/S23", (10, 130), init={"soup": 0.5}, storage="bits")
    words = slabs(packed.planned_grid.box, 2, 1, granule=1)
    assert list(packed.layouts_like(words)) == [packed.planned_grid]
    flat = mg.Model("axes", fine, (mg.Field("u", fine), mg.Field("w", mg.Grid((9,)))), mg.Program())
    with pytest.raises(LayoutError, match="different number of axes"):
        flat.layouts_like(layout)


def test_only_what_the_next_step_reads_moves() -> None:
    u, v = (mg.Field(name, GRID, slots=slots, boundary=mg.fixed(0.0)) for name, slots in (("u", 3), ("v", 2)))
    observe = mg.Program("look")

    def dead(record: Any, **more: Any) -> set[Any]:
        step = mg.Program("step")
        record(step)
        return set(dead_slots(mg.Model("m", GRID, (u, v), step, output=("u",), **more)))

    def plain(step: mg.Program) -> None:
        step.apply(heat, u, u.next, r=0.1)
        step.apply(heat, u.next, v.next, r=0.1)
        step.rotate(u, v)

    assert dead(plain) == {u.next, v.next}
    observe.apply(total, v.next)
    assert dead(plain, observe=observe) == {u.next}

    def part(step: mg.Program) -> None:
        step.apply(heat, u, u.next, r=0.1, region=Box((0, 0), (20, 192)))
        step.rotate(u)

    def sometimes(step: mg.Program) -> None:
        with step.repeat(2):
            step.apply(heat, u, u.next, r=0.1)

    def late(step: mg.Program) -> None:
        step.rotate(u)
        step.apply(heat, u, u.next, r=0.1)  # what is next now was previous, and what is read was next

    assert dead(part) == dead(sometimes) == set()
    assert dead(late) == {u.previous}


def test_what_cannot_be_moved() -> None:
    model = warming()
    layout = Layout.single(GRID.box, 1)

    def nested(engine: mg.Engine) -> None:
        engine.relayout({GRID: layout})

    step = mg.Program("nested")
    step.call(nested)
    with mg.Engine({GRID: layout}) as engine:
        mg.drive(model, engine, 1)
        with pytest.raises(ProgramError, match="'nested', which a Program calls, asks for another layout"):
            engine.run(step)
        with pytest.raises(LayoutError, match="is not a layout of"):
            engine.relayout({GRID: slabs(GRID.box, 2)})

    def differ(comm: Comm, one: Layout, other: Layout) -> str:
        with mg.Engine({GRID: slabs(GRID.box, 2)}, comm=comm) as engine:
            mg.drive(model, engine, 1)
            with pytest.raises(LayoutError) as error:
                engine.relayout({GRID: other if comm.rank else one})
        return str(error.value)

    good = slabs(GRID.box, 2, 0, [1, 2])
    said = run_virtual(2, lambda comm: differ(comm, good, slabs(GRID.box, 2, 0, [1, 3])))
    assert all("the ranks request different layouts" in text for text in said)
    said = run_virtual(2, lambda comm: differ(comm, good, slabs(GRID.box, 3)))
    assert "different layouts" in said[0]
    assert "is not a layout of" in said[1]


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 7), st.integers(1, 4)), min_size=1, max_size=4), st.data())
@settings(max_examples=50)
def test_messages_are_cut_alike_on_both_sides(shapes: list[tuple[int, ...]], data: st.DataObject) -> None:
    most = data.draw(st.integers(1, 60))
    copies = [Copy(k, k, Box((0, 0, 0), shape), (k, 0, 0)) for k, shape in enumerate(shapes)]
    groups = in_pieces(copies, most)
    assert all(0 < sum(part.source_box.size for part in group) <= most for group in groups)
    covered = {(part.source, *cell) for group in groups for part in group for cell in cells(part.source_box)}
    assert len(covered) == sum(copy.source_box.size for copy in copies)
    assert sum(part.source_box.size for group in groups for part in group) == len(covered)
    assert len(groups) <= 2 * len(covered) // most + 1


def cells(box: Box) -> list[tuple[int, ...]]:
    return [tuple(a + b for a, b in zip(index, box.lo, strict=True)) for index in np.ndindex(*box.shape)]


# Times of blocks -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("native", [True, False])
def test_blocks_are_timed_one_by_one(native: bool) -> None:
    model = warming()
    layout = blocks(GRID.box, 1, 3, granule=1)
    with mg.Engine({GRID: layout}, native=native) as engine:
        assert engine.block_seconds == {}
        engine.time_blocks(GRID)
        mg.drive(model, engine, 50)
        found = engine.block_seconds
        assert sorted(found) == [0, 1, 2]
        assert min(found.values()) > 0
        spent = engine.ledger.seconds["compute"]
        assert sum(found.values()) <= spent <= engine.busy
        engine.relayout({GRID: Layout.single(GRID.box, 1)})
        assert engine.block_seconds == {0: 0.0}
        assert engine.ledger.seconds["compute"] == pytest.approx(spent)
        engine.time_blocks(None)
        engine.run(model.step, 5)
        assert engine.block_seconds == {}
        assert engine.ledger.seconds["compute"] > spent


# Looking at messages while computing ---------------------------------------------------------------------------------
def test_looking_at_messages_is_a_choice() -> None:
    def polls(poll: Any, comm: Comm) -> int:
        model = warming()
        with mg.Engine({GRID: slabs(GRID.box, 2)}, comm=comm, poll=poll) as engine:
            prepared = engine.prepare(model.step)
            return sum(len(getattr(command, "polls", ())) for command in prepared.binding.commands)

    assert min(run_virtual(2, lambda comm: polls("auto", comm))) > 0
    assert min(run_virtual(2, lambda comm: polls(1e-3, comm))) > 0
    assert run_virtual(2, lambda comm: polls("off", comm)) == [0, 0]
    for wrong in ("never", -1, float("nan"), True):
        with pytest.raises(LayoutError, match="poll is"):
            mg.Engine(Layout.single(GRID.box, 1), grid=GRID, poll=wrong)
