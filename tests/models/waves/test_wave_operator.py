"""Steps in media that vary from cell to cell, against matrices of differences applied by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.engine.begin import start
from minga.models.waves import Medium, PointSource, Release, Ricker
from minga.models.waves.stencils import ORDERS

SHAPE, SPACING, DT, SIGMA = (18, 19, 21), (9.0, 12.5, 15.0), 3e-4, 0.75
Z, Y, X = range(3)


def matrix(order: int, derivative: int, cells: int, spacing: float) -> np.ndarray:
    """A derivative along an axis beyond whose ends all is 0; weights by the equations of their moments."""
    offsets = np.arange(-(order // 2), order // 2 + 1)
    wanted = np.zeros(order + 1)
    wanted[derivative] = derivative  # 1! or 2!
    scale = order / 2  # offsets of about 1 make the equations solvable in doubles
    weights = np.linalg.solve(np.vander(offsets / scale, increasing=True).T, wanted) / scale**derivative
    return (
        sum(np.diag(np.full(cells - abs(k), w), k) for k, w in zip(offsets, weights, strict=True)) / spacing**derivative
    )


class Reference:
    """The equations as they are printed."""

    def __init__(self, order: int, form: str, medium: Medium) -> None:
        self.first, self.second = (
            [matrix(order, d, n, h) for n, h in zip(SHAPE, SPACING, strict=True)] for d in (1, 2)
        )
        self.form, self.medium = form, medium

    def d(self, matrices: list[np.ndarray], axis: int, u: np.ndarray) -> np.ndarray:
        return np.moveaxis(np.tensordot(matrices[axis], u, (1, axis)), 0, axis)

    def h1_h2(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        theta, phi = self.medium.theta, self.medium.phi
        zz, yy, xx = (self.d(self.second, axis, u) for axis in (Z, Y, X))
        if self.form == "selfadjoint":
            n = (np.cos(theta), np.sin(theta) * np.sin(phi), np.sin(theta) * np.cos(phi))
            slope = sum(n[axis] * self.d(self.first, axis, u) for axis in (Z, Y, X))
            h1 = sum(self.d(self.first, axis, n[axis] * slope) for axis in (Z, Y, X))
        else:
            xy, yz, xz = (self.d(self.first, a, self.d(self.first, b, u)) for a, b in ((X, Y), (Y, Z), (X, Z)))
            s2 = np.sin(theta) ** 2
            h1 = s2 * np.cos(phi) ** 2 * xx + s2 * np.sin(phi) ** 2 * yy + np.cos(theta) ** 2 * zz
            h1 += s2 * np.sin(2 * phi) * xy + np.sin(2 * theta) * (np.sin(phi) * yz + np.cos(phi) * xz)
        return h1, xx + yy + zz - h1

    def right_sides(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        vpz2, epsilon, delta = np.square(self.medium.vp), self.medium.epsilon, self.medium.delta
        vsz2 = vpz2 * abs(epsilon - delta) / SIGMA
        (h1p, h2p), (h1q, h2q) = self.h1_h2(p), self.h1_h2(q)
        return np.stack(
            [
                vpz2 * (1 + 2 * epsilon) * h2p + vpz2 * h1q + vsz2 * (h1p - h1q),
                vpz2 * (1 + 2 * delta) * h2p + vpz2 * h1q - vsz2 * (h2p - h2q),
            ]
        )


@pytest.mark.parametrize("form", ["fletcher", pytest.param("selfadjoint", marks=pytest.mark.slow)])
@pytest.mark.parametrize("order", [pytest.param(o, marks=[pytest.mark.slow] if o > 4 else []) for o in ORDERS])
def test_steps_are_those_of_the_printed_equations(order: int, form: str) -> None:
    random = np.random.default_rng(order)
    ranges = ((2000, 4000), (-0.1, 0.4), (-0.1, 0.4), (-1.5, 1.5), (-3, 3))
    medium = Medium(*(random.uniform(lo, hi, SHAPE) for lo, hi in ranges))
    cell, ricker = (7, 11, 13), Ricker(20.0, delay=2e-3)
    source = PointSource(tuple(c * h for c, h in zip(cell, SPACING, strict=True)), ricker, injection="legacy")  # type: ignore[arg-type]
    model = mg.fletcher(
        SHAPE, SPACING, dt=DT, medium=medium, sigma=SIGMA, order=order, form=form,  # type: ignore[arg-type]
        boundary=Release(), sources=[source], dtype="f8",
    )  # fmt: skip
    now, before = random.standard_normal((2, 2, *SHAPE))
    with mg.Engine(model.layouts("single", 1)) as engine:
        start(model, engine)
        for field, present, previous in zip(model.fields, now, before, strict=False):
            engine.set(field, present)
            engine.set(field.previous, previous)
        engine.run(model.step, 3)
        found = np.stack([np.asarray(engine.gather(field)) for field in model.fields[:2]])
    reference = Reference(order, form, medium)
    for step in range(3):
        now[(slice(None), *cell)] += ricker.at(step * DT)
        now, before = 2 * now - before + DT**2 * reference.right_sides(*now), now
    gate = 1e-9 if order > 8 else 1e-11  # the reference's weights come from equations that are nearly singular
    assert abs(found - now).max() < gate * abs(now).max()
