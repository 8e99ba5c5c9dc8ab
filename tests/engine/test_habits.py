"""Ordinary habits that would give wrong numbers in silence are refused, with what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import LayoutError, MingaError, ProgramError

GRID = mg.Grid((6, 8), periodic=True)


@mg.kernel
def grow(u, new):
    new[0, 0] = u[0, 0] + 1.0


@mg.kernel
def scale(u, new, *, a):
    new[0, 0] = a * u[0, 0]


@mg.kernel
def leap(u, before, new):
    new[0, 0] = 2.0 * u[0, 0] - before[0, 0]


@mg.kernel
def noise(u):
    u[0, 0] = mg.random()


@mg.kernel
def look(u):
    return {"total": mg.sum(u[0, 0])}


def field(slots: int = 2, dtype: str = "f8", name: str = "u") -> mg.Field:
    return mg.Field(name, GRID, dtype, slots=slots)


def growing(u: mg.Field) -> mg.Program:
    step = mg.Program("step")
    step.apply(grow, u, u.next)
    step.rotate(u)
    return step


def model(u: mg.Field, step: mg.Program, **more: Any) -> mg.Model:
    return mg.Model("m", GRID, (u,), step, **more)


# Fields --------------------------------------------------------------------------------------------------------------
def test_fields_that_a_step_reads_belong_to_the_model() -> None:
    u, before, step = field(), field(1, name="before"), mg.Program("step")
    step.apply(leap, u, before, u.next)
    step.rotate(u)
    with pytest.raises(ProgramError, match=r"(?s)'leap' reads field 'before', which is not .*fields=\(..., before\)"):
        model(u, step)
    mg.Model("m", GRID, (u, before), step, initial={before: 1.0})


def test_fields_that_a_step_stores_first_need_not_be_declared() -> None:
    u, scratch, step = field(), field(1, name="scratch"), mg.Program("step")
    step.apply(grow, u, scratch)
    step.apply(grow, scratch, u.next)
    step.rotate(u)
    assert float(mg.run(model(u, step), 3)["u"][-1, 0, 0]) == 6.0


# Random numbers ------------------------------------------------------------------------------------------------------
def drawing(record: Callable[[mg.Program, mg.Field, mg.Field], None]) -> mg.Model:
    u, v, step = field(1), field(1, name="v"), mg.Program("step")
    record(step, u, v)
    return mg.Model("m", GRID, (u, v), step)


def test_a_step_with_random_numbers_advances_the_step_number() -> None:
    with pytest.raises(ProgramError, match=r"(?s)'noise' draws random numbers, and no step changes mg.STEP.*let\(mg"):
        drawing(lambda step, u, v: step.apply(noise, u))

    def frozen(step: mg.Program, u: mg.Field, v: mg.Field) -> None:
        step.apply(noise, u)
        step.let(mg.STEP, mg.STEP)  # the same numbers in every step are meant

    drawing(frozen)


def test_a_kernel_draws_once_while_the_step_number_is_the_same() -> None:
    def two_fields(step: mg.Program, u: mg.Field, v: mg.Field) -> None:
        step.apply(noise, u)
        step.apply(noise, v)
        step.let(mg.STEP, mg.STEP + 1)

    def loop(step: mg.Program, u: mg.Field, v: mg.Field) -> None:
        with step.repeat(3):
            step.apply(noise, u)
        step.let(mg.STEP, mg.STEP + 1)

    def loop_of_a_register(step: mg.Program, u: mg.Field, v: mg.Field) -> None:
        turns = step.let(mg.Register("turns", "i8"), 3)
        with step.repeat(turns):
            step.apply(noise, u)
        step.let(mg.STEP, mg.STEP + 1)

    def next_step(step: mg.Program, u: mg.Field, v: mg.Field) -> None:
        step.apply(noise, u)
        step.let(mg.STEP, mg.STEP + 1)
        step.apply(noise, v)  # what u draws in the next step

    def last_round(step: mg.Program, u: mg.Field, v: mg.Field) -> None:
        with step.repeat(3):
            step.let(mg.STEP, mg.STEP + 1)
            step.apply(noise, u)
        step.apply(noise, v)
        step.let(mg.STEP, mg.STEP + 1)

    def next_round(step: mg.Program, u: mg.Field, v: mg.Field) -> None:
        with step.repeat(until=step.let(mg.Register("over", "bool"), False), limit=3):
            step.apply(noise, u)
            step.let(mg.STEP, mg.STEP + 1)
            step.apply(noise, v)
        step.let(mg.STEP, mg.STEP + 1)

    twice, repeated = "is applied twice", "is repeated"
    records = (
        *((record, twice) for record in (two_fields, next_step, last_round, next_round)),
        *((record, repeated) for record in (loop, loop_of_a_register)),
    )
    for record, how in records:
        with pytest.raises(ProgramError, match=f"(?s)'noise'.* {how} while mg.STEP is the same"):
            drawing(record)

    def different(step: mg.Program, u: mg.Field, v: mg.Field) -> None:
        flag = step.let(mg.Register("flag", "i8"), mg.STEP)
        for condition in (flag % 2 == 0, flag % 2 == 1):  # one or the other
            with step.when(condition):
                step.apply(noise, u, region=mg.Box((0, 0), (3, 8)))
        step.apply(noise, u, region=mg.Box((3, 0), (6, 8)))
        with step.repeat(2):
            step.let(mg.STEP, mg.STEP + 1)
        step.apply(noise, v)
        step.let(mg.STEP, mg.STEP + 1)

    def kept_until_accepted(step: mg.Program, u: mg.Field, v: mg.Field) -> None:
        good = step.let(mg.Register("good", "bool"), mg.STEP % 2 == 0)
        with step.when(good):
            step.let(mg.STEP, mg.STEP + 1)
        step.apply(noise, u)  # a step that is done again draws the same numbers

    drawing(different)
    drawing(kept_until_accepted)


@pytest.mark.slow
def test_programs_without_a_model_warn_of_numbers_that_are_drawn_again() -> None:
    u, step, once = field(1), mg.Program("step"), mg.Program("once")
    for program in (step, once):
        program.apply(noise, u)
    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
        with pytest.warns(RuntimeWarning, match="Program 'step': 'noise' draws random numbers, and no step changes"):
            engine.run(step, 3)
        engine.run(step, 3)  # it was said
        engine.run(once)
        with pytest.warns(RuntimeWarning, match="Program 'once': 'noise' draws random numbers, and mg.STEP is what"):
            engine.run(once)


@pytest.mark.slow
def test_programs_without_a_model_that_draw_other_numbers_are_fine() -> None:
    u, step, once = field(1), mg.Program("step"), mg.Program("once")
    step.apply(noise, u)
    step.let(mg.STEP, mg.STEP + 1)
    once.apply(noise, u)
    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
        engine.run(step, 3)
        engine.run(step)
        for number in range(3):
            engine.write(mg.STEP, 10 + number)
            engine.run(once)
        engine.reset_registers()  # another start
        engine.write(mg.STEP, 12)
        engine.run(once)


# Observables and registers -------------------------------------------------------------------------------------------
def test_observables_need_what_finds_them() -> None:
    u, observe = field(), mg.Program("observe")
    step, seen = growing(u), observe.apply(look, u)
    with pytest.raises(ProgramError, match=r"(?s)observables but no Program that computes them.*observe=observe"):
        model(u, step, observables={"total": seen.total})
    with pytest.raises(ProgramError, match=r"(?s)'total' is SimpleNamespace.*its registers: total"):
        model(u, step, observe=observe, observables={"total": seen})
    with pytest.raises(ProgramError, match=r"'total' is a result of a Program other than step and observe"):
        model(u, step, observe=mg.Program("other"), observables={"total": seen.total})
    assert mg.run(model(u, step, observe=observe, observables={"total": seen.total}), 2).attrs["total"] == 96.0


def test_registers_that_nothing_sets() -> None:
    u, a, step = field(), mg.Register("a"), mg.Program("step")
    step.apply(scale, u, u.next, a=a)
    step.rotate(u)
    with pytest.raises(ProgramError, match=r"(?s)'scale' uses register 'a', which nothing sets.*registers=\{a: "):
        model(u, step)
    with pytest.raises(ProgramError, match="registers= has the key 'a'"):
        model(u, step, registers={"a": 2.0})
    model(u, step, registers={a: 0.0})


# Time levels ---------------------------------------------------------------------------------------------------------
def test_a_stored_level_becomes_the_present_one() -> None:
    u, never, twice = field(), mg.Program("never"), growing(field())
    never.apply(grow, u, u.next)
    with pytest.raises(ProgramError, match=r"(?s)u.now keeps its initial values.*rotate\(u\)"):
        model(u, never)
    twice = growing(u)
    twice.rotate(u)
    with pytest.raises(ProgramError, match=r"u.now keeps its initial values"):
        model(u, twice)


@pytest.mark.parametrize("slots", [2, 3])
def test_levels_that_waves_begin_with(slots: int) -> None:
    u, step = field(slots), mg.Program("step")
    step.apply(leap, u, u.previous, u.next)
    step.rotate(u)
    with pytest.raises(ProgramError, match=r"(?s)reads u.previous, which has no initial values.*u.previous: "):
        model(u, step, initial={"u": 1.0})
    model(u, step, initial={"u": 1.0, u.previous: 0})
    named = model(u, step, initial={"u.now": 1.0, "u.previous": 2.0})
    assert dict(named.start_values())[u.previous] == 2.0
    assert dict(named.start_values())[u.now] == 1.0
    with pytest.raises(ProgramError, match=r"(?s)'u.former', and 'u' has . slots.*u.now, u.next, u.previous"):
        model(u, step, initial={"u": 1.0, "u.former": 0})
    model(u, step)


# Programs ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("record", "says"),
    [
        (lambda p: p.let(mg.Register("n", "i8"), 0.5), r"(?s)the register is i8, the value f8.*mg\.cast"),
        (lambda p: p.let(mg.Register("n", "i8"), mg.Register("m", "i8") * 0.5), "the register is i8"),
        (lambda p: p.repeat(2.5).__enter__(), "repeat: 2.5 rounds"),
        (lambda p: p.repeat(True).__enter__(), "repeat: True rounds"),
        (lambda p: p.repeat(until=False, limit=3).__enter__(), "a condition is False, which Python found"),
        (lambda p: p.when(np.bool_(True)).__enter__(), "a condition is True, which Python found"),
        (lambda p: field(1).previous, "'u' has one slot, and so no earlier level"),
    ],
)
def test_programs_that_mean_something_else(record: Any, says: str) -> None:
    with pytest.raises(MingaError, match=says):
        record(mg.Program("p"))


def test_whole_numbers_may_be_written_as_floats() -> None:
    program, n = mg.Program("p"), mg.Register("n", "i8")
    program.let(n, 2.0)
    with program.repeat(np.int64(3)):
        program.let(n, n + 1)
    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
        engine.run(program)
        assert engine.read(n) == 5


# Values --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("dtype", "value", "says"),
    [
        ("f8", lambda box: np.arange(8.0), r"gave shape \(8,\) for"),
        ("f8", lambda box: [[1.0], [1.0, 2.0]], r"gave shape \(rows of different lengths\) for"),
        (
            "f8",
            lambda t, y, x: x,
            r"(?s)'u' are given by a function of \(t, y, x\), which is called with one.*y, x = np.ogrid",
        ),
        (
            "f8",
            lambda box: box.shape[5],
            r"(?s)values for 'u' failed for \[0:6, 0:8\]: IndexError: .*test_habits.py:\d",
        ),
        ("f8", "abc", r"'u' is set to 'abc' \(NumPy type <U3\)"),
        ("f8", [1.0] * 8, r"has shape \(6, 8\), the array \(8,\)"),
        ("f4", 1e300, r"'u' is f4, which cannot hold 1e\+300"),
    ],
)
def test_values_that_do_not_fit(dtype: str, value: Any, says: str) -> None:
    u = field(1, dtype)
    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
        with pytest.raises(LayoutError, match=says):
            engine.set(u, value)
        engine.set(u, lambda box: 2.0)
        engine.set(u, np.full(GRID.shape, 2.0).tolist())
        assert (engine.gather(u) == 2.0).all()


def test_a_field_is_the_object_and_not_its_name() -> None:
    u, other = field(), field()
    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
        engine.set(u, 1.0)
        with pytest.raises(ProgramError, match="a field 'u', which is not the"):
            engine.gather(other)
        engine.set(other, 2.0)
        assert (engine.gather(other) == 2.0).all()


def test_conditions_keep_the_array_they_were_given() -> None:
    grid, wall = mg.Grid((4, 8)), np.zeros(8)
    u = mg.Field("u", grid, boundary={"y": mg.fixed(wall), "x": mg.zero_gradient()})
    v, program = mg.Field("v", grid), mg.Program("p")

    @mg.kernel
    def above(u, v):
        v[0, 0] = u[-1, 0]

    program.apply(above, u, v)
    wall[:] = 7.0
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:
        engine.run(program)
        assert (engine.gather(v)[0] == 0.0).all()


@pytest.mark.parametrize(
    "record",
    [
        lambda p, x: p.apply(x, field()),
        lambda p, x: p.let(x, 1.0),
        lambda p, x: p.let(mg.Register("r"), x),
        lambda p, x: p.rotate(x),
        lambda p, x: p.refresh(x),
        lambda p, x: p.repeat(x).__enter__(),
        lambda p, x: mg.Field("u", GRID, x),
        lambda p, x: mg.Field("u", GRID, boundary=x),
        lambda p, x: mg.Grid((6, 8), axes=x),
        lambda p, x: mg.run(x, 1),
        lambda p, x: mg.run(model(u := field(), growing(u)), x),
        lambda p, x: mg.automaton("B3/S23", shape=(8, 8), init={"array": x}),
    ],
)
def test_messages_do_not_print_arrays(record: Any) -> None:
    with pytest.raises(MingaError) as caught:
        record(mg.Program("p"), np.arange(3000.0).reshape(60, 50))
    message = str(caught.value).partition("\n  fix: ")[0]
    assert len(message) < 200
    assert len(message.splitlines()) <= 2


def at_walls(boundary: object, *, advance: bool = False, **options: Any) -> mg.Model:
    """A model whose walls have a condition."""
    grid = mg.Grid((6, 8))
    u = mg.Field("u", grid, slots=2, boundary=boundary)  # type: ignore[arg-type]
    step = growing(u)
    if advance:
        step.let(mg.TIME, mg.TIME + 0.5)
    return mg.Model("walls", grid, (u,), step, {u: 1.0}, **options)


@pytest.mark.parametrize("clock", [None, mg.Clock(dt=0.5), mg.Clock(dt=mg.Register("h", initial=0.5))])
@pytest.mark.parametrize("registers", [{}, {mg.TIME: 0.0}])
def test_a_time_that_stands_still_is_refused(clock: mg.Clock | None, registers: dict[mg.Register, float]) -> None:
    with pytest.raises(ProgramError, match=r"boundary condition dirichlet.* uses mg\.TIME, which no step changes"):
        at_walls(mg.dirichlet(lambda y, x, t: t), clock=clock, registers=registers)
    at_walls(mg.dirichlet(lambda y, x, t: t), advance=True, clock=clock, registers=registers)


def test_registers_of_conditions_and_kernels_have_values() -> None:
    voltage = mg.Register("voltage")
    with pytest.raises(ProgramError, match=r"boundary condition fixed.* uses register 'voltage', which nothing sets"):
        at_walls(mg.fixed(voltage))
    at_walls(mg.fixed(voltage), registers={voltage: 2.0})
    at_walls(mg.fixed(mg.Register("known", initial=1.0)))

    @mg.kernel
    def captured(u: Any, new: Any) -> None:
        new[0, 0] = u[0, 0] * voltage

    u = field()
    step = mg.Program("step")
    step.apply(captured, u, u.next)
    step.rotate(u)
    with pytest.raises(ProgramError, match=r"'captured' uses register 'voltage', which nothing sets"):
        model(u, step)
