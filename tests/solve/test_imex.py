"""Methods with an implicit linear part: known errors, orders, steps far beyond explicit limits, and equal bits."""

from __future__ import annotations

import functools
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate

import minga as mg
from minga.engine.operations import Let, flat
from minga.lang.linear import linear_parts
from minga.models.pde import choice
from minga.solve import INTEGRATORS
from minga.solve.integrators import imex
from thinned import thinned

METHODS = [name for name, one in INTEGRATORS.items() if one.split]


def ended(model: mg.Model, steps: int) -> dict[str, np.ndarray]:
    """The fields after some steps."""
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        for name, value in model.initial.items():
            engine.set(model.field(name), value)
        assert engine.run(model.step, steps).ok
        return {name: np.asarray(engine.gather(model.field(name))) for name in model.output}


# The linear part -----------------------------------------------------------------------------------------------------
@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("text", "linear"),
    [
        ("0.1*laplace(u) - u*d_dx(u)", "0.1*laplace(u)"),
        ("u - u**3 + cos(x)*laplace(u)/2 + sin(t)", "u + cos(x)*laplace(u)/2"),
        ("laplace(u**3 - u - 0.04*laplace(u))", "-laplace(u) - 0.04*laplace(laplace(u))"),
        ("-(2*(3 - laplace(u)) - exp(u))", "2*laplace(u)"),
        ("div((2 + cos(x))*grad(u)) + u*laplace(u)", "div((2 + cos(x))*grad(u))"),
        ("where(x > 3, laplace(u), d_dx(u) + 1)", "where(x > 3, laplace(u), d_dx(u))"),
    ],
)
def test_linear_part_of_rates(text: str, linear: str) -> None:
    grid = mg.Grid((24,), spacing=0.25, periodic=True)
    u, parts = mg.Field("u", grid), [mg.Field(name, grid) for name in ("linear", "rest", "both", "expected")]
    rates = [mg.pde(each, grid, dt=0.1, integrator="euler").evolution.rates for each in (text, linear)]

    @mg.kernel
    def split(u, linear, rest, both, expected):  # type: ignore[no-untyped-def]
        whole, known = (each.function([u], [], mg.TIME)[0] for each in rates)
        ((one, other),) = linear_parts([whole], lambda node: node.op == "read" and node.data[0] == 0)
        linear[0], rest[0], both[0], expected[0] = one, 0.0 if other is None else other, whole, known

    program = mg.Program()
    program.apply(split, u, *parts)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:
        engine.set(u, np.random.default_rng(1).normal(size=24))
        engine.run(program)
        one, other, both, expected = (np.asarray(engine.gather(item)) for item in parts)
    assert one == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert one + other == pytest.approx(both, rel=1e-12, abs=1e-12)


def test_rates_without_a_linear_term_that_reads_neighbours_are_refused() -> None:
    with pytest.raises(mg.ProgramError, match="nothing can be implicit"):
        mg.pde("div(u*grad(u)) - u", mg.Grid((8,)), dt=0.1, integrator="sbdf2")


def test_single_precision_is_refused() -> None:
    with pytest.raises(mg.ProgramError, match="linear systems need f8"):
        mg.pde("laplace(u)", mg.Grid((8,)), dt=0.1, integrator="ars443", dtype="f4")


# Accuracy ------------------------------------------------------------------------------------------------------------
def burgers(method: str, steps: int) -> np.ndarray:
    """Burgers' equation by differences of high order at t = 1."""
    h = 2 * math.pi / 64
    grid = mg.Grid((64,), spacing=h, origin=-h / 2, periodic=True)
    model = mg.pde(
        "-u*d_dx(u, order=16) + 0.1*laplace(u, order=16)", grid, initial={"u": lambda x: np.sin(x)}, integrator=method,
        dt=1 / steps,
    )  # fmt: skip
    return ended(model, steps)["u"]


