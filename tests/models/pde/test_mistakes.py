"""Mistakes in the arguments of mg.pde: none changes a result silently, and each message names what to change."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError, LayoutError, MingaError, ProgramError
from minga.models.pde.settings import PdeSettings

LINE = mg.Grid((8,))
PLANE = mg.Grid((4, 6))
CLOSED = mg.Grid((8,), periodic=True)
OF_RESULTS = ("time", "step", "observed", "time_observed", "receiver", "receiver_time")
LEFT, RIGHT = mg.dirichlet(1.0), mg.neumann(0.0)


def pde(equations: Any = "laplace(u)", grid: Any = LINE, **options: Any) -> mg.Model:
    return mg.pde(equations, grid, **{"integrator": "rk4", "dt": 0.1, **options})


def rate(model: mg.Model) -> np.ndarray:
    """The rate of change of u, by one step of Euler's method of length 1."""
    found = mg.run(model, 1).u.values
    return np.asarray(found[1] - found[0])


def refused(make: Callable[[], object]) -> MingaError:
    """The error for a mistake."""
    with pytest.raises(MingaError) as caught:
        make()
    return caught.value


# Names ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", OF_RESULTS)
def test_names_of_results_belong_to_no_axis_and_no_field(name: str) -> None:
    assert "results" in refused(lambda: mg.Grid((4,), (name,))).message
    assert "results" in refused(lambda: pde({name: "1"})).message


def test_an_observable_and_a_field_keep_different_names() -> None:
    assert {"integral_u", "integral_u_observed"} <= {*mg.run(pde({"u": "0", "integral_u": "0"}), 1).data_vars}
    with pytest.raises(ProgramError, match="'integral_u' would be 'integral_u_observed'"):
        pde({"u": "0", "integral_u": "0", "integral_u_observed": "0"})


@pytest.mark.parametrize(
    ("name", "meaning"), [("t", "the time"), ("pi", "3.14"), ("d", "d(u, x)"), ("sin", "function")]
)
def test_axes_have_no_names_with_another_meaning(name: str, meaning: str) -> None:
    assert meaning in refused(lambda: pde("u", mg.Grid((4,), (name,)))).message


@pytest.mark.parametrize(
    ("name", "meaning"),
    [("d", "the operator d(u, x)"), ("x", "the coordinate along an axis"), ("laplacian", "another name of laplace")],
)
def test_the_meaning_of_a_reserved_name_is_said(name: str, meaning: str) -> None:
    assert meaning in refused(lambda: pde("u", parameters={name: 1.0})).message


# Parameters that nothing uses ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("equation", "parameters", "options", "remedy"),
    [
        ("-rate*u", {"rate": 1.0, "ratte": 2.0}, {}, "did you mean 'rate'?"),
        ("-u", {"k": 1.0}, {}, "remove it"),
        ("-gama*u", {"gamma": 1.0}, {}, "they have 'gama'"),
        ("-exp(u)", {"eps": 1.0}, {}, "remove it"),
        ("-D*u", {"D": "1 + x", "k": 1.0}, {}, "remove it"),
        (lambda u, k: -k * u[0], {"k": 1.0, "q": 1.0}, {}, "remove it"),
    ],
)
def test_parameters_that_nothing_uses(equation: Any, parameters: Any, options: Any, remedy: str) -> None:
    error = refused(lambda: pde(equation, parameters=parameters, **options))
    assert "is used by no equation" in error.message
    assert remedy in str(error.remedy)


@pytest.mark.parametrize(
    ("equation", "options"),
    [
        ("-D*u", {"parameters": {"D": "k*x", "k": 1.0}}),
        (lambda u, k: -k * u[0], {}),
        ("-u", {"initial": {"u": "k*x"}}),
        ("-u", {"boundary": mg.dirichlet("k*t")}),
        ("-u", {"noise": "k", "integrator": "euler-maruyama"}),
        ("re(k)*u", {"parameters": {"k": 1j}, "dtype": "c16"}),
    ],
)
def test_parameters_are_used_by_more_than_equations(equation: Any, options: Any) -> None:
    pde(equation, **{"parameters": {"k": 1.0}, **options})


