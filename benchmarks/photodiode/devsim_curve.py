"""Curves of a photodiode in DEVSIM, as one would write it there; run by its own Python.

python devsim_curve.py JOB.json   prints a line of JSON: rows of voltages and currents, and seconds of processor time

The job is what `peer.py` beside this file writes. DEVSIM has no materials and no heterojunctions of its own, so the
equations are written out: Scharfetter and Gummel's fluxes with steps of the bands, for densities as DEVSIM's examples
have them. Voltages are reached by steps that are halved where there is no convergence.
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

HERE = {"device": "diode", "region": "bulk"}
STATE = ("Potential", "Electrons", "Holes")
SHORTEST = 1e-3
"""V: where halving ends."""


class Diode:
    """A device in DEVSIM, and its seconds of processor time in solves."""

    def __init__(self, numbers, job):
        self.job, self.numbers = job, numbers
        self.seconds, self.iterations = 0.0, 0
        for name in ("extended_solver", "extended_model", "extended_equation"):
            devsim.set_parameter(name=name, value=job["extended"])
        self.order, self.edge_order = make_mesh(numbers["x"])
        self.fill()
        potential_only(self)
        self.solve()
        carriers(self, job["ionisation"])
        self.solve()
        self.equilibrium = self.values()

    def fill(self):
        numbers = self.numbers
        for name, value in (("q", numbers["charge"]), ("Vt", numbers["thermal"]), ("Nref", numbers["reference"]),
                            ("Light", 0.0)):  # fmt: skip
            devsim.set_parameter(**HERE, name=name, value=float(value))
        for name in ("doping", "tn", "tp", "nie", "rate_n", "rate_p", "radiative", "auger_n", "auger_p", "generation"):
            self.put(name, numbers[name])
            if name in ("tn", "tp"):
                devsim.edge_from_node_model(**HERE, node_model=name)
        for name in ("permittivity", "mobility_n", "mobility_p", "a_n", "b_n", "a_p", "b_p"):
            devsim.edge_solution(**HERE, name=name)
            values = np.asarray(numbers[name])[self.edge_order]
            devsim.set_edge_values(**HERE, name=name, values=values.tolist())
        for contact, end in (("anode", 0), ("cathode", -1)):
            neutral = float(numbers["neutral"][end])
            for name, value in (
                ("bias", 0.0),
                ("potential", neutral * numbers["thermal"]),
                ("electrons", numbers["reference"] * np.exp(neutral + numbers["tn"][end])),
                ("holes", numbers["reference"] * np.exp(-neutral - numbers["tp"][end])),
            ):
                devsim.set_parameter(device="diode", name=f"{contact}_{name}", value=float(value))

    def put(self, name, values):
        devsim.node_solution(**HERE, name=name)
        devsim.set_node_values(**HERE, name=name, values=np.asarray(values)[self.order].tolist())

    def values(self):
        return {name: list(devsim.get_node_model_values(**HERE, name=name)) for name in STATE}

    def restore(self, values):
        for name in STATE:
            devsim.set_node_values(**HERE, name=name, values=values[name])

    def solve(self):
        """Whether it converges."""
        began = time.process_time()
        try:
            said = devsim.solve(
                type="dc", absolute_error=self.job["absolute"], relative_error=self.job["relative"],
                maximum_iterations=self.job["limit"], info=True,
            )  # fmt: skip
            fine = bool(said["converged"])
            self.iterations += len(said["iterations"])
        except devsim.error:
            fine = False
            self.iterations += self.job["limit"]
        self.seconds += time.process_time() - began
        return fine

    def bias(self, volts):
        devsim.set_parameter(device="diode", name="anode_bias", value=volts)

    def current(self, contact):
        """A/cm2 into the device."""
        names = ("ElectronContinuity", "HoleContinuity")
        return sum(devsim.get_contact_current(device="diode", contact=contact, equation=name) for name in names)

    def curve(self, lit, until):
        """Rows as far as it converges before the processor time `until`, and where it was given up."""
        self.restore(self.equilibrium)
        self.bias(0.0)
        devsim.set_parameter(**HERE, name="Light", value=1.0 if lit else 0.0)
        if not self.solve():
            return [], 0.0
        rows, at, step = [], 0.0, self.job["step"]
        for volts in self.job["volts"]:
            while at != volts:
                left = volts - at
                change = left if abs(left) <= step * (1 + 1e-9) else float(np.copysign(step, left))
                before = self.values()
                self.bias(at + change)
                if self.solve():
                    at = volts if change == left else at + change
                    step = min(2.0 * step, self.job["step"])
                    continue
                self.restore(before)
                step = 0.5 * abs(change)
                if step < SHORTEST or time.process_time() > until:
                    return rows, volts
            rows.append({"V": volts, "J": self.current("anode"), "J_cathode": -self.current("cathode")})
            if time.process_time() > until and volts != self.job["volts"][-1]:
                return rows, volts
        return rows, None


def make_mesh(x):
    """A line with exactly these nodes; where its nodes and edges are among ours."""
    devsim.create_1d_mesh(mesh="line")
    for place in x:
        devsim.add_1d_mesh_line(mesh="line", pos=float(place), ps=1.0, tag=f"at {place!r}")
    for name, place in (("anode", x[0]), ("cathode", x[-1])):
        devsim.add_1d_contact(mesh="line", name=name, tag=f"at {place!r}", material="metal")
    devsim.add_1d_region(mesh="line", material="any", region="bulk", tag1=f"at {x[0]!r}", tag2=f"at {x[-1]!r}")
    devsim.finalize_mesh(mesh="line")
    devsim.create_device(mesh="line", device="diode")
    found = np.array(devsim.get_node_model_values(**HERE, name="x"))
    devsim.edge_from_node_model(**HERE, node_model="x")
    ends = [np.array(devsim.get_edge_model_values(**HERE, name=f"x@n{k}")) for k in (0, 1)]
    order, edges = np.searchsorted(x, found), np.searchsorted(x, np.minimum(*ends))
    assert np.array_equal(np.sort(found), x), "nodes were inserted or moved"
    assert edges.size == x.size - 1
    return order, edges


def equation(name, variable, node, edge, update, volume=None, **more):
    more = more if volume is None else {**more, "edge_volume_model": volume}
    devsim.equation(
        **HERE, name=name, variable_name=variable, node_model=node, edge_model=edge, variable_update=update, **more
    )


steady_equation = equation


def stored(name, variable, *terms):
    """Define the equation of a variable, with the time derivative of the charge of its carriers."""
    more = {}
    if variable != "Potential":
        sign = "-" if variable == "Electrons" else ""
        node(f"{variable}Stored", f"{sign}q*{variable}", variable)
        more["time_node_model"] = f"{variable}Stored"
    steady_equation(name, variable, *terms, **more)


def read_job():
    """Return the job of the command line and the numbers of its device."""
    job = json.loads(Path(sys.argv[1]).read_text())
    with np.load(job["device"]) as found:
        return job, {name: found[name] if found[name].ndim else float(found[name]) for name in found}


def contacts(name, variable, held, **flux):
    """The variable is what `held` says at both contacts."""
    for contact in ("anode", "cathode"):
        model = f"{contact}_holds_{variable}"
        CreateContactNodeModel("diode", contact, model, f"{variable} - ({held.format(contact)})")
        CreateContactNodeModel("diode", contact, f"{model}:{variable}", "1")
        devsim.contact_equation(device="diode", contact=contact, name=name, node_model=model, **flux)


def node(name, text, *variables):
    CreateNodeModel(*HERE.values(), name, text)
    CreateNodeModelDerivative(*HERE.values(), name, text, *variables)


def edge(name, text, *variables):
    CreateEdgeModel(*HERE.values(), name, text)
    for variable in variables:
        CreateEdgeModelDerivatives(*HERE.values(), name, text, variable)


def potential_only(diode):
    """Poisson's equation with carriers in equilibrium."""
    CreateSolution(*HERE.values(), "Potential")
    start = np.asarray(diode.numbers["neutral"])[diode.order] * diode.numbers["thermal"]
    devsim.set_node_values(**HERE, name="Potential", values=start.tolist())
    node("StillElectrons", "Nref*exp(Potential/Vt + tn)", "Potential")
    node("StillHoles", "Nref*exp(-Potential/Vt - tp)", "Potential")
    node("StillCharge", "-q*kahan3(StillHoles, -StillElectrons, doping)", "Potential")
    edge("ElectricField", "(Potential@n0 - Potential@n1)*EdgeInverseLength", "Potential")
    edge("Displacement", "permittivity*ElectricField", "Potential")
    equation("Poisson", "Potential", "StillCharge", "Displacement", "log_damp")
    contacts("Poisson", "Potential", "{0}_potential + {0}_bias", edge_charge_model="Displacement")


