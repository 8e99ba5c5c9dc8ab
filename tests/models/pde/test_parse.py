"""Equations as text: what is accepted and what it means, and messages that point at the mistake."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import minga as mg
from minga.models.pde import EquationError
from minga.models.pde.source import parse

GRID = mg.Grid((8, 12), spacing=(0.5, 0.25), periodic=True)


def value_of(rate: object, **parameters: float) -> np.ndarray:
    """The rate of change of u, by one step of Euler's method."""
    equations = {"u": rate, "v": "0"}
    starts = {"u": "1.5 + sin(2*pi*x/3)*cos(pi*y/2)", "v": "cos(pi*y/2) + 0.5*sin(2*pi*x/3)"}
    model = mg.pde(equations, GRID, parameters=parameters, initial=starts, integrator="euler", dt=1.0)
    with mg.Engine(model.layouts("slabs", 1)) as engine:
        for name, given in model.initial.items():
            engine.set(model.field(name), given)
        before = engine.gather(model.field("u"))
        engine.run(model.step)
        after = engine.gather(model.field("u"))
    assert before is not None
    assert after is not None
    return np.asarray(after - before)


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("∇²u", lambda u, v: mg.laplace(u)),
        ("laplace(u, order=4)", lambda u, v: mg.laplace(u, 4)),
        ("∇²(u*v)", lambda u, v: mg.laplace(u[0, 0] * v[0, 0])),
        ("u² − v³", lambda u, v: u[0, 0] ** 2 - v[0, 0] ** 3),
        ("|∇u|²", lambda u, v: mg.gradient_squared(u)),
        ("div(u*grad(v))", lambda u, v: mg.div_grad(u[0, 0], v)),
        ("∇·(u·∇v)", lambda u, v: mg.div_grad(u[0, 0], v)),
        ("div(grad(v)*u/2)", lambda u, v: mg.div_grad(0.5 * u[0, 0], v)),
        ("div((u, v))", lambda u, v: mg.div((u[0, 0], v[0, 0]))),
        ("dot((u, v), grad(u))", lambda u, v: u[0, 0] * mg.d(u, "y") + v[0, 0] * mg.d(u, "x")),
        ("d_dx(u) + d2_dy2(v) - d3_dx3(u)", lambda u, v: mg.d(u, "x") + mg.d(v, "y", 2) - mg.d(u, "x", 3)),
        ("d2_dxdy(u)", lambda u, v: mg.d2(u, "x", "y")),
        ("d(u, 'y', order=4)", lambda u, v: mg.d(u, "y", 1, 4)),
        ("advect((v, 1), u, scheme='up3')", lambda u, v: mg.advect((v[0, 0], 1.0), u, "up3")),
        ("where(u > 1, u, v)", lambda u, v: mg.where(u[0, 0] > 1, u[0, 0], v[0, 0])),
        ("u if 1 < u < 2 else v", lambda u, v: mg.where((u[0, 0] > 1) & (u[0, 0] < 2), u[0, 0], v[0, 0])),
        ("u if u > 2 or not v > 0 else 0", lambda u, v: mg.where((u[0, 0] > 2) | (v[0, 0] <= 0), u[0, 0], 0.0)),
        ("max(u, v, 0.5) + |v|", lambda u, v: mg.max(u[0, 0], v[0, 0], 0.5) + mg.abs(v[0, 0])),
        ("x + 10*y", lambda x, y: x + 10 * y),
        ("erf(u)**0.5 * pi", lambda u: mg.erf(u[0, 0]) ** 0.5 * np.pi),
        ("biharmonic(u)", lambda u: mg.biharmonic(u)),
        ("curl((u, v))", lambda u, v: mg.curl((u[0, 0], v[0, 0]))),
    ],
)
def test_texts_mean_the_operators_of_kernels(text: str, rate: Callable[..., object]) -> None:
    expected = value_of(rate)
    assert np.abs(expected).max() > 0
    assert np.allclose(value_of(text), expected, rtol=1e-13, atol=1e-13)