def test_a_sweep_over_a_misspelt_parameter(tmp_path: Path) -> None:
    case = tmp_path / "case.toml"
    case.write_text(
        'model = "pde"\n[grid]\nshape = [8]\n[pde]\nequations = "-k*u"\nparameters = { k = 1.0 }\ndt = 0.1\n'
    )
    with pytest.raises(CaseError, match="did you mean 'k'"):
        mg.read_case(str(case), ["pde.parameters.kk=3"])


# Arguments -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pde(units={"W": "K"}), ["units of 'W'", "the fields are u"]),
        (lambda: pde(grid=(32, 32)), ["expected a grid, found (32, 32)", "mg.Grid((32, 32)"]),
        (lambda: pde(noise=np.ones(8), integrator="euler-maruyama"), ["an array of shape (8,)", 'noise="amplitude"']),
        (lambda: pde(grid=CLOSED, boundary=mg.dirichlet(1.0)), ["all axes of the grid are periodic"]),
        (lambda: pde(boundary=mg.antiperiodic()), ["the grid closes along no axis"]),
        (lambda: pde(boundary={"U": mg.dirichlet(1.0)}), ["'U', which is no field, and no axis", "did you mean 'u'"]),
        (lambda: pde(grid=PLANE, boundary={"u": (LEFT, RIGHT)}), ["is a pair, and the grid has the axes y, x"]),
        (lambda: mg.solve.steady(mg.run(pde(), 1)), ["expected a model, found Dataset", "initial"]),  # type: ignore[arg-type]
    ],
)
def test_arguments(make: Callable[[], object], words: list[str]) -> None:
    text = str(refused(make))
    assert all(word in text for word in words), text


@pytest.mark.parametrize("value", [None, float("nan"), [1, 2], 1j])
def test_values_of_conditions_are_checked_where_they_are_given(value: Any) -> None:
    robin = (lambda each: mg.robin(each, 1.0), lambda each: mg.robin(1.0, each))
    for make in (mg.dirichlet, mg.neumann, *robin):
        with pytest.raises(LayoutError, match="a finite number"):
            make(value)
    if not isinstance(value, float):  # ghost cells that are not to be read may be NaN
        with pytest.raises(LayoutError, match="give a number"):
            mg.fixed(value)


# Conditions ----------------------------------------------------------------------------------------------------------
def test_a_pair_of_conditions_belongs_to_the_only_axis() -> None:
    expected = rate(pde(boundary={"x": (LEFT, RIGHT)}, integrator="euler", dt=1.0))
    for given in ((LEFT, RIGHT), {"u": (LEFT, RIGHT)}, {"u": [LEFT, RIGHT]}):
        assert np.array_equal(rate(pde(boundary=given, integrator="euler", dt=1.0)), expected)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("text", "function"),
    [
        (mg.dirichlet("k*sin(t + 1)"), mg.dirichlet(lambda t: 2.0 * mg.sin(t + 1.0))),
        (mg.neumann("k*y"), mg.neumann(lambda y, x: 2.0 * y)),
        (mg.robin("k + y", "y*t"), mg.robin(lambda y, x: 2.0 + y, lambda y, x, t: y * t)),
    ],
)
def test_conditions_are_texts_as_well(text: Any, function: Any) -> None:
    one, other = (
        pde(
            "k*laplace(u) + 0*k", PLANE, boundary=each, parameters={"k": 2.0}, initial="x*y", integrator="euler", dt=1.0
        )
        for each in (text, function)
    )
    assert np.abs(rate(other)).max() > 0
    assert np.array_equal(rate(one), rate(other))


@pytest.mark.parametrize("condition", [mg.dirichlet("x"), mg.robin(1, "x"), (LEFT, mg.neumann("t"))])
def test_only_equations_read_texts(condition: Any) -> None:
    for given in (condition, {"x": condition}):
        with pytest.raises(LayoutError, match=r"which only mg\.pde reads"):
            mg.Field("u", LINE, boundary=given)


def test_an_unknown_name_in_the_text_of_a_condition() -> None:
    error = refused(lambda: pde(boundary=mg.dirichlet("sin(q)")))
    assert "boundary of u: unknown name 'q'" in error.message
    assert error.remedy == "known are pi, t, x"


