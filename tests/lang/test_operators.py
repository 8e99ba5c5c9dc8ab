"""Operators as kernels: weights of the tables, bits of NumPy and of machine code, what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.compile.call import run_kernel
from minga.compile.llvm import compile_kernel
from minga.compile.numpy import BoundArray, evaluate
from minga.errors import KernelError
from minga.lang.analysis import offsets_of
from minga.lang.kernel import FieldType, Kernel, Signature
from minga.lang.trace import Metric
from minga.lang.weights import fornberg, reach, uniform_averages, uniform_weights
from minga.space.metric import supplied_constant, supplied_scalar
from thinned import thinned

CENTRED = {
    2: ("1/2", "-2 1", "1"),
    4: ("2/3 -1/12", "-5/2 4/3 -1/12", "9/8 -1/24"),
    6: ("3/4 -3/20 1/60", "-49/18 3/2 -3/20 1/90", "75/64 -25/384 3/640"),
    8: ("4/5 -1/5 4/105 -1/280", "-205/72 8/5 -1/5 8/315 -1/560", "1225/1024 -245/3072 49/5120 -5/7168"),
}


def fractions(text: str) -> list[Fraction]:
    return [Fraction(each) for each in text.split()]


def centred(n: int, order: int) -> list[Fraction]:
    half = reach(n, order, False)
    return list(uniform_weights(n, tuple(Fraction(k) for k in range(-half, half + 1))))[half:]


@pytest.mark.parametrize("order", CENTRED)
def test_weights_are_those_of_the_tables(order: int) -> None:
    first, second, staggered = map(fractions, CENTRED[order])
    assert centred(1, order) == [0, *first]
    assert centred(2, order) == second
    half = reach(1, order, True)
    found = uniform_weights(1, tuple(Fraction(2 * k - 1, 2) for k in range(1 - half, half + 1)))
    assert list(found[half:]) == staggered
    assert list(found[:half]) == [-w for w in reversed(staggered)]


def test_higher_derivatives_and_interpolation() -> None:
    assert centred(3, 2) == fractions("0 -1 1/2")
    assert centred(3, 4) == fractions("0 -13/8 1 -1/8")
    assert centred(4, 4) == fractions("56/6 -39/6 12/6 -1/6")
    assert list(uniform_weights(0, tuple(map(Fraction, ("-3/2", "-1/2", "1/2", "3/2"))))) == fractions(
        "-1/16 9/16 9/16 -1/16"
    )
    for order in range(2, 18, 2):
        assert sum(centred(2, order)[1:]) * 2 == -centred(2, order)[0]


def test_averages_give_the_fluxes_of_the_tables() -> None:
    assert list(uniform_averages(-2, 1)) == fractions("-1/6 5/6 2/6")
    assert list(uniform_averages(-3, 2)) == fractions("2/60 -13/60 47/60 27/60 -3/60")
    assert list(uniform_averages(-2, 2)) == fractions("-1/12 7/12 7/12 -1/12")


def test_unequal_spacings() -> None:
    a, b = Fraction(2, 5), Fraction(7, 3)
    assert fornberg([-a, Fraction(0), b], 1) == [-b / (a * (a + b)), (b - a) / (a * b), a / (b * (a + b))]
    assert fornberg([-a, Fraction(0), b], 2) == [2 / (a * (a + b)), -2 / (a * b), 2 / (b * (a + b))]


# Bits ----------------------------------------------------------------------------------------------------------------
def everything(u, v, new):  # type: ignore[no-untyped-def]
    total = mg.laplace(u, 4) + mg.biharmonic(u) + mg.gradient_squared(u) + mg.curl((u, v)) + mg.div((u, v), 4)
    total = total + mg.div_grad(v, u) + mg.div_grad(v, u, mean="harmonic") + mg.d2(u, "y", "x") * mg.spacing("x")
    for scheme in ("upwind", "up3", "up5", "c2", "c4"):
        total = total + mg.advect((v, 0.5), u, scheme) + mg.advect((0.25, v), u, scheme, conservative=False)
    new[0, 0] = total


def limited(u, v, new):  # type: ignore[no-untyped-def]
    new[0, 0] = mg.advect((v, v), u, "weno5") + mg.advect((v, v), u, "van_leer")


def of_an_expression(u, v, new):  # type: ignore[no-untyped-def]
    product = mg.local(u[0, 0] * mg.exp(-v[0, 0]))
    new[0, 0] = mg.laplace(u[0, 0] * v[0, 0]) + mg.laplace(product) + mg.laplace(mg.laplace(u))


GRIDS = {
    "uniform": mg.Grid((16, 19), spacing=(0.3, 0.7)),
    "stretched": mg.Grid((16, 19), spacing=(np.linspace(0.2, 0.9, 16), 0.4)),
    "cylindrical": mg.Grid((16, 19), ("z", "r"), spacing=0.25, geometry="cylindrical"),
}


def graph_and_arguments(function: Any, grid: mg.Grid, dtype: str) -> tuple[Any, list[BoundArray], dict[str, float]]:
    field = FieldType(dtype, (0, 1))  # type: ignore[arg-type]
    metric = Metric(grid.geometry, tuple(map(grid.uniform, range(2))))
    graph = Kernel(function).graph(Signature(2, (field,) * 3, (), grid.axes, metric))
    rng = np.random.default_rng(3)
    arrays = [BoundArray(rng.random([n + 20 for n in grid.shape]).astype(dtype), (-10, -10)) for _ in range(3)]
    for param in graph.params[3:]:
        table = supplied_constant(grid, param.axes[0], param.name, 0)
        arrays.append(BoundArray(table.array, table.origin))
    scalars = {s.name: supplied_scalar(grid, (0, 1), s.name) for s in graph.scalars}
    assert None not in scalars.values()
    return graph, arrays, scalars  # type: ignore[return-value]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("function", "kind", "dtype"),
    thinned(
        [
            (everything, "uniform", "f8"), (everything, "uniform", "f4"), (everything, "stretched", "f8"),
            (limited, "uniform", "f8"), (limited, "uniform", "f4"), (of_an_expression, "uniform", "f8"),
            (limited, "stretched", "f8"), (limited, "stretched", "f4"),
            (of_an_expression, "cylindrical", "f8"), (of_an_expression, "stretched", "f4"),
        ],
        (everything, "uniform", "f4"), (everything, "stretched", "f8"), (limited, "uniform", "f8"),
        (limited, "stretched", "f4"), (of_an_expression, "cylindrical", "f8"), (of_an_expression, "stretched", "f4"),
    ),
)  # fmt: skip
def test_machine_code_has_the_bits_of_numpy(function: Any, kind: str, dtype: str) -> None:
    graph, arrays, scalars = graph_and_arguments(function, GRIDS[kind], dtype)
    box = ((0, 0), GRIDS[kind].shape)
    evaluate(graph, box, arrays, scalars)
    expected = arrays[2].array.copy()
    arrays[2].array[...] = 0
    run_kernel(compile_kernel(graph), box, arrays, scalars)
    np.testing.assert_array_equal(arrays[2].array[10:-10, 10:-10], expected[10:-10, 10:-10])
    assert np.isfinite(expected).all()
    assert np.ptp(expected[10:-10, 10:-10]) > 0


def test_a_uniform_axis_costs_no_traffic_and_keeps_f4() -> None:
    def laplace(u, v, new):  # type: ignore[no-untyped-def]
        new[0, 0] = mg.laplace(u)

    graph, _, scalars = graph_and_arguments(laplace, GRIDS["uniform"], "f4")
    assert len(graph.params) == 3
    assert scalars == {
        "@per_spacing0_2": float(1 / Fraction(0.3) ** 2),
        "@per_spacing1_2": float(1 / Fraction(0.7) ** 2),
    }
    assert {node.dtype for node in graph.nodes() if node.op in ("add", "sub", "mul")} == {"f4"}
    assert offsets_of(graph, 0) == {(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)}


def test_constants_have_no_derivative_on_stretched_axes() -> None:
    def derivatives(u, v, new):  # type: ignore[no-untyped-def]
        new[0, 0] = mg.d(u, "y", 1, 4) + mg.d(u, "y", 2, 6) + mg.d(u, "y", 1, 4, "forward")

    graph, arrays, scalars = graph_and_arguments(derivatives, GRIDS["stretched"], "f8")
    arrays[0].array[...] = 0.1
    evaluate(graph, ((0, 0), (16, 19)), arrays, scalars)
    assert not arrays[2].array[10:-10, 10:-10].any()


# Mistakes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda u: mg.d(u, "z"), "no axis 'z'"),
        (lambda u: mg.d(u, "x", 1, 3), "accuracies are 2, 4, ... 16"),
        (lambda u: mg.d(u, "x", -1), "the derivative of order -1"),
        (lambda u: mg.d(u, "x", staggered="up"), 'write "forward", "backward"'),
        (lambda u: mg.div(u), "mg.div of"),
        (lambda u: mg.div((u, u, u)), "give a tuple of 2"),
        (lambda u: mg.advect((1.0, 1.0), u, "weno3"), "choose one of upwind, up3"),
        (lambda u: mg.div_grad(1.0, u, mean="geometric"), 'write "arithmetic" or "harmonic"'),
        (lambda u: mg.div_grad(u, u, 4, "harmonic"), "use order=2"),
        (lambda u: mg.laplace("u"), "cannot be part of a kernel's expression"),
    ],
)
def test_mistakes_say_what_to_write(call: Any, says: str) -> None:
    def kernel(u, new):  # type: ignore[no-untyped-def]
        new[0, 0] = call(u)

    with pytest.raises(KernelError) as caught:
        Kernel(kernel).graph(Signature(2, (FieldType("f8", (0, 1)),) * 2, (), ("y", "x")))
    assert says in str(caught.value)
    assert __file__ in str(caught.value.where)


def test_a_condition_computes_with_its_edge() -> None:
    u = mg.Field("u", GRIDS["uniform"], boundary=mg.custom(lambda edge: mg.spacing("x")))
    new = mg.Field("new", GRIDS["uniform"])

    @mg.kernel
    def laplace(u, new):
        new[0, 0] = mg.laplace(u)

    program = mg.Program("laplace")
    program.apply(laplace, u, new)
    with (
        pytest.raises(KernelError, match="spacing in a boundary condition"),
        mg.Engine(mg.Layout.single(u.grid.box, 1), grid=u.grid) as engine,
    ):
        engine.run(program)
