"""Laplace's equation on a square by Jacobi relaxation, with 0 on three sides and a sine on the fourth."""

import math

import minga as mg

run = {"steps": 20000}
output = {"every": 2000}


@mg.kernel
def relax(u, new):
    """Store the mean of the four neighbours."""
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


@mg.kernel
def change(u, before):
    """Return the largest change in the last step."""
    return {"residual": mg.max(abs(u[0, 0] - before[0, 0]))}


def model(shape=(127, 127)):
    """Return the model with `shape` nodes inside the unit square.

    The walls lie half a cell beyond the faces of the outermost cells.
    """
    h = [1 / (n + 1) for n in shape]
    grid = mg.Grid(shape, spacing=h, origin=[0.5 * width for width in h])
    cold, sine = mg.fixed(0.0), mg.fixed(lambda y, x: mg.sin(math.pi * x))
    u = mg.Field("u", grid, slots=2, boundary={"y": (cold, sine), "x": (cold, cold)}, description="potential")
    step = mg.Program("step")
    step.apply(relax, u, u.next)
    step.rotate(u)
    observe = mg.Program("observe")
    seen = observe.apply(change, u, u.previous)
    return mg.Model(
        name="laplace", grid=grid, fields=(u,), step=step, initial={"u": 0.0}, output=("u",),
        observe=observe, observables=vars(seen), units=dict.fromkeys(vars(seen), "1"),
    )  # fmt: skip