# Texts ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"noise": -0.1}, "write noise=0.1"),
        ({"unit": 5}, "unit=5 is no text"),
        ({"units": {"u": 3}}, 'units={"u": "K"}'),
        ({"equations": "D*u", "parameters": {"D": np.ones((3, 3))}}, "has the shape (3, 3), and the grid (8,)"),
        ({"dt": -0.1}, "dt=-0.1 is not the length of a step"),
        ({"boundary": "no_flux"}, "write mg.no_flux()"),
        ({"boundary": {"x": ("no_flux", LEFT)}}, "write mg.no_flux()"),
        ({"bondary": LEFT}, "did you mean 'boundary'?"),
    ],
)
def test_arguments_that_mean_nothing(options: dict[str, Any], expected: str) -> None:
    assert expected in str(refused(lambda: pde(**options)))


def test_a_run_without_numbers_names_the_cause_that_was_said_before() -> None:
    model = pde("laplace(u)", initial=lambda x: x % 2, integrator="euler", dt=1e30)
    error = refused(lambda: mg.run(model, 20))
    assert "is not finite" in error.message
    assert "dt = 1e+30 may be too long" in str(error.remedy)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("np.sin(u)", "write sin(...) without np"),
        ("v.grad(u)", "dot(v, grad(...))"),
        ("laplace(u) - sin u", "write sin(u)"),
        ("a u", "write a*u"),
        ("9.81 m/s**2", "numbers have no units"),
        ("h**3 grad(u)", "write 3*grad"),
        ("d2_dt2(u)", "of first order in time"),
        ("laplace(T)", 'the equation of a field T is written {"T": "..."}'),
        ("D*laplace(u)", 'a parameter is given by parameters={"D": 1.0}'),
        ("u*time", "write t"),
        ("-|u + 1|*u", "write abs(...)"),
        ("u*'a'", "without quotes"),
    ],
)
def test_texts_of_other_programs(text: str, remedy: str) -> None:
    assert remedy in str(refused(lambda: pde(text)).remedy)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda u: u * (1 - u), ["field 'u'", "read a cell of it: u[0]"]),
        (lambda u, k: u[0] * k, ["field 'k'", 'parameters={"k": 1.0}']),
        (lambda u: u[0, 0], ["u[0, 0] has 2 offsets", "write u[0]"]),
        (lambda u: None, ["returns nothing", "test_mistakes.py"]),
        (lambda u: (u[0],), ["a tuple of 1", "the rate of u"]),
        (lambda u: "laplace(u)", ["returns the text 'laplace(u)'", "as the equation"]),
        (lambda u: u, ["returns the field u", "u[0]"]),
    ],
)
def test_functions_of_equations(function: Any, words: list[str]) -> None:
    given = {"k": np.ones(8)} if "field 'k'" in words else {}
    text = str(refused(lambda: pde(function, parameters=given)))
    assert all(word in text for word in words), text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": 3}, ["order=3", "2, 4, ... 16"]),
        ({"seed": 1.5}, ["seed=1.5"]),
        ({"tolerance": 0}, ["tolerance=0"]),
        ({"integrator": "RK45"}, ["did you mean 'dp5'?"]),
    ],
)
def test_numbers_and_names_of_methods(options: Any, words: list[str]) -> None:
    text = str(refused(lambda: pde("u", **options)))
    assert all(word in text for word in words), text


def test_a_shape_of_fractions() -> None:
    with pytest.raises(LayoutError, match="whole numbers"):
        mg.Grid((4.5, 4))  # type: ignore[arg-type]
    assert mg.Grid((np.int64(4), 4)).shape == (4, 4)


@pytest.mark.parametrize("text", ["curl((u, u))", "div(curl(curl((u, u))))"])
def test_curl_has_no_spectral_form(text: str) -> None:
    error = refused(lambda: pde(text, mg.Grid((4, 4), periodic=True), space="spectral"))
    assert "curl has no spectral form" in error.message


# Parameters of time, tensors and components --------------------------------------------------------------------------
def end(equation: Any, space: Any = "differences", **parameters: Any) -> np.ndarray:
    """The values after a few steps."""
    grid = mg.Grid((8,), spacing=2 * np.pi / 8, periodic=True)
    model = pde(equation, grid, parameters=parameters, initial="cos(x)", integrator="heun", dt=0.01, space=space)
    return np.asarray(mg.run(model, 3).u.values[-1])


