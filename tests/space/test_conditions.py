"""Conditions at walls: formulas of ghost cells, what they may be given, antiperiodic axes, the same bits on ranks."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.compile.numpy import BoundArray, evaluate
from minga.errors import LayoutError, MingaError
from minga.space.boundary import trace_fill
from minga.space.cuts import blocks, cartesian, slabs
from thinned import thinned


def formula(condition: mg.Condition | Any, layer: int, *, faces: bool = False, width: float = 1.0) -> dict[int, float]:
    """The weights of points inside in a ghost value on an axis of cells of this width."""
    grid = mg.Grid((20,), spacing=width)
    u = mg.Field("u", grid, centre="x" if faces else (), boundary=condition)
    fill = trace_fill(u, 0, "low", layer)
    assert fill is not None
    found = {}
    values = np.zeros(60)
    for point in range(-1, 6):
        values[:] = 0.0
        if point >= 0:
            values[20 + point] = 1.0
        arrays = [BoundArray(values.copy(), (-20,)) for _ in fill.operands]
        evaluate(fill.graph, ((-layer,), (-layer + 1,)), arrays)
        found[point] = arrays[0].array[20 - layer]
    return {point: found[point] - (found[-1] if point >= 0 else 0.0) for point in found}


def weights(text: str, over: int = 1) -> list[float]:
    return [float(Fraction(each) / over) for each in text.split()]


@pytest.mark.parametrize(
    ("condition", "layer", "expected"),
    [
        (mg.dirichlet(1.0), 1, weights("2 -1 0 0 0")),
        (mg.dirichlet(1.0, 4), 1, weights("16 -15 5 -1 0", 5)),
        (mg.dirichlet(1.0, 4), 2, weights("64 -90 40 -9 0", 5)),
        (mg.neumann(1.0), 1, weights("1 1 0 0 0")),
        (mg.neumann(1.0, 4), 1, weights("24 17 9 -5 1", 22)),
        (mg.neumann(1.0, 4), 2, weights("120 -135 265 -135 27", 22)),
        (mg.robin(2.0, 1.0), 1, [2 / 4, 0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_ghost_formulas_are_those_of_the_notes(condition: Any, layer: int, expected: list[float]) -> None:
    """Of the given number, and of the cells from the wall inwards."""
    found = formula(condition, layer)
    np.testing.assert_allclose([found[n] for n in range(-1, 4)], expected, rtol=1e-14, atol=1e-15)


def test_a_point_on_the_wall() -> None:
    found = formula(mg.neumann(1.0), 1, faces=True, width=0.5)
    assert found == {-1: 1.0, 0: 0.0, 1: 1.0, 2: 0.0, 3: 0.0, 4: 0.0, 5: 0.0}
    found = formula(mg.dirichlet(1.0), 1, faces=True)
    assert found == {-1: 2.0, 0: 0.0, 1: -1.0, 2: 0.0, 3: 0.0, 4: 0.0, 5: 0.0}
    found = formula(mg.robin(3.0, 1.0), 1, faces=True, width=0.5)  # (g - w1) / 2h + a w0 = b
    assert found[0] == pytest.approx(-3.0)
    assert found[1] == pytest.approx(1.0)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("order", "faces", "side"),
    thinned(
        itertools.product([2, 4, 6, 8], [False, True], ["low", "high"]),
        *[(2, False, "high"), (4, True, "low"), (4, False, "low"), (6, True, "high"), (8, False, "low")],
    ),
)
def test_polynomials_are_continued_exactly(order: int, faces: bool, side: str) -> None:
    """On a stretched axis; of the degree that the order is for: one more for derivatives than for values."""
    rng = np.random.default_rng(order)
    grid = mg.Grid((20,), spacing=[rng.uniform(0.5, 1.5, 20)], origin=-3.0)
    sign, wall = (-1.0, grid.faces(0)[0]) if side == "low" else (1.0, grid.faces(0)[-1])
    for kind, degree in (("value", order - 1), ("slope", order), ("mixed", order - 1)):
        p = np.polynomial.Polynomial(rng.uniform(-1, 1, degree + 1), [grid.faces(0)[0], grid.faces(0)[-1]])
        value, slope = float(p(wall)), float(sign * p.deriv()(wall))
        condition = {
            "value": mg.dirichlet(value, order), "slope": mg.neumann(slope, order),
            "mixed": mg.robin(0.7, slope + 0.7 * value, order),
        }[kind]  # fmt: skip
        u = mg.Field("u", grid, centre="x" if faces else (), boundary=condition)
        new = mg.Field("new", grid, centre="x" if faces else ())

        @mg.kernel
        def look(u, new):
            new[0] = u[-2] if side == "low" else u[2]

        program = mg.Program("look")
        program.apply(look, u, new)
        points = grid.faces(0) if faces else grid.positions(0)
        with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
            engine.set(u, p(points))
            engine.run(program)
            found = engine.gather(new)
        assert found is not None
        ghosts = found[:2] if side == "low" else found[-2:]
        expected = p(grid.continued(0, np.array([-2, -1]) if side == "low" else len(points) + np.arange(2), faces))
        np.testing.assert_allclose(ghosts, expected, rtol=0, atol=1e-9)


# What conditions are given -------------------------------------------------------------------------------------------
@mg.kernel
def spread(u, new):
    new[0, 0] = u[0, 0] + 0.05 * mg.laplace(u) - 0.01 * mg.d2(u, "y", "x", 4)


def stepped(boundary: Any, comm: Any = None, layout: Any = None, steps: int = 5, **how: Any) -> Any:
    settings = {key: how.pop(key) for key in ("halo_depth", "threads") if key in how}
    grid = mg.Grid((24, 20), spacing=how.pop("spacing", (0.5, 1.0)), **how)
    u = mg.Field("u", grid, slots=2, boundary=boundary)
    step = mg.Program("step")
    step.apply(spread, u, u.next)
    step.rotate(u)
    step.let(mg.TIME, mg.TIME + 0.25)
    extra = {} if comm is None else {"comm": comm}
    with mg.Engine(layout or mg.Layout.single(grid.box, 1), grid=grid, **extra, **settings) as engine:
        engine.set(u, lambda box: np.random.default_rng(2).random(grid.shape)[box.slices((0, 0))])
        engine.run(step, steps)
        return engine.gather(u)


@pytest.mark.slow
def test_functions_see_the_wall_and_the_time() -> None:
    seen: list[Any] = []

    def on_wall(y: Any, x: Any) -> Any:
        seen.append((y, x))
        return 3.0

    stepped({"y": (mg.dirichlet(on_wall), mg.neumann(0.0)), "x": mg.neumann(0.0)})
    assert seen
    assert all(y == 0.0 and not isinstance(x, float) for y, x in seen)
    given = {"y": mg.dirichlet(lambda y, x, t: 2.0 * t), "x": mg.neumann(0.0)}
    again = {"y": mg.dirichlet(2.0 * mg.TIME), "x": mg.neumann(0.0)}
    np.testing.assert_array_equal(stepped(given), stepped(again))


def test_arrays_and_functions_agree() -> None:
    x = 0.5 + np.arange(20)
    by_array = {"y": mg.dirichlet(x * x), "x": mg.neumann(0.0)}
    by_function = {"y": mg.dirichlet(lambda y, x: x * x), "x": mg.neumann(0.0)}
    inside = np.s_[:, 3:-3]  # an array goes on by its last value beyond its ends
    np.testing.assert_array_equal(stepped(by_array, steps=1)[inside], stepped(by_function, steps=1)[inside])


@pytest.mark.slow
def test_a_robin_condition_by_functions_is_that_of_numbers() -> None:
    by_numbers = stepped(mg.robin(0.5, 2.0, 4))
    by_functions = stepped(mg.robin(lambda y, x: 0.5, lambda y, x: 2.0, 4))
    np.testing.assert_array_equal(by_numbers, by_functions)
    varying = stepped(mg.robin(mg.Register("a", initial=0.5), 2.0, 4))
    np.testing.assert_allclose(varying, by_numbers, rtol=1e-13)


@pytest.mark.parametrize("make", [mg.dirichlet, mg.neumann, lambda v, order: mg.robin(1.0, v, order)])
@pytest.mark.parametrize("order", [0, 3, 18, True])
def test_orders_are_even(make: Any, order: int) -> None:
    with pytest.raises(LayoutError, match="orders of accuracy are 2, 4"):
        make(1.0, order)


def test_a_condition_that_determines_nothing() -> None:
    with pytest.raises(MingaError, match="does not determine the ghost cell"):
        stepped({"y": mg.robin(-4.0, 1.0), "x": mg.neumann(0.0)})  # 2 + a h = 0


@pytest.mark.parametrize(
    ("boundary", "says"),
    [
        (1.0, "boundary=1.0 is not a condition"),
        ({"x": 1.0}, "the boundary along axis 'x' is 1.0"),
        ({"x": (mg.dirichlet(0.0), None)}, "axis 'x' is None at the high end"),
        ({"x": [mg.dirichlet(0.0)] * 3}, "axis 'x' is .*0.0.*0.0.*0.0"),
        ({"x": "fixed"}, "axis 'x' is 'fixed'"),
    ],
)
def test_what_is_no_condition_is_named(boundary: Any, says: str) -> None:
    for make in (
        lambda: mg.Field("u", mg.Grid((8,)), boundary=boundary),
        lambda: mg.pde("laplace(u)", mg.Grid((8,)), boundary=boundary, dt=0.1),
    ):
        with pytest.raises(LayoutError, match=says):
            make()


# Antiperiodic axes ---------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_antiperiodic_is_a_domain_twice_as_long() -> None:
    values = np.random.default_rng(4).random((8, 12))

    def found(grid: mg.Grid, start: Any, boundary: Any) -> Any:
        u = mg.Field("u", grid, slots=2, boundary=boundary)
        step = mg.Program("step")
        step.apply(spread, u, u.next)
        step.rotate(u)
        with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:
            engine.set(u, start)
            engine.run(step, 6)
            return engine.gather(u)

    once = found(mg.Grid((8, 12), periodic=True), values, {"x": mg.antiperiodic()})
    twice = found(mg.Grid((8, 24), periodic=True), np.concatenate([values, -values], axis=1), None)
    np.testing.assert_array_equal(once, twice[:, :12])
    np.testing.assert_array_equal(-once, twice[:, 12:])


def test_antiperiodic_needs_an_axis_that_closes() -> None:
    with pytest.raises(LayoutError, match="make the grid periodic along the axis"):
        mg.Field("u", mg.Grid((8,)), boundary={"x": mg.antiperiodic()})
    with pytest.raises(LayoutError, match="has no boundary"):
        mg.Field("u", mg.Grid((8,), periodic=True), boundary={"x": mg.dirichlet(0.0)})
    with pytest.raises(LayoutError, match="of type u1"):
        mg.Field("u", mg.Grid((8,), periodic=True), "u1", boundary=mg.antiperiodic())
    with pytest.raises(LayoutError, match="on a part of the grid"):
        mg.Field("u", mg.Grid((8,), periodic=True), on=mg.Box((1,), (4,)), boundary=mg.antiperiodic())


# The same bits -------------------------------------------------------------------------------------------------------
WALLS = {
    "value": mg.dirichlet(0.3, 4),
    "slope": mg.neumann(lambda y, x, t: mg.sin(x) + t * y, 4),
    "mixed": {"y": (mg.robin(lambda y, x: 1.0 + x, 0.1, 4), mg.neumann(0.2)), "x": mg.dirichlet(lambda y, x: y, 6)},
}
STRETCHED = (np.linspace(0.4, 1.1, 24), np.linspace(1.0, 0.6, 20))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("boundary", "how"),
    [
        pytest.param(WALLS["value"], {}, marks=pytest.mark.slow),
        pytest.param(WALLS["slope"], {"spacing": STRETCHED}, marks=pytest.mark.slow),
        pytest.param(WALLS["mixed"], {"spacing": STRETCHED}, marks=pytest.mark.slow),
        (None, {"periodic": True, "spacing": STRETCHED}),
        pytest.param({"y": mg.antiperiodic()}, {"periodic": True, "spacing": STRETCHED}, marks=pytest.mark.slow),
        ({"y": mg.antiperiodic(), "x": mg.dirichlet(1.0, 4)}, {"periodic": (True, False)}),
    ],
)  # fmt: skip
def test_ranks_and_depths_leave_the_same_bits(boundary: Any, how: Any) -> None:
    def on(layout: mg.Layout, depth: int) -> Any:
        return lambda comm: stepped(boundary, comm, layout, halo_depth=depth, threads=1, **how)

    alone = stepped(boundary, **how)
    assert np.isfinite(alone).all()
    box = mg.Box((0, 0), (24, 20))
    layouts = [slabs(box, 3), cartesian(box, (2, 2)), blocks(box, 2, 3)]
    for layout, depth in itertools.product(layouts, (1, 2, 3)):
        found = mg.run_virtual(layout.ranks, on(layout, depth))
        np.testing.assert_array_equal(found[0], alone)


@mg.kernel
def exchange(p, vy, vx, new):
    flux = mg.advect((vy, vx), p, "up5")
    new[0, 0] = p[0, 0] - 0.05 * flux + 0.01 * mg.div_grad(2.0 + p[0, 0] * p[0, 0], p) + 0.02 * mg.div((vy, vx), 4)


@mg.kernel
def push(p, v, new):
    new[0, 0] = v[0, 0] - 0.05 * mg.d(p, "y", 1, 4, "backward") + 0.01 * mg.laplace(v)


@mg.kernel
def push_x(p, v, new):
    new[0, 0] = v[0, 0] - 0.05 * mg.d(p, "x", 1, 4, "backward") + 0.01 * mg.laplace(v)


@pytest.mark.slow
@pytest.mark.parametrize("spacing", [pytest.param((0.5, 1.0), marks=pytest.mark.slow), STRETCHED])
def test_staggered_fields_on_ranks(spacing: Any) -> None:
    grid = mg.Grid((24, 20), spacing=spacing, periodic=True)

    def body(layout: mg.Layout, depth: int) -> Any:
        def run(comm: Any = None) -> Any:
            p = mg.Field("p", grid, slots=2)
            vy, vx = (mg.Field(f"v{a}", grid, slots=2, centre=a) for a in "yx")
            step = mg.Program("step")
            step.apply(push, p, vy, vy.next)
            step.apply(push_x, p, vx, vx.next)
            step.rotate(vy, vx)
            step.apply(exchange, p, vy, vx, p.next)
            step.rotate(p)
            extra = {} if comm is None else {"comm": comm}
            with mg.Engine(layout, grid=grid, halo_depth=depth, threads=1, **extra) as engine:
                for number, field in enumerate((p, vy, vx)):
                    values = np.random.default_rng(number).random(grid.shape)
                    engine.set(field, lambda box, values=values: values[box.slices((0, 0))])
                engine.run(step, 4)
                return [engine.gather(field) for field in (p, vy, vx)]

        return run

    alone = body(mg.Layout.single(grid.box, 1), 1)()
    assert all(np.isfinite(values).all() for values in alone)
    for layout, depth in itertools.product((slabs(grid.box, 3), cartesian(grid.box, (2, 2))), (1, 2)):
        for found, expected in zip(mg.run_virtual(layout.ranks, body(layout, depth))[0], alone, strict=True):
            np.testing.assert_array_equal(found, expected)


# Functions of position -----------------------------------------------------------------------------------------------
def test_initial_values_are_functions_of_coordinates() -> None:
    grid = mg.Grid((6, 7), spacing=(0.5, np.linspace(0.5, 1.0, 7)), origin=(2.0, -1.0), periodic=(True, False))
    y, x = np.meshgrid(grid.centres("y"), grid.faces("x"), indexing="ij")

    def body(comm: Any) -> Any:
        u = mg.Field("u", grid, centre="x")
        with mg.Engine(slabs(grid.box, 2), grid=grid, comm=comm) as engine:
            engine.set(u, lambda y, x: 10 * y + x * x)
            both = engine.gather(u)
            engine.set(u, lambda x, y: x + 0 * y)  # by name, not by place
            second = engine.gather(u)
            engine.set(u, lambda y, x: 4.0)
            return both, second, engine.gather(u)

    both, second, number = mg.run_virtual(2, body)[0]
    np.testing.assert_array_equal(both, 10 * y + x * x)
    np.testing.assert_array_equal(second, x)
    assert (number == 4.0).all()


X = 0.5 + np.arange(20)
BY_NAME: dict[str, tuple[Any, Any]] = {
    "the time": (lambda t: 2.0 * t, 2.0 * mg.TIME),
    "one axis": (lambda x, t: 2.0 * t + 0 * x, 2.0 * mg.TIME),
    "any order": (lambda t, x, y: 2.0 * t + x * x + 0 * y, lambda y, x, t: 2.0 * t + x * x),
    "a default": (lambda y, x, t=0.0: 2.0 * t, 2.0 * mg.TIME),
    "any number": (lambda *place: 3.0, 3.0),
    "other names": (lambda a, b: b * b, X * X),
    "an array": (lambda x, y: x * x, X * X),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", thinned(BY_NAME, "any order"))
def test_conditions_take_coordinates_and_the_time_by_their_names(kind: str) -> None:
    found, again = (stepped({"y": mg.dirichlet(v), "x": mg.neumann(0.0)}, steps=2) for v in BY_NAME[kind])
    np.testing.assert_array_equal(found[:, 5:-5], again[:, 5:-5])


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x, b: 0.0, r"a function of \(x, b\) is called with y, x, so that its 'x' would be y"),
        (lambda a, t: 0.0, "its 't' would be x"),
        (lambda y, time, x: 0.0, "its 'x' would be t"),
    ],
)
def test_a_coordinate_in_the_place_of_another_is_refused(function: Any, says: str) -> None:
    with pytest.raises(LayoutError, match=says):
        stepped({"y": mg.dirichlet(function), "x": mg.neumann(0.0)})


def test_initial_values_have_no_time() -> None:
    grid = mg.Grid((6, 7))
    u = mg.Field("u", grid)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:
        engine.set(u, lambda x: x * x)
        np.testing.assert_array_equal(engine.gather(u), np.tile(grid.centres("x") ** 2, (6, 1)))
        with pytest.raises(LayoutError, match="there is no time here"):
            engine.set(u, lambda x, t: x)


def test_one_axis_is_told_by_its_name() -> None:
    grid = mg.Grid((6,), spacing=0.5)
    u = mg.Field("u", grid)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:
        engine.set(u, lambda x: x * x)
        np.testing.assert_array_equal(engine.gather(u), grid.centres("x") ** 2)
        engine.set(u, lambda box: np.arange(box.lo[0], box.hi[0]))
        np.testing.assert_array_equal(engine.gather(u), np.arange(6))
        with pytest.raises(LayoutError, match="the function of position for 'u' failed"):
            engine.set(u, lambda x: x[:3] + x)
