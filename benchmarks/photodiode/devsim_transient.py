"""A step of light on a photodiode in DEVSIM, as one would write it there; run by its own Python.

python devsim_transient.py JOB.json   prints a line of JSON: currents of the anode after each step, and seconds

The device and its equations are those of `devsim_curve.py` beside this file, with the charge of the carriers as what
changes in time. Steps have one length, which DEVSIM leaves to its users.
"""

import json
import time

import devsim_curve
from devsim_curve import HERE, Diode, devsim


def solved(job, kind, **more):
    said = devsim.solve(
        type=kind, absolute_error=job["absolute"], relative_error=job["relative"], maximum_iterations=job["limit"],
        info=True, **more,
    )  # fmt: skip
    if not said["converged"]:
        raise SystemExit(f"{kind} did not converge")
    return len(said["iterations"])


def main():
    job, numbers = devsim_curve.read_job()
    devsim_curve.equation = devsim_curve.stored
    diode = Diode(numbers, job)
    rows, given_up = diode.curve(False, time.process_time() + job["budget"])
    if given_up is not None:
        raise SystemExit(f"given up at {given_up} V")
    solved(job, "transient_dc")
    devsim.set_parameter(**HERE, name="Light", value=1.0)
    currents, iterations, began = [], 0, time.process_time()
    for _ in range(job["count"]):
        iterations += solved(job, job["method"], tdelta=job["length"], charge_error=1e30)
        currents.append(diode.current("anode"))
    seconds = time.process_time() - began
    print()
    print(json.dumps({"dark": rows[-1]["J"], "J": currents, "seconds": seconds, "iterations": iterations}))


if __name__ == "__main__":
    main()
