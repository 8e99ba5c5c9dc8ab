"""Laplace's equation by point relaxation in the order of cells (Gauss-Seidel), each block with the edges it was sent.

As in the electrodeposition paper. A cell waits for its neighbour, so that arithmetic is the limit and not the memory,
which the nodes of a lab share as real ones do not. By definition the result depends on the blocks.
"""

from __future__ import annotations

import minga as mg

run = {"steps": 200}


@mg.kernel(order="lexicographic", across="block")
def relax(u):
    u[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


@mg.kernel
def look(u):
    return {"greatest": mg.max(u[0, 0])}


def model(shape=(1024, 1024)):
    """`shape`: cells between a wall at 1 and three at 0."""
    grid = mg.Grid(shape)
    cold = mg.fixed(0.0)
    u = mg.Field("u", grid, boundary={"y": (mg.fixed(1.0), cold), "x": (cold, cold)}, description="potential")
    step = mg.Program("step")
    step.apply(relax, u)
    observe = mg.Program("observe")
    seen = observe.apply(look, u)
    return mg.Model(
        name="laplace-points", grid=grid, fields=(u,), step=step, initial={"u": 0.0}, output=("u",),
        observe=observe, observables=vars(seen),
    )  # fmt: skip