def carriers(diode, ionisation):
    """All three equations, from the solution in equilibrium."""
    for name in ("Electrons", "Holes"):
        CreateSolution(*HERE.values(), name)
        devsim.set_node_values(**HERE, name=name, init_from=f"Still{name}")
    both = ("Electrons", "Holes")
    node("Charge", "-q*kahan3(Holes, -Electrons, doping)", *both)
    # Damped as in DEVSIM's examples ("log_damp") each step would take four to eight times as many.
    equation("Poisson", "Potential", "Charge", "Displacement", "default")
    shockley = "rate_n*rate_p/(rate_n*(Electrons + nie) + rate_p*(Holes + nie) + 1e-300)"
    rate = f"({shockley} + radiative + auger_n*Electrons + auger_p*Holes)"
    node("Recombination", f"(Electrons*Holes - nie^2)*{rate} - Light*generation", *both)
    node("ElectronsLost", "-q*Recombination", *both)
    node("HolesLost", "q*Recombination", *both)
    for carrier, band in (("Electron", "tn"), ("Hole", "tp")):
        drift = f"{carrier}Drift"
        edge(drift, f"(Potential@n0 - Potential@n1)/Vt + {band}@n0 - {band}@n1", "Potential")
        edge(f"{carrier}Bernoulli", f"B({drift})", "Potential")
    variables = ("Potential", *both)
    electrons = "kahan3(Electrons@n1*ElectronBernoulli, Electrons@n1*ElectronDrift, -Electrons@n0*ElectronBernoulli)"
    holes = "kahan3(Holes@n1*HoleBernoulli, -Holes@n0*HoleBernoulli, -Holes@n0*HoleDrift)"
    edge("ElectronCurrent", f"q*mobility_n*EdgeInverseLength*Vt*{electrons}", *variables)
    edge("HoleCurrent", f"-q*mobility_p*EdgeInverseLength*Vt*{holes}", *variables)
    made = {}
    if ionisation:
        # As in minga nothing ionises below 1 kV/cm, where coefficients are 0 anyway.
        edge("Strength", "max(abs(ElectricField), 1e3)", "Potential")
        parts = (
            f"a_{c}*exp(-b_{c}/Strength)*abs({flux})" for c, flux in (("n", "ElectronCurrent"), ("p", "HoleCurrent"))
        )
        edge("Pairs", " + ".join(parts), *variables)
        edge("PairsLess", "-Pairs", *variables)
        made = {"Electrons": "Pairs", "Holes": "PairsLess"}
    for carrier in ("Electron", "Hole"):
        name, variable, flux = f"{carrier}Continuity", f"{carrier}s", f"{carrier}Current"
        equation(name, variable, f"{carrier}sLost", flux, "positive", made.get(variable))
        contacts(name, variable, f"{{0}}_{variable.lower()}", edge_current_model=flux)


def main():
    job, numbers = read_job()
    until = time.process_time() + job["budget"]
    diode = Diode(numbers, job)
    found = {"build_seconds": time.process_time(), "curves": {}}
    for curve in job["curves"]:
        diode.seconds, diode.iterations = 0.0, 0
        rows, given_up = diode.curve(curve == "lit", until)
        found["curves"][curve] = {
            "rows": rows, "given_up": given_up, "seconds": diode.seconds, "iterations": diode.iterations
        }  # fmt: skip
    print()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
