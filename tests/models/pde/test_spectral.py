"""Spectral derivatives and the exponential integrator: published and exact solutions, same bits on all ranks."""

from __future__ import annotations

import ast
import functools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import minga as mg
from minga.engine.comm import Comm, run_virtual
from minga.models.pde import EquationError
from minga.models.pde.source import parse
from minga.models.pde.terms import Expansion, expand
from model_runs import assert_same, run_model

Values = NDArray[np.float64]
TAU = 2 * math.pi


def box(*shape: int, length: float = TAU, start: float = 0.0) -> mg.Grid:
    """A periodic box whose first cells have the coordinate `start`."""
    widths = [length / n for n in shape]
    return mg.Grid(shape, spacing=widths, origin=[start - width / 2 for width in widths], periodic=True)


def cells(model: mg.Model, steps: int) -> Values:
    """The first field after some steps."""
    return run_model(model, steps).fields[model.output[0]]


# Rates ---------------------------------------------------------------------------------------------------------------
EULER = functools.partial(mg.pde, space="spectral", integrator="euler", dt=1.0)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("d_dx(u)", lambda y, x: 2 * np.cos(2 * x) * np.cos(y)),
        ("d3_dx3(u) + d2_dxdy(u)", lambda y, x: -8 * np.cos(2 * x) * np.cos(y) - 2 * np.cos(2 * x) * np.sin(y)),
        ("laplace(u)", lambda y, x: -5 * np.sin(2 * x) * np.cos(y)),
        ("biharmonic(u)/5", lambda y, x: 5 * np.sin(2 * x) * np.cos(y)),
        ("|∇u|²", lambda y, x: (2 * np.cos(2 * x) * np.cos(y)) ** 2 + (np.sin(2 * x) * np.sin(y)) ** 2),
        ("dot(grad(u), (0, k))", lambda y, x: 6 * np.cos(2 * x) * np.cos(y)),
        ("div(k*grad(u))", lambda y, x: -15 * np.sin(2 * x) * np.cos(y)),
        ("div((1 + cos(y))*grad(u))",
         lambda y, x: -5 * (1 + np.cos(y)) * np.sin(2 * x) * np.cos(y) + np.sin(y) ** 2 * np.sin(2 * x)),
        ("div_grad(k, u)", lambda y, x: -15 * np.sin(2 * x) * np.cos(y)),
        ("-advect((k, 1), u)", lambda y, x: 3 * np.sin(2 * x) * np.sin(y) - 2 * np.cos(2 * x) * np.cos(y)),
        ("advect((k, 1), u, conservative=False)",
         lambda y, x: -3 * np.sin(2 * x) * np.sin(y) + 2 * np.cos(2 * x) * np.cos(y)),
        ("d(u, x) + (2 - k)*x*0", lambda y, x: 2 * np.cos(2 * x) * np.cos(y)),
        ("k - u + t", lambda y, x: 3 - np.sin(2 * x) * np.cos(y)),
        ("u*laplace(u*d_dx(u)) if u > 5 else k", lambda y, x: 3.0),
    ],
)  # fmt: skip
def test_derivatives_of_resolved_modes_are_exact(text: str, exact: Any) -> None:
    grid = box(16, 20)
    parameters = {"k": 3.0} if "k" in text else {}
    model = EULER(text, grid, parameters=parameters, initial={"u": "sin(2*x)*cos(y)"})
    y, x = np.meshgrid(grid.centres("y"), grid.centres("x"), indexing="ij")
    assert np.abs(cells(model, 1) - np.sin(2 * x) * np.cos(y) - exact(y, x)).max() < 1e-12


def test_linear_terms_are_found_through_operators() -> None:
    found = expand(
        parse("laplace(c**3 - c - g*laplace(c)) + d_dx(c)*c", "d(c)/dt"), (ours := Expansion("x", {"g": 2.0}))
    )
    assert {ast.unparse(term.body): dict(term.symbol) for term in found} == {
        "c ** 3": {(2,): 1.0}, "c": {(2,): -1.0, (4,): -2.0}, "@1 * c": {(0,): 1.0},
    }  # fmt: skip
    assert [(ast.unparse(term.body), dict(term.symbol)) for term in ours.auxiliary["@1"]] == [("c", {(1,): 1.0})]


