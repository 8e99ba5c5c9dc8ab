"""Complex fields: exact solutions, the arithmetic of pairs, conditions, and the same bits on all ranks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.settings import GridSettings
from minga.errors import ProgramError
from minga.models.pde import EquationError
from minga.models.pde.spec import SPEC
from model_runs import assert_same, run_model

run: Any = mg.run
RING = mg.Grid((16,), ("x",), spacing=math.tau / 16, periodic=True)
WAVE = "exp(I*x)"


def psi(history: Any, name: str = "psi") -> np.ndarray:
    """The last frame of a complex field."""
    return np.asarray((history[f"{name}_re"] + 1j * history[f"{name}_im"]).values[-1])


def packet(n: int) -> float:
    """The largest error of a free packet of width 1 and wave number 1 at t = 2."""
    h = 40 / n
    grid = mg.Grid((n,), ("x",), spacing=h, origin=-20.0, periodic=True)
    steps = math.ceil(2.0 / (h * h / 2) - 1e-9)
    initial = {"psi": "exp(-x**2/2 + I*x) / pi**0.25"}
    model = mg.pde({"psi": "I*laplace(psi)/2"}, grid, dtype="c16", initial=initial, dt=2.0 / steps)
    x, t = grid.centres("x"), 2.0
    width = 1 + 1j * t
    exact = np.exp(-((x - t) ** 2) / (2 * width) + 1j * (x - t / 2)) / np.sqrt(width) / math.pi**0.25
    return float(np.abs(psi(run(model, until=2.0, every=2.0)) - exact).max())


@pytest.mark.slow
def test_schroedingers_equation() -> None:
    """The error of centred differences, whose reference value is 7.98e-2 for 100 cells."""
    assert packet(100) == pytest.approx(7.98e-2, rel=5e-3)


@pytest.mark.slow
def test_schroedingers_equation_converges() -> None:
    assert packet(200) == pytest.approx(2.01e-2, rel=5e-3)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(2 + 3*I)*psi - psi/2", lambda z: (2 + 3j) * z - z / 2),
        ("psi/(1 + 2*I) + 1/psi", lambda z: z / (1 + 2j) + 1 / z),
        ("psi**3 - psi**-2 + conj(psi)", lambda z: z**3 - z**-2.0 + z.conj()),
        ("abs(psi)**2*psi + abs(psi)**3 + abs(psi)**4", lambda z: abs(z) ** 2 * z + abs(z) ** 3 + abs(z) ** 4),
        ("exp(I*re(psi)) + exp(psi) + I*arg(psi)", lambda z: np.exp(1j * z.real) + np.exp(z) + 1j * np.angle(z)),
        ("im(psi) + (psi if re(psi) > 0 else 2) + where(im(psi) > 0, I, psi)",
         lambda z: z.imag + np.where(z.real > 0, z, 2) + np.where(z.imag > 0, 1j, z)),
        ("c*psi + d_dx(psi)", lambda z: (0.5 - 2j) * z + (np.roll(z, -1) - np.roll(z, 1)) / (2 * math.tau / 16)),
        ("div(c*grad(psi)) + dot(grad(conj(psi)), grad(psi))",
         lambda z: (0.5 - 2j) * (np.roll(z, -1) - 2 * z + np.roll(z, 1)) / (math.tau / 16) ** 2
         + abs((np.roll(z, -1) - np.roll(z, 1)) / (2 * math.tau / 16)) ** 2),
        ("advect(2.0, psi, scheme=c2) + biharmonic(psi)*0",
         lambda z: (np.roll(z, -1) - np.roll(z, 1)) / (math.tau / 16)),
    ],
)  # fmt: skip
def test_texts_mean_complex_arithmetic(text: str, value: Any) -> None:
    """One step of Euler's method of length 1 leaves psi + rate."""
    start = np.exp(1j * RING.centres("x")) * (1.0 + 0.25 * np.cos(RING.centres("x")))
    model = mg.pde(
        {"psi": text}, RING, dtype="c16", parameters={"c": 0.5 - 2j} if "c*" in text else {}, initial={"psi": start},
        integrator="euler", dt=1.0,
    )  # fmt: skip
    np.testing.assert_allclose(psi(run(model, 1)), start + value(start), rtol=1e-13, atol=1e-13)


@pytest.mark.slow
def test_functions_read_both_parts() -> None:
    def turn(psi_re: Any, psi_im: Any) -> tuple[Any, Any]:
        return -psi_im[0], psi_re[0]

    options: Any = {"dtype": {"psi": "c16"}, "initial": {"psi": WAVE}, "dt": 0.1}
    by_function, by_text = (run_model(mg.pde({"psi": each}, RING, **options), 5) for each in (turn, "I*psi"))
    assert_same(by_function, by_text)


@pytest.mark.slow
def test_a_complex_field_beside_a_real_one() -> None:
    model = mg.pde(
        {"psi": "I*n*psi", "n": "-abs(psi)**2"}, RING, dtype={"psi": "c8", "n": "f8"}, initial={"psi": WAVE, "n": 1.0},
        units={"psi": "V"}, dt=0.01,
    )  # fmt: skip
    history = run(model, 10)
    assert (history.psi_re.dtype, history.n.dtype) == ("f4", "f8")
    assert history.psi_im.attrs["units"] == "V"
    assert history.norm_psi.values[-1] == pytest.approx(math.tau, rel=1e-6)
    assert history.n.values[-1] == pytest.approx(0.9, rel=1e-6)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "initial", [lambda x: np.exp(1j * x), np.exp(1j * RING.centres("x")), {"psi_re": "cos(x)", "psi_im": "sin(x)"}]
)
def test_initial_values_in_other_forms(initial: Any) -> None:
    given = initial if isinstance(initial, dict) else {"psi": initial}
    found = psi(run(mg.pde({"psi": "0*psi"}, RING, dtype="c16", initial=given, dt=1.0), 1))
    np.testing.assert_allclose(found, np.exp(1j * RING.centres("x")), rtol=0, atol=1e-15)