@functools.cache
def burgers_reference() -> np.ndarray:
    return burgers("rk4", 640)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "errors"),
    thinned(
        [
            ("imex-euler", (1.70e-2, 8.18e-3)),
            ("cnab2", (1.33e-3, 3.28e-4)),
            ("sbdf2", (2.31e-3, 5.67e-4)),
            ("ars222", (7.41e-4, 1.83e-4)),
            ("ars443", (6.12e-5, 9.00e-6)),
        ],
        ("sbdf2", (2.31e-3, 5.67e-4)),
    ),
)
def test_errors_for_burgers_equation(method: str, errors: tuple[float, float]) -> None:
    """The errors of the same methods with a spectral method in space, where explicit ones overflow."""
    for steps, expected in zip((20, 40), errors, strict=True):
        found = np.abs(burgers(method, steps) - burgers_reference()).max()
        assert found == pytest.approx(expected, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("method", thinned(METHODS, "cnab2"))
def test_order_with_walls_that_change(method: str) -> None:
    """A solution for which differences and conditions of order 4 are exact: what remains is the error of the method.

    Conditions that change reduce the order of ARS(4,4,3) to that of its stages.
    """
    text = "laplace(u, order=4) - u**2 - (1 + x**2)*sin(t) - 2*cos(t) + ((1 + x**2)*cos(t))**2"
    errors = []
    for steps in (16, 32):
        grid = mg.Grid((12,), spacing=1 / 12)
        model = mg.pde(
            text, grid, initial="1 + x**2", integrator=method, dt=1 / steps,
            boundary={"x": (mg.dirichlet(lambda x, t: mg.cos(t), 4), mg.neumann(lambda x, t: 2 * mg.cos(t), 4))},
        )  # fmt: skip
        x = (np.arange(12) + 0.5) / 12
        errors.append(np.abs(ended(model, steps)["u"] - (1 + x**2) * math.cos(1.0)).max())
    assert math.log2(errors[0] / errors[1]) == pytest.approx(min(INTEGRATORS[method].order, 2), abs=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("method", thinned(METHODS, "sbdf2"))
def test_order_with_steps_that_change(method: str) -> None:
    """Steps that are longer and shorter by 30 % in turn keep the order."""
    errors = []
    for steps in (40, 80):
        dt, time = mg.Register("dt"), 0.0
        u = mg.Field("u", mg.Grid((8,), spacing=0.7, periodic=True), slots=2)
        rates = mg.solve.Rates(lambda cells, _, t: [mg.laplace(cells[0]) - cells[0][0] ** 2 + mg.sin(3.0 * t)])
        step = mg.Program("step")
        recorded = mg.solve.integrator(method).record(step, rates, (u,), dt=dt)
        model = mg.Model(
            "changing", u.grid, (u, *recorded.fields), step, output=("u",), hierarchies=recorded.hierarchies
        )
        with mg.Engine(model.layouts("slabs", 1)) as engine:
            engine.set(u, np.cos(np.arange(8) * math.pi / 4))
            for n in range(steps):
                engine.write(dt, (1.3 if n % 3 == 0 else 0.85) / steps)
                engine.run(step)
                time += (1.3 if n % 3 == 0 else 0.85) / steps
            errors.append((time, np.asarray(engine.gather(u))))
    found = [np.abs(values - converged(time)).max() for time, values in errors]
    assert math.log2(found[0] / found[1]) == pytest.approx(INTEGRATORS[method].order, abs=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("method", thinned(["cnab2", "sbdf2", "bdf2"], "sbdf2"))
def test_steps_shortened_for_output_keep_the_order(method: str) -> None:
    """Frames at multiples of 0.29, of which none is a multiple of dt: errors at the end fall by four."""
    text = "laplace(u, order=4) - u**2 - (1 + x**2)*sin(t) - 2*cos(t) + ((1 + x**2)*cos(t))**2"
    x = (np.arange(12) + 0.5) / 12
    errors = []
    for steps in (16, 32):
        model = mg.pde(
            text, mg.Grid((12,), spacing=1 / 12), initial="1 + x**2", integrator=method, dt=1 / steps, tolerance=1e-9,
            boundary={"x": (mg.dirichlet(lambda x, t: mg.cos(t), 4), mg.neumann(lambda x, t: 2 * mg.cos(t), 4))},
        )  # fmt: skip
        history = mg.run(model, until=1.0, every=0.29)
        assert history.time.values.tolist() == pytest.approx([0.0, 0.29, 0.58, 0.87, 1.0])
        errors.append(np.abs(history.u.values[-1] - (1 + x**2) * math.cos(1.0)).max())
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.3)


def converged(time: float) -> np.ndarray:
    """The solution of the same semi-discrete system by SciPy."""

    def rates(t: float, u: np.ndarray) -> np.ndarray:
        return (np.roll(u, 1) - 2 * u + np.roll(u, -1)) / 0.49 - u**2 + np.sin(3 * t)

    start = np.cos(np.arange(8) * math.pi / 4)
    return integrate.solve_ivp(rates, (0, time), start, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


# Stability -----------------------------------------------------------------------------------------------------------
def amplification(method: str, z: float, steps: int) -> float:
    """What steps with z = -dt * rate make of 1, by the formulas of the method."""
    stages = {"imex-euler": imex.EULER, "ars222": imex.ARS222}.get(method, imex.ARS443)
    before, now = 1.0, 1.0
    for n in range(steps):
        if method == "cnab2" and n:
            new = now * (1 - z / 2) / (1 + z / 2)
        elif method == "sbdf2" and n:
            new = (2 * now - before / 2) / (1.5 + z)
        else:
            levels: list[float] = []
            for weights in stages.implicit:
                total = now - z * sum(a * u for a, u in zip(weights, levels, strict=False))
                levels.append(total / (1 + z * weights[-1]))
            new = levels[-1]
        before, now = now, new
    return now


@pytest.mark.slow
@pytest.mark.parametrize("method", thinned(METHODS, "sbdf2", "ars222"))
def test_heat_far_beyond_the_explicit_limit(method: str) -> None:
    """Steps of 100 times the explicit limit: a wave decays as the method says, and the shortest one does not grow."""
    grid = mg.Grid((64,), periodic=True)
    x = np.arange(64)
    dt, steps = 50.0, 3
    for k in (1, 32):
        model = mg.pde("laplace(u)", grid, initial=np.cos(2 * math.pi * k * x / 64), integrator=method, dt=dt)
        found = ended(model, steps)["u"]
        factor = amplification(method, dt * (2 - 2 * math.cos(2 * math.pi * k / 64)), steps)
        assert found[0] == pytest.approx(factor, rel=1e-6, abs=1e-6)
        assert np.abs(found).max() < 1.0


@pytest.mark.slow
def test_fields_are_coupled() -> None:
    """Schroedinger's equation, whose linear part couples two fields: steps 50 times beyond the limit keep the norm."""
    grid = mg.Grid((100,), spacing=0.1, periodic=True)
    start = np.exp(2j * math.pi * np.arange(100) / 100)
    model = mg.pde({"psi": "I*laplace(psi)/2"}, grid, dtype="c16", initial={"psi": start}, integrator="cnab2", dt=0.7)
    found = ended(model, 5)
    rate = (2 - 2 * math.cos(2 * math.pi / 100)) / 0.01 / 2
    phase = np.angle(found["psi_re"][0] + 1j * found["psi_im"][0])
    assert np.hypot(found["psi_re"], found["psi_im"]) == pytest.approx(1.0, abs=1e-3)
    assert phase == pytest.approx(-5 * 0.7 * rate, abs=2e-2)


# Known solutions -----------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_allen_cahn() -> None:
    h = 2 * math.pi / 64
    grid = mg.Grid((64,), spacing=h, origin=-h / 2, periodic=True)
    model = mg.pde(
        "0.01*laplace(u) + u - u**3", grid, order=10, initial="0.5*cos(x) + 0.2*cos(2*x)", integrator="ars443", dt=0.02
    )
    u = ended(model, 50)["u"]
    slope = np.fft.irfft(1j * np.arange(33) * np.fft.rfft(u))
    assert u[0] == pytest.approx(0.931923974286, abs=1e-5)
    assert u[32] == pytest.approx(-0.653703489233, abs=1e-5)
    assert h * (0.005 * slope**2 + (1 - u * u) ** 2 / 4).sum() == pytest.approx(0.582020021354, abs=1e-5)


@pytest.mark.slow
def test_fisher_wave() -> None:
    """The exact wave of speed 5 / sqrt(6), between walls that follow it."""
    c = 5 / math.sqrt(6)

    def wave(x: object, t: object) -> object:
        return (1 + mg.exp((x - c * t) / math.sqrt(6))) ** -2  # type: ignore[operator]

    grid = mg.Grid((400,), spacing=0.1, origin=-10.0)
    model = mg.pde(
        "laplace(u) + u*(1 - u)", grid, order=4, initial="(1 + exp(x / sqrt(6)))**(-2)", integrator="ars443", dt=0.1,
        boundary=mg.dirichlet(wave, 4),
    )  # fmt: skip
    u = ended(model, 50)["u"]
    x = -10 + 0.1 * (np.arange(400) + 0.5)
    assert np.abs(u - (1 + np.exp((x - c * 5) / math.sqrt(6))) ** -2).max() < 1e-4
    assert np.interp(10.0, x, u) == pytest.approx(0.2714759290602, abs=2e-4)


def cahn_hilliard(n: int, dt: float, steps: int) -> np.ndarray:
    h = 2 * math.pi / n
    grid = mg.Grid((n, n), spacing=h, origin=-h / 2, periodic=True)
    model = mg.pde(
        {"c": "laplace(c**3 - c - 0.04*laplace(c))"}, grid, order=8, integrator="ars443", dt=dt,
        initial={"c": "0.2*cos(x)*cos(y) + 0.1*cos(3*x) + 0.05*sin(2*y)"},
    )  # fmt: skip
    return ended(model, steps)["c"]


def energy(c: np.ndarray) -> float:
    """Cahn and Hilliard's energy, with the gradient of the Fourier series."""
    n = len(c)
    k = np.fft.fftfreq(n, 1 / n)
    modes = np.fft.fft2(c)
    squares = sum(np.fft.ifft2(1j * each * modes).real ** 2 for each in (k[:, None], k[None, :]))
    return float((2 * math.pi / n) ** 2 * ((1 - c * c) ** 2 / 4 + 0.02 * squares).sum())


@pytest.mark.slow
def test_cahn_hilliard() -> None:
    assert energy(cahn_hilliard(32, 1 / 40, 20)) == pytest.approx(7.2071449, abs=0.01)


@pytest.mark.slow
def test_cahn_hilliard_on_a_fine_grid() -> None:
    c = cahn_hilliard(64, 1 / 100, 100)
    assert energy(c) == pytest.approx(6.8718185, abs=1e-4)
    assert c[0, 0] == pytest.approx(0.9616294, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("n", [32, 128])
def test_long_steps_of_fourth_derivatives(n: int) -> None:
    """Cahn and Hilliard's equation with steps of 100 to 400 times the explicit limit: order 2."""
    limit = 2 / (64 / 0.25**4)
    ends = []
    for steps in (8, 16, 32):
        model = mg.pde(
            {"c": "laplace(c**3 - c - laplace(c))"}, mg.Grid((n, n), spacing=0.25, periodic=True), integrator="sbdf2",
            initial={"c": "0.3*cos(pi*x/4)*cos(pi*y/2) + 0.1*cos(3*pi*x/4)"}, dt=3200 * limit / steps,
        )  # fmt: skip
        ends.append(ended(model, steps)["c"])
    changes = [np.abs(a - b).max() for a, b in itertools.pairwise(ends)]
    assert math.log2(changes[0] / changes[1]) == pytest.approx(2.0, abs=0.3)
    assert ends[-1].mean() == pytest.approx(0.0, abs=1e-12)


# Bits, restarts and failures -----------------------------------------------------------------------------------------
def mixed(method: str, dt: float = 2.0) -> mg.Model:
    """Two coupled fields with walls that change, and steps that are too long for explicit methods."""
    return mg.pde(
        {"u": "0.5*laplace(u) - u*v + sin(t)", "v": "div((1 + 0.1*x)*grad(v)) + u**2 - v"}, mg.Grid((8, 20)),
        initial={"u": "sin(x)*cos(y)", "v": 0.5}, integrator=method, dt=dt,
        boundary={"u": {"y": mg.dirichlet(lambda y, x, t: mg.sin(t) * x / 20)}, "v": mg.neumann(0.0)},
    )  # fmt: skip


@pytest.mark.slow  # test_implicit.py has the same systems on ranks
@pytest.mark.parametrize("method", METHODS)
def test_same_bits_on_ranks(method: str) -> None:
    def run(comm: mg.SerialComm) -> list[np.ndarray | None]:
        model = mixed(method)
        with mg.Engine(model.layouts("slabs", comm.size), comm=comm) as engine:
            for name, value in model.initial.items():
                engine.set(model.field(name), value)
            engine.run(model.step, 2)
            return [engine.gather(model.field(name)) for name in model.output]

    alone = mg.run_virtual(1, run)[0]
    for ranks in (2, 3):
        together = mg.run_virtual(ranks, run)[0]
        assert all(np.array_equal(one, other) for one, other in zip(alone, together, strict=True))


@pytest.mark.slow
def test_long_steps_of_fourth_derivatives_have_the_same_bits_on_ranks() -> None:
    def run(comm: mg.SerialComm) -> np.ndarray | None:
        model = mg.pde(
            "-biharmonic(u) - u**3", mg.Grid((12, 33)), initial={"u": "cos(x) + sin(y)"}, integrator="sbdf2", dt=50.0,
            boundary={"x": mg.dirichlet(lambda y, x, t: mg.sin(t))},
        )  # fmt: skip
        strong = next(op.register for op in flat(model.step.operations) if isinstance(op, Let) and "strong" in op.label)
        with mg.Engine(model.layouts("slabs", comm.size), comm=comm) as engine:
            engine.set(model.field("u"), model.initial["u"])
            assert engine.run(model.step, 2).ok
            assert engine.read(strong) == 2
            return engine.gather(model.field("u"))

    alone = mg.run_virtual(1, run)[0]
    assert alone is not None
    assert all(np.array_equal(alone, mg.run_virtual(ranks, run)[0]) for ranks in (2, 3))


@pytest.mark.slow
@pytest.mark.parametrize("method", thinned(["cnab2", "sbdf2", "ars443"], "sbdf2"))
def test_same_bits_after_a_restart(method: str, tmp_path: Path) -> None:
    """The explicit rates and the length of the step before are part of the state."""
    whole = mg.run(mixed(method, 0.5), 6)
    mg.run(mixed(method, 0.5), 3, out=tmp_path / "run", checkpoint=mg.Checkpointing(at_end=True))
    resumed = mg.run(mixed(method, 0.5), 6, out=tmp_path / "run", resume=True)
    assert resumed.attrs["digest"] == whole.attrs["digest"]


@pytest.mark.slow
def test_a_linear_system_that_is_not_solved_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (imex, choice):
        monkeypatch.setattr(module, "LIMIT", 2)
    model = mg.pde(
        {"u": "laplace(v)", "v": "-laplace(u)"}, mg.Grid((60,)), initial="sin(x)", dt=100.0, integrator="ars222"
    )
    with pytest.raises(mg.RunError, match="not solved after 2 iterations") as caught:
        mg.run(model, until=200.0)
    assert "shorter dt" in str(caught.value.remedy)


# The automatic choice ------------------------------------------------------------------------------------------------
@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("text", "dt", "expected", "reason"),
    [
        ("laplace(u) - u**3", 0.3, "rk4", "explicit steps are stable up to"),
        ("laplace(u) - u**3", 0.6, "ars443", "with an implicit linear part up to"),
        ("laplace(u)", 100.0, "ars443", "with an implicit linear part of any length"),
        ("div((1 + u**2)*grad(u))", 5.0, "tr-bdf2", "explicit steps are stable up to"),
        ("laplace(u)", None, "bs3", "not stiff"),
    ],
)
def test_automatic_choice_says_why(text: str, dt: float | None, expected: str, reason: str) -> None:
    model = mg.pde(text, mg.Grid((16,)), initial=1.0, dt=dt)
    note = dict(model.notes)["integrator"]
    assert note.startswith(expected)
    assert reason in note
    assert note in repr(model)


@pytest.mark.slow
def test_automatic_choice_compares_the_cost_of_steps() -> None:
    """Explicit steps for diffusion across the grid, beside implicit ones that the tolerance asks for."""

    def chosen(cells: int, equation: str = "laplace(u)", **options: float) -> str:
        return dict(mg.pde(equation, mg.Grid((cells,)), initial=1.0, **options).notes)["integrator"]

    assert chosen(160, "laplace(u**2)").startswith("bs3")
    assert "explicit steps in the time of the slowest rate" in chosen(400)
    assert chosen(400).startswith("tr-bdf2")
    assert chosen(160, tolerance=1e-3).startswith("tr-bdf2")
    assert "integrals have no derivative" in chosen(400, "laplace(u) + mean(u)")


@pytest.mark.slow
def test_stiff_equations_choose_an_implicit_method() -> None:
    fine = mg.pde("laplace(u) - u**3", mg.Grid((400,), spacing=1 / 400), initial=0.1)
    coarse = mg.pde("laplace(u) + 100*(u - u**3)", mg.Grid((400,)), initial=0.1)
    assert dict(fine.notes)["integrator"].startswith("tr-bdf2")
    assert dict(coarse.notes)["integrator"].startswith("bs3")


def test_notes_say_which_terms_are_implicit() -> None:
    model = mg.pde("-u*d_dx(u) + 0.1*laplace(u) + 2*(1 - u)", mg.Grid((16,)), initial=1.0, dt=0.1, integrator="sbdf2")
    notes = dict(model.notes)
    assert notes["implicit"] == "u: 0.1 * laplace(u), part of 2 * (1 - u)"
    assert notes["explicit"] == "u: -u * d_dx(u), part of 2 * (1 - u)"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["cnab2", "sbdf2"])
def test_a_step_much_longer_than_the_one_before(method: str) -> None:
    """A wave that decays with the rate 1000: extrapolated from a step of 0.001, one of 0.1 would turn it over."""
    grid = mg.Grid((8,), spacing=0.1, periodic=True)
    start = np.cos(math.pi * np.arange(8))
    model = mg.pde("2.5*laplace(u)", grid, initial={"u": start}, integrator=method, dt=0.1)
    assert model.clock is not None
    assert isinstance(model.clock.dt, mg.Register)
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        engine.set(model.field("u"), start)
        for dt in (0.001, 0.1):
            engine.write(model.clock.dt, dt)
            engine.run(model.step)
        found = np.asarray(engine.gather(model.field("u")))
    assert np.abs(found).max() < 0.1
