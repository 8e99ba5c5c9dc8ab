"""A warm plate between cold walls: its lowest mode decays, while its shape stays the same."""

import math

import numpy as np

import minga as mg
from minga.compile.portable import sin

run = {"steps": 4000}
output = {"every": 400}


@mg.kernel
def diffuse(u, new, *, r):
    """Do one explicit step of the heat equation."""
    new[0, 0] = u[0, 0] + r * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


@mg.kernel
def look(u):
    """Return the observables: the highest temperature and the sum of all temperatures."""
    return {"warmest": mg.max(u[0, 0]), "heat": mg.sum(u[0, 0])}


def model(shape=(127, 127), *, r=0.2):
    """Return the model with `shape` nodes between walls at 0.

    `r` is diffusivity times time step over squared spacing; the step is stable up to 1/4.
    """
    grid = mg.Grid(shape)
    u = mg.Field("u", grid, slots=2, boundary=mg.fixed(0.0), unit="K", description="temperature above the walls")
    step = mg.Program("step")
    step.apply(diffuse, u, u.next, r=r)
    step.rotate(u)
    observe = mg.Program("observe")
    seen = observe.apply(look, u)

    def mode(box):
        along = [math.pi * np.arange(low + 1, high + 1) / (n + 1) for low, high, n in zip(box.lo, box.hi, shape)]
        return np.multiply.outer(*map(sin, along))

    return mg.Model(
        name="heat", grid=grid, fields=(u,), step=step, initial={"u": mode}, output=("u",),
        observe=observe, observables=vars(seen), units=dict.fromkeys(vars(seen), "K"), parameters={"r": r},
    )  # fmt: skip
