"""The scaled 1-D cell of `minga run pnp-1d` in DEVSIM, as one would write it there; run by its own Python.

python devsim_line.py CELLS STEPS DEBYE VOLTAGE   prints a line of JSON: seconds of processor time in the steps, the
                                                  current over its limit, its spread along the cell, and how far the
                                                  anion's amount drifted

Scharfetter and Gummel's fluxes between Chebyshev points, and implicit Euler steps that grow to the steady state; each
is solved by Newton's method for ions and potential together. The first values come from a steady solution in which a
source holds both ions at 1, since DEVSIM begins a transient with one.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import scipy_openblas32

# DEVSIM looks for these where it is imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["DEVSIM_MATH_LIBS"] = str(Path(scipy_openblas32.get_lib_dir()) / "libscipy_openblas.so")
os.environ["DEVSIM_BLAS_PREFIX"], os.environ["DEVSIM_BLAS_SUFFIX"] = "scipy_", "_"

import devsim  # noqa: E402
from devsim.python_packages.model_create import (  # noqa: E402
    CreateContactNodeModel,
    CreateEdgeModel,
    CreateEdgeModelDerivatives,
    CreateNodeModel,
    CreateNodeModelDerivative,
    CreateSolution,
)

PLACE = "cell", "bath"
HERE = {"device": "cell", "region": "bath"}
FIRST, LAST = 1e-4, 1.0
"""The first and the last time step."""
FLUXES = {
    "Cation": "EdgeInverseLength * (B(Potential@n1-Potential@n0)*Cation@n0 - B(Potential@n0-Potential@n1)*Cation@n1)",
    "Anion": "EdgeInverseLength * (B(Potential@n0-Potential@n1)*Anion@n0 - B(Potential@n1-Potential@n0)*Anion@n1)",
}


def make_mesh(places):
    devsim.create_1d_mesh(mesh="line")
    for place in places:
        devsim.add_1d_mesh_line(mesh="line", pos=float(place), ps=1.0, tag=f"at {place!r}")
    for name, place in (("cathode", places[0]), ("anode", places[-1])):
        devsim.add_1d_contact(mesh="line", name=name, tag=f"at {place!r}", material="metal")
    ends = {"tag1": f"at {places[0]!r}", "tag2": f"at {places[-1]!r}"}
    devsim.add_1d_region(mesh="line", material="any", region="bath", **ends)
    devsim.finalize_mesh(mesh="line")
    devsim.create_device(mesh="line", device="cell")


def make_equations(debye, voltage):
    for name in ("Potential", "Cation", "Anion"):
        CreateSolution(*PLACE, name)
    devsim.set_parameter(**HERE, name="P", value=2.0 * debye**2)
    devsim.set_parameter(**HERE, name="Hold", value=1e9)
    field = "P*(Potential@n0-Potential@n1)*EdgeInverseLength"
    CreateEdgeModel(*PLACE, "Displacement", field)
    CreateEdgeModelDerivatives(*PLACE, "Displacement", field, "Potential")
    CreateNodeModel(*PLACE, "Charge", "Anion - Cation")
    for name in FLUXES:
        CreateNodeModelDerivative(*PLACE, "Charge", "Anion - Cation", name)
    devsim.equation(
        **HERE, name="Poisson", variable_name="Potential", node_model="Charge", edge_model="Displacement",
        variable_update="default",
    )  # fmt: skip
    for name, flux in FLUXES.items():
        CreateEdgeModel(*PLACE, f"{name}Flux", flux)
        for variable in ("Potential", name):
            CreateEdgeModelDerivatives(*PLACE, f"{name}Flux", flux, variable)
        for model, text in ((f"{name}Amount", name), (f"{name}Held", f"Hold*({name} - 1)")):
            CreateNodeModel(*PLACE, model, text)
            CreateNodeModelDerivative(*PLACE, model, text, name)
        devsim.equation(
            **HERE, name=name, variable_name=name, node_model=f"{name}Held", edge_model=f"{name}Flux",
            time_node_model=f"{name}Amount", variable_update="default",
        )  # fmt: skip
    for contact, volts in (("cathode", 0.0), ("anode", voltage)):
        for name, variable, text in (
            ("Poisson", "Potential", f"Potential - {volts!r}"), ("Cation", "Cation", "Cation - 1"),
        ):  # fmt: skip
            model = f"{contact}_{name}"
            CreateContactNodeModel("cell", contact, model, text)
            CreateContactNodeModel("cell", contact, f"{model}:{variable}", "1")
            devsim.contact_equation(device="cell", contact=contact, name=name, node_model=model)


def step(kind, **more):
    said = devsim.solve(
        type=kind, absolute_error=1e-10, relative_error=1e-10, maximum_iterations=30, info=True, **more
    )  # fmt: skip
    if not said["converged"]:
        raise SystemExit(f"{kind} did not converge")


def main():
    cells, steps = map(int, sys.argv[1:3])
    debye, voltage = map(float, sys.argv[3:])
    places = 0.5 - 0.5 * np.cos(np.pi * np.arange(cells + 1) / cells)
    make_mesh(places)
    make_equations(debye, voltage)
    step("transient_dc")
    devsim.set_parameter(**HERE, name="Hold", value=0.0)
    began = time.process_time()
    for dt in np.geomspace(FIRST, LAST, steps):
        step("transient_bdf1", tdelta=float(dt), charge_error=1e30)
    seconds = time.process_time() - began
    flux = -np.array(devsim.get_edge_model_values(**HERE, name="CationFlux"))
    anions, volumes = (np.array(devsim.get_node_model_values(**HERE, name=n)) for n in ("Anion", "NodeVolume"))
    found = {
        "seconds": seconds,
        "J_over_Jlim": float(np.abs(flux).mean()) / 4.0,
        "spread": float(np.ptp(np.abs(flux))) / 4.0,
        "anion": float(anions @ volumes - 1.0),
    }
    print()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
