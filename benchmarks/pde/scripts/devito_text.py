"""One explicit problem with Devito: its own time loop, advanced optimisation, one core."""

import numpy as np
from common import initial, problem, serve
from devito import Eq, Grid, Operator, TimeFunction, configuration

configuration["log-level"] = "ERROR"
given = problem()
length = given["high"] - given["low"]
cells = given["shape"]
# Points at the centres of the cells: with n points the spacing is extent / (n - 1).
extent = tuple(length * (count - 1) / count for count in cells)
grid = Grid(shape=tuple(cells), extent=extent, dtype=np.float64)
order = given["order"]
halo = order // 2
fields_ = {name: TimeFunction(name=name, grid=grid, time_order=1, space_order=order) for name in given["equations"]}
names = {**fields_, "laplace": lambda u: u.laplace}
updates = []
for name, text in given["equations"].items():
    right = eval(text, {"__builtins__": {}}, names)  # texts of this benchmark only
    u = fields_[name]
    updates.append(Eq(u.forward, u + grid.stepping_dim.spacing * right))
ghosts = []
for u in fields_.values():
    for axis, dimension in enumerate(grid.dimensions):
        count = cells[axis]
        for k in range(1, halo + 1):
            low = {dimension: -k}, {dimension: count - k}
            high = {dimension: count + k - 1}, {dimension: k - 1}
            for to, source in (low, high):
                ghosts.append(Eq(u.forward.subs(to), u.forward.subs(source)))
operator = Operator([*updates, *ghosts], opt=("advanced", {"openmp": False}))
values = initial(given)
for name, u in fields_.items():
    whole = u.data_with_halo
    around = [(count - inner) // 2 for count, inner in zip(whole.shape[1:], cells)]  # Devito's halo may be wider
    whole[:] = np.pad(values[name], [(width, width) for width in around], mode="wrap")
step = 0


def run(steps):
    global step
    operator.apply(time_m=step, time_M=step + steps - 1, dt=given["dt"])
    step += steps


def fields():
    return {name: np.array(u.data[step % 2]) for name, u in fields_.items()}


serve(given, run, fields)
