"""Adjoints of Programs: exact derivatives for random kernels and conditions, checkpoints, ranks, and refusals."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import minga as mg
from adjoint_problems import GRID, PROBLEMS, TORUS, Problem, heat, problems
from minga.engine.begin import start
from minga.engine.model import Model
from minga.errors import MingaError
from minga.solve.adjoint.checkpoints import first_positions, middle, reversed_steps


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(problems())
def test_random_steps_have_exact_derivatives(problem: tuple[Problem, list[mg.Field]]) -> None:
    """Ghost cells may be large, and the quotients' own error too, unless their steps are short."""
    assert min(problem[0].error(problem[1], h) for h in (3e-4, 3e-5)) < 1e-8


@pytest.mark.few(3)
@pytest.mark.parametrize("name", PROBLEMS)
def test_derivatives_are_exact(name: str) -> None:
    problem, wrt = PROBLEMS[name]()
    h = 1e-6 if name == "advection" else 3e-4  # limiters have kinks, which few differences this short cross
    assert problem.error(wrt, h) < 1e-8


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["heat", "advection", "reaction", "staggered", "strip"])
def test_tangents_and_adjoints_are_transposes(name: str) -> None:
    problem, wrt = PROBLEMS[name]()
    assert problem.asymmetry(wrt) < 1e-14


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(problems(linear=True))
def test_tangents_of_random_steps_and_their_adjoints_are_transposes(problem: tuple[Problem, list[mg.Field]]) -> None:
    assert problem[0].asymmetry(problem[1]) < 1e-13


@pytest.mark.few(1)
@pytest.mark.parametrize("ranks", [3, 2])
def test_tangents_have_the_same_bits_on_any_ranks(ranks: int) -> None:
    problem, wrt = heat()
    directions = {(item, k): problem.values[item, k] for item in wrt for k in range(item.slots)}
    shared = mg.run_virtual(ranks, lambda comm: problem.tangent(directions, comm, ranks))[0]
    assert shared.tobytes() == problem.tangent(directions).tobytes()


def test_a_step_with_tangents_computes_the_same_state() -> None:
    problem, wrt = heat()
    change = mg.tangent(problem.step, wrt)
    states = []
    for step in (problem.step, change.step):
        with problem.engine() as engine:
            problem.set(engine, problem.values)
            engine.run(step, 4)
            states.append(np.array(engine.gather(problem.out)))
    assert states[0].tobytes() == states[1].tobytes()
    assert "heat" in repr(change)


def test_tangents_of_a_sweep_in_order() -> None:
    """A kernel that reads what it has stored before has no adjoint here, but a tangent."""

    @mg.kernel(order="lexicographic")
    def relax(u: Any, k: Any) -> None:
        u[0, 0] = 0.5 * k[0, 0] * mg.sin(u[-1, 0] + u[0, -1]) + 0.2 * u[1, 0] * u[0, 1]

    u, k = (mg.Field(name, GRID, boundary=mg.neumann(0.0)) for name in "uk")
    step = mg.Program("sweep")
    step.apply(relax, u, k)
    problem = Problem(step, [u, k], u, 2)
    directions = {(item, 0): problem.rng.standard_normal(item.points.shape) for item in (u, k)}
    slope = float((problem.weights * problem.tangent(directions)).sum())

    def at(s: float) -> float:
        return problem.number({key: problem.values[key] + s * directions[key] for key in directions})

    h = 3e-4
    quotient = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    assert slope == pytest.approx(quotient, rel=1e-9)


def test_what_has_no_tangent_is_refused() -> None:
    problem, wrt = PROBLEMS["corners"]()
    with pytest.raises(MingaError, match="not linear in the cells inside"):
        problem.tangent({(wrt[0], 0): problem.values[wrt[0], 0]})
    with pytest.raises(MingaError, match="wrt is not a list of fields"):
        mg.tangent(problem.step, [])
    u = mg.Field("u", GRID, boundary=mg.neumann(0.0))
    largest = mg.Register("largest", initial=0.0)
    step = mg.Program("step")
    with step.when(largest > 1.0):
        step.apply(_halve, u)
    with pytest.raises(MingaError, match="operations under a condition"):
        mg.tangent(step, [u])
    other = mg.Field("other", GRID)
    for target in (u, other):  # what a call writes may depend on anything
        step = mg.Program("step")
        step.apply(_halve, u)
        step.call(lambda engine: None, reads=(u,), writes=(target,))
        with pytest.raises(MingaError, match="writes fields in Python"):
            mg.tangent(step, [u])


