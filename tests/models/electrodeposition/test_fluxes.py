"""Exponential fitting: the Bernoulli function to a few ulp, fluxes that vanish in equilibrium and keep their signs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from minga.compile.numpy import BoundArray, evaluate
from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node
from minga.lang.kernel import Kernel, infer_signature
from minga.models.electrodeposition import fluxes, neutral

Floats = NDArray[np.float64]

HARD = np.array([0.0, -0.0, 5e-324, 1e-300, 1e-17, 1e-8, 0.0299999, 0.03, 0.0300001, 0.5, 1.0, 36.0, 700.0, 745.0, 1e4])
POINTS = np.concatenate([HARD, np.geomspace(1e-12, 800.0, 2001)])


def values(function: Callable[..., Node], *arguments: Floats) -> Floats:
    result = np.empty(arguments[0].shape)

    def three(a: CellReader, b: CellReader, c: CellReader, out: CellReader) -> None:
        out[0] = function(*[item[0] for item in (a, b, c)][: len(arguments)])

    arrays = [*arguments, *[arguments[0]] * (3 - len(arguments)), result]
    graph = Kernel(three).graph(infer_signature(1, [("f8", (0,))] * 4))
    evaluate(graph, ((0,), result.shape), [BoundArray(np.ascontiguousarray(a), (0,)) for a in arrays])
    return result


def series(u: Floats) -> NDArray[np.longdouble]:
    """B of |u| < 1 by its Taylor series, whose coefficients are Bernoulli numbers over factorials."""
    wide, total = u.astype(np.longdouble), np.zeros(u.shape, np.longdouble)
    numbers = [(1, 1), (-1, 2), (1, 6), (0, 1), (-1, 30), (0, 1), (1, 42), (0, 1), (-1, 30), (0, 1), (5, 66), (0, 1)]
    numbers += [(-691, 2730), (0, 1), (7, 6), (0, 1), (-3617, 510), (0, 1), (43867, 798), (0, 1), (-174611, 330)]
    factor = np.longdouble(1)
    for order, (top, bottom) in enumerate(numbers):
        factor = factor / max(order, 1)
        total += np.longdouble(top) / np.longdouble(bottom) * factor * wide**order
    return total


def reference(u: Floats) -> NDArray[np.longdouble]:
    wide = u.astype(np.longdouble)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        closed = wide / np.expm1(wide)
    return np.where(np.abs(u) < 0.5, series(np.clip(u, -0.5, 0.5)), closed)


def test_bernoulli_is_accurate_to_a_few_units_in_the_last_place() -> None:
    for u in (POINTS, -POINTS):
        found, exact = values(fluxes.bernoulli, u), reference(u)
        assert np.isfinite(found).all()
        assert (found >= 0.0).all()
        assert (np.abs(found - exact) <= 8e-16 * np.abs(exact) + 1e-305).all()  # 0 where exp(u) is too large


def test_both_sides_of_a_face_differ_by_the_drift() -> None:
    low = values(lambda u: fluxes.bernoulli_pair(u)[0], POINTS)
    high = values(lambda u: fluxes.bernoulli_pair(u)[1], POINTS)
    assert (high == low + POINTS).all()
    assert (values(fluxes.bernoulli, -POINTS) == high).all()


def test_the_slope_is_the_derivative() -> None:
    u = np.concatenate([POINTS, -POINTS])
    wide = np.abs(u).astype(np.longdouble)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        b = wide / np.expm1(wide)
        closed = np.where(wide > 11000, 0, b * (1 - b - wide) / wide)
    small = -0.5 + wide / 6 - wide**3 / 180 + wide**5 / 5040 - wide**7 / 151200 + wide**9 / 4790016
    exact = np.where(wide < 0.2, small, closed)
    exact = np.where(u < 0, -1 - exact, exact)
    found = values(fluxes.bernoulli_slope, u)
    assert np.abs(found - exact).max() < 3e-14
    assert ((found <= 0.0) & (found >= -1.0)).all()


def test_flux_of_constant_field_is_exact_and_vanishes_in_equilibrium() -> None:
    w = np.linspace(-30.0, 30.0, 241)
    low = np.exp(np.sin(w))
    equilibrium = low * np.exp(-w)
    scale = values(lambda w, a, b: fluxes.bernoulli(w) * a, w, low, low)
    still = values(lambda w, a, b: fluxes.flux(1.0, w, a, b), w, low, equilibrium)
    assert (np.abs(still) <= 1e-14 * scale).all()
    # c(x) = a + b exp(-w x) carries the flux -w a.
    a, b = 0.7, 0.2
    moving = values(lambda w, x, y: fluxes.flux(2.0, w, x, y), w, np.full(w.shape, a + b), a + b * np.exp(-w))
    assert np.allclose(moving, -2.0 * w * a, rtol=1e-12, atol=1e-13)


def test_the_slope_of_a_flux_lies_between_both_concentrations() -> None:
    w = np.linspace(-50.0, 50.0, 201)
    low, high = np.full(w.shape, 1.0), np.full(w.shape, 3.0)
    slope = values(fluxes.flux_slope, w, low, high)
    assert ((slope >= 1.0 - 1e-14) & (slope <= 3.0 + 1e-14)).all()
    step = 1e-5
    above = values(lambda w, a, b: fluxes.flux(1.0, w, a, b), w + step, low, high)
    below = values(lambda w, a, b: fluxes.flux(1.0, w, a, b), w - step, low, high)
    assert np.allclose(slope, -(above - below) / (2 * step), rtol=1e-6, atol=1e-8)


def test_the_mean_flux_is_exact_in_a_neutral_salt_and_vanishes_in_equilibrium() -> None:
    """Anions at rest, the cation carries twice what diffusion does; weights are negative nowhere."""
    ratios = np.array([1e-30, 1e-3, 0.3, 0.9999, 1.0, 1.0001, 1.04, 1.06, 3.0, 20.0, 1e5, 1e20])
    low, high = np.full(ratios.shape, 2.0), 2.0 * ratios

    def part(number: int) -> Callable[..., Node]:
        return lambda w, a, b: neutral.mean_flux(w, (1.0, 1.0), a, b)[number]

    def weights(drop: Floats) -> tuple[Floats, Floats]:
        return values(part(0), drop, low, high), values(part(1), drop, low, high)

    mild = np.abs(np.log(ratios)) < 25.0
    up, down = weights(-np.log(ratios))
    assert (np.abs(up * low - down * high) <= 1e-12 * np.maximum(low, high))[mild].all()
    up, down = weights(np.log(ratios))
    assert np.allclose((up * low - down * high)[mild], (2.0 * (low - high))[mild], rtol=1e-11, atol=1e-13)
    for drop in (-1e4, -3.0, 0.0, 3.0, 1e4):
        up, down = weights(np.full(ratios.shape, drop))
        assert (np.isfinite(up) & np.isfinite(down) & (up >= 0.0) & (down >= 0.0)).all()


@pytest.mark.few(2)
@pytest.mark.parametrize("rate", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("rho", [1.0, 0.2])
def test_the_edge_of_a_layer_obeys_kinetics_and_the_half_cell(rate: float, rho: float) -> None:
    driving = np.linspace(-40.0, 6.0, 93)
    reference, b, order = 2.0, 0.4, 1.5
    cell = np.full(driving.shape, 3.0)

    def part(name: str) -> Callable[..., Node]:
        def find(d: Node, c: Node, k: Node) -> Node:
            return as_node(getattr(neutral.kinetic_edge(k, reference, b, order, rho, d, c), name))

        return find

    given = (driving, cell, np.full(driving.shape, rate))
    leaving, arriving, slope = (values(part(name), *given) for name in ("leaving", "arriving", "slope"))
    flux = leaving * cell - arriving
    edge = cell - flux
    eta = driving - rho * np.log(edge / cell)
    # Below, the difference has no digits; above, a line takes the place of the exponential.
    known = (edge > 1e-6 * cell) & (edge < reference * np.exp(neutral.RICHEST))
    into, out = rate * edge / reference * np.exp(-b * order * eta), rate * np.exp((1 - b) * order * eta)
    assert known.sum() > 20
    assert np.allclose(flux[known], (into - out)[known], rtol=1e-6, atol=1e-9 * (into + out)[known])
    assert (slope >= 0.0).all()
    assert (leaving >= 0.0).all()
    assert (arriving >= 0.0).all()
    steps = np.gradient(flux, driving)
    inner = known & (np.abs(steps) > 1e-9)
    assert np.allclose(slope[inner][1:-1], -steps[inner][1:-1], rtol=0.1, atol=1e-6)


def test_the_mean_without_a_logarithm_lies_closely_above_the_logarithmic_one() -> None:
    ratio = np.concatenate([1.0 + np.geomspace(1e-3, 1.0, 50), np.geomspace(2.0, 1e4, 50)])
    exact = (ratio - 1.0) / np.log(ratio)
    for low, high in ((np.ones_like(ratio), ratio), (ratio, np.ones_like(ratio))):
        excess = values(neutral.near_mean, low, high) / exact - 1.0
        assert excess.min() > -1e-12
        assert excess[ratio <= 3.0].max() < 5e-4
        assert excess[ratio <= 100.0].max() < 0.0932
    assert values(neutral.near_mean, np.zeros(1), np.full(1, 3.0))[0] == pytest.approx(0.5)
