"""Equations as models: reference values of known equations, conditions, parameters, and the same bits on all ranks."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.examples import examples
from minga.case.settings import GridSettings
from minga.engine.engine import FieldValue
from minga.engine.operations import Apply
from minga.lang.analysis import reads
from minga.models.pde import EquationError
from minga.models.pde.spec import SPEC
from minga.space.boundary import trace_fill
from model_runs import assert_same, run_model
from thinned import thinned


def cells(model: mg.Model, steps: int) -> dict[str, np.ndarray]:
    """All output fields after some steps."""
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        for name, value in model.initial.items():
            engine.set(model.field(name), value)
        engine.run(model.step, steps)
        found = {name: engine.gather(model.field(name)) for name in model.output}
    assert all(values is not None for values in found.values())
    return {name: np.asarray(values) for name, values in found.items()}


# Known solutions -----------------------------------------------------------------------------------------------------
def test_the_example_of_the_documentation() -> None:
    grid = mg.Grid((128, 128), spacing=0.5, periodic=True)
    model = mg.pde(
        {"u": "D * laplace(u) + u - u**3"}, grid, parameters={"D": 1.0},
        initial={"u": lambda y, x: np.cos(0.1 * y) * np.sin(0.1 * x)}, integrator="rk4", dt=0.01,
    )  # fmt: skip
    run: Any = mg.run
    history = run(model, until=5.0, every=0.5)
    assert float(history.time[-1]) == 5.0
    assert history.u.dims == ("time", "y", "x")
    assert history.sizes["time"] == 11


@pytest.mark.parametrize(("order", "tolerance"), [(2, 1e-3), (4, 3e-6)])
def test_heat_between_walls(order: int, tolerance: float) -> None:
    """exp(-t) cos(x + 0.3) from walls with its value and its derivative, of which both depend on the time."""
    n = 20
    grid = mg.Grid((n,), spacing=1 / n)
    walls = (
        mg.dirichlet(lambda x, t: mg.exp(-t) * mg.cos(x + 0.3)), mg.neumann(lambda x, t: -mg.exp(-t) * mg.sin(x + 0.3))
    )  # fmt: skip
    model = mg.pde("laplace(u)", grid, order=order, initial={"u": "cos(x + 0.3)"}, boundary={"x": walls}, dt=5e-4)
    u = cells(model, 1000)["u"]
    assert np.abs(u - math.exp(-0.5) * np.cos(grid.centres("x") + 0.3)).max() < tolerance


@pytest.mark.slow
def test_allen_cahn() -> None:
    n = 128
    grid = mg.Grid((n,), spacing=2 * math.pi / n, origin=-math.pi / n, periodic=True)
    model = mg.pde(
        "a*laplace(u, order=8) + u - u**3", grid, parameters={"a": 0.01},
        initial={"u": "0.5*cos(x) + 0.2*cos(2*x)"}, integrator="rk4", dt=0.02,
    )  # fmt: skip
    u = cells(model, 50)["u"]
    assert u[0] == pytest.approx(0.931923974286, abs=1e-7)
    assert u[n // 2] == pytest.approx(-0.653703489233, abs=1e-7)


def test_brusselator() -> None:
    n = 64
    grid = mg.Grid((n,), spacing=2 * math.pi / n, origin=-math.pi / n, periodic=True)
    model = mg.pde(
        {"u": "laplace(u) + a - (1 + b)*u + v*u**2", "v": "D*laplace(v) + b*u - v*u**2"},
        grid,
        parameters={"a": 1.0, "b": 3.0, "D": 0.1},
        initial={"u": "1 + 0.5*cos(x)", "v": "3 + 0.5*sin(x)"},
        integrator="rk4",
        order=8,
        dt=2e-3,
    )
    found = cells(model, 500)
    assert found["u"][0] == pytest.approx(1.450327471923, abs=2e-7)
    assert found["v"][0] == pytest.approx(1.904673041396, abs=2e-7)


def test_gray_scott_by_eulers_method() -> None:
    grid = mg.Grid((64, 64), periodic=True)
    u, v = np.ones((64, 64)), np.zeros((64, 64))
    u[24:40, 24:40], v[24:40, 24:40] = 0.5, 0.25
    v[24, 30] += 0.01
    model = mg.pde(
        {"u": "Du*∇²u - u*v² + F*(1 - u)", "v": "Dv*∇²v + u*v² - (F + k)*v"},
        grid,
        parameters={"Du": 0.16, "Dv": 0.08, "F": 0.035, "k": 0.065},
        initial={"u": u, "v": v},
        integrator="euler",
        dt=1.0,
    )
    found = cells(model, 1000)
    assert found["u"].mean() == pytest.approx(0.944360922378, abs=1e-11)
    assert found["v"][20, 24] == pytest.approx(0.291095874834, abs=1e-10)


@pytest.mark.slow
def test_korteweg_de_vries() -> None:
    """A soliton at t = 1: the error of differences of order 4 falls by 16."""
    errors = []
    for n in (160, 320):
        grid = mg.Grid((n,), spacing=40 / n, origin=-20.0, periodic=True)
        model = mg.pde(
            "-3*d_dx(u**2, order=4) - d3_dx3(u, order=4)", grid, initial={"u": "0.5/cosh(x/2)**2"},
            integrator="rk4", dt=1e-3,
        )  # fmt: skip
        exact = 0.5 / np.cosh((grid.centres("x") - 1.0) / 2) ** 2
        errors.append(np.abs(cells(model, 1000)["u"] - exact).max())
    assert math.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.4)


# What equations consist of -------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_functions_and_texts_give_the_same() -> None:
    grid = mg.Grid((10, 70), periodic=True)

    def rate(u: Any, D: Any, x: Any, t: Any) -> Any:
        return D * mg.laplace(u) + mg.sin(t) * x

    options: Any = {"parameters": {"D": 0.5}, "initial": {"u": "sin(x)"}, "dt": 0.1}
    text, function = (mg.pde(one, grid, **options) for one in ("D*laplace(u) + sin(t)*x", rate))
    assert np.array_equal(cells(text, 7)["u"], cells(function, 7)["u"])
    with pytest.raises(mg.ProgramError, match="parameter 'w'"):
        mg.pde(lambda u, w: u[0, 0] * w, grid, dt=0.1)


@pytest.mark.parametrize("closed", [True, False])
def test_nested_operators_are_computed_once_a_cell_with_the_same_bits(closed: bool) -> None:
    """A text keeps costly operands in a local; a function that does not gives the same."""

    def rate(u: Any) -> Any:
        return mg.laplace(u[0] ** 3 - u[0] - mg.laplace(u))

    grid = mg.Grid((24,), ("x",), periodic=True)
    options: dict[str, Any] = {"initial": {"u": "cos(pi*x/24)"}, "integrator": "euler", "dt": 1e-2}
    options["boundary"] = None if closed else mg.antiperiodic()
    text, function = (mg.pde(each, grid, **options) for each in ("laplace(u**3 - u - laplace(u))", rate))
    assert cells(text, 20)["u"].tobytes() == cells(function, 20)["u"].tobytes()
    (stage,) = (each for each in text.step.operations if isinstance(each, Apply))
    assert bool(stage.graph.locals) == closed


@pytest.mark.slow
def test_parameters_that_depend_on_the_place() -> None:
    grid = mg.Grid((8, 40), spacing=0.1)
    array = np.fromfunction(lambda j, i: 1 + 0.1 * (i + 0.5) * 0.1, grid.shape)
    given: tuple[Any, ...] = (array, "1 + 0.1*x", lambda y, x: 1 + 0.1 * x)
    found = [
        cells(mg.pde("div(D*grad(u))", grid, parameters={"D": D}, initial={"u": "cos(x)"}, dt=1e-3), 20)["u"]
        for D in given
    ]
    assert np.allclose(found[0], found[1], atol=1e-14)
    assert np.array_equal(found[1], found[2])
    assert found[0].sum() == pytest.approx(np.cos(grid.centres("x")).sum() * 8, rel=1e-13)  # nothing leaves


def test_a_curl_has_the_order_of_the_model() -> None:
    grid = mg.Grid((8, 12), periodic=True)
    for curl, order in (("curl((b, a))", 4), ("curl((b, a), order=4)", 2)):
        model = mg.pde({"a": curl, "b": "0"}, grid, order=order, integrator="euler", dt=1.0)
        (stage,) = (each for each in model.step.operations if isinstance(each, Apply))
        offsets = {offset for found in reads(stage.graph).values() for _, offset in found}
        assert offsets == {(0, 0), *((n, 0) for n in (-2, -1, 1, 2)), *((0, n) for n in (-2, -1, 1, 2))}


def test_a_register_is_a_parameter_that_others_change() -> None:
    grid = mg.Grid((8,), periodic=True)
    rate = mg.Register("rate", initial=1.0)
    model = mg.pde("k", grid, parameters={"k": rate}, integrator="euler", dt=1.0)
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        engine.write(rate, 2.0)
        engine.run(model.step)
        values = engine.gather(model.field("u"))
    assert values is not None
    assert (values == 2.0).all()


@pytest.mark.slow
def test_fields_of_single_precision() -> None:
    grid = mg.Grid((8, 40), periodic=True)
    found = [
        cells(mg.pde("div((1 + u**2)*grad(u)) + sin(t)", grid, initial={"u": "cos(pi*x/20)"}, dt=0.1, dtype=dtype), 9)
        for dtype in ("f4", "f8")
    ]
    assert found[0]["u"].dtype == np.float32
    assert np.abs(found[0]["u"] - found[1]["u"]).max() < 3e-6


@pytest.mark.slow
def test_polar_coordinates() -> None:
    """The slowest mode of a disc whose rim is at 0 decays with the square of the first zero of the Bessel function."""
    grid = mg.Grid((40,), ("r",), spacing=1 / 40, geometry="polar")
    walls = {"r": (mg.neumann(0.0), mg.dirichlet(0.0))}
    model = mg.pde("laplace(u)", grid, initial={"u": "1 - r**2"}, boundary=walls, integrator="rk4", dt=2e-4)
    late, later = cells(model, 2000)["u"], cells(model, 2500)["u"]
    assert np.log(late[0] / later[0]) / 0.1 == pytest.approx(2.404825557695773**2, rel=2e-3)


def test_observables_are_the_integral_and_the_extremes() -> None:
    model = mg.pde("0", mg.Grid((10, 20), spacing=(0.5, 0.1)), initial={"u": lambda y, x: y + x}, dt=1.0)
    history = mg.run(model, 1)
    assert history.attrs["integral_u"] == pytest.approx(5 * 2 * (2.5 + 1.0))
    assert history.attrs["smallest_u"] == pytest.approx(0.3)
    assert history.attrs["largest_u"] == pytest.approx(6.7)


def test_the_time_belongs_to_frames() -> None:
    history = mg.run(mg.pde("t", mg.Grid((4,)), integrator="rk4", dt=0.1, unit="s"), 10, every=5)
    assert np.allclose(history.time, [0.0, 0.5, 1.0])
    assert history.time.attrs["units"] == "s"
    assert np.allclose(history.u[-1], 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", thinned(["euler", "rk4", "tr-bdf2", "bdf2"], "rk4", "bdf2"))
def test_the_time_of_many_steps_is_rounded_once(integrator: str) -> None:
    history = mg.run(mg.pde("0", mg.Grid((4,)), integrator=integrator, dt=0.01), 500, every=70)
    assert history.time.values.tolist() == [n * 0.01 for n in (0, 70, 140, 210, 280, 350, 420, 490, 500)]


def test_a_stable_step_is_chosen_and_said() -> None:
    grid = mg.Grid((32, 32), spacing=0.1, periodic=True)
    model = mg.pde("D*laplace(u)", grid, parameters={"D": 2.0}, initial={"u": 1.0}, integrator="euler")
    assert dict(model.notes)["stable step"] == "0.00125 at the start"  # h**2 / 4 D
    assert model.parameters["dt"] == pytest.approx(0.0011)
    with pytest.raises(mg.ProgramError, match="no stable step"):
        mg.pde("1", grid, integrator="euler")
    long = mg.pde("D*laplace(u)", grid, parameters={"D": 2.0}, integrator="euler", dt=0.1)
    assert "may be too long" in dict(long.notes)["stable step"]


@pytest.mark.slow
def test_a_stable_step_of_nested_operators() -> None:
    """h**4 / 32 D, from 64 D / h**4, whether operands are locals or not."""
    grid = mg.Grid((32, 32), spacing=0.1, periodic=True)
    for text in ("-D*laplace(laplace(u))", "-D*biharmonic(u)"):
        model = mg.pde(text, grid, parameters={"D": 2.0}, initial={"u": 1.0}, integrator="euler")
        assert dict(model.notes)["stable step"] == "1.56e-06 at the start"
    nested = mg.pde("-laplace(exp(2*laplace(u)) - u)", grid, integrator="euler")  # around 0 the same with D = 2
    assert dict(nested.notes)["stable step"] == "1.56e-06 at the start"


def test_a_stable_step_for_waves() -> None:
    grid = mg.Grid((32,), spacing=0.1, periodic=True)
    carried = mg.pde("-2*d_dx(u)", grid, initial={"u": 1.0}, integrator="rk4")
    assert carried.parameters["dt"] == pytest.approx(0.9 * 2.828427 * 0.1 / 2, rel=0.06)
    with pytest.raises(mg.ProgramError, match="no stable step of 'euler'"):
        mg.pde("-2*d_dx(u)", grid, initial={"u": 1.0}, integrator="euler")


def test_texts_of_initial_values_have_the_bits_of_kernels() -> None:
    grid = mg.Grid((30, 40), ("y", "x"), spacing=0.1)
    text = "sin(x)*exp(-y) + x**1.5 + tanh(y*x) if x > 1 else log(1 + x)"

    @mg.kernel
    def compute(u):
        y, x = mg.coordinate("y"), mg.coordinate("x")
        long = mg.sin(x) * mg.exp(-y) + x**1.5 + mg.tanh(y * x)
        u[0, 0] = mg.where(x > 1.0, long, mg.log(1.0 + x))

    model = mg.pde("0", grid, initial=text, dt=1.0, integrator="euler")
    step = mg.Program("compute")
    v = mg.Field("v", grid)
    step.apply(compute, v)
    with mg.Engine(model.layouts("slabs", 1)) as engine, mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as other:
        engine.set(model.field("u"), model.initial["u"])
        other.run(step)
        assert np.array_equal(engine.gather(model.field("u")), other.gather(v))


def test_the_record_has_all_that_a_model_is_made_of() -> None:
    grid = mg.Grid((8, 6), ("y", "x"), periodic=(False, True))
    model = mg.pde(
        {"u": "k*laplace(c*u)"}, grid, parameters={"k": "1 + x", "c": np.ones((8, 6))}, initial="sin(x)", noise="0.1*u",
        boundary={"y": (mg.dirichlet(1.0), mg.neumann(0.0))}, dt=0.1, unit="s", dtype="f8",
    )  # fmt: skip
    found = model.parameters
    assert found["parameters"] == {"k": "1 + x", "c": "array of shape (8, 6), float64"}
    assert found["boundary"] == {"u": {"y": ["dirichlet(1.0)", "neumann(0.0)"]}}
    assert (found["initial"], found["noise"], found["unit"], found["dealias"]) == ("sin(x)", "0.1*u", "s", 1.0)
    assert (found["integrator"], found["dt"]) == ("euler-maruyama", 0.1)


def stable(equations: Any, grid: mg.Grid, integrator: str, **options: Any) -> float:
    """The limit that the notes of a model state, found with a step that is as short as the default."""
    model = mg.pde(equations, grid, integrator=integrator, **options)
    limit = float(dict(model.notes)["stable step"].split()[0])
    assert 0.8 * limit < float(model.parameters["dt"]) <= 0.9 * limit * (1 + 1e-2)
    return limit


def test_a_stable_step_of_fields_that_act_on_one_another() -> None:
    """Waves between two fields have imaginary eigenvalues, i * 2 / h**2."""
    grid = mg.Grid((32,), spacing=0.1, periodic=True)
    assert stable({"psi": "I*laplace(psi)/2"}, grid, "ssprk3", dtype="c16") == pytest.approx(0.00866, rel=2e-3)
    with pytest.raises(mg.ProgramError, match="no stable step of 'heun'"):
        mg.pde({"psi": "I*laplace(psi)/2"}, grid, integrator="heun", dtype="c16")
    # Reactions within a cell amplify nothing that the grid makes.
    assert stable({"u": "laplace(u) - v", "v": "laplace(v) + u"}, grid, "heun") == pytest.approx(2 / 401, rel=2e-3)


OSCILLATION = {"u": "-5*v", "v": "5*u"}
PREDATOR_AND_PREY = {"u": "0.1*laplace(u) + u - u*v", "v": "0.1*laplace(v) + u*v - v"}
CIRCLE = {"u": "v", "v": "w", "w": "u"}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("equations", "integrator", "rate"),
    [(OSCILLATION, "euler", 5.0 / 0.002), (OSCILLATION, "heun", 5.0 / 0.2), (OSCILLATION, "rk4", 5.0 / 0.3),
     (PREDATOR_AND_PREY, "imex-euler", 1.0 / 0.002), (PREDATOR_AND_PREY, "ars443", 1.0 / 0.22),
     (CIRCLE, "rk4", 0.75**0.5 / 0.3)],
)  # fmt: skip
def test_a_step_resolves_the_oscillations_of_uniform_states(
    equations: dict[str, str], integrator: str, rate: float
) -> None:
    grid = mg.Grid((4,), spacing=2.0, periodic=True)
    model = mg.pde(equations, grid, initial=dict.fromkeys(equations, 1.0), integrator=integrator)
    assert 0.8 / rate < float(model.parameters["dt"]) <= (1.0 + 1e-9) / rate


@pytest.mark.parametrize("integrator", thinned(["euler", "heun", "rk4"], "heun"))
def test_an_oscillation_keeps_its_amplitude_with_the_steps_that_are_chosen(integrator: str) -> None:
    model = mg.pde(OSCILLATION, mg.Grid((1,), periodic=True), initial={"u": 1.0}, integrator=integrator)
    history = mg.run(model, until=4.0, progress=False)
    assert np.hypot(history.u, history.v)[-1].values == pytest.approx(1.0, abs=0.025)


@pytest.mark.slow
def test_methods_of_which_implicit_waves_grow_beside_oscillations_have_no_stable_step() -> None:
    grid = mg.Grid((32,), spacing=0.5, origin=-8.0, periodic=True)
    options: dict[str, Any] = {"dtype": "c16", "initial": {"psi": "1/cosh(x)"}}
    equation = {"psi": "I*laplace(psi)/2 + I*abs(psi)**2*psi"}
    with pytest.raises(mg.ProgramError, match="no stable step of 'cnab2'"):
        mg.pde(equation, grid, integrator="cnab2", **options)
    assert "beside explicit oscillations" in mg.pde(equation, grid, integrator="cnab2", dt=0.01, **options).warnings[0]
    model = mg.pde(equation, grid, integrator="sbdf2", **options)
    assert model.parameters["dt"] == pytest.approx(0.053 / 3**0.5, rel=0.15)
    assert model.warnings == ()


def test_a_run_says_that_its_steps_are_too_long_and_that_values_have_grown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = mg.Grid((16,), ("x",), spacing=2 * np.pi / 16, periodic=True)
    long = mg.pde("laplace(u)", grid, initial="cos(x) + cos(7*x)", integrator="rk4", dt=0.3)
    history = mg.run(long, 60, progress=False)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"minga: {long.warnings[0]}"
    assert "dt = 0.3 may be too long: rk4 is stable up to 0.107" in said[0]
    assert said[1].startswith("minga: u has grown from 1.39 to ")
    assert "instability" in history.attrs
    kept: dict[str, Any] = {"out": tmp_path / "run", "resume": True, "checkpoint": mg.Checkpointing(at_end=True)}
    assert "instability" not in mg.run(long, 1, progress=False, **kept).attrs
    resumed = mg.run(long, 4, progress=False, **kept)  # u grows by 5.7e5 after the checkpoint
    assert resumed.attrs["instability"].startswith("u has grown from 1.39 to ")
    capsys.readouterr()
    short = mg.pde("laplace(u)", grid, initial="cos(x)", integrator="rk4", dt=0.1)
    assert short.warnings == ()
    assert "instability" not in mg.run(short, 10, progress=False).attrs
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("equation", "options"),
    [("-laplace(u)", {}), ("-D*laplace(u) + u", {"parameters": {"D": 2.0}}), ("d4_dx4(u)", {"dt": 1e-4}),
     ("div((u**2 - 1)*grad(u))", {"dt": 1e-4}), ("-laplace(u) - laplace(laplace(u))", {})],
)  # fmt: skip
def test_equations_whose_shortest_waves_grow_fastest_are_ill_posed(equation: str, options: dict[str, Any]) -> None:
    spacing = 4.0 if "laplace(laplace" in equation else 0.5  # the last one only on a grid that is too coarse
    model = mg.pde(equation, mg.Grid((16,), ("x",), spacing=spacing, periodic=True), initial="0.1*cos(x)", **options)
    assert "the shortest waves of the grid grow fastest" in model.warnings[0]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("equation", "options"),
    [("-laplace(u) - laplace(laplace(u)) - gradient_squared(u)/2", {"dt": 1e-4}), ("u + 0.01*laplace(u)", {}),
     ("-u*d_dx(u)", {"dt": 1e-4}), ("-d_dx(u**2)", {"dt": 1e-4}), ("-advect(u, u, scheme=weno5)", {"dt": 1e-4})],
)  # fmt: skip
def test_equations_whose_shortest_waves_do_not_grow_fastest(equation: str, options: dict[str, Any]) -> None:
    model = mg.pde(equation, mg.Grid((16,), ("x",), spacing=0.5, periodic=True), initial="0.1*cos(x)", **options)
    assert model.warnings == ()


@pytest.mark.parametrize("text", ["-8*d_dx(u) + laplace(u)", "-8*d_dx(u) + d2_dx2(u) + 0.25*d2_dy2(u)"])
def test_a_stable_step_of_carried_and_diffusing_fields(text: str) -> None:
    """Euler's method needs dt <= 2 D / v**2 for each axis, which is the shorter of its two limits here."""
    grid = mg.Grid((16, 16), ("y", "x"), periodic=True)
    assert stable(text, grid, "euler") == pytest.approx(1 / 32, rel=2e-3)
    with pytest.raises(mg.ProgramError, match="no stable step of 'euler'"):
        mg.pde("-8*d_dx(u) + d2_dy2(u)", grid, integrator="euler")