@mg.kernel
def _halve(u: Any) -> None:
    u[0, 0] = 0.5 * u[0, 0]


def test_a_taylor_remainder_is_of_second_order() -> None:
    problem, wrt = heat()
    found = problem.gradient(wrt)
    directions = {key: problem.rng.standard_normal(array.shape) for key, array in found.items()}
    slope = sum(float((found[key] * d).sum()) for key, d in directions.items())
    before = problem.number(problem.values)
    sizes = [0.01 / 2**k for k in range(6)]
    rest = [
        abs(problem.number({key: a + h * directions[key] for key, a in problem.values.items()}) - before - h * slope)
        for h in sizes
    ]
    assert np.polyfit(np.log2(sizes), np.log2(rest), 1)[0] == pytest.approx(2.0, abs=0.02)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["heat", "reaction"])
def test_bits_do_not_depend_on_checkpoints(name: str) -> None:
    problem, wrt = PROBLEMS[name]()
    problem.steps = 7
    every = problem.gradient(wrt)
    for most in (1, 2, 3):
        some = problem.gradient(wrt, checkpoints=most)
        assert all(np.array_equal(some[key], array) for key, array in every.items())
    least = problem.gradient(wrt, memory=1)
    assert all(np.array_equal(least[key], array) for key, array in every.items())


@pytest.mark.few(1)
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", ["heat", "corners", "strip"])
def test_bits_do_not_depend_on_ranks(name: str, ranks: int) -> None:
    problem, wrt = PROBLEMS[name]()
    alone = problem.gradient(wrt)
    shared = mg.run_virtual(ranks, lambda comm: problem.gradient(wrt, comm, ranks))[0]
    assert all(np.array_equal(shared[key], array) for key, array in alone.items())


def test_a_part_of_a_periodic_axis_is_refused() -> None:
    @mg.kernel
    def ahead(u: Any, new: Any) -> None:
        new[0, 0] = u[0, 1]

    u = mg.Field("u", TORUS, slots=2)
    step = mg.Program("part")
    step.apply(ahead, u, u.next, region=mg.Box((0, 0), (9, 5)))
    with pytest.raises(MingaError, match="on a part of a periodic axis"):
        mg.adjoint(step, [u])


def test_seeds_find_the_states_of_their_steps() -> None:
    """A misfit over all steps, whose derivative needs the states; afterwards the engine is where it began."""
    problem, (u, _) = heat()
    adjoint, seen = mg.adjoint(problem.step, [u]), dict[int, np.ndarray]()

    def observe(engine: mg.Engine, n: int) -> None:
        seen[n] = np.array(engine.gather(u))

    def seed(engine: mg.Engine, n: int) -> None:
        assert np.array_equal(np.array(engine.gather(u)), seen[n])
        for box, values in engine.blocks(adjoint.of[u], write=True):
            values += seen[n][box.slices((0, 0))]

    with problem.engine() as engine:
        problem.set(engine, problem.values)
        adjoint.run(engine, 4, seed=seed, observe=observe, checkpoints=2)
        found = np.array(engine.gather(adjoint.of[u]))
        assert np.array_equal(np.array(engine.gather(u)), problem.values[u, 0])
    cell, h = (3, 4), 1e-4

    def number(change: float) -> float:
        start_values = {key: array.copy() for key, array in problem.values.items()}
        start_values[u, 0][cell] += change
        with problem.engine() as engine:
            problem.set(engine, start_values)
            total = 0.0
            for n in range(5):
                total += 0.5 * float(np.square(np.array(engine.gather(u))).sum())
                if n < 4:
                    engine.run(problem.step)
        return total

    assert found[cell] == pytest.approx((number(h) - number(-h)) / (2 * h), rel=1e-7)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("equation", "options"),
    [
        ("laplace(u)", {"boundary": mg.neumann(0.3), "order": 4, "integrator": "euler"}),
        ("laplace(u) - u**3", {"boundary": mg.robin(1.0, 0.5), "integrator": "rk4"}),
        ("laplace(u) - u**3", {"boundary": mg.no_flux(), "integrator": "heun"}),
        ("-u * d_dx(u) + 0.1 * laplace(u)", {"boundary": mg.dirichlet(1.0), "integrator": "ssprk3"}),
        ("div_grad(k, u)", {"parameters": {"k": np.full((9, 11), 0.7)}, "integrator": "heun"}),
        ("exp(-u) * sin(u) + sqrt(u) + log(u)", {"integrator": "williamson3"}),
    ],
)
def test_equations(equation: str, options: dict[str, Any]) -> None:
    """Models of `mg.pde` with steps of one length."""
    model = mg.pde(equation, GRID, initial={"u": lambda x, y: 0.6 + 0.2 * np.sin(3 * x + y)}, dt=5e-4, **options)
    u = model.field("u")
    wrt = [u, *(item for item in model.fields if item.name == "k")]
    problem = _of_model(model, u)
    assert problem.error(wrt) < 1e-9


