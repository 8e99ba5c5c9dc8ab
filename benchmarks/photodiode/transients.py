"""A step of light on a p-i-n diode with steps of one length, beside DEVSIM on the same nodes."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.photodiode.peer import Asked, transient
from minga.case.load import read_settings
from minga.engine.begin import start
from minga.engine.engine import Engine
from minga.models.photodiode.case import device_of
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.transients import model
from minga.models.photodiode.transients.problem import Transient
from minga.models.photodiode.transients.waveform import Waveform

Floats = NDArray[np.float64]

VOLTS, UNTIL = -5.0, 10e-12
COUNTS = (50, 100, 200)
"""Numbers of steps up to `UNTIL`."""
FINE = 8
"""Steps of the reference in the shortest step that is measured."""
ASKED = Asked((VOLTS,), step=0.5)
METHODS = ("transient_bdf1", "transient_tr")


def pin() -> Device:
    """A silicon p-i-n diode with constant mobilities, and light in its middle layer."""
    layers = [
        {"material": "Si", "thickness": thickness} | doping
        for thickness, doping in ((0.5, {"p": 1e18}), (1.0, {"n": 1e15}), (0.5, {"n": 1e18}))
    ]
    table = {"layers": layers, "contacts": {"anode": "ohmic", "cathode": "ohmic"}, "bias": VOLTS}
    made = device_of(read_settings("photodiode", table), Path())
    return replace(made, generation=np.where(made.layer == 1, 1e20, 0.0))


def measure_transients(quick: bool, python: Path | None) -> dict[str, Any]:
    """Largest errors of the current, relative to its change, and seconds of processor time a step."""
    device, counts = pin(), COUNTS[:1] if quick else COUNTS
    finest = counts[-1] * FINE
    exact = followed(device, finest)["J"]
    change = float(np.abs(exact - exact[0]).max())
    rows = []
    for count in counts:
        kinds: dict[str, Any] = {"minga": partial(followed, device)}
        for extended in (False, True) if python else ():
            for method in METHODS:
                name = f"{method.removeprefix('transient_')}, {'extended' if extended else 'double'}"
                kinds[name] = partial(beside, device, method, extended, python)
        for name, solve in kinds.items():
            found = solve(count)
            errors = np.abs(found["J"] - exact[:: finest // count]) / change
            rows.append({
                "name": name, "steps": count, "error": float(errors[1:].max()),
                "seconds": found["seconds"] / count, "iterations": found["iterations"] / count,
            })  # fmt: skip
    return {"nodes": device.grid.shape[0], "until": UNTIL, "rows": rows}


def followed(device: Device, count: int) -> dict[str, Any]:
    """minga's currents at the beginning and after each step, and the seconds of the steps."""
    length = UNTIL / count
    what = Transient(
        UNTIL, Waveform((0.0,), (VOLTS,)), Waveform((0.0, 0.0), (0.0, 1.0)), tolerance=1e300, first=length,
        largest=length,
    )  # fmt: skip
    made = model.transient(device, Problem((VOLTS,), ionisation=False), what)
    currents, iterations, seconds = [], 0, 0.0
    with Engine(made.layouts("cartesian", 1), threads=1) as engine:
        start(made, engine)
        assert made.observe is not None
        assert made.clock is not None
        assert made.clock.target is not None
        engine.write(made.clock.target, math.inf)
        engine.prepare(made.step, looped=False)
        for number in range(count + 1):
            began = time.process_time()
            outcome = engine.run(made.step)
            seconds += time.process_time() - began if number else 0.0
            if not outcome.ok:
                raise RuntimeError(str(made.explain(engine) if made.explain else outcome))
            engine.run(made.observe)
            seen = {name: engine.read(item) for name, item in made.observables.items()}
            if not math.isclose(seen["t"], number * length, rel_tol=1e-9, abs_tol=1e-30):
                raise RuntimeError(f"step {number} of {count} ends at {seen['t']} s: a step was rejected")
            currents.append(seen["J"])
            iterations += int(seen["iterations"])
    return {"J": np.array(currents), "seconds": seconds, "iterations": iterations}


def beside(device: Device, method: str, extended: bool, python: Path, count: int) -> dict[str, Any]:
    """The same of DEVSIM."""
    found = transient(device, replace(ASKED, extended=extended), method, UNTIL / count, count, python)
    return {**found, "J": np.array([found["dark"], *found["J"]])}
