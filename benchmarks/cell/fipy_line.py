"""The scaled 1-D cell of `minga run pnp-1d` in FiPy, as one would write it there; run by its own Python.

python fipy_line.py CELLS STEPS DEBYE VOLTAGE   prints a line of JSON: seconds of processor time in the steps, the
                                                current over its limit, and how far the anion's amount drifted

Ions and potential in one coupled system, the ions' migration with their concentrations of the sweep before, four sweeps
a time step, time steps that grow to the steady state; cells between Chebyshev points. FiPy's own tolerance of linear
systems, 1e-5, leaves solutions as they are once a step changes them less; with it the error grows with the number of
cells.
"""

import json
import sys
import time

import numpy as np
from fipy import (
    CellVariable,
    DiffusionTerm,
    FaceVariable,
    Grid1D,
    ImplicitSourceTerm,
    LinearLUSolver,
    TransientTerm,
)

SWEEPS = 4
TOLERANCE = 1e-13
FIRST, LAST = 1e-4, 1.0
"""The first and the last time step."""


def main() -> None:
    cells, steps = map(int, sys.argv[1:3])
    debye, voltage = map(float, sys.argv[3:])
    widths = np.diff(0.5 - 0.5 * np.cos(np.pi * np.arange(cells + 1) / cells))
    mesh = Grid1D(dx=widths)
    places = mesh.cellCenters.value[0]
    cation, anion = (CellVariable(mesh=mesh, value=1.0, hasOld=True) for _ in range(2))
    potential = CellVariable(mesh=mesh, value=voltage * places, hasOld=True)
    cation.constrain(1.0, mesh.facesLeft)
    cation.constrain(1.0, mesh.facesRight)
    potential.constrain(0.0, mesh.facesLeft)
    potential.constrain(voltage, mesh.facesRight)
    # No anion passes: diffusion and migration through the ends are left out together.
    inner = FaceVariable(mesh=mesh, value=np.where(mesh.exteriorFaces.value, 0.0, 1.0))
    system = (
        (
            TransientTerm(var=cation)
            == DiffusionTerm(1.0, var=cation) + DiffusionTerm(cation.arithmeticFaceValue, var=potential)
        )
        & (
            TransientTerm(var=anion)
            == DiffusionTerm(inner, var=anion) - DiffusionTerm(anion.arithmeticFaceValue * inner, var=potential)
        )
        & (
            DiffusionTerm(2.0 * debye**2, var=potential)
            + ImplicitSourceTerm(1.0, var=cation)
            - ImplicitSourceTerm(1.0, var=anion)
            == 0.0
        )
    )
    solver = LinearLUSolver(tolerance=TOLERANCE, criterion="RHS", iterations=20)
    began = time.process_time()
    for dt in np.geomspace(FIRST, LAST, steps):
        for variable in (cation, anion, potential):
            variable.updateOld()
        for _ in range(SWEEPS):
            system.sweep(dt=float(dt), solver=solver)
    seconds = time.process_time() - began
    through = cation.faceGrad.value[0] + cation.arithmeticFaceValue.value * potential.faceGrad.value[0]
    current = through[1:-1]
    found = {
        "seconds": seconds,
        "J_over_Jlim": float(current[cells // 2]) / 4.0,
        "spread": float(np.ptp(current)) / 4.0,
        "anion": float(anion.value @ widths - 1.0),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
