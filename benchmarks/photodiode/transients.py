"""A ramp of light on a p-i-n diode with steps of one length, beside DEVSIM on the same nodes."""

from __future__ import annotations

import math
import statistics
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
from minga.solve.integrators.tr_bdf2 import INNER

Floats = NDArray[np.float64]

VOLTS, UNTIL = -5.0, 10e-12
COUNTS = (50, 100, 200)
"""Numbers of steps up to `UNTIL`."""
LIGHT = Waveform((0.0, 0.2 * UNTIL), (0.0, 1.0))
STEADY = Waveform((0.0,), (VOLTS,))
RAMP = Waveform((0.4 * UNTIL, 0.6 * UNTIL), (VOLTS, VOLTS + 1.0))
"""Sources, whose corners are ends of steps: the light, and a voltage that stays and one that rises as well."""
SAME = "tr_bdf2"
"""The method that both have."""
FINE = 8
"""Steps of the reference in the shortest step that is measured."""
ASKED = Asked((VOLTS,), step=0.5)
METHODS = ("bdf1", "tr", SAME)
TURNS = 3
"""Measurements of minga and of this method, in turns; their medians count."""


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
    """Largest errors of the current, relative to its change, and seconds of processor time a step.

    Where DEVSIM uses the method that minga has, also `digits` of the change that agree, in the same steps;
    `digits_of_both` are those with a ramp of the voltage besides, in the fewest steps. `preparation` are minga's
    seconds of binding its Program to the mesh, which the steps do not include.
    """
    device, counts = pin(), COUNTS[:1] if quick else COUNTS
    finest = counts[-1] * FINE
    exact: Floats = followed(device, finest)["J"]
    change = float(np.abs(exact - exact[0]).max())
    rows = []
    for count in counts:
        kinds: dict[str, Any] = {"minga": partial(followed, device)}
        for extended in (False, True) if python else ():
            for method in METHODS:
                name = f"{method}, {'extended' if extended else 'double'}"
                kinds[name] = partial(beside, device, method, extended, python)
        own: Floats = np.empty(0)
        results = {name: solve(count) for name, solve in kinds.items()}
        turns = {name: [found["seconds"]] for name, found in results.items()}
        for _ in range(0 if quick else TURNS - 1):
            for name in (item for item in kinds if item == "minga" or item.startswith(SAME)):
                turns[name].append(kinds[name](count)["seconds"])
        preparation = results["minga"]["preparation"]
        for name, found in results.items():
            own = found["J"] if name == "minga" else own
            errors = np.abs(found["J"] - exact[:: finest // count]) / change
            rows.append({
                "name": name, "steps": count, "error": float(errors[1:].max()),
                "seconds": statistics.median(turns[name]) / count, "iterations": found["iterations"] / count,
            })  # fmt: skip
            if name.startswith(SAME):
                rows[-1]["digits"] = equal(own, found["J"])
    both: dict[str, Any] = {}
    if python:
        one, other = followed(device, counts[0], RAMP)["J"], beside(device, SAME, True, python, counts[0], RAMP)["J"]
        both = {"digits_of_both": equal(one, other)}
    return {"nodes": device.grid.shape[0], "until": UNTIL, "preparation": preparation, "rows": rows, **both}


def equal(one: Floats, other: Floats) -> float:
    """Digits of the largest change of a current that agree in all records."""
    change = float(np.abs(one - one[0]).max())
    return -math.log10(max(float(np.abs(one - other).max()) / change, 1e-16))


def followed(device: Device, count: int, voltage: Waveform = STEADY) -> dict[str, Any]:
    """minga's conduction currents at the beginning and after each step, and the seconds of the steps."""
    length = UNTIL / count
    what = Transient(
        UNTIL, voltage, LIGHT, tolerance=1e300, first=length, largest=length,
    )  # fmt: skip
    made = model.transient(device, Problem((VOLTS,), ionisation=False), what)
    currents, iterations, seconds, preparation = [], 0, 0.0, 0.0
    with Engine(made.layouts("cartesian", 1), threads=1) as engine:
        start(made, engine)
        assert made.observe is not None
        assert made.clock is not None
        assert made.clock.target is not None
        engine.write(made.clock.target, math.inf)
        for number in range(count + 1):
            # Before the second run too: halos are then valid, and other exchanges are left out.
            began = time.process_time()
            engine.prepare(made.step, looped=False)
            preparation += time.process_time() - began
            began = time.process_time()
            outcome = engine.run(made.step)
            seconds += time.process_time() - began if number else 0.0
            if not outcome.ok:
                raise RuntimeError(str(made.explain(engine) if made.explain else outcome))
            engine.run(made.observe)
            seen = {name: engine.read(item) for name, item in made.observables.items()}
            if not math.isclose(seen["t"], number * length, rel_tol=1e-9, abs_tol=1e-30):
                raise RuntimeError(f"step {number} of {count} ends at {seen['t']} s: a step was rejected")
            currents.append(seen["J_conduction"])
            iterations += int(seen["iterations"])
    return {"J": np.array(currents), "seconds": seconds, "iterations": iterations, "preparation": preparation}


def beside(
    device: Device, method: str, extended: bool, python: Path, count: int, voltage: Waveform = STEADY
) -> dict[str, Any]:
    """Return what `followed` returns, of steps by DEVSIM."""
    places = (INNER, 1.0) if method == SAME else (1.0,)
    steps = [[_sources((k + place) * UNTIL / count, voltage) for place in places] for k in range(count)]
    asked = replace(ASKED, extended=extended)
    found = transient(device, asked, f"transient_{method}", UNTIL / count, steps, python)
    return {**found, "J": np.array(found["J"])}


def _sources(time: float, voltage: Waveform) -> tuple[float, float]:
    """Light and voltage at a time."""
    light, volts = (float(np.interp(time, wave.times, wave.values)) for wave in (LIGHT, voltage))
    return light, volts
