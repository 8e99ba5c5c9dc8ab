"""Implicit integrators: orders, known errors, stiff systems, chosen steps, ranks, restart and failures."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import minga as mg
from minga.engine.operations import Let, flat
from thinned import thinned

METHODS = ("tr-bdf2", "bdf2")
POINTS = mg.Grid((4,), periodic=True)
G = 2 - math.sqrt(2)


def register(model: mg.Model, name: str) -> mg.Register:
    """A register that the step of a model sets."""
    return next(op.register for op in flat(model.step.operations) if isinstance(op, Let) and op.register.name == name)


def stepped(model: mg.Model, steps: int, field: str = "u") -> np.ndarray:
    """The values of a field after some steps from the initial values."""
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        for name, value in model.initial.items():
            engine.set(model.field(name), value)
        assert engine.run(model.step, steps).ok
        found = engine.gather(model.field(field))
    assert found is not None
    return found


def run_to(model: mg.Model, end: float, field: str = "u") -> tuple[np.ndarray, int]:
    """The values of a field at a time, and the number of steps that the method chose."""
    assert model.clock is not None
    assert model.clock.target is not None
    steps = 0
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        for name, value in model.initial.items():
            engine.set(model.field(name), value)
        engine.write(model.clock.target, end)
        while engine.read(mg.TIME) < end:
            assert engine.run(model.step).ok
            steps += 1
        assert engine.read(mg.TIME) == end
        found = engine.gather(model.field(field))
    assert found is not None
    return found, steps


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_order(method: str) -> None:
    """Of steps of u' = v, v' = -u - 0.2 v + sin(2 t), against SciPy."""

    def rates(t: float, y: np.ndarray) -> list[float]:
        return [y[1], -y[0] - 0.2 * y[1] + math.sin(2 * t)]

    exact = solve_ivp(rates, (0, 2), [1.0, 0.0], method="DOP853", rtol=1e-12, atol=1e-13).y[0, -1]
    errors = []
    for n in (40, 80):
        model = mg.pde(
            {"u": "v", "v": "-u - 0.2*v + sin(2*t)"}, POINTS, initial={"u": 1.0}, integrator=method, dt=2.0 / n
        )
        errors.append(abs(stepped(model, n)[0] - exact))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.slow
def test_a_method_of_two_steps_begins_again() -> None:
    """Where the length of the step before is set to 0, each step is one of TR-BDF2."""
    found = []
    for method in METHODS:
        u, step = mg.Field("u", POINTS, slots=2), mg.Program("step")
        rates = mg.solve.Rates(lambda cells, _, t: [-(cells[0][0] ** 2)])
        recorded = mg.solve.integrator(method).with_given_steps().record(step, rates, (u,), dt=0.1)
        if recorded.before is not None:
            step.let(recorded.before, 0.0)
        with mg.Engine(mg.Layout.single(POINTS.box, 1), grid=POINTS) as engine:
            engine.set(u, 1.0)
            engine.run(step, 3)
            found.append(engine.gather(u))
    assert np.array_equal(*found)


def burgers(method: str, dt: float, modes: int = 64) -> np.ndarray:
    """Burgers' equation by differences of high order at t = 1."""
    h = 2 * math.pi / modes
    grid = mg.Grid((modes,), spacing=h, origin=-h / 2, periodic=True)
    model = mg.pde(
        "-d_dx(u**2/2, order=16) + 0.1*laplace(u, order=16)", grid, initial={"u": lambda x: np.sin(x)},
        integrator=method, dt=dt,
    )  # fmt: skip
    return stepped(model, round(1 / dt))


@pytest.mark.slow  # tests/physics/test_equations.py has their orders
def test_errors_for_burgers_equation() -> None:
    """The known errors of steps of 1/20 and 1/40, with which explicit methods overflow or come close to it."""
    reference = burgers("rk4", 1 / 640)
    for dt, expected in ((1 / 20, 1.11e-4), (1 / 40, 2.76e-5)):
        assert np.abs(burgers("tr-bdf2", dt) - reference).max() == pytest.approx(expected, rel=0.005)


def amplified(method: str, z: float, steps: int) -> float:
    """The exact result of some steps of u' = z u / dt from 1."""
    first = (1 + G / 2 * z) / (1 - G / 2 * z)
    one = (first - (1 - G) ** 2) / (G * (2 - G)) / (1 - (1 - G) / (2 - G) * z)
    if method == "tr-bdf2":
        return one**steps
    before, now = 1.0, one
    for _ in range(steps - 1):
        before, now = now, (4 * now - before) / (3 - 2 * z)
    return now


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_heat_with_steps_a_hundred_times_as_long_as_explicit_ones(method: str) -> None:
    """Each wave is multiplied by what the method makes of its eigenvalue; the shortest ones decay, too."""
    n, steps = 32, 6
    h = 1 / n
    dt = 100 * h * h / 2
    x = (np.arange(n) + 0.5) * h
    waves = {2: 1.0, 7: 0.5, 31: 0.25}
    start = sum(size * np.cos(math.pi * k * x) for k, size in waves.items())
    model = mg.pde("laplace(u)", mg.Grid((n,), ("x",), spacing=h), initial={"u": start}, integrator=method, dt=dt)
    values = {k: -4 / h**2 * math.sin(math.pi * k * h / 2) ** 2 for k in waves}
    expected = sum(
        size * amplified(method, values[k] * dt, steps) * np.cos(math.pi * k * x) for k, size in waves.items()
    )
    found = stepped(model, steps)
    assert np.abs(found - expected).max() < 1e-9
    assert np.abs(found).max() < 0.05


