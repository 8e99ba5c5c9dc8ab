"""Elementary functions of arrays have the bits of the same functions in kernels."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.compile import portable

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "asinh": (portable.asinh, mg.asinh, np.arcsinh),
    "cbrt": (portable.cbrt, mg.cbrt, np.cbrt),
    "cos": (portable.cos, mg.cos, np.cos),
    "exp": (portable.exp, mg.exp, np.exp),
    "expm1": (portable.expm1, mg.expm1, np.expm1),
    "log1p": (portable.log1p, mg.log1p, np.log1p),
    "tanh": (portable.tanh, mg.tanh, np.tanh),
    "log": (portable.log, mg.log, np.log),
    "sin": (portable.sin, mg.sin, np.sin),
    "tan": (portable.tan, mg.tan, np.tan),
    "power": (lambda x: portable.power(x, 1.7), lambda x: mg.pow(x, 1.7), lambda x: x**1.7),
    "square": (lambda x: portable.power(x, 2.0), lambda x: x * x, np.square),
}


def in_a_kernel(function: Callable[[Any], Any], values: np.ndarray) -> np.ndarray:
    grid = mg.Grid(values.shape)
    x, y = (mg.Field(name, grid) for name in "xy")

    @mg.kernel
    def compute(x: Any, y: Any) -> None:
        y[0] = function(x[0])

    program = mg.Program("compute")
    program.apply(compute, x, y)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:
        engine.set(x, values)
        engine.run(program)
        found = engine.gather(y)
    assert found is not None
    return found


@pytest.mark.few(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_have_the_bits_of_kernels(name: str) -> None:
    of_arrays, of_cells, of_numpy = FUNCTIONS[name]
    values = np.random.default_rng(3).uniform(0.01, 30.0, 3000)
    found = of_arrays(values)
    assert found.tobytes() == in_a_kernel(of_cells, values).tobytes()
    np.testing.assert_allclose(found, of_numpy(values), rtol=2e-15)


def test_numbers_are_floats_and_arrays_keep_their_shape() -> None:
    assert portable.exp(np.float64(1.5)) == portable.exp(np.array([1.5]))[0]
    assert isinstance(portable.exp(np.array(2.0)), float)
    assert isinstance(portable.power(2, 0.5), float)
    assert portable.log([[1.0, 2.0]]).shape == (1, 2)
    assert portable.log(np.ones((0, 3))).shape == (0, 3)
    assert portable.power(np.ones((4, 1)), np.ones(3)).shape == (4, 3)


def test_many_numbers_are_computed_in_parts() -> None:
    values = np.linspace(-3.0, 3.0, 50_001)
    found = portable.sin(values)
    assert found[::5000].tobytes() == portable.sin(values[::5000].copy()).tobytes()
    np.testing.assert_allclose(found, np.sin(values), rtol=0, atol=1e-15)


@pytest.mark.parametrize("size", [100, 5000])
def test_remembered_values_are_those_computed(size: int) -> None:
    """Also for other signs of 0, after a caller changed its array, and with the arguments exchanged."""
    values = np.linspace(0.5, 1.5, size)
    first = portable.power(values, values[::-1])
    expected = first.tobytes()
    first[:] = 7.0
    again = portable.power(values, values[::-1])
    assert again.tobytes() == expected
    assert again.flags.writeable
    assert portable.power(values[::-1], values).tobytes() == again[::-1].tobytes() != expected
    assert not np.signbit(portable.sin(np.zeros(size))).any()
    assert np.signbit(portable.sin(np.full(size, -0.0))).all()
    values[0] = 1.25
    assert portable.sin(values)[0] == portable.sin(1.25)


def test_threads_remember_the_same_values() -> None:
    values = np.linspace(-2.0, 2.0, 5003)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: portable.sin(values + k % 2).tobytes(), range(8)))
    parts = [np.concatenate([portable.sin(part + k) for part in np.split(values, [2000, 4000])]) for k in (0, 1)]
    assert found == [parts[k % 2].tobytes() for k in range(8)]


def test_powers() -> None:
    base = np.array([0.0, 0.5, 3.0, 1e200])
    np.testing.assert_array_equal(portable.power(base, 0.0), 1.0)
    np.testing.assert_array_equal(portable.power(base, 1), base)
    np.testing.assert_array_equal(portable.power(base, 0.5), np.sqrt(base))
    np.testing.assert_array_equal(portable.power(base, np.array([2.0, 1.0, 0.0, 2.0])), [0.0, 0.5, 1.0, np.inf])