def test_a_stable_step_of_upwind_differences() -> None:
    """Eigenvalues lie on a circle, so that dt v / h <= 2.785 / 2."""
    grid = mg.Grid((16,), ("x",), periodic=True)
    assert 0.7 * 1.392647 / 2 < stable("-advect((2,), u, scheme=upwind)", grid, "rk4") < 1.392647 / 2
    assert stable("-advect((2,), u, scheme=upwind)", grid, "euler") == pytest.approx(0.5)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("order", "wall", "factor"),
    [(4, mg.dirichlet(0.0, 4), 6.157), (4, mg.neumann(0.0, 4), 5.334), (2, mg.dirichlet(0.0, 4), 4 * 1.405),
     (6, mg.dirichlet(0.0, 6), 6.044 * 1.145), (2, mg.dirichlet(0.0), 4.0)],
)  # fmt: skip
def test_a_stable_step_beside_walls(order: int, wall: mg.Condition, factor: float) -> None:
    """Conditions of higher order have eigenvalues that rows in the interior do not show."""
    grid = mg.Grid((40,), spacing=0.05)
    found = stable("laplace(u)", grid, "rk4", order=order, boundary=wall)
    assert found == pytest.approx(2.785294 * 0.05**2 / factor, rel=5e-3)


def test_a_wall_with_factors_of_the_place_counts_as_the_widest() -> None:
    grid = mg.Grid((8, 40), spacing=0.05, periodic=(True, False))

    def step(wall: mg.Condition) -> Any:
        return stable("laplace(u)", grid, "rk4", order=4, boundary={"x": wall})

    found = step(mg.robin(lambda y: 2.0 + y, 0.0))
    assert found == pytest.approx(step(mg.dirichlet(0.0)))
    assert found < 0.9 * step(mg.neumann(0.0))


