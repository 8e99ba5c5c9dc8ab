"""Differences: exact weights, observed orders, the shortest wave, and mixed derivatives by locals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError
from minga.models.waves.stencils import ORDERS, Differences, first_weights, nyquist, second_weights


def test_the_weights_of_order_eight_are_fletchers() -> None:
    assert first_weights(8) == (Fraction(4, 5), Fraction(-1, 5), Fraction(4, 105), Fraction(-1, 280))
    assert second_weights(8) == (
        Fraction(-205, 72), Fraction(8, 5), Fraction(-1, 5), Fraction(8, 315), Fraction(-1, 560),
    )  # fmt: skip
    assert nyquist(8) == pytest.approx(6.501587, abs=1e-6)


@pytest.mark.parametrize("order", ORDERS)
def test_polynomials_up_to_the_order_are_differentiated_exactly(order: int) -> None:
    first, second = first_weights(order), second_weights(order)
    for power in range(order + 1):
        slope = sum(c * (Fraction(k) ** power - Fraction(-k) ** power) for k, c in enumerate(first, 1))
        assert slope == (1 if power == 1 else 0)
        bend = sum(c * (Fraction(k) ** power + Fraction(-k) ** power) for k, c in enumerate(second[1:], 1))
        assert bend + (second[0] if power == 0 else 0) == (2 if power == 2 else 0)


def test_another_order_is_refused() -> None:
    with pytest.raises(CaseError, match="no stencil of order 6"):
        first_weights(6)


def _error(n: int, kernel: mg.Kernel, of: Any, expected: Any) -> float:
    """Largest error of a kernel on a periodic axis of n cells that is 2 pi long."""
    grid = mg.Grid((1, 1, n), periodic=True)
    u, out = (mg.Field(name, grid) for name in ("u", "out"))
    program = mg.Program("differences")
    program.apply(kernel, u, out)
    x = 2 * np.pi * np.arange(n) / n
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:
        engine.set(u, of(x).reshape(grid.shape))
        engine.run(program)
        found = engine.gather(out)
    assert found is not None
    return float(abs(found.ravel() - expected(x)).max())


@pytest.mark.slow
def test_the_error_falls_by_the_eighth_power_of_the_spacing() -> None:
    def errors(second: bool) -> list[float]:
        found = []
        for n in (24, 48, 96):
            d = Differences.of(8, [n / (2 * np.pi)] * 3)
            exact = (lambda x: -9 * np.sin(3 * x)) if second else (lambda x: 3 * np.cos(3 * x))
            found.append(_error(n, mg.kernel(differentiate_of(d, second)), lambda x: np.sin(3 * x), exact))
        return found

    for second in (False, True):
        coarse, middle, fine = errors(second)
        assert np.log2(coarse / middle) == pytest.approx(7.83, abs=0.06)
        assert np.log2(middle / fine) == pytest.approx(7.95, abs=0.03)


def differentiate_of(d: Differences, second: bool) -> Any:
    def differentiate(u: Any, out: Any) -> None:
        out[0, 0, 0] = d.d2(u, 2) if second else d.d1(u, 2)

    return differentiate


def test_factorised_mixed_derivatives_are_those_of_the_product_stencil() -> None:
    grid = mg.Grid((1, 20, 24), periodic=True)
    u, factorised, product = (mg.Field(name, grid) for name in ("u", "factorised", "product"))
    d = Differences.of(8, [1.0] * 3)

    def both(u: Any, factorised: Any, product: Any) -> None:
        inner = mg.local(d.d1(u, 1))
        factorised[0, 0, 0] = d.d1(inner, 2)
        weights = {s * k: s * w for k, w in enumerate(d.first[1], 1) for s in (1, -1)}
        terms = [a * b * u[0, j, i] for j, a in weights.items() for i, b in weights.items()]
        product[0, 0, 0] = sum(terms[1:], terms[0])

    program = mg.Program("mixed")
    program.apply(mg.kernel(both), u, factorised, product)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid) as engine:
        engine.set(u, np.random.default_rng(1).standard_normal(grid.shape))
        engine.run(program)
        one, other = engine.gather(factorised), engine.gather(product)
    assert one is not None
    assert other is not None
    assert abs(one - other).max() < 1e-13 * abs(other).max()
