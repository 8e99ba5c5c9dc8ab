"""my_rule: phase separation, u_t = D lap(u) + u - u^3 (S. M. Allen, J. W. Cahn, Acta Metall. 27 (1979) 1085).

Try it:

    minga run my_rule.py
    minga run my_rule.py --set "grid.shape=[600, 800]" --set parameters.D=1.0 --set run.steps=4000
"""

import numpy as np

import minga as mg

run = {"steps": 2000}  # entries of the tables [run] and [output] of a case; --set overrides them
output = {"every": 100}


# A kernel describes one cell: u[dy, dx] reads a neighbour, new[0, 0] = ... stores a value. It is called once, with
# symbols, so `if` cannot be used on a value: use mg.where(condition, then, otherwise) instead. Parameters after the
# star are scalars.
@mg.kernel
def my_rule(u, new, *, D, dt):
    """Do one explicit step."""
    here = u[0, 0]
    laplacian = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * here
    new[0, 0] = here + dt * (D * laplacian + here - here * here * here)


# Observables, which are reported at every frame: numbers for the whole grid (mg.sum, min, max, count, argmax).
@mg.kernel
def look(u):
    """Return the observables."""
    return {"total": mg.sum(u[0, 0]), "least": mg.min(u[0, 0]), "most": mg.max(u[0, 0])}


# A case sets the parameters of model() in its table [parameters]. The explicit step is stable for about
# dt <= 1 / (4 D + 1); mg.Grid(shape, spacing=...) sets the width of the cells.
def model(shape=(240, 320), *, D=0.5, dt=0.2, seed=1):
    """Return the model."""
    grid = mg.Grid(shape, periodic=True)
    u = mg.Field("u", grid, slots=2, description="order parameter")

    step = mg.Program("step")
    step.apply(my_rule, u, u.next, D=D, dt=dt)
    step.rotate(u)

    observe = mg.Program("observe")
    seen = observe.apply(look, u)

    start = np.random.default_rng(seed).uniform(-0.1, 0.1, shape)  # or a function of a box, for very large grids
    return mg.Model(
        name="my_rule",
        grid=grid,
        fields=(u,),
        step=step,
        initial={"u": start},
        observe=observe,
        observables=vars(seen),
        units={"total": "1", "least": "1", "most": "1"},  # or with a description: {"total": ("kg", "mass")}
        parameters={"D": D, "dt": dt},
        clock=mg.Clock(dt=dt, unit="1"),
    )
