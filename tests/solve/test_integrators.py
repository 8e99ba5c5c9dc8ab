"""Integrators: orders of accuracy, known errors, steps that a method chooses, noise, and the same bits on all ranks."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import minga as mg
from minga.solve import INTEGRATORS
from thinned import thinned

POINTS = mg.Grid((4,), periodic=True)
BURGERS = np.array([0.4743508049208, 0.8470179122856, 0.3849203290838])
"""Burgers' equation at t = 1, x = 1, 2, 3 from sin x with viscosity 0.1 (Cole and Hopf)."""


def oscillation(method: str, steps: int, **options: object) -> tuple[float, float]:
    """The end of u' = v, v' = -u - 0.2 v + sin(2 t) from (1, 0) at t = 2."""
    model = mg.pde(
        {"u": "v", "v": "-u - 0.2*v + sin(2*t)"}, POINTS, initial={"u": 1.0}, integrator=method, dt=2.0 / steps
    )
    return ended(model, steps)


def ended(model: mg.Model, steps: int) -> tuple[float, float]:
    """The values of u and v in the first cell after some steps."""
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        for name, value in model.initial.items():
            engine.set(model.field(name), value)
        engine.run(model.step, steps)
        u, v = (engine.gather(model.field(name)) for name in "uv")
        assert u is not None
        assert v is not None
        return float(u[0]), float(v[0])


@functools.cache
def exact() -> tuple[float, float]:
    """The exact end: a particular solution a sin 2t + b cos 2t, and a damped oscillation."""
    a, b = -3 / 9.16, -0.4 / 9.16
    decay, omega = 0.1, math.sqrt(0.99)
    c = 1.0 - b
    d = (decay * c - 2 * a) / omega
    t = 2.0
    e, co, si = math.exp(-decay * t), math.cos(omega * t), math.sin(omega * t)
    u = e * (c * co + d * si) + a * math.sin(2 * t) + b * math.cos(2 * t)
    v = e * ((d * omega - decay * c) * co - (c * omega + decay * d) * si)
    return u, v + 2 * a * math.cos(2 * t) - 2 * b * math.sin(2 * t)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "method", [name for name, one in INTEGRATORS.items() if not (one.adaptive or one.split or one.modal)]
)
def test_order(method: str) -> None:
    errors = [np.abs(np.subtract(oscillation(method, n), exact())).max() for n in (40, 80)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(INTEGRATORS[method].order, abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "order"), thinned([("bs3", 3), ("dp5", 5)], ("bs3", 3)))
def test_order_of_accepted_steps(method: str, order: int) -> None:
    """Steps of a given length, by a target before which the method would go further."""
    errors = []
    for n in (10, 20):
        u = mg.Field("u", POINTS, slots=2)
        rates = mg.solve.Rates(lambda cells, _, t: [-cells[0][0] + mg.cos(3.0 * t)])
        target = mg.Register("target")
        step = mg.Program("step")
        step.let(target, target + 2.0 / n)
        recorded = mg.solve.integrator(method).record(step, rates, (u,), dt=100.0, target=target, tolerance=1e3)
        with mg.Engine(mg.Layout.single(POINTS.box, 1), grid=POINTS) as engine:
            engine.set(u, 1.0)
            engine.run(step, n)
            assert engine.read(mg.TIME) == engine.read(target)
            assert engine.read(recorded.wish) >= 100.0  # steps that end at a target say nothing against it
            values = engine.gather(u)
            assert values is not None
        end = 0.9 * math.exp(-2.0) + (math.cos(6.0) + 3.0 * math.sin(6.0)) / 10.0
        errors.append(abs(float(values[0]) - end))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.35)