STIFF = {"u": "laplace(u) - u*v + sin(t)", "v": "0.1*laplace(v) + 50*(u**2 - v)"}


def stiff(method: str, n: int = 24, **options: object) -> mg.Model:
    """Two coupled fields with a wall of a value that depends on the time, which the first field obeys at the start."""
    grid = mg.Grid((n,), ("x",), spacing=1 / n)
    walls = {"u": {"x": (mg.dirichlet(lambda x, t: 1.0 + mg.sin(3.0 * t)), mg.robin(1.0, 0.5))}}
    return mg.pde(STIFF, grid, initial={"u": "1 - x/3", "v": 1.0}, boundary=walls, integrator=method, **options)


def exact_stiff(end: float, n: int = 24) -> np.ndarray:
    h = 1 / n

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        u, v = np.split(y, 2)
        wide = np.concatenate([[2 * (1 + math.sin(3 * t)) - u[0]], u, [((2 - h) * u[-1] + 2 * 0.5 * h) / (2 + h)]])
        flat_ = np.concatenate([v[:1], v, v[-1:]])
        bend = (wide[2:] - 2 * u + wide[:-2]) / h**2
        bend_v = (flat_[2:] - 2 * v + flat_[:-2]) / h**2
        return np.concatenate([bend - u * v + math.sin(t), 0.1 * bend_v + 50 * (u**2 - v)])

    x = (np.arange(n) + 0.5) * h
    start = np.concatenate([1 - x / 3, np.ones(n)])
    return solve_ivp(rates, (0, end), start, method="Radau", rtol=1e-10, atol=1e-12).y[:n, -1]


@pytest.mark.slow
@pytest.mark.parametrize("method", thinned(METHODS, "bdf2"))
def test_chosen_steps_follow_the_tolerance(method: str) -> None:
    exact = exact_stiff(0.5)
    errors, counts = [], []
    for tolerance in (1e-3, 1e-5):
        found, steps = run_to(stiff(method, tolerance=tolerance), 0.5)
        errors.append(np.abs(found - exact).max())
        counts.append(steps)
    assert errors[0] < 5e-3
    assert errors[1] < 2e-4
    assert errors[1] < 0.2 * errors[0]
    assert 2.5 * counts[0] < counts[1] < 400  # explicit steps have at most 1/1300


@pytest.mark.slow
@pytest.mark.parametrize("method", thinned(METHODS, "tr-bdf2"))
def test_steps_of_a_given_length_solve_stiff_systems(method: str) -> None:
    exact = exact_stiff(0.5)
    errors = [np.abs(stepped(stiff(method, dt=0.5 / n), n) - exact).max() for n in (20, 40)]
    assert errors[1] < 5e-4
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_step_that_is_shortened_does_not_shorten_the_next(method: str) -> None:
    model = stiff(method, tolerance=1e-4)
    assert model.clock is not None
    assert model.clock.target is not None
    wish = register(model, "step.wish")
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        for name, value in model.initial.items():
            engine.set(model.field(name), value)
        engine.write(model.clock.target, math.inf)
        assert engine.run(model.step, 30).ok
        wished, time = float(engine.read(wish)), float(engine.read(mg.TIME))
        engine.write(model.clock.target, time + 1e-3 * wished)
        assert engine.run(model.step).ok
        assert engine.read(mg.TIME) == time + 1e-3 * wished
        assert engine.read(wish) >= wished
        engine.write(model.clock.target, math.inf)
        time = float(engine.read(mg.TIME))
        assert engine.run(model.step).ok
        assert engine.read(mg.TIME) - time >= 0.5 * wished


