"""Small-signal admittance of a photodiode in DEVSIM, as one would write it there; run by its own Python.

python devsim_ac.py JOB.json   prints a line of JSON: rows of voltages, frequencies, G, C and seconds of processor time

The device and its equations are those of `devsim_curve.py` beside this file. A voltage source of a circuit drives the
anode, as small-signal analysis in DEVSIM requires.
"""

import json
import math
import time

import devsim_curve
from devsim_curve import Diode, devsim


class Driven(Diode):
    """A device whose anode is driven by a source."""

    def fill(self):
        super().fill()
        devsim.circuit_element(name="V1", n1="anode_bias", n2=0, value=0.0, acreal=1.0, acimag=0.0)

    def bias(self, volts):
        devsim.circuit_alter(name="V1", value=volts)

    def spectrum(self, frequencies):
        """Rows of frequency, G and C, and the seconds of each solution."""
        rows = []
        for f in frequencies:
            began = time.process_time()
            devsim.solve(type="ac", frequency=f)
            seconds = time.process_time() - began
            parts = (devsim.get_circuit_node_value(node="V1.I", solution=f"ssac_{part}") for part in ("real", "imag"))
            g, b = (-part for part in parts)
            rows.append({"f": f, "G": g, "C": b / (2.0 * math.pi * f), "seconds": seconds})
        return rows


def driven_contacts(name, variable, held, **flux):
    """Define the contact equations of `devsim_curve.contacts`; the circuit sets the voltage of the anode."""
    for contact in ("anode", "cathode"):
        model, driven = f"{contact}_holds_{variable}", contact == "anode"
        text = held.format(contact) if driven else held.format(contact).replace("cathode_bias", "0")
        devsim_curve.CreateContactNodeModel("diode", contact, model, f"{variable} - ({text})")
        devsim_curve.CreateContactNodeModel("diode", contact, f"{model}:{variable}", "1")
        if driven and variable == "Potential":
            devsim_curve.CreateContactNodeModel("diode", contact, f"{model}:anode_bias", "-1")
        more = {"circuit_node": "anode_bias"} if driven else {}
        devsim.contact_equation(device="diode", contact=contact, name=name, node_model=model, **flux, **more)


def main():
    job, numbers = devsim_curve.read_job()
    set_parameter = devsim.set_parameter

    def without_bias(**said):
        if said.get("name") != "anode_bias":
            set_parameter(**said)

    devsim.set_parameter = without_bias
    devsim_curve.contacts, devsim_curve.equation = driven_contacts, devsim_curve.stored
    diode = Driven(numbers, job)
    rows, at = [], 0.0
    for volts in job["volts"]:
        steps = max(1, math.ceil(abs(volts - at) / job["step"] - 1e-9))
        for k in range(1, steps + 1):
            diode.bias(at + (volts - at) * k / steps)
            if not diode.solve():
                raise SystemExit(f"no convergence at {volts} V")
        at = volts
        rows.append({"V": volts, "spectrum": diode.spectrum(job["frequencies"])})
    print()
    print(json.dumps({"rows": rows}))


if __name__ == "__main__":
    main()