def test_parameters_in_any_normal_form() -> None:
    micro, mu = "\u00b5", "\u03bc"
    assert np.array_equal(value_of(f"{micro}*u", **{mu: 2.0}), value_of("2*u"))


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("__import__('os').getcwd()", "only functions by their names", None),
        ("__import__('os')", "text in an equation", None),
        ("u.real", "an attribute is not allowed", None),
        ("u[0, 1]", "a subscript is not allowed", None),
        ("(lambda: u)()", "only functions by their names", None),
        ("lambda x: x", "a lambda is not allowed", None),
        ("[u, v]", "a list is not allowed", None),
        ("(w := u)", "an assignment is not allowed", None),
        ("laplace(*u)", "a starred argument is not allowed", None),
        ("[x for x in u]", "a comprehension is not allowed", None),
        ("f'{u}'", "a string is not allowed", None),
        ("u + 2j", "a complex number", None),
        ("u^2", "a power is written **", "write u**2"),
        ("2u", "a product needs its sign", "write 2*u"),
        ("2(u + v)", "a number is called", "write 2*(...)"),
        ("u // 2", "// is not an operator", "write floor(a / b)"),
        ("u = v", "right-hand side only", None),
        ("", "the text is empty", None),
        ("u +", "not an expression", None),
        ("u v", "not an expression", "write u*v"),
        ("1/0", "division by zero", None),
        ("u**1000", "an exponent of 1000", None),
        ("(-1)**0.5*u", "complex", None),
        ("1e999*u", "too large", None),
        ("laplce(u)", "unknown function 'laplce'", "did you mean 'laplace'?"),
        ("u + w", "unknown name 'w'", None),
        ("ln(u)", "unknown function 'ln'", "write log(...), the natural logarithm"),
        ("e**u", "unknown name 'e'", "write exp(...)"),
        ("laplace", "laplace is a function", "write laplace(...)"),
        ("u(1)", "u is no function", "write u*(...) for a product"),
        ("grad(u)", "is a vector", None),
        ("grad(u) + 1", "operation of a vector", None),
        ("grad(u)*grad(v)", "operation of a vector", "the scalar product is dot(a, b)"),
        ("exp(grad(u))", "a vector where a number is expected", None),
        ("div(u)", "a vector is expected", None),
        ("laplace(u, v)", "laplace takes 1 argument, found 2", None),
        ("laplace(u, ordr=4)", "unknown option of laplace, 'ordr'", "did you mean 'order'?"),
        ("laplace(u, order=3)", "order", None),
        ("advect((u, v), u, scheme=weno7)", "invalid value of scheme", None),
        ("sin(u, v)", "sin takes 1 argument, found 2", None),
        ("d_dz(u)", "unknown function 'd_dz'", None),
        ("(u, v, 1)", "a vector of 3 components", None),
        ("u\0", "not an expression", None),
    ],
)
def test_other_texts_are_refused(text: str, message: str, remedy: str | None) -> None:
    with pytest.raises(EquationError) as caught:
        value_of(text)
    assert message in caught.value.message
    if remedy is not None:
        assert caught.value.remedy == remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 150 + "u" + ")" * 150, "nested more than 100 deep"),
        ("-" * 1500 + "u", "nested more than 1000 deep"),
        ("-" * 9000 + "u", "deep|cannot be read"),
        ("+".join(["u"] * 20000), "has 39999 characters"),
        ("u**" * 3000 + "u", "deep|cannot be read"),
    ],
    ids=["brackets", "signs", "many signs", "long", "powers"],
)
def test_excesses_are_refused(text: str, message: str) -> None:
    with pytest.raises(EquationError, match=message):
        mg.pde(text, GRID, dt=0.1)


def test_long_sums_are_fine() -> None:
    assert np.allclose(value_of("+".join(["u"] * 300)), value_of("300*u"))


def test_messages_show_the_place() -> None:
    with pytest.raises(EquationError) as caught:
        value_of("D*∇²u + sin(ω*t)", D=1.0)
    lines = caught.value.message.splitlines()
    assert lines[0] == "d(u)/dt: unknown name 'ω'"
    assert lines[1] == "  D*∇²u + sin(ω*t)"
    assert lines[2].index("^") == lines[1].index("ω")
    assert str(caught.value.where) == f"column {lines[1].index('ω') - 1}"


def test_nothing_is_evaluated(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for text in (f"open({str(mark)!r}, 'w')", f"__import__('os').mkdir({str(mark)!r})", f"os.mkdir('{mark}')"):
        with pytest.raises(EquationError):
            mg.pde(text, GRID, dt=0.1)
        with pytest.raises(EquationError):
            mg.pde("u", GRID, dt=0.1, initial={"u": text})
    assert not os.path.exists(mark)


@pytest.mark.parametrize("name", ["lambda", "laplace", "pi", "x", "t", "a b", "1u", "noise", "", "True"])
def test_names_that_fields_and_parameters_cannot_have(name: str) -> None:
    with pytest.raises(mg.ProgramError, match="field"):
        mg.pde({name: "0"}, GRID, dt=0.1)
    with pytest.raises(mg.ProgramError, match="parameter"):
        mg.pde("u", GRID, parameters={name: 1.0}, dt=0.1)


def test_columns_count_characters_of_the_text() -> None:
    source = parse("  µ² + ∇²u − q", "test")
    (name,) = (node for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == "q")
    assert source.column(name) == len("  µ² + ∇²u − ")
