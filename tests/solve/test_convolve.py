"""Convolutions with kernels of any radius: against SciPy, by every method, on any number of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import minga as mg
from solve.test_fft import Values, noise, run


def disc(radius: int) -> Values:
    """Weights of a disc whose middle is not its heaviest place."""
    y, x = np.ogrid[-radius : radius + 1, -radius : radius + 1]
    return np.where(y**2 + x**2 <= radius**2, 1.0 + 0.01 * y + 0.1 * x / radius, 0.0) / radius**2


def model(grid: mg.Grid, weights: Any, method: Any = "auto", boundary: Any = None) -> tuple[mg.Model, mg.Field, Values]:
    convolution = mg.solve.Convolution(grid, weights, method)
    u, found = mg.Field("u", grid, boundary=boundary), mg.Field("found", grid)
    step = mg.Program("step")
    convolution(step, u, found)
    values = noise(grid.shape)
    initial = {**convolution.initial, u: values}
    fields = (u, found, *convolution.fields)
    return mg.Model("blur", grid, fields, step, initial, hierarchies=convolution.hierarchies), found, values


def expected(values: Values, weights: Values, mode: str = "wrap") -> Values:
    result: Values = scipy.ndimage.convolve(values, weights, mode=mode)
    return result


@pytest.mark.parametrize("method", ["direct", "fft"])
@pytest.mark.parametrize("shape", [(16, 24), (9, 15)])
def test_all_methods_agree_with_scipy(method: str, shape: tuple[int, int]) -> None:
    weights = disc(3)
    blur, found, values = model(mg.Grid(shape, periodic=True), weights, method)
    assert np.abs(run(blur, (found,))[0] - expected(values, weights)).max() < 1e-14


@pytest.mark.parametrize("method", ["separable", "direct", "fft"])
def test_products_of_weights(method: str) -> None:
    factors = np.array([1.0, 2.0, -0.5]), np.array([0.25, 0.5, 1.0, 0.125, 0.0])
    blur, found, values = model(mg.Grid((12, 10), periodic=True), factors, method)
    assert np.abs(run(blur, (found,))[0] - expected(values, np.outer(*factors))).max() < 1e-14


def test_symmetric_weights_have_a_real_transform() -> None:
    y, x = np.ogrid[-2:3, -2:3]
    weights = np.exp(-(y**2) - x**2)
    grid = mg.Grid((12, 10), periodic=True)
    assert len(mg.solve.Convolution(grid, weights, "fft").transform) == 1
    assert len(mg.solve.Convolution(grid, disc(2), "fft").transform) == 2
    blur, found, values = model(grid, weights, "fft")
    assert np.abs(run(blur, (found,))[0] - expected(values, weights)).max() < 1e-14


def test_kernels_larger_than_the_box_wrap_around() -> None:
    weights = disc(7)
    blur, found, values = model(mg.Grid((6, 10), periodic=True), weights, "fft")
    assert np.abs(run(blur, (found,))[0] - expected(values, weights)).max() < 1e-13


def test_one_and_three_axes() -> None:
    for shape, weights in [((20,), noise((5,), 3)), ((6, 5, 8), noise((3, 3, 5), 3))]:
        blur, found, values = model(mg.Grid(shape, periodic=True), weights, "fft")
        assert np.abs(run(blur, (found,))[0] - expected(values, weights)).max() < 1e-14


def test_walls_are_those_of_the_field() -> None:
    blur, found, values = model(mg.Grid((12, 10)), disc(2), boundary=mg.fixed(0.0))
    assert np.abs(run(blur, (found,))[0] - expected(values, disc(2), "constant")).max() < 1e-14


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("condition", "mode"), [(mg.reflect("edge"), "reflect"), (mg.antiperiodic(), ""), (mg.dirichlet(0.0), "")]
)
def test_conditions_hold_between_axes(condition: mg.Condition, mode: str) -> None:
    grid = mg.Grid((12, 10), periodic=condition.antiperiodic)
    weights = (np.array([1.0, 2.0, 4.0]), np.array([0.5, 1.0, 0.0]))
    blur, found, values = model(grid, weights, "separable", boundary=condition)
    if mode:
        assert np.abs(run(blur, (found,))[0] - expected(values, np.outer(*weights), mode)).max() < 1e-14
    direct, other, _ = model(grid, np.outer(*weights), "direct", boundary=condition)
    assert np.abs(run(blur, (found,))[0] - run(direct, (other,))[0]).max() < 1e-14


def test_conditions_that_do_not_hold_between_axes_are_refused() -> None:
    with pytest.raises(mg.ProgramError, match="do not hold between the axes"):
        model(mg.Grid((12, 10)), (np.ones(3), np.ones(3)), "separable", boundary=mg.dirichlet(1.0))
    with pytest.raises(mg.ProgramError, match="antiperiodic"):
        model(mg.Grid((12, 10), periodic=True), disc(2), "fft", boundary=mg.antiperiodic())


@pytest.mark.few(2)
@pytest.mark.parametrize("method", ["direct", "fft", "separable"])
def test_same_bits_on_any_number_of_ranks(method: str) -> None:
    weights: Any = (np.arange(5.0), np.arange(3.0)) if method == "separable" else disc(3)
    blur, found, _ = model(mg.Grid((24, 20), periodic=True), weights, method)
    alone = run(blur, (found,))[0].tobytes()
    assert all(run(blur, (found,), ranks)[0].tobytes() == alone for ranks in (2, 3, 4))


@pytest.mark.parametrize(
    ("size", "radius", "method"), [(256, 2, "direct"), (256, 13, "fft"), (1024, 5, "direct"), (1024, 40, "fft")]
)
def test_the_method_follows_from_the_sizes(size: int, radius: int, method: str) -> None:
    convolution = mg.solve.Convolution(mg.Grid((size, size), periodic=True), disc(radius))
    assert convolution.method == method
    assert convolution.radius == (radius, radius)
    assert f"method '{method}'" in repr(convolution)


def test_products_are_taken_axis_by_axis() -> None:
    convolution = mg.solve.Convolution(mg.Grid((256, 256), periodic=True), (np.ones(27), np.ones(27)))
    assert convolution.method == "separable"
    assert set(convolution.costs) == {"separable", "direct", "fft"}


@pytest.mark.parametrize(
    ("grid", "weights", "method", "message"),
    [
        (mg.Grid((8, 8)), disc(1), "fft", "possible: direct"),
        (mg.Grid((80, 80)), np.ones((65, 65)), "auto", "possible: none"),
        (mg.Grid((8, 8), periodic=True), disc(1), "separable", "possible: direct, fft"),
        (mg.Grid((8, 8)), np.ones((2, 3)), "auto", "weights of shape"),
        (mg.Grid((8, 8)), np.ones(3), "auto", "weights of shape"),
        (mg.Grid((8, 8)), np.full((3, 3), np.nan), "auto", "not finite"),
    ],
)
def test_unsuitable_weights_are_refused(grid: mg.Grid, weights: Any, method: Any, message: str) -> None:
    with pytest.raises((mg.ProgramError, mg.LayoutError), match=message):
        mg.solve.Convolution(grid, weights, method)


def test_a_step_of_lenia() -> None:
    """One step of Lenia (B. Chan, Complex Systems 28 (2019) 251) with radius 13, against NumPy."""
    radius, grid = 13, mg.Grid((64, 64), periodic=True)
    y, x = np.ogrid[-radius : radius + 1, -radius : radius + 1]
    r = np.sqrt(y**2 + x**2) / radius
    ring = np.where((r > 0) & (r < 1), np.exp(4 - 1 / np.where((r > 0) & (r < 1), r * (1 - r), 1)), 0.0)
    mean = mg.solve.Convolution(grid, ring / ring.sum())
    assert mean.method == "fft"
    u, near = mg.Field("u", grid), mg.Field("near", grid)

    @mg.kernel
    def grow(near: Any, u: Any) -> None:
        growth = 2.0 * mg.exp(-((near[0, 0] - 0.15) ** 2) / (2 * 0.015**2)) - 1.0
        u[0, 0] = mg.clip(u[0, 0] + 0.1 * growth, 0.0, 1.0)

    step = mg.Program("step")
    mean(step, u, near)
    step.apply(grow, near, u)
    initial = {**mean.initial, u: np.pad(noise((20, 20), 5), 22)}
    lenia = mg.Model("lenia", grid, (u, near, *mean.fields), step, initial, hierarchies=mean.hierarchies)
    values = np.asarray(lenia.initial[u], "f8")
    weights = ring / ring.sum()
    growth = 2.0 * np.exp(-((expected(values, weights) - 0.15) ** 2) / (2 * 0.015**2)) - 1.0
    assert np.abs(run(lenia, (u,))[0] - np.clip(values + 0.1 * growth, 0.0, 1.0)).max() < 1e-12
    assert run(lenia, (u,), 3)[0].tobytes() == run(lenia, (u,))[0].tobytes()
