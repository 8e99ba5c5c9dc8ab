"""A photodiode over time in DEVSIM, as one would write it there; run by its own Python.

python devsim_transient.py JOB.json   prints a line of JSON: conduction currents after each step, and seconds

The device and its equations are those of `devsim_curve.py` beside this file, with the charge of the carriers as what
changes in time. Steps have one length, which DEVSIM leaves to its users. A step is one solution or, by TR-BDF2, two,
at the times that `sources` of the job is about: light and voltage of each. Currents are the mean over the edges,
weighted with their lengths over their permittivities.
"""

import json
import time

import devsim_curve
import numpy as np
from devsim_curve import HERE, Diode, devsim

GAMMA = 2.0 - 2.0**0.5
"""Inner time of TR-BDF2, as a part of the step."""
STAGES = {"transient_tr_bdf2": (("transient_tr", {"gamma": GAMMA}), ("transient_bdf2", {"gamma": GAMMA}))}
"""Solutions that a step consists of, where they are several."""


def solved(job, kind, **more):
    said = devsim.solve(
        type=kind, absolute_error=job["absolute"], relative_error=job["relative"], maximum_iterations=job["limit"],
        info=True, **more,
    )  # fmt: skip
    if not said["converged"]:
        raise SystemExit(f"{kind} did not converge")
    return len(said["iterations"])


def terminal(diode):
    """A/cm2 from the anode to the cathode."""
    flux = sum(np.array(devsim.get_edge_model_values(**HERE, name=f"{c}Current")) for c in ("Electron", "Hole"))
    weights = np.diff(diode.numbers["x"]) / diode.numbers["permittivity"]
    return float((weights[diode.edge_order] * flux).sum() / weights.sum())


def main():
    job, numbers = devsim_curve.read_job()
    devsim_curve.equation = devsim_curve.stored
    diode = Diode(numbers, job)
    _, given_up = diode.curve(False, time.process_time() + job["budget"])
    if given_up is not None:
        raise SystemExit(f"given up at {given_up} V")
    solved(job, "transient_dc")
    currents, iterations, seconds = [terminal(diode)], 0, 0.0
    stages = STAGES.get(job["method"], ((job["method"], {}),))
    for step in job["sources"]:
        began = time.process_time()
        for (kind, more), (light, volts) in zip(stages, step):
            devsim.set_parameter(**HERE, name="Light", value=light)
            diode.bias(volts)
            iterations += solved(job, kind, tdelta=job["length"], charge_error=1e30, **more)
        seconds += time.process_time() - began
        currents.append(terminal(diode))
    print()
    print(json.dumps({"J": currents, "seconds": seconds, "iterations": iterations}))


if __name__ == "__main__":
    main()