@pytest.mark.slow
def test_conditions_of_both_parts() -> None:
    """The steady state between walls with the values 1 and 2 + i."""
    grid = mg.Grid((8,), ("x",), spacing=1 / 8)
    walls = {
        "psi_re": {"x": (mg.dirichlet(1.0), mg.dirichlet(2.0))},
        "psi_im": {"x": (mg.dirichlet(0.0), mg.dirichlet(1.0))},
    }
    model = mg.pde({"psi": "laplace(psi)"}, grid, dtype="c16", boundary=walls, dt=0.005)
    x = grid.centres("x")
    np.testing.assert_allclose(psi(run(model, 2000)), 1.0 + x + 1j * x, rtol=0, atol=1e-9)
    both = mg.pde(
        {"psi": "laplace(psi)"}, grid, dtype="c16", boundary={"psi": mg.dirichlet(0.0)}, initial={"psi": 1 + 1j},
        dt=0.005,
    )  # fmt: skip
    assert np.abs(psi(run(both, 500))).max() < 1e-9


@pytest.mark.slow
def test_a_case_has_complex_fields(tmp_path: Path) -> None:
    settings = SPEC.settings(
        equations={"psi": "I*laplace(psi)", "n": "re(psi)"}, dtype={"psi": "c16"},
        initial={"psi": "exp(I*x)", "n": 1.0}, dt=0.01,
        boundary={"psi": {"x": {"dirichlet": 0}}, "psi_im": {"x": {"neumann": 0.5}}},
    )  # fmt: skip
    model = SPEC.make(settings, GridSettings(shape=(16,), boundary="zero-gradient"), tmp_path)
    walls = {"psi_re": mg.dirichlet(0.0), "psi_im": mg.neumann(0.5)}
    same = mg.pde(
        {"psi": "I*laplace(psi)", "n": "re(psi)"}, mg.Grid((16,), ("x",)), dtype={"psi": "c16"},
        initial={"psi": "exp(I*x)", "n": 1.0}, boundary=walls, dt=0.01,
    )  # fmt: skip
    found, expected = run_model(model, 3), run_model(same, 3)
    for name in ("psi_re", "psi_im", "n"):
        np.testing.assert_allclose(found.fields[name], expected.fields[name], rtol=1e-14)


GRID = mg.Grid((8,), ("x",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"equations": {"psi": "psi < 1"}}, "complex where a real number is expected"),
        ({"equations": {"psi": "sin(psi)"}}, "complex where a real number is expected"),
        ({"equations": {"psi": "psi**0.5"}}, "a complex value to this power"),
        ({"equations": {"psi": "2j*psi"}}, r"a complex number in an equation.*\n.*\n.*\n.*\n.*write 2\*I"),
        ({"equations": {"psi": "gradient_squared(psi)"}}, "complex where a real number is expected"),
        ({"equations": {"psi": "advect(psi, psi)"}}, "complex where a real one is expected"),
        ({"equations": {"I": "0"}}, "in equations"),
        ({"equations": {"u": "I*u"}, "dtype": "f8"}, 'give dtype="c16"'),
        ({"equations": {"u": "I*u", "psi": "psi"}, "dtype": {"psi": "c16"}}, r"d\(u\)/dt is complex, and its field"),
        ({"dtype": {"phi": "c16"}}, "dtype of 'phi', which is no field"),
        ({"dtype": "c32"}, "types are f4, f8, c8, c16"),
        ({"boundary": mg.dirichlet(1.0)}, "does not say what holds for the imaginary part"),
        ({"boundary": {"psi": {"x": (mg.neumann(0.0), mg.neumann(1.0))}}}, "give the conditions of psi_re and psi_im"),
        ({"noise": 0.1}, "give the amplitude for each field: psi_re, psi_im"),
        ({"noise": {"psi": 0.1}}, "the fields are psi_re, psi_im"),
        ({"equations": {"u": "u"}, "dtype": "f8", "parameters": {"c": 1j}}, "'c' is complex, and no field is"),
        ({"equations": {"psi": "psi", "psi_re": "0"}, "dtype": {"psi": "c16"}}, "two fields have one name"),
        ({"initial": {"phi": 1.0}}, "initial values of 'phi', which is no field"),
    ],
)  # fmt: skip
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"equations": {"psi": "psi"}, "dtype": "c16", "dt": 0.1, **options}
    with pytest.raises((ProgramError, EquationError), match=message):
        mg.pde(given.pop("equations"), GRID, **given)


@pytest.mark.slow
def test_same_bits_on_three_ranks() -> None:
    """A Ginzburg-Landau equation."""
    grid = mg.Grid((12, 10), periodic=True)

    def model() -> mg.Model:
        return mg.pde(
            {"A": "A + (1 + 2*I)*laplace(A) - (1 - 1.2*I)*abs(A)**2*A"}, grid, dtype="c16",
            initial={"A": "0.1*exp(I*(x + 2*y)/3)*(1 + random())"}, dt=0.02,
        )  # fmt: skip

    alone = run_model(model(), 20, ranks=1)
    assert_same(alone, run_model(model(), 20, ranks=3))