@pytest.mark.slow
def test_a_zero_gradient_has_the_order_of_the_equations() -> None:
    def ended(wall: mg.Condition) -> Any:
        model = mg.pde(
            "laplace(u)", mg.Grid((20,), spacing=0.05), initial="x*x", order=4, boundary=wall, integrator="rk4", dt=5e-4
        )
        return mg.run(model, 20, progress=False).u.values[-1]

    np.testing.assert_array_equal(ended(mg.zero_gradient()), ended(mg.neumann(0.0, 4)))
    assert (ended(mg.zero_gradient()) != ended(mg.neumann(0.0, 2))).any()


@pytest.mark.slow
def test_a_solution_that_becomes_infinite_ends_with_its_time() -> None:
    model = mg.pde("u**2", mg.Grid((4,), periodic=True), initial={"u": 1.0}, integrator="dp5")
    with pytest.raises(mg.RunError, match=r"dp5: at time 1\.0000\d* even a step of"):
        mg.run(model, 400)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", thinned(["euler", "bs3"], "bs3"))
def test_same_bits_on_three_ranks(integrator: str) -> None:
    def make() -> mg.Model:
        return mg.pde(
            {"u": "div((1 + v**2)*grad(u)) + sin(t)", "v": "laplace(v, order=4) - advect((u, 1), v, scheme=weno5)"},
            mg.Grid((34, 66), spacing=0.5, periodic=(False, True)), initial={"u": "random()", "v": "cos(x)*random()"},
            boundary={"u": mg.dirichlet(0.5), "v": {"y": mg.robin(1.0, 0.2)}}, integrator=integrator, dt=0.01,
        )  # fmt: skip

    assert_same(run_model(make(), 6), run_model(make(), 6, ranks=3, halo_depth=2))


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["rk4", "tr-bdf2"])
def test_same_bits_on_three_ranks_beside_closed_walls(integrator: str) -> None:
    def make() -> mg.Model:
        return mg.pde(
            "div(u*grad(2*z)) + laplace(u)", mg.Grid((34, 66), ("r", "z"), spacing=0.5, geometry="cylindrical"),
            initial="1 + random()", boundary=mg.no_flux(), integrator=integrator, dt=0.01,
        )  # fmt: skip

    assert_same(run_model(make(), 6), run_model(make(), 6, ranks=3, halo_depth=2))