@pytest.mark.slow
def test_allen_cahn_energy() -> None:
    """Of u_t = 0.01 u_xx + u - u^3 at t = 1, and two values (DOP853 with 256 modes)."""
    n = 64
    h = 2 * math.pi / n
    grid = mg.Grid((n,), ("x",), spacing=h, origin=-h / 2, periodic=True)
    model = mg.pde(
        "0.01*laplace(u, order=8) + u - u**3", grid, initial={"u": "0.5*cos(x) + 0.2*cos(2*x)"}, integrator="bdf2",
        dt=1 / 400,
    )  # fmt: skip
    u = stepped(model, 400)
    k = np.fft.rfftfreq(n, 1 / n)
    slope = np.fft.irfft(1j * k * np.fft.rfft(u), n)
    energy = h * np.sum(0.005 * slope**2 + (1 - u**2) ** 2 / 4)
    assert u[0] == pytest.approx(0.931923974286, abs=1e-5)
    assert u[n // 2] == pytest.approx(-0.653703489233, abs=1e-5)
    assert energy == pytest.approx(0.582020021354, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "dt"), thinned([(m, dt) for m in METHODS for dt in (None, 0.02)], ("bdf2", None)))
def test_same_bits_on_ranks(method: str, dt: float | None) -> None:
    def run(comm: mg.SerialComm) -> np.ndarray | None:
        model = stiff(method, dt=dt, tolerance=1e-4)
        with mg.Engine(model.layouts("slabs", comm.size), comm=comm) as engine:
            for name, value in model.initial.items():
                engine.set(model.field(name), value)
            assert engine.run(model.step, 8).ok
            return engine.gather(model.field("u"))

    alone = mg.run_virtual(1, run)[0]
    for count in (2, 3):
        assert np.array_equal(alone, mg.run_virtual(count, run)[0])


@pytest.mark.slow  # test_imex.py has one of two steps
@pytest.mark.parametrize(("method", "dt"), [(m, dt) for m in METHODS for dt in (None, 0.02)])
def test_same_bits_after_a_restart(method: str, dt: float | None, tmp_path: Path) -> None:
    options = {"dt": dt, "tolerance": 1e-4}
    whole = mg.run(stiff(method, **options), 12)
    mg.run(stiff(method, **options), 5, out=tmp_path / "run", checkpoint=mg.Checkpointing(at_end=True))
    resumed = mg.run(stiff(method, **options), 12, out=tmp_path / "run", resume=True)
    assert float(resumed.time[-1]) == float(whole.time[-1])
    assert resumed.attrs["digest"] == whole.attrs["digest"]


@pytest.mark.slow
def test_rejected_steps_of_bdf2_leave_no_trace() -> None:
    """A pulse for which steps are repeated: steps of the accepted lengths alone give the same."""
    text, lengths, rejected = "-u + 5*exp(-((t - 1)/0.05)**2)", [], 0
    model = mg.pde(text, POINTS, initial={"u": 1.0}, integrator="bdf2", tolerance=1e-4)
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        engine.set(model.field("u"), model.initial["u"])
        while (before := engine.read(mg.TIME)) < 1.5:
            assert engine.run(model.step).ok
            lengths.append(engine.read(mg.TIME) - before)
            rejected += int(engine.read(register(model, "step.shrunk")))
        found = engine.gather(model.field("u"))
    assert rejected > 0
    model = mg.pde(text, POINTS, initial={"u": 1.0}, integrator="bdf2", tolerance=1e-4, dt=1.0)
    assert model.clock is not None
    assert isinstance(model.clock.dt, mg.Register)
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        engine.set(model.field("u"), model.initial["u"])
        for length in lengths:
            engine.write(model.clock.dt, length)
            assert engine.run(model.step).ok
        assert engine.gather(model.field("u")) == pytest.approx(found, rel=1e-12)


@pytest.mark.slow
def test_failures_are_reported() -> None:
    grid = mg.Grid((8,), ("x",), spacing=1 / 8, periodic=True)
    model = mg.pde("laplace(u) + 100*exp(u)", grid, initial={"u": 1.0}, integrator="tr-bdf2", dt=0.1)
    with pytest.raises(mg.RunError, match=r"tr-bdf2: at time .* the implicit equations of the step were not solved"):
        mg.run(model, until=1.0)
    model = mg.pde("u**2", grid, initial={"u": 1.0}, integrator="bdf2", tolerance=1e-3)
    with pytest.raises(mg.RunError, match=r"bdf2: at time (1|0\.99).* even a step of .* has too large an error"):
        mg.run(model, until=2.0)


def test_what_cannot_be_recorded() -> None:
    with pytest.raises(mg.ProgramError, match="'tr-bdf2' takes no noise"):
        mg.pde("-u", POINTS, noise=1.0, integrator="tr-bdf2")
    with pytest.raises(mg.ProgramError, match="'u' is f4"):
        mg.pde("-u", POINTS, dtype="f4", integrator="bdf2")
    with pytest.raises(mg.LayoutError, match="cannot be linearised"):
        mg.pde("laplace(u)", mg.Grid((8,)), boundary=mg.custom(lambda edge: edge[0] ** 2), integrator="bdf2")
    rates = mg.solve.Rates(lambda cells, _, t: [cells[0][0]])
    with pytest.raises(mg.ProgramError, match="single slot"):
        mg.solve.integrator("bdf2").record(mg.Program(), rates, (mg.Field("u", POINTS),), dt=0.1)