def test_constants_need_not_be_literal() -> None:
    text = "pi*laplace(c) + sqrt(4)*laplace(c) + +laplace(c) - max(k, 2)*laplace(c) + (-1)**0.5*c"
    found = expand(parse(text, "d(c)/dt"), Expansion("x", {"k": 3.0}))
    assert {ast.unparse(term.body): dict(term.symbol) for term in found} == {
        "c": {(2,): math.pi}, "(-1) ** 0.5 * c": {(0,): 1.0},
    }  # fmt: skip
    notes = dict(mg.pde("pi*laplace(u) - d_dx(u**2)/2", box(8), space="spectral", integrator="etdrk4", dt=0.1).notes)
    assert notes["implicit"] == "u: 3.14159 * d2_dx2(u)"
    assert notes["explicit"] == "u: -0.5 * d_dx(u ** 2)"


@pytest.mark.slow
@pytest.mark.parametrize("noise", [None, 1.0])
def test_modes_that_are_not_kept_leave_the_fields(noise: float | None) -> None:
    integrator = "rk4" if noise is None else "euler-maruyama"
    model = mg.pde(
        "-u", box(16), initial={"u": "cos(2*x) + cos(6*x)"}, space="spectral", dealias=0.5, integrator=integrator,
        dt=0.01, noise=noise,
    )  # fmt: skip
    modes = np.abs(np.fft.rfft(cells(model, 2))) / 8
    assert modes[4:].max() < 1e-14
    assert modes[2] > 0.5


def test_alternating_signs_have_no_odd_derivative() -> None:
    model = EULER("d_dx(u)", box(8), initial={"u": np.array([1.0, -1.0] * 4)})
    assert np.array_equal(cells(model, 1), [1.0, -1.0] * 4)


