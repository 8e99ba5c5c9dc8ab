"""One problem with py-pde's backend numba, the stepper compiled once: its fastest way to many steps."""

import numpy as np
import pde
from common import initial, problem, serve
from pde.solvers import EulerSolver, RungeKuttaSolver

given = problem()
ends = [(given["low"], given["high"])] * len(given["shape"])
if given["geometry"] == "spherical":
    grid = pde.SphericalSymGrid(given["high"], given["shape"][0])
else:
    grid = pde.CartesianGrid(ends, given["shape"], periodic=given["periodic"])
boundary = {"derivative": 0.0}
if given["periodic"]:
    boundary = "periodic"
if given["walls"]:
    boundary = {"x-": {"value_expression": given["walls"]}, "x+": {"derivative": 0.0}}
texts = {name: text.replace("I*", "1j*") for name, text in (given["equations"] | given["peer_equations"]).items()}
equation = pde.PDE(texts, bc=boundary)
kind = complex if given["dtype"] == "c16" else float
start = [pde.ScalarField(grid, values, dtype=kind) for values in initial(given).values()]
state = start[0] if len(start) == 1 else pde.FieldCollection(start)
solver = (EulerSolver if given["integrator"] == "euler" else RungeKuttaSolver)(equation, backend="numba")
stepper = solver.make_stepper(state, dt=given["dt"])
now = 0.0


def run(steps):
    global now
    end = now + steps * given["dt"]
    stepper(state, now, end)
    now = end


def fields():
    parts = [state] if len(start) == 1 else list(state)
    return {name: np.array(part.data) for name, part in zip(texts, parts)}


serve(given, run, fields)
