"""The scalar equations at a node, against bisection in many digits."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import minga as mg
from minga.lang.expr import cast
from minga.models.photodiode.pointwise.local import density_root, potential_change

COUNT = 64
GRID = mg.Grid((COUNT,), axes=("x",))
NAMES = ("rate", "excess", "electrons", "holes")


@mg.kernel
def local(rate: Any, excess: Any, electrons: Any, holes: Any, x: Any, rounds: Any) -> None:
    root, steps = potential_change(rate[0], excess[0], electrons[0], holes[0])
    x[0] = root
    rounds[0] = cast(steps, "f8")


@mg.kernel
def density(out: Any, inflow: Any, source: Any, other: Any, own: Any, across: Any, square: Any, n: Any) -> None:
    n[0] = density_root(out[0], inflow[0], source[0], other[0], own[0], across[0], square[0])


def applied(kernel: Any, inputs: list[np.ndarray], outputs: int) -> list[np.ndarray]:
    fields = [mg.Field(f"f{k}", GRID) for k in range(len(inputs) + outputs)]
    program = mg.Program("local")
    program.apply(kernel, *fields)
    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID, threads=1) as engine:
        for item, values in zip(fields, inputs, strict=False):
            engine.set(item, values)
        assert engine.run(program).ok
        return [engine.gather(item) for item in fields[len(inputs) :]]  # type: ignore[misc]


def draw(seed: int, low: float, high: float) -> np.ndarray:
    return 10.0 ** np.random.default_rng(seed).uniform(low, high, COUNT)


@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**20))
def test_potentials(seed: int) -> None:
    """Densities over 40 decades and potentials 1e4 kT/q away."""
    rate, electrons, holes = draw(seed, 10, 13), draw(seed + 1, -20, 14), draw(seed + 2, -20, 14)
    sign = np.where(np.arange(COUNT) % 2, 1.0, -1.0)
    excess = sign * draw(seed + 3, 3, 17)
    x, rounds = applied(local, [rate, excess, electrons, holes], 2)
    assert np.isfinite(x).all()
    assert rounds.max() < 100
    for k in range(0, COUNT, 21):
        assert abs(x[k] - root(rate[k], excess[k], electrons[k], holes[k])) <= 2e-12 * max(1.0, abs(x[k]))


def root(rate: float, excess: float, electrons: float, holes: float) -> float:
    """By bisection in 40 digits."""
    with mpmath.workdps(40):

        def value(x: Any) -> Any:
            return rate * x + excess + electrons * mpmath.expm1(x) - holes * mpmath.expm1(-x)

        low, high = mpmath.mpf(-1e6), mpmath.mpf(1e6)
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (middle, high) if value(middle) < 0 else (low, middle)
        return float(low)


def test_no_steps_are_taken_back_when_nothing_changes() -> None:
    ones = np.ones(COUNT)
    x, rounds = applied(local, [ones * 1e11, ones * 0.0, ones * 1e12, ones * 1e12], 2)
    assert (x == 0.0).all()
    assert (rounds <= 1.0).all()


@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**20), srh=st.booleans())
def test_densities(seed: int, srh: bool) -> None:
    """The residual vanishes against the terms it is made of, and the root is positive."""
    out, inflow = draw(seed, 0, 9), draw(seed + 1, -8, 25)
    source, other = draw(seed + 2, 5, 12), draw(seed + 3, -8, 18)
    own, across, square = draw(seed + 4, 6, 9), draw(seed + 5, 12, 27), draw(seed + 6, 10, 24)
    if not srh:
        source, own, across = (np.zeros(COUNT) for _ in range(3))
    (n,) = applied(density, [out, inflow, source, other, own, across, square], 1)
    assert (n > 0.0).all()
    divisor = np.where(across > 0.0, own * n + across, 1.0)
    terms = [out * n, inflow, source * n * other / divisor, source * square / divisor]
    left = terms[0] - terms[1] + terms[2] - terms[3]
    assert (np.abs(left) <= 1e-14 * sum(terms)).all()
