"""Heat in a box between cold walls, in three dimensions: explicit steps, seven points."""

from __future__ import annotations

import math

import numpy as np

import minga as mg

run = {"steps": 200}


@mg.kernel
def diffuse(u, new, *, r):
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    new[0, 0, 0] = u[0, 0, 0] + r * (around - 6 * u[0, 0, 0])


@mg.kernel
def look(u):
    return {"warmest": mg.max(u[0, 0, 0]), "heat": mg.sum(u[0, 0, 0])}


def model(shape=(96, 96, 128), *, r=0.15):
    """`r` is diffusivity times time step over squared spacing, stable up to 1/6."""
    grid = mg.Grid(shape)
    u = mg.Field("u", grid, slots=2, boundary=mg.fixed(0.0), unit="K", description="temperature above the walls")
    step = mg.Program("step")
    step.apply(diffuse, u, u.next, r=r)
    step.rotate(u)
    observe = mg.Program("observe")
    seen = observe.apply(look, u)

    def mode(box):
        waves = [np.sin(math.pi * np.arange(a + 1, b + 1) / (n + 1)) for a, b, n in zip(box.lo, box.hi, shape)]
        return waves[0][:, None, None] * waves[1][:, None] * waves[2]

    return mg.Model(
        name="heat-3d", grid=grid, fields=(u,), step=step, initial={"u": mode}, output=("u",),
        observe=observe, observables=vars(seen), parameters={"r": r},
    )  # fmt: skip