def burgers(method: str, dt: float, modes: int = 64) -> np.ndarray:
    """Burgers' equation by differences of high order at t = 1."""
    grid = mg.Grid((modes,), spacing=2 * math.pi / modes, periodic=True)
    model = mg.pde(
        "-d_dx(u**2/2, order=16) + 0.1*laplace(u, order=16)",
        grid,
        initial={"u": lambda x: np.sin(x)},
        integrator=method,
        dt=dt,
    )
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        engine.set(model.field("u"), model.initial["u"])
        engine.run(model.step, round(1 / dt))
        values = engine.gather(model.field("u"))
    assert values is not None
    return values


@pytest.mark.parametrize(
    ("method", "errors"),
    thinned(
        [("heun", (1.13e-4, 2.72e-5)), ("ssprk3", (3.21e-6, 3.93e-7)), ("rk4", (6.44e-8, 3.72e-9))],
        ("rk4", (6.44e-8, 3.72e-9)),
    ),
)
def test_errors_for_burgers_equation(method: str, errors: tuple[float, float]) -> None:
    """The known errors of steps of 1/40 and 1/80, against steps of which the error is far smaller."""
    reference = burgers("rk4", 1 / 640)
    for dt, expected in zip((1 / 40, 1 / 80), errors, strict=True):
        assert np.abs(burgers(method, dt) - reference).max() == pytest.approx(expected, rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("method", thinned(["bs3", "dp5"], "bs3"))
def test_steps_follow_the_tolerance(method: str) -> None:
    errors, counts = [], []
    for tolerance in (1e-4, 1e-7):
        model = mg.pde(
            {"u": "v", "v": "-u - 0.2*v + sin(2*t)"}, POINTS, initial={"u": 1.0}, integrator=method,
            tolerance=tolerance,
        )  # fmt: skip
        (target,) = (r for r in registers(model) if r.name == "step.target")
        steps = 0
        with mg.Engine(model.layouts("slabs", 1)) as engine:
            engine.set(model.field("u"), 1.0)
            engine.write(target, 2.0)
            while engine.read(mg.TIME) < 2.0:
                engine.run(model.step)
                steps += 1
            u = engine.gather(model.field("u"))
            assert u is not None
            assert engine.read(mg.TIME) == 2.0
        errors.append(abs(float(u[0]) - exact()[0]))
        counts.append(steps)
    assert errors[0] < 2e-3
    assert errors[1] < 2e-6
    assert counts[1] > 1.5 * counts[0]


@pytest.mark.slow
@pytest.mark.parametrize("method", thinned(["bs3", "dp5", "tr-bdf2", "bdf2"], "bs3", "tr-bdf2"))
def test_errors_are_measured_by_the_values_of_each_field(method: str) -> None:
    """A field of 1e-9 beside one of 1: its decay is as exact as if it were alone."""
    model = mg.pde({"u": "-u", "v": "-3*v"}, POINTS, initial={"u": 1e-9, "v": 1.0}, integrator=method)
    history = mg.run(model, until=2.0)
    assert float(history.u[-1, 0]) == pytest.approx(1e-9 * math.exp(-2.0), rel=1e-4)


@pytest.mark.slow
def test_errors_of_fields_that_begin_at_zero() -> None:
    grid = mg.Grid((4,), periodic=True)
    model = mg.pde({"u": "v", "v": "-u", "w": "0"}, grid, initial={"u": 1e-9}, integrator="bs3")
    history = mg.run(model, until=1.0)
    assert float(history.v[-1, 0]) == pytest.approx(-1e-9 * math.sin(1.0), rel=1e-4)
    with pytest.raises(mg.ProgramError, match="absolute of 'w', which is no field"):
        mg.pde("-u", grid, absolute={"w": 1.0})
    with pytest.raises(mg.ProgramError, match="absolute=-1"):
        mg.pde("-u", grid, absolute=-1.0)


def test_a_permitted_error_lets_steps_grow() -> None:
    ends = []
    for absolute in (0.0, 1.0):
        model = mg.pde("-u", POINTS, initial=1.0, integrator="bs3", absolute=absolute)
        with mg.Engine(model.layouts("slabs", 1)) as engine:
            engine.set(model.field("u"), 1.0)
            engine.run(model.step, 4)
            ends.append(float(engine.read(mg.TIME)))
    assert ends[1] > 3.0 * ends[0]


@pytest.mark.parametrize("method", thinned(["bs3", "dp5"], "bs3"))
def test_rates_follow_what_changes_between_steps(method: str) -> None:
    """A kernel after each step sets u to 1, which no rate from the end of the step knows."""

    @mg.kernel
    def again(u):
        u[0] = 1.0

    u = mg.Field("u", POINTS, slots=2)
    target = mg.Register("target")
    step = mg.Program("step")
    step.let(target, target + 0.5)
    rates = mg.solve.Rates(lambda cells, _, t: [-cells[0][0]])
    step.apply(again, u)
    mg.solve.integrator(method).record(step, rates, (u,), dt=0.5, target=target, tolerance=1.0)
    with mg.Engine(mg.Layout.single(POINTS.box, 1), grid=POINTS) as engine:
        found = []
        for _ in range(2):
            engine.run(step)
            values = engine.gather(u)
            assert values is not None
            found.append(float(values[0]))
    assert found[0] == found[1]


def registers(model: mg.Model) -> list[mg.Register]:
    """The registers that the step of a model sets or reads."""
    assert model.clock is not None
    found = [getattr(model.clock, name, None) for name in ("target", "time", "dt")]
    known = [each for each in found if isinstance(each, mg.Register)]
    return [*known, mg.Register("step.target")] if not any(r.name == "step.target" for r in known) else known


@pytest.mark.slow
def test_a_first_step_that_is_far_too_long_is_rejected() -> None:
    model = mg.pde({"u": "-50*u**3", "v": "0"}, POINTS, initial={"u": 2.0}, integrator="dp5", dt=10.0)
    u, _ = ended(model, 1)
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        engine.set(model.field("u"), 2.0)
        engine.run(model.step)
        time = float(engine.read(mg.TIME))
    assert 0 < time < 0.1
    assert u == pytest.approx((1 / 4 + 100 * time) ** -0.5, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("method", thinned(["rk4", "dp5", "euler-maruyama"], "rk4", "euler-maruyama"))
def test_same_bits_on_ranks(method: str) -> None:
    grid = mg.Grid((24, 130), spacing=0.5)
    options = {"noise": 0.1} if method == "euler-maruyama" else {}

    def run(comm: mg.SerialComm) -> np.ndarray | None:
        model = mg.pde(
            "laplace(u) - u**3 + sin(t)", grid, initial={"u": "sin(x) * cos(y)"}, integrator=method, dt=0.02,
            boundary={"y": mg.dirichlet(lambda y, x, t: mg.sin(t) * x)}, **options,
        )  # fmt: skip
        with mg.Engine(model.layouts("slabs", comm.size), comm=comm) as engine:
            engine.set(model.field("u"), model.initial["u"])
            engine.run(model.step, 12)
            return engine.gather(model.field("u"))

    (alone,), together = mg.run_virtual(1, run), mg.run_virtual(3, run)
    assert np.array_equal(alone, together[0])


@pytest.mark.slow
def test_noise_has_the_variance_of_the_method() -> None:
    grid = mg.Grid((200, 200), periodic=True)
    model = mg.pde("-u", grid, noise="0.5", dt=0.05, seed=3)
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        engine.run(model.step, 100)
        u = engine.gather(model.field("u"))
    assert u is not None
    decay = (1 - 0.05) ** 2
    variance = 0.25 * 0.05 * (1 - decay**100) / (1 - decay)
    assert u.var() == pytest.approx(variance, rel=4 * math.sqrt(2 / grid.size))
    assert abs(u.mean()) < 4 * math.sqrt(variance / grid.size)


def error_of_growth_with_noise(method: str, steps: int) -> float:
    """The mean error of du = u dW / 2 at t = 1, against the solution for the same noise, found from each step."""
    model = mg.pde("0", mg.Grid((3000,), periodic=True), noise="0.5*u", initial=1.0, integrator=method, dt=1 / steps)
    path = np.zeros(3000)
    now = np.ones(3000)
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        engine.set(model.field("u"), 1.0)
        for _ in range(steps):
            engine.run(model.step)
            before, now = now, np.asarray(engine.gather(model.field("u")))
            ratio = now / before
            path += (np.sqrt(2 * ratio - 1 + 0.25 / steps) if method == "milstein" else ratio) - 1.0
    return float(np.abs(now - np.exp(path - 0.125)).mean())


@pytest.mark.slow
@pytest.mark.parametrize(("method", "order"), [("euler-maruyama", 0.5), ("milstein", 1.0)])
def test_strong_order_with_noise_that_depends_on_the_value(method: str, order: float) -> None:
    errors = [error_of_growth_with_noise(method, n) for n in (8, 32)]
    assert math.log(errors[0] / errors[1], 4) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("method", thinned(["heun", "rk4", "tr-bdf2"], "heun", "tr-bdf2"))
def test_steps_of_a_number_go_on_from_the_present_time(method: str) -> None:
    u, step = mg.Field("u", POINTS, slots=2), mg.Program("step")
    rates = mg.solve.Rates(lambda cells, _, t: [t + 0.0 * cells[0][0]])
    recorded = mg.solve.integrator(method).with_given_steps().record(step, rates, (u,), dt=0.1)
    with mg.Engine(mg.Layout.single(POINTS.box, 1), grid=POINTS) as engine:
        assert recorded.fields
        for start in (5.0, -1.0):
            engine.write(mg.TIME, start)
            engine.set(u, 0.0)
            engine.run(step, 3)
            assert engine.read(mg.TIME) == start + 3 * 0.1
            values = engine.gather(u)
            assert values is not None
            assert values[0] == pytest.approx(start * 0.3 + 0.3**2 / 2)


def test_milstein_refuses_noise_of_other_cells() -> None:
    with pytest.raises(mg.ProgramError, match="other cells or fields") as caught:
        mg.pde("0", POINTS, noise="laplace(u)", dt=0.1, integrator="milstein")
    assert "euler-maruyama" in str(caught.value.remedy)


def test_what_cannot_be_recorded() -> None:
    with pytest.raises(mg.ProgramError, match="no integrator 'rk5'") as caught:
        mg.solve.integrator("rk5")
    assert caught.value.remedy == "did you mean 'rk4'?"
    u = mg.Field("u", POINTS)
    rates = mg.solve.Rates(lambda cells, _, t: [cells[0][0]])
    with pytest.raises(mg.ProgramError, match="single slot"):
        mg.solve.integrator("rk4").record(mg.Program(), rates, (u,), dt=0.1)
    with pytest.raises(mg.ProgramError, match="needs dt"):
        mg.solve.integrator("rk4").record(mg.Program(), rates, (mg.Field("u", POINTS, slots=2),))
    with pytest.raises(mg.ProgramError, match="takes no noise"):
        mg.pde("u", POINTS, noise=1.0, dt=0.1, integrator="rk4")
    two = mg.Field("u", POINTS, slots=2), mg.Field("v", POINTS, slots=2)
    both = mg.solve.Rates(lambda cells, _, t: [cells[0][0], cells[1][0]])
    for absolute, message in (
        ((1e-9,), "1 absolute errors for 2 fields"),
        (-1.0, "absolute=-1"),
        (True, "absolute=True"),
    ):
        with pytest.raises(mg.ProgramError, match=message):
            mg.solve.integrator("dp5").record(mg.Program(), both, two, absolute=absolute)
    mg.solve.integrator("dp5").record(mg.Program(), both, two, absolute=np.float32(0))