def test_dealiasing_removes_what_squares_would_alias() -> None:
    """On 12 points cos(4x)^2 has cos(8x), which looks like cos(4x)."""
    aliased, kept = (
        cells(EULER("u**2", box(12), initial={"u": "cos(3*x)"}, dealias=share), 1) for share in (1.0, 2 / 3)
    )
    x = box(12).centres("x")
    assert np.abs(aliased - np.cos(3 * x) - 0.5 - 0.5 * np.cos(6 * x)).max() < 1e-14
    assert np.abs(kept - np.cos(3 * x) - 0.5).max() < 1e-14  # modes up to 3 remain


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("laplace(u, order=4)", {}, "laplace takes no order= here"),
        ("curl((u, u))", {}, "curl has no spectral form"),
        ("div(u)", {}, "a vector is expected"),
        ("laplace(u, u)", {}, "laplace takes 1 argument, found 2"),
        ("lapace(u)", {}, "unknown function 'lapace'"),
        ("laplace(w)", {}, "unknown name 'w'"),
        ("d(u, q)", {}, "d takes a value and an axis"),
        ("laplace(u)/0", {}, "division by zero"),
        ({"u": "v", "v": "u"}, {"dtype": {"u": "c16"}}, "d(v)/dt is complex, and its field is real"),
        ({"u": "v", "v": "I*laplace(v)"}, {"dtype": {"u": "c16"}}, "d(v)/dt is complex, and its field is real"),
        ("u", {"dtype": "f4"}, "spectral derivatives of"),
        (lambda u: u[0, 0], {}, "is a function"),
        ("u", {"dealias": 0.0}, "dealias=0.0"),
        ("u", {"space": "fourier"}, "space='fourier'"),
        ("u", {"boundary": mg.antiperiodic()}, "whose modes are periodic"),
        ("u**2", {"space": "differences", "integrator": "etdrk4"}, "no term of the rates is linear"),
        ("u", {"dt": None, "integrator": "etdrk4"}, "no stable step of 'etdrk4'"),
        ("u", {"dt": None, "integrator": "rk4"}, "no stable step of 'rk4'"),
    ],
)
def test_mistakes_are_named(text: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((mg.ProgramError, mg.LayoutError, EquationError)) as caught:
        mg.pde(text, box(8, 8), **{"dt": 0.1, "space": "spectral"} | options)
    assert message in caught.value.message


def test_walls_have_no_spectral_derivatives() -> None:
    with pytest.raises(mg.LayoutError, match="spectral derivatives on"):
        mg.pde("laplace(u)", mg.Grid((8, 8)), space="spectral", dt=0.1)


# Known solutions -----------------------------------------------------------------------------------------------------
@functools.cache
def burgers(dt: float, integrator: str = "etdrk4", steps: int = 0) -> Values:
    model = mg.pde(
        "nu*d2_dx2(u) - d_dx(u**2)/2", box(64), parameters={"nu": 0.1}, initial={"u": "sin(x)"}, space="spectral",
        integrator=integrator, dt=dt,
    )  # fmt: skip
    return cells(model, steps or round(1 / dt))


@pytest.mark.slow
def test_burgers_has_order_four() -> None:
    """Errors at t = 1 without dealiasing: A. Cox and P. Matthews' method on 64 modes."""
    exact = burgers(1 / 320)
    coarse, fine = (float(np.abs(burgers(dt) - exact).max()) for dt in (1 / 20, 1 / 40))
    assert coarse == pytest.approx(2.81e-6, rel=0.005)
    assert fine == pytest.approx(1.70e-7, rel=0.005)
    modes = np.fft.rfft(exact) * np.r_[1, np.full(31, 2), 1] / 64
    series = [float((modes * np.exp(1j * np.arange(33) * x)).real.sum()) for x in (1, 2, 3)]
    assert series == pytest.approx([0.4743508049208, 0.8470179122856, 0.3849203290838], abs=1e-6)  # Cole and Hopf


@pytest.mark.slow
def test_explicit_methods_take_spectral_rates() -> None:
    exact = burgers(1 / 320)
    assert np.abs(burgers(1 / 40, "rk4") - exact).max() == pytest.approx(6.44e-8, rel=0.01)


@pytest.mark.slow
def test_adaptive_methods_take_spectral_rates() -> None:
    model = mg.pde(
        "0.1*d2_dx2(u) - d_dx(u**2)/2", box(64), initial={"u": "sin(x)"}, space="spectral", integrator="dp5",
        tolerance=1e-8,
    )  # fmt: skip
    run: Any = mg.run
    assert np.abs(run(model, until=0.25).u.values[-1] - burgers(1 / 80, steps=20)).max() < 1e-7


def kuramoto_sivashinsky(n: int, dt: float, time: float) -> Values:
    u = cells(
        mg.pde(
            "-d_dx(u**2)/2 - d2_dx2(u) - d4_dx4(u)", box(n, length=32 * math.pi),
            initial={"u": "cos(x/16)*(1 + sin(x/16))"}, space="spectral", dealias=2 / 3, integrator="etdrk4", dt=dt,
        ),
        round(time / dt),
    )  # fmt: skip
    return u[[0, n // 8, 5 * n // 16, 25 * n // 32]]


@pytest.mark.slow
def test_kuramoto_sivashinsky() -> None:
    known = [0.58796787338, 1.12485812448, -1.41603541413, -0.02161874637]
    assert kuramoto_sivashinsky(256, 0.1, 10.0) == pytest.approx(known, abs=2e-6)


@pytest.mark.slow
def test_kuramoto_sivashinsky_with_many_modes() -> None:
    known = [0.58796787338, 1.12485812448, -1.41603541413, -0.02161874637]
    assert kuramoto_sivashinsky(768, 0.01, 10.0) == pytest.approx(known, abs=2e-9)
    later = [0.41318038, 0.81063386, -1.12194847, -0.08702787]
    assert kuramoto_sivashinsky(768, 0.01, 20.0) == pytest.approx(later, abs=1e-7)


def korteweg_de_vries(n: int, dt: float, time: float, start: Any, length: float = 40.0) -> tuple[Values, Values]:
    grid = box(n, length=length, start=-length / 2)
    model = mg.pde(
        "-3*d_dx(u**2) - d3_dx3(u)", grid, initial={"u": start}, space="spectral", integrator="etdrk4", dt=dt
    )
    return grid.centres("x"), cells(model, round(time / dt))


@pytest.mark.slow
def test_a_soliton_keeps_its_shape() -> None:
    x, u = korteweg_de_vries(128, 0.02, 1.0, lambda x: 0.5 / np.cosh(x / 2) ** 2)
    assert np.abs(u - 0.5 / np.cosh((x - 1) / 2) ** 2).max() < 1e-7  # the box ends where it is 4e-9


def two_solitons(x: Any, t: float) -> Any:
    """2 d2/dx2 ln(1 + e1 + e2 + e1 e2 / 9), by hand."""
    k1, k2 = 1.0, 0.5
    a, b = np.exp(2 * k1 * (x - 4 * k1**2 * t)), np.exp(2 * k2 * (x - 4 * k2**2 * t))
    f = 1 + a + b + a * b / 9
    first = 2 * k1 * a + 2 * k2 * b + 2 * (k1 + k2) * a * b / 9
    second = 4 * k1**2 * a + 4 * k2**2 * b + 4 * (k1 + k2) ** 2 * a * b / 9
    return 2 * (second / f - (first / f) ** 2)


@pytest.mark.slow
def test_two_solitons_pass_each_other() -> None:
    assert two_solitons(0.0, 0.0) == pytest.approx(1.561224489796, abs=1e-11)
    grid = box(512, length=80.0, start=-40.0)
    model = mg.pde(
        "-3*d_dx(u**2) - d3_dx3(u)", grid, initial={"u": lambda x: two_solitons(x, -1.0)}, space="spectral",
        integrator="etdrk4", dt=0.001,
    )  # fmt: skip
    assert np.abs(cells(model, 2000) - two_solitons(grid.centres("x"), 1.0)).max() < 1e-7


def cahn_hilliard(n: int = 64, dt: float = 0.02) -> mg.Model:
    return mg.pde(
        {"c": "laplace(c**3 - c - g*laplace(c))"}, box(n, n), parameters={"g": 0.04},
        initial={"c": "0.2*cos(x)*cos(y) + 0.1*cos(3*x) + 0.05*sin(2*y)"}, space="spectral", integrator="etdrk4", dt=dt,
    )  # fmt: skip


def energy(c: Values) -> float:
    n = len(c)
    modes, k = np.fft.rfft2(c), np.fft.fftfreq(n, 1 / n)
    slopes = np.fft.irfft2(1j * k[: n // 2 + 1] * modes) ** 2 + np.fft.irfft2(1j * k[:, None] * modes) ** 2
    return float(((1 - c**2) ** 2 / 4 + 0.02 * slopes).sum() * (TAU / n) ** 2)


@pytest.mark.slow
def test_cahn_hilliard() -> None:
    assert energy(cells(cahn_hilliard(dt=0.05), 10)) == pytest.approx(7.2071449, abs=2e-3)


@pytest.mark.slow
def test_cahn_hilliard_loses_the_right_energy() -> None:
    model = cahn_hilliard(dt=0.0025)
    c = cells(model, 400)
    assert energy(c) == pytest.approx(6.8718185, abs=1e-6)
    assert c[0, 0] == pytest.approx(0.9616294, abs=1e-6)
    assert energy(cells(model, 800)) == pytest.approx(6.3702389, abs=1e-6)


@pytest.mark.slow
def test_fields_are_coupled() -> None:
    """The Brusselator, whose linear terms have a field of the other equation."""
    model = mg.pde(
        {"u": "laplace(u) + a - (1 + b)*u + v*u**2", "v": "D*laplace(v) + b*u - v*u**2"}, box(64),
        parameters={"a": 1.0, "b": 3.0, "D": 0.1}, initial={"u": "1 + 0.5*cos(x)", "v": "3 + 0.5*sin(x)"},
        space="spectral", integrator="etdrk4", dt=0.02,
    )  # fmt: skip
    left = run_model(model, 50).fields
    assert left["u"][0] == pytest.approx(1.450327471923, abs=1e-6)
    assert left["v"][0] == pytest.approx(1.904673041396, abs=1e-6)


def test_complex_terms_are_found() -> None:
    source = parse("(a + I)*laplace(u)/2 - I*abs(u)**2*u", "d(u)/dt")
    found = expand(source, Expansion("x", {"a": 3.0, "I": 1j}))
    assert {ast.unparse(term.body): dict(term.symbol) for term in found} == {
        "u": {(2,): 1.5 + 0.5j}, "I * abs(u) ** 2 * u": {(0,): -1.0},
    }  # fmt: skip


ZAKHAROV = {
    "psi": "I*laplace(psi)/2 + I*n*psi + 0.1*d_dx(n)*psi",
    "n": "0.1*laplace(n) - n + abs(psi)**2 + re(d_dx(psi)*conj(psi)) + laplace(abs(psi)**2)/20 + 0.2*n*d_dy(n)",
}
"""A complex field and a real one, each of which reads derivatives of the other."""


def mixed(space: str, integrator: str, dt: float, **options: Any) -> mg.Model:
    return mg.pde(
        ZAKHAROV, box(12, 16), dtype={"psi": "c16"}, space=space, integrator=integrator, dt=dt,
        initial={"psi": "exp(I*x)*(1 + 0.1*cos(y))", "n": "0.2*cos(x + y)"}, **options,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("dealias", [1.0, 2 / 3])
def test_real_and_complex_fields_together(dealias: float) -> None:
    """Against differences of order 16, and with order 4 against the same modes by another method."""
    ends = [run_model(mixed("spectral", "etdrk4", 0.4 / n, dealias=dealias), n).fields for n in (8, 16)]
    same = run_model(mixed("spectral", "rk4", 0.4 / 100, dealias=dealias), 100).fields
    others = run_model(mixed("differences", "rk4", 0.4 / 100, order=16), 100).fields
    errors = [max(np.abs(end[name] - same[name]).max() for name in end) for end in ends]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.3)
    assert all(np.abs(same[name] - others[name]).max() < 1e-4 for name in ("psi_re", "psi_im", "n"))


@pytest.mark.slow
def test_real_and_complex_fields_have_the_same_bits_on_ranks() -> None:
    for integrator in ("etdrk4", "heun"):
        assert_same(
            run_model(mixed("spectral", integrator, 0.02), 2),
            run_model(mixed("spectral", integrator, 0.02), 2, ranks=3),
        )


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["etdrk4", "rk4"])
def test_a_bright_soliton(integrator: str) -> None:
    """The cubic Schroedinger equation, whose soliton is exp(i (v x + (1 - v^2) t / 2)) sech(x - v t), here v = 1."""
    grid = box(128, length=40.0, start=-20.0)
    model = mg.pde(
        {"psi": "I*d2_dx2(psi)/2 + I*abs(psi)**2*psi"}, grid, dtype="c16",
        initial={"psi": lambda x: np.exp(1j * x) / np.cosh(x)}, space="spectral", integrator=integrator, dt=0.01,
    )  # fmt: skip
    left = run_model(model, 100).fields
    x = grid.centres("x")
    exact = np.exp(1j * x) / np.cosh(x - 1.0)
    assert np.abs(left["psi_re"] + 1j * left["psi_im"] - exact).max() < 2e-6


def test_a_potential_of_complex_values() -> None:
    """Derivatives within products, parameters of the place and of numbers, dealiasing: against NumPy."""
    grid = box(16)
    model = mg.pde(
        {"psi": "V*psi + k*psi*d_dx(psi) + conj(psi)"}, grid, dtype="c16", parameters={"V": "cos(x)", "k": 2.0 - 1j},
        initial={"psi": lambda x: np.exp(1j * x)}, space="spectral", integrator="euler", dt=0.5,
    )  # fmt: skip
    left = run_model(model, 1).fields
    x = grid.centres("x")
    psi = np.exp(1j * x)
    exact = psi + 0.5 * (np.cos(x) * psi + (2 - 1j) * psi * 1j * psi + psi.conj())
    assert np.abs(left["psi_re"] + 1j * left["psi_im"] - exact).max() < 1e-14


# Same bits -----------------------------------------------------------------------------------------------------------
def placed(*shape: int, **options: Any) -> mg.Model:
    """A model with all that there is: parameters that depend on the place, time, products, dealiasing."""
    text = "laplace(u) - d_dx(u) - k*u*d_dx(u) + 0.1*sin(t)"
    return mg.pde(
        text, box(*shape), parameters={"k": "1 + 0.5*cos(x)"}, initial={"u": "sin(x)"}, space="spectral",
        dealias=2 / 3, dt=0.01, **options,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "integrator"),
    [
        ((12, 16), "etdrk4"),
        pytest.param((12, 16), "heun", marks=pytest.mark.slow),
        pytest.param((8, 6, 10), "etdrk4", marks=pytest.mark.slow),
    ],
)
def test_same_bits_on_any_number_of_ranks(shape: tuple[int, ...], integrator: str) -> None:
    model = placed(*shape, integrator=integrator)
    alone = run_model(model, 3)
    for ranks, layout in [(2, "slabs"), (3, "cartesian"), (4, "cartesian")]:
        assert_same(alone, run_model(model, 3, ranks=ranks, layout=layout))


class Stopped(mg.Observer):
    """Ends a run after five steps."""

    schedule = mg.Schedule(1)

    def ends(self, simulation: Any) -> Any:
        return "asked" if simulation.step >= 5 else None


@pytest.mark.slow
def test_a_resumed_run_has_the_same_bits(tmp_path: Path) -> None:
    """Stopped within an interval, so that the coefficients are those of a length of step that goes on."""
    run: Any = mg.run
    settings: dict[str, Any] = {"until": 0.085, "every": 0.085}
    whole = run(placed(12, 16, integrator="etdrk4"), **settings)
    with pytest.raises(KeyboardInterrupt):
        run(placed(12, 16, integrator="etdrk4"), out=tmp_path / "run", observers=[Stopped()], checkpoint=3, **settings)
    again = run(placed(12, 16, integrator="etdrk4"), out=tmp_path / "run", resume=True, **settings)
    assert again.attrs["digest"] == whole.attrs["digest"]
    assert again.u.values.tobytes() == whole.u.values.tobytes()


@pytest.mark.slow
def test_same_bits_after_the_length_of_a_step_changes_back() -> None:
    """The coefficients follow the length of the step: a run to times with other steps between is one by hand."""
    run: Any = mg.run
    history = run(placed(12, 16, integrator="etdrk4"), until=0.05, every=0.025)
    lengths = [0.025 / 3] * 6
    model = placed(12, 16, integrator="etdrk4")
    dt = model.clock.dt if model.clock is not None else None
    assert isinstance(dt, mg.Register)

    def work(comm: Comm | None) -> Any:
        with mg.Engine(model.layouts("slabs", 1)) as engine:
            for slot, value in model.start_values():
                engine.set(slot, value)
            for number, length in enumerate(lengths):
                engine.write(dt, length)
                assert engine.run(model.step).ok, number
            return engine.gather(model.fields[0])

    assert np.array_equal(history.u.values[-1], work(None))
    assert len(run_virtual(1, work)) == 1