# Mistakes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"integrator": "rk5"}, "no integrator 'rk5'"),
        ({"dt": -1.0}, "dt=-1.0"),
        ({"initial": {"w": 1.0}}, "initial values of 'w', which is no field"),
        ({"boundary": {"u": mg.dirichlet(0.0), "w": mg.dirichlet(0.0)}}, "boundary of 'w', which is no field"),
        ({"noise": {"w": 1.0}}, "noise of 'w', which is no field"),
        ({"parameters": {"u": 1.0}}, "both a field and a parameter"),
        ({"parameters": {"k": math.nan}}, "parameter 'k' is nan"),
        ({"parameters": {"k": [1.0]}}, "parameter 'k' is"),
        ({"noise": "sqrt("}, "noise of u: this is not an expression"),
        ({"initial": {"u": "cos(z)"}}, "initial u: unknown name 'z'"),
        ({"initial": {"u": "laplace(x)"}}, "initial u: unknown function 'laplace'"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises((mg.ProgramError, EquationError)) as caught:
        mg.pde("laplace(u)", mg.Grid((8,)), **{"dt": 0.1} | options)
    assert message in caught.value.message


def test_there_must_be_an_equation() -> None:
    with pytest.raises(mg.ProgramError, match="no equations"):
        mg.pde({}, mg.Grid((8,)))


# Cases ---------------------------------------------------------------------------------------------------------------
def case(text: str) -> mg.Model:
    """The model of a case's text."""
    tables = tomllib.loads(text)
    return SPEC.make(SPEC.settings(**tables["pde"]), GridSettings(**tables["grid"]), Path())


@pytest.mark.slow
@pytest.mark.parametrize(("entry", "kind"), [("dt = 5.0", "split"), ("tolerance = 1e-4", "adaptive")])
def test_a_case_with_implicit_steps(entry: str, kind: str) -> None:
    model = case(f"""
        [grid]
        shape = [16]
        boundary = "zero-gradient"
        [pde]
        equations = "laplace(u) - u"
        boundary = {{ x = {{ dirichlet = 1.0 }} }}
        integrator = "tr-bdf2"
        {entry}
    """)
    assert model.clock is not None
    assert model.clock.kind == kind
    assert model.parameters["integrator"] == "tr-bdf2"
    u = mg.run(model, until=200.0, every=100.0).u.values
    assert np.abs(u[-1] - mg.solve.steady(model).u.values).max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sbdf2", "ars222"])
def test_a_case_with_an_implicit_linear_part(method: str) -> None:
    """The equation has the solution exp(-t) cos(x), and the steps are 20 times what explicit methods would need."""
    model = case(f"""
        [grid]
        shape = [200]
        boundary = "zero-gradient"
        [pde]
        equations = "laplace(u) - u**2 + exp(-2*t)*cos(x)**2"
        initial = {{ u = "cos(x)" }}
        spacing = {math.pi / 200}
        integrator = "{method}"
        dt = 0.0025
    """)
    u = mg.run(model, until=0.5, every=0.5).u.values[-1]
    x = (np.arange(200) + 0.5) * math.pi / 200
    assert dict(model.notes)["implicit"] == "u: laplace(u)"
    assert np.abs(u - math.exp(-0.5) * np.cos(x)).max() < 5e-5


@pytest.mark.slow
def test_a_case_is_the_same_model() -> None:
    model = case("""
        [grid]
        shape = [16, 20]
        boundary = ["periodic", "zero-gradient"]
        [pde]
        equations = "D*laplace(u)"
        parameters = { D = 0.5 }
        initial = { u = "x" }
        spacing = [0.5, 0.25]
        boundary = { x = [{ dirichlet = "sin(t) + y" }, { robin = [1.0, "D"] }] }
        dt = 0.01
    """)
    grid = mg.Grid((16, 20), spacing=(0.5, 0.25), periodic=(True, False))
    walls = (mg.dirichlet(lambda y, x, t: mg.sin(t) + y), mg.robin(1.0, 0.5))
    same = mg.pde(
        "D*laplace(u)", grid, parameters={"D": 0.5}, initial={"u": "x"}, boundary={"x": walls}, dt=0.01,
    )  # fmt: skip
    assert np.allclose(cells(model, 9)["u"], cells(same, 9)["u"], rtol=1e-14)


def test_a_case_closes_walls() -> None:
    model = case("""
        [grid]
        shape = [12]
        [pde]
        equations = "div(x*u) + laplace(u)"
        boundary = { x = { no_flux = true } }
    """)
    assert model.parameters["boundary"] == {"u": {"x": ["no_flux()", "no_flux()"]}}
    assert model.warnings == ()


@pytest.mark.slow
def test_conditions_have_the_order_of_the_equations() -> None:
    grid = mg.Grid((12,))
    walls = {"x": (mg.dirichlet(0.0), mg.robin(1.0, 0.0, 2))}
    for equation, order in (("laplace(u)", 4), ("laplace(u, order=4) + d_dx(u)", 2)):
        model = mg.pde({"u": equation, "v": "k*v"}, grid, parameters={"k": "x"}, order=order, boundary=walls, dt=0.1)
        given, other, k = (model.field(name).boundary for name in "uvk")
        assert repr(k.at(0, "low")) == "extrapolated(4)"
        for boundary in (given, other):
            depths = [trace_fill(mg.Field("w", grid, boundary=boundary), 0, side, 1).depth for side in ("low", "high")]
            assert depths == [3, 1]
    ends, default = (
        case(f"[grid]\nshape = [12]\n{entry}\n[pde]\nequations = 'laplace(u)'\norder = 4\ndt = 0.1")
        for entry in ('boundary = "zero-gradient"', "")
    )
    assert [trace_fill(each.field("u"), 0, "high", 1).depth for each in (ends, default)] == [4, 4]


@pytest.mark.parametrize(
    ("entry", "key", "message"),
    [
        ('equations = "laplce(u)"', "pde.equations", "unknown function 'laplce'"),
        ('equations = "u"\ninitial = { u = "cos(q)" }', "pde.initial", "unknown name 'q'"),
        ('equations = "u"\nboundary = { x = { dirichlet = "sin(q)" } }', "pde.boundary", "unknown name 'q'"),
        ('equations = "u"\nboundary = { q = { dirichlet = 0 } }', "pde.boundary", "no axis 'q'"),
        ('equations = "u"\nboundary = { x = { dirichlt = 0 } }', "pde.boundary.x", "found {'dirichlt': 0}"),
        ('equations = "u"\nboundary = { u = { x = "periodic" } }', "pde.boundary.u.x", "found 'periodic'"),
        ('equations = "u"\nboundary = { u = { x = { neumann = 0 } }, w = {} }', "pde.boundary", "no field 'w'"),
        ('equations = "u"\nspacing = [1.0]', "grid", ""),
    ],
)
def test_mistakes_in_cases_name_the_entry(entry: str, key: str, message: str) -> None:
    with pytest.raises(mg.CaseError) as caught:
        case(f"[grid]\nshape = [8, 8]\n[pde]\ndt = 0.1\n{entry}")
    assert caught.value.key == key
    assert message in caught.value.message


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["brusselator", "ginzburg-landau", "phase-field", "swift-hohenberg"])
def test_examples_run_the_same_on_three_ranks(name: str) -> None:
    tables = tomllib.loads(examples()[name].read_text())

    def make() -> mg.Model:
        return SPEC.make(SPEC.settings(**tables["pde"]), GridSettings(**tables["grid"] | {"shape": (34, 66)}), Path())

    assert make().warnings == ()
    assert_same(run_model(make(), 6), run_model(make(), 6, ranks=3, halo_depth=2))


@pytest.mark.slow
def test_random_numbers_depend_on_the_place_alone() -> None:
    model = mg.pde({"u": "0", "v": "0"}, mg.Grid((64, 64)), initial={"u": "random()", "v": "random()"}, dt=1.0)
    start: FieldValue = model.initial["u"]
    u, v = (cells(model, 0)[name] for name in "uv")
    assert callable(start)
    assert not np.array_equal(u, v)
    assert len(np.unique(u)) == u.size
    assert u.min() >= 0
    assert u.max() < 1
    assert u.mean() == pytest.approx(0.5, abs=0.02)
    assert u.var() == pytest.approx(1 / 12, abs=0.01)