def _of_model(model: Model, out: mg.Field) -> Problem:
    fields = [item for item in model.fields if not item.replicated]
    problem = Problem(model.step, fields, out)
    with mg.Engine(model.layouts("single", 1)) as engine:
        start(model, engine)
        problem.values = {(f, k): np.array(engine.gather(f.slot(k))) for f in fields for k in range(f.slots)}
    return problem


# Schedules -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("steps", "most"), [(1, 1), (7, 1), (7, 3), (40, 4), (100, 100)])
def test_schedules_reverse_each_step_once(steps: int, most: int) -> None:
    stored, state, reversed_ = set(first_positions(steps, most)), -1, []
    assert len(stored) <= most
    for task, number in reversed_steps(steps, most):
        if task == "restore":
            assert number in stored
            state = number
        elif task == "advance":
            state += number
        elif task == "store":
            assert number == state
            stored.add(number)
            assert len(stored) <= most
        elif task == "drop":
            stored.remove(number)
        else:
            assert number == state
            reversed_.append(number)
    assert reversed_ == [*range(steps)][::-1]
    assert not stored


# Steps forward over steps, for n steps and s states, by Griewank and Walther's formula.
REVOLVE = {(1000, 5): 6.28, (1000, 10): 3.64, (1000, 20): 2.75, (2000, 10): 4.32, (3000, 20): 3.33}


@pytest.mark.parametrize(("steps", "most"), REVOLVE)
def test_schedules_are_optimal(steps: int, most: int) -> None:
    """All steps are taken once before the first is reversed, so that some of the last are taken once more."""
    taken = steps + sum(number for task, number in reversed_steps(steps, most) if task == "advance")
    assert taken / steps <= REVOLVE[steps, most] + 0.02


def test_the_middle_leaves_steps_on_both_sides() -> None:
    for steps, free in itertools.product(range(2, 40), range(1, 8)):
        assert 1 <= middle(steps, free) < steps


# Refusals ------------------------------------------------------------------------------------------------------------
def refused(record: Callable[[mg.Program, mg.Field, mg.Field], None], slots: int = 2) -> str:
    u, k = mg.Field("u", TORUS, slots=slots), mg.Field("k", TORUS)
    step = mg.Program("step")
    record(step, u, k)
    with pytest.raises(MingaError) as caught:
        mg.adjoint(step, [u])
    assert caught.value.remedy
    return str(caught.value)


def test_what_has_no_adjoint_is_refused() -> None:
    @mg.kernel
    def copy(u: Any, new: Any) -> None:
        new[0, 0] = u[0, 0] * u[0, 0]

    @mg.kernel
    def total(u: Any) -> Any:
        return mg.sum(u[0, 0])

    @mg.kernel
    def scaled(u: Any, new: Any, *, by: Any) -> None:
        new[0, 0] = u[0, 0] * by

    @mg.kernel(order="lexicographic")
    def sweep(u: Any) -> None:
        u[0, 0] = 0.5 * (u[0, -1] + u[0, 1])

    def with_number(step: mg.Program, u: mg.Field, k: mg.Field) -> None:
        step.apply(scaled, u, u.next, by=step.apply(total, u))

    def with_condition(step: mg.Program, u: mg.Field, k: mg.Field) -> None:
        with step.when(mg.STEP > 2):
            step.apply(copy, u, u.next)

    def with_loop(step: mg.Program, u: mg.Field, k: mg.Field) -> None:
        with step.repeat(until=mg.STEP > 2):
            step.apply(copy, u, u.next)

    def with_call(step: mg.Program, u: mg.Field, k: mg.Field) -> None:
        step.call(lambda engine: None, writes=[u])

    assert "a number that total reduces" in refused(with_number)
    assert "under a condition" in refused(with_condition)
    assert "number of rounds" in refused(with_loop)
    assert "writes fields in Python" in refused(with_call)
    assert "order of cells" in refused(lambda step, u, k: step.apply(sweep, u))  # type: ignore[arg-type, return-value]
    cells = mg.Field("cells", TORUS, "u1")
    given: list[Any] = [(mg.Program(), []), (mg.Program(), ["u"]), (mg.Program(), cells), (sweep, [cells])]
    for function in (mg.adjoint, mg.tangent):
        for step, wrt in given:
            with pytest.raises(MingaError, match=r"wrt is not a list of fields|the step is a Kernel"):
                function(step, wrt)
    with pytest.raises(MingaError, match="u1"):
        mg.adjoint(mg.Program(), [cells])


