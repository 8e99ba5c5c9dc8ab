"""One problem with mg.pde, on one thread."""

from common import initial, problem, serve

import minga as mg

given = problem()
width = [(given["high"] - given["low"]) / cells for cells in given["shape"]]
grid = mg.Grid(
    given["shape"], given["axes"], spacing=width, origin=[given["low"]] * len(width), periodic=given["periodic"],
    geometry=given["geometry"],
)  # fmt: skip
boundary = None
if given["walls"]:
    boundary = {"x": (mg.dirichlet(lambda x, t: mg.sin(t)), mg.neumann(0.0))}
model = mg.pde(
    given["equations"], grid, initial=initial(given), boundary=boundary, integrator=given["integrator"], dt=given["dt"],
    dtype=given["dtype"], order=given["order"],
)  # fmt: skip
with mg.Engine(model.layouts("slabs", 1), threads=1) as engine:
    for register, value in model.registers.items():
        engine.write(register, value)
    for slot, value in model.start_values():
        engine.set(slot, value)
    engine.prepare(model.step)

    def fields():
        found = {name: engine.gather(model.field(name)) for name in model.output}
        if given["dtype"] == "c16":
            found = {name: found[f"{name}_re"] + 1j * found[f"{name}_im"] for name in given["equations"]}
        return found

    serve(given, lambda steps: engine.run(model.step, steps), fields)
