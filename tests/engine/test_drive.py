"""Driving models: starting values of every slot, the end of runs that go wrong, what a model refuses."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm
from minga.engine.infer import infer
from minga.running.observers.ending import Asked
from minga.running.observers.finite import Finite
from minga.running.observers.progress import Preview
from minga.space.cuts import slabs

GRID = mg.Grid((12, 70), periodic=(True, False))


@mg.kernel
def wave(u: object, before: object, new: object, *, c2: float) -> None:
    laplacian = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    new[0, 0] = 2 * u[0, 0] - before[0, 0] + c2 * laplacian


@mg.kernel
def grow(u: object, new: object) -> None:
    new[0, 0] = u[0, 0] * u[0, 0]


@mg.kernel
def average(u: object, new: object) -> None:
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


def frames_of(seen: list[int], every: int | None) -> mg.Observer:
    """Note on rank 0 after which steps frames would be taken."""
    note = lambda simulation: seen.append(simulation.step) if simulation.rank == 0 else None  # noqa: E731
    return mg.observer(note, every, start=True, end=True)


def drive(model: mg.Model, ranks: int, steps: int, every: int | None = None) -> tuple[np.ndarray, list[int]]:
    seen: list[int] = []

    def run(comm: Comm) -> np.ndarray | None:
        with mg.Engine(slabs(model.grid.box, comm.size), grid=model.grid, comm=comm) as engine:
            mg.drive(model, engine, steps, [frames_of(seen, every), Finite(every)])
            return engine.gather(model.fields[0])

    whole = mg.run_virtual(ranks, run)[0]
    assert whole is not None
    return whole, seen


def test_a_second_start_is_like_the_first() -> None:
    """Registers that the model says nothing of begin as they are declared, too."""
    u, halved = mg.Field("u", GRID, slots=2, boundary=mg.fixed(0.0)), mg.Register("halved", initial=8.0)
    step = mg.Program()
    step.apply(average, u, u.next)
    step.rotate(u)
    step.let(halved, halved / 2)
    model = mg.Model("average", GRID, (u,), step, initial={u: 3.0})
    with mg.Engine(model.layouts("single", 1)) as engine:
        for _ in range(2):
            mg.drive(model, engine, 2)
            assert engine.read(halved) == 2.0


@pytest.mark.parametrize("ranks", [1, 3])
def test_every_slot_has_its_start(ranks: int) -> None:
    u = mg.Field("u", GRID, slots=3, boundary=mg.fixed(0.0))
    step = mg.Program()
    step.apply(wave, u.now, u.previous, u.next, c2=0.25)
    step.rotate(u)
    y, x = np.indices(GRID.shape)
    start = np.sin(0.1 * x) + y
    model = mg.Model(
        "wave", GRID, (u,), step, initial={u: start, u.previous: lambda box: start[box.slices((0, 0))] - 0.5}
    )
    now, before = start, start - 0.5
    for _ in range(4):
        padded = np.pad(now, ((0, 0), (1, 1)))
        laplacian = np.roll(now, 1, 0) + np.roll(now, -1, 0) + padded[:, :-2] + padded[:, 2:] - 4 * now
        now, before = 2 * now - before + 0.25 * laplacian, now
    assert np.array_equal(drive(model, ranks, 4)[0], now)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_value_that_is_not_finite_is_named(ranks: int) -> None:
    u = mg.Field("u", GRID, slots=2)
    step = mg.Program()
    step.apply(grow, u, u.next)
    step.rotate(u)
    start = np.zeros(GRID.shape)
    start[7, 66] = start[9, 2] = 1e200
    model = mg.Model("growing", GRID, (u,), step, initial={"u": start})
    with pytest.raises(mg.RunError, match=r"'u' is not finite at cell \(7, 66\) after step 2"):
        drive(model, ranks, 6, every=2)


def test_snapshots_come_at_their_steps() -> None:
    u = mg.Field("u", GRID, slots=2)
    step = mg.Program()
    step.apply(grow, u, u.next)
    step.rotate(u)
    assert drive(mg.Model("still", GRID, (u,), step), 2, 10, every=4)[1] == [0, 4, 8, 10]


def test_every_rank_looks_when_rank_zero_is_asked_to() -> None:
    u = mg.Field("u", GRID, slots=2)
    step = mg.Program()
    step.apply(grow, u, u.next)
    step.rotate(u)
    model = mg.Model("still", GRID, (u,), step)

    def run(comm: Comm) -> list[int]:
        seen: list[int] = []
        answers = iter([True, False, True])
        with mg.Engine(slabs(GRID.box, comm.size), grid=GRID, comm=comm) as engine:
            preview = Preview(lambda: next(answers, False), lambda step, engine, entry: seen.append(step))
            mg.drive(model, engine, 6, [preview, mg.observer(lambda simulation: None, 1)])
        return seen

    assert mg.run_virtual(3, run) == [[1, 3]] * 3


def test_what_a_model_refuses() -> None:
    u, v = mg.Field("u", GRID), mg.Field("v", GRID)
    with pytest.raises(mg.ProgramError, match="two fields 'u'"):
        mg.Model("m", GRID, (u, mg.Field("u", GRID)), mg.Program())
    with pytest.raises(mg.ProgramError, match="fields is one field"):
        mg.Model("m", GRID, u, mg.Program())  # type: ignore[arg-type]
    with pytest.raises(mg.ProgramError, match="not one of its fields"):
        mg.Model("m", GRID, (u,), mg.Program(), initial={v: 1.0})
    with pytest.raises(mg.ProgramError, match="no field 'w'"):
        mg.Model("m", GRID, (u,), mg.Program(), output=("w",))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: mg.Grid(64), "a length for each axis"),
        (lambda: mg.Program().apply(grow, *_two(), region=((0, 0), (2, 2))), "region is tuple"),
        (lambda: mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID, halo_depth=500), "halo_depth is 500"),
        (lambda: bool(mg.Register("r") < 1), "a register's value is not known"),
        (lambda: _engine_with(mg.fixed(lambda a, b, c: 0.0)), "boundary condition fixed.* of field 'u' fails"),
    ],
)
def test_mistakes_of_callers(wrong: object, message: str) -> None:
    with pytest.raises(mg.MingaError, match=message):
        wrong()  # type: ignore[operator]


def test_a_deep_halo_outside_loops_lasts_as_many_steps_as_said() -> None:
    u = mg.Field("u", mg.Grid((8, 130), periodic=True), slots=2)
    program = mg.Program()
    for _ in range(12):
        program.apply(average, u, u.next)
        program.rotate(u)
    for depth in (2, 3, 5):
        widest = infer(program.operations, depth=depth).widest
        assert {reach.lo for reach in widest.values() if not reach.empty} <= {(k, k) for k in range(1, depth + 1)}
        assert max(reach.lo[0] for reach in widest.values()) == depth


def test_registers_keep_what_they_are() -> None:
    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
        with pytest.raises(mg.ProgramError, match=r"is i8, the value 2\.7"):
            engine.write(mg.Register("n", "i8"), 2.7)
        engine.write(mg.Register("t", "f8", 1.0), 3.0)
        with pytest.raises(mg.ProgramError, match=r"starts at 1\.0, one at 2\.0"):
            engine.read(mg.Register("t", "f8", 2.0))


def _two() -> tuple[mg.Field, mg.Field]:
    return mg.Field("u", GRID), mg.Field("v", GRID)


def _engine_with(condition: object) -> None:
    u = mg.Field("u", GRID, slots=3, boundary=condition)  # type: ignore[arg-type]
    step = mg.Program()
    step.apply(wave, u.now, u.previous, u.next, c2=0.25)
    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
        engine.run(step)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_step_that_takes_long_is_left_and_undone(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked to end in the middle of the third step, a run ends with what it had after the second one."""
    monkeypatch.setattr("minga.engine.interrupt.PATIENCE", 0.0)
    monkeypatch.setattr("minga.running.stepper.Beginning.costly", lambda beginning, seconds: False)  # by the clock
    u, halved = mg.Field("u", GRID, slots=2, boundary=mg.fixed(0.0)), mg.Register("halved", initial=8.0)
    done = mg.Register("done", "i8")
    step = mg.Program()
    step.let(halved, halved / 2)
    step.let(done, 0)
    with step.repeat(until=(done >= 2) & (halved != 1.0)):  # never in the third step
        step.apply(average, u, u.next)
        step.rotate(u)
        step.let(done, done + 1)
    model = mg.Model("average", GRID, (u,), step, initial={u: 3.0})
    frames: list[int] = []

    def run(comm: Comm) -> tuple[int, float, np.ndarray | None]:
        with mg.Engine(slabs(GRID.box, comm.size), grid=GRID, comm=comm) as engine:

            def asked() -> bool:
                return bool(engine.read(halved) == 1.0 and engine.read(done) > 100)

            result = mg.drive(model, engine, 5, [Asked(asked), frames_of(frames, 2)])
            assert result.ended.reason == "asked"
            return result.steps, engine.read(halved), engine.gather(u)

    steps, value, found = mg.run_virtual(ranks, run)[0]
    assert (steps, value) == (2, 2.0)
    assert frames == [0, 2], "the frame of the second step is not written again"
    expected, _ = drive(model, 1, 2)
    np.testing.assert_array_equal(found, expected)
