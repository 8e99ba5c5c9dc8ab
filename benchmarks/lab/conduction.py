"""Heat in a box between cold walls, in three dimensions: explicit steps, conductivity that grows with temperature.

Conservative differences; a face conducts as the mean of its two cells, a cell as exp(b u), which makes arithmetic the
limit and not the memory, which the nodes of a lab share as real ones do not.
"""

from __future__ import annotations

import math

import numpy as np

import minga as mg

run = {"steps": 200}


@mg.kernel
def conduct(u, new, *, r, b):
    k = mg.local(mg.exp(b * u[0, 0, 0]))
    here, kept = u[0, 0, 0], k[0, 0, 0]
    neighbours = [(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)]
    flow = sum((kept + k[at]) * (u[at] - here) for at in neighbours)
    new[0, 0, 0] = here + r * flow


@mg.kernel
def look(u):
    return {"warmest": mg.max(u[0, 0, 0]), "heat": mg.sum(u[0, 0, 0])}


def model(shape=(96, 96, 128), *, r=0.04, b=0.5):
    """`r` is half the conductivity of the walls times time step over squared spacing; stable up to exp(-b) / 12."""
    grid = mg.Grid(shape)
    u = mg.Field("u", grid, slots=2, boundary=mg.fixed(0.0), unit="K", description="temperature above the walls")
    step = mg.Program("step")
    step.apply(conduct, u, u.next, r=r, b=b)
    step.rotate(u)
    observe = mg.Program("observe")
    seen = observe.apply(look, u)

    def mode(box):
        waves = [np.sin(math.pi * np.arange(a + 1, b + 1) / (n + 1)) for a, b, n in zip(box.lo, box.hi, shape)]
        return waves[0][:, None, None] * waves[1][:, None] * waves[2]

    return mg.Model(
        name="conduction", grid=grid, fields=(u,), step=step, initial={"u": mode}, output=("u",),
        observe=observe, observables=vars(seen), parameters={"r": r, "b": b},
    )  # fmt: skip
