"""What authors of kernels do by habit, and what must not be wrong in silence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minga as mg
import minga.api
from minga.errors import KernelError
from minga.lang.kernel import infer_signature
from minga.lang.replacements import FUNCTIONS

RATE = 0.5


def graph(kernel: Any, dtype: str = "f8") -> Any:
    return kernel.graph(infer_signature(2, [(dtype, (0, 1)), (dtype, (0, 1))]))


def constants(kernel: Any) -> set[Any]:
    return {node.data for node in graph(kernel).nodes() if node.op == "const"}


def refused(body: Any, dtype: str = "f8") -> str:
    with pytest.raises(KernelError) as caught:
        graph(mg.kernel(body), dtype)
    assert __file__ in str(caught.value)
    return str(caught.value)


# What is taken from around -------------------------------------------------------------------------------------------
@dataclass
class Settings:
    rate: float


def test_a_kernel_is_traced_anew_when_what_it_takes_from_around_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    here, table, array = 0.25, [2.0], np.array([3.0])
    settings, space = Settings(4.0), SimpleNamespace(rate=5.0)

    def helper() -> float:
        return here * 8

    @mg.kernel
    def advance(u, new):
        new[0, 0] = u[0, 0] * RATE + here + table[0] * float(array[0]) + settings.rate + space.rate + helper()

    def value() -> float:
        # u = 0: the sum of the constants in their order
        return RATE + here + table[0] * array[0] + settings.rate + space.rate + here * 8

    first = graph(advance)
    assert graph(advance) is first
    seen = {frozenset(constants(advance))}

    def changed() -> None:
        assert frozenset(constants(advance)) not in seen, value()
        seen.add(frozenset(constants(advance)))

    monkeypatch.setitem(globals(), "RATE", 0.75)
    changed()
    here = 0.375
    changed()
    table[0] = 7.0
    changed()
    array[0] = 11.0
    changed()
    settings.rate = 13.0
    changed()
    space.rate = 17.0
    changed()
    monkeypatch.setitem(globals(), "RATE", 0.5)
    here, table[0], array[0], settings.rate, space.rate = 0.25, 2.0, 3.0, 4.0, 5.0
    assert graph(advance) is first


# Stores --------------------------------------------------------------------------------------------------------------
def test_a_cell_is_not_read_after_it_was_stored() -> None:
    def add_up(u, new):
        for offset in ((0, 1), (0, -1)):
            new[0, 0] += u[offset]

    assert "new[0, 0] is read after this kernel stored it, and reads see the old values" in refused(add_up)

    @mg.kernel(order={"x": +1})
    def in_order(u, new):
        new[0, 0] = u[0, 0]
        new[0, 0] += 1.0

    assert len(graph(in_order).stores) == 1


def test_numbers_that_a_type_cannot_hold() -> None:
    def too_large(u, new):
        new[0, 0] = u[0, 0] * 1e300

    assert "1e+300 does not fit into f4" in refused(too_large, "f4")

    def half(u, new):
        new[0, 0] = 0.5

    assert "new is i4, the value is f8" in refused(half, "i4")

    @mg.kernel
    def two(u, new):
        new[0, 0] = 2.0

    assert constants(two) <= {2}
    graph(two, "i4")


# Functions -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: np.sin(x), "fix: write mg.sin"),
        (lambda x: np.maximum(x, 0.0), "fix: write mg.max(x, y)"),
        (lambda x: np.tan(x), "fix: write mg.tan"),
        (lambda x: np.arcsinh(x), "fix: write mg.asinh(x)"),
        (lambda x: np.isfinite(x), "fix: there is no mg.isfinite: a kernel has operators and mg.abs, "),
        (lambda x: minga.api.rint(x), "fix: write mg.round(x)"),
        (lambda x: mg.arctan2(x, x), "fix: write mg.atan2(y, x)"),
        (lambda x: mg.gamma(x), "fix: there is no mg.gamma: "),
        (lambda x: np.array([1.0, 2.0]) * x, "np.multiply would combine an array with a cell's value"),
        (lambda x: math.sin(x), "use the mg. ones (mg.sin)"),
        (lambda x: round(x), "fix: write mg.round(x)"),
    ],
)
def test_functions_that_kernels_do_not_have(call: Any, says: str) -> None:
    def body(u, new):
        new[0, 0] = call(u[0, 0])

    assert says in refused(body)


def test_the_functions_that_messages_name_exist() -> None:
    assert set(FUNCTIONS) <= set(minga.api.__all__)