@pytest.mark.slow
@pytest.mark.parametrize("space", ["differences", "spectral"])
def test_parameters_depend_on_the_time(space: Any) -> None:
    expected = end("(1 + sin(3*t)*(2 + x))*laplace(u)", space)
    assert np.abs(expected - end("laplace(u)", space)).max() > 1e-3
    for parameters in (
        {"D": "1 + sin(k*t)*q", "k": 3.0, "q": "2 + x"},
        {"D": lambda x, t: 1 + mg.sin(3 * t) * (2 + x)},
        {"D": lambda t, x: 1 + mg.sin(3 * t) * (2 + x)},
    ):
        assert np.array_equal(end("D*laplace(u)", space, **parameters), expected)


def test_functions_of_equations_take_parameters_of_time() -> None:
    assert np.array_equal(end(lambda u, D: D * mg.laplace(u), D="1 + t"), end("(1 + t)*laplace(u)"))
    assert "unknown name 'u'" in refused(lambda: pde("D*u", parameters={"D": "t*u"})).message


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("div_grad((1, 2), u)", "d2_dy2(u) + 2*d2_dx2(u)"),
        ("div_grad(((1, 0.5), (0.5, 2)), u)", "d2_dy2(u) + 2*d2_dx2(u) + d2_dxdy(u)"),
        ("grad(u)[0] - 3*(2*grad(u))[x]", "d_dy(u) - 6*d_dx(u)"),
    ],
)
@pytest.mark.parametrize("space", ["differences", "spectral"])
def test_tensors_and_components(text: str, same: str, space: Any) -> None:
    grid = mg.Grid((8, 10), spacing=(2 * np.pi / 8, 2 * np.pi / 10), periodic=True)
    one, other = (
        rate(pde(each, grid, initial="sin(2*x + y)", integrator="euler", dt=1.0, space=space)) for each in (text, same)
    )
    assert np.abs(one).max() > 1
    np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [("grad(u)[2]", "a component that the vector does not have"), ("u[0]", "a subscript is not allowed")],
)
def test_components_that_there_are_not(text: str, message: str) -> None:
    assert message in refused(lambda: pde(text, PLANE)).message


# Runs ----------------------------------------------------------------------------------------------------------------
def test_initial_values_of_complex_fields_in_a_run() -> None:
    model = pde({"psi": "0*psi"}, dtype="c16", initial={"psi": "x"})
    found = mg.run(model, 0, initial={"psi": np.full(8, 1 + 2j)})
    assert found.psi_re.values[0].tolist() == [1.0] * 8
    assert found.psi_im.values[0].tolist() == [2.0] * 8
    for given, words in (("x", "is the text 'x'"), (lambda x: x, "is a function, and the field is complex")):
        with pytest.raises(CaseError, match=words):
            mg.run(model, 0, initial={"psi": given})
    assert str(refused(lambda: mg.run(model, 0, initial={"phi": 1.0})).remedy) == "its fields are psi_re, psi_im"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("equation", "message"),
    [
        pytest.param("laplace(u) + 1", "fixes the level of the fields", marks=pytest.mark.slow),
        ("laplace(u) + 1/u", "not finite at the initial values"),
    ],
)
def test_what_has_no_steady_state(equation: str, message: str) -> None:
    assert message in str(refused(lambda: mg.solve.steady(mg.pde(equation, mg.Grid((4,))), limit=3)))


# Cases and texts of models -------------------------------------------------------------------------------------------
def test_the_documentation_has_all_entries_of_the_table() -> None:
    page = (Path(mg.__file__).parents[2] / "docs" / "equations.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|", page.split("The table `[pde]`")[1].split("##")[0], re.MULTILINE)
    assert sorted(rows) == sorted(PdeSettings.model_fields)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("grid.spacing=0.1", "a setting of [pde]"),
        ("grid.periodic=true", "no periodic"),
        ("pde.order=3", "a multiple of 2"),
    ],
)
def test_entries_of_cases(setting: str, message: str, tmp_path: Path) -> None:
    case = tmp_path / "case.toml"
    case.write_text('model = "pde"\n[grid]\nshape = [8]\n[pde]\nequations = "-u"\ndt = 0.1\n')
    assert message in str(refused(lambda: mg.read_case(str(case), [setting])))


def test_a_model_prints_its_equations_first() -> None:
    lines = str(pde({"u": "laplace(u)"}, boundary=mg.dirichlet(0.0), integrator="tr-bdf2")).splitlines()
    assert lines[1:3] == ["  equations of u: laplace(u)", "  boundary of u: x: dirichlet(0.0), dirichlet(0.0)"]
    assert len(lines) < 30