def squared(boundary: Any, *, before: Callable[[mg.Program], object] | None = None, linear: bool = False) -> Problem:
    """A step that reads beyond the walls, after something else has been recorded."""

    @mg.kernel
    def square(u: Any, new: Any) -> None:
        new[0, 0] = u[0, 0] + 0.1 * (u[0, 1] if linear else u[0, 1] * u[1, 0])

    u = mg.Field("u", GRID, slots=2, boundary=boundary)
    step = mg.Program("square")
    if before is not None:
        before(step)
    step.apply(square, u, u.next)
    step.rotate(u)
    return Problem(step, [u], u)


def test_conditions_of_what_changes_are_refused() -> None:
    rate, k = mg.Register("rate", initial=0.3), mg.Field("k", GRID)

    @mg.kernel
    def grow(k: Any) -> None:
        k[0, 0] = 1.1 * k[0, 0]

    def later(step: mg.Program) -> None:
        step.let(mg.TIME, mg.TIME + 0.5)

    moving = mg.dirichlet(lambda y, x, t: y + x * t)
    for boundary, before, said in (
        (moving, later, "uses time, which changes"),
        (mg.dirichlet(rate), lambda step: step.let(rate, rate * 1.5), "uses rate, which changes"),
        (mg.custom(lambda edge: edge.field(k)[0]), lambda step: step.apply(grow, k), "reads 'k', which varies"),
    ):
        problem = squared(boundary, before=before)  # type: ignore[arg-type]
        with pytest.raises(MingaError, match=said):
            mg.adjoint(problem.step, [problem.out])
    linear = squared(moving, before=later, linear=True)
    assert linear.error([linear.out]) < 1e-9
    still = squared(mg.dirichlet(rate))
    assert still.error([still.out]) < 1e-9


def test_numbers_that_pass_through_registers_are_refused() -> None:
    """The sum of one step scales the fields three steps later, or is the value at the walls."""
    first, second, third = (mg.Register(f"r{n}", initial=1.0) for n in range(3))

    @mg.kernel
    def scaled(u: Any, new: Any, *, by: Any) -> None:
        new[0, 0] = u[0, 0] * by

    @mg.kernel
    def total(u: Any) -> Any:
        return mg.sum(u[0, 0])

    def chain(step: mg.Program, u: mg.Field, k: mg.Field) -> None:
        step.apply(scaled, u, u.next, by=third)
        step.let(third, second)
        step.let(second, first)
        step.apply(total, u, into=first)

    assert "a number that total reduces" in refused(chain)
    problem = squared(mg.dirichlet(first))
    problem.step.apply(total, problem.out, into=first)
    with pytest.raises(MingaError, match="a number that total reduces"):
        mg.adjoint(problem.step, [problem.out])


def test_a_condition_that_reads_a_cell_twice() -> None:
    problem = squared(mg.custom(lambda edge: 0.3 * edge[0] + 0.5 * edge.field(edge.target)[0]))
    assert problem.error([problem.out]) < 1e-9


def test_a_field_without_all_axes_is_refused() -> None:
    @mg.kernel
    def grow(p: Any) -> None:
        p[0] = p[0] + 0.1 * p[0] * p[0]

    profile, step = mg.Field("profile", GRID, axes="x"), mg.Program("step")
    step.apply(grow, profile)
    with pytest.raises(MingaError, match="lacks axes"):
        mg.adjoint(step, [profile])


def test_a_readable_adjoint() -> None:
    problem, wrt = heat()
    assert repr(mg.adjoint(problem.step, wrt)) == "Adjoint of 'heat' with respect to u, k"
