"""Seconds of a shot and of its gradient, minga and Devito in turns, each with one thread."""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

import numpy as np

from benchmarks.seismics import problem
from benchmarks.seismics.peer import Ask, peer
from minga.models.waves import Medium, PointSource, Receivers, Ricker, Shot, Sponge, prepare, shot_gradient, shot_traces

ROUNDS, QUICK = 5, 60


def measure_speed(quick: bool) -> list[dict[str, Any]]:
    """The median over some rounds, for each order of differences."""
    steps = QUICK if quick else problem.STEPS
    names = {name.lower(): getattr(problem, name) for name in dir(problem) if name.isupper()}
    with peer("devito_acoustic.py", json.dumps(names)) as devito:
        return [_of_order(order, steps, 1 if quick else ROUNDS, devito) for order in problem.ORDERS]


def _of_order(order: int, steps: int, rounds: int, devito: Ask | None) -> dict[str, Any]:
    own = _Own(order, steps)
    times: dict[str, list[float]] = {}
    version = None
    for _ in range(rounds):
        for name, seconds in own.seconds().items():
            times.setdefault(name, []).append(seconds)
        if devito is not None:
            found = dict(devito({"order": order, "steps": steps}))
            version = found.pop("version")
            times.setdefault("devito forward", []).append(found["forward"])
            times.setdefault("devito gradient", []).append(found["saving"] + found["reverse"])
    middle = {name: statistics.median(values) for name, values in times.items()}
    ratios = {
        what: middle[f"devito {what}"] / middle[what] for what in ("forward", "gradient") if f"devito {what}" in middle
    }
    return {"order": order, "steps": steps, "seconds": middle, "all": times, "ratios": ratios, "devito": version}


class _Own:
    """Our shot, computed once before it is measured."""

    def __init__(self, order: int, steps: int) -> None:
        nz, nx = problem.SHAPE
        vp = problem.TOP + problem.GRADIENT * np.arange(nz)[:, None] + np.zeros(nx)
        self.samples = steps + 1
        self.waves = prepare(
            (nz, nx), problem.SPACING, dt=problem.DT, medium=Medium(vp), order=order, boundary=Sponge(problem.LAYER)
        )
        width, top = nx * problem.SPACING, problem.SPACING
        places = np.linspace(0, width - top, problem.RECEIVERS)
        self.shot = Shot(
            [PointSource((top, width / 2), Ricker(problem.FREQUENCY))], Receivers([(top, float(x)) for x in places])
        )
        data = shot_traces(self.waves, self.shot, self.samples)
        self.observed = Shot(self.shot.sources, self.shot.receivers, 0.9 * data)
        shot_gradient(self.waves, self.observed)

    def seconds(self) -> dict[str, float]:
        """Seconds of processor time, preparation of kernels included."""
        began = time.process_time()
        shot_traces(self.waves, self.shot, self.samples)
        middle = time.process_time()
        shot_gradient(self.waves, self.observed)
        return {"forward": middle - began, "gradient": time.process_time() - middle}
