"""The devices, and minga's side: curves, and the seconds that they take."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import minga
from minga.case.load import read_settings
from minga.engine.begin import start
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.models.photodiode.case import device_of
from minga.models.photodiode.model import photodiode
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.device import Device

EXAMPLES = Path(minga.__file__).parent / "examples"
SETS = {"InP": "umebu", "InGaAsP": "umebu", "InGaAs": "pearsall"}
"""Coefficients of ionisation that DEVSIM's expressions have: one piece for all fields."""


def apd(coarsen: int = 1, ionisation: Mapping[str, str] | None = SETS) -> Device:
    """The avalanche photodiode in 1820 rows, or in fewer; None: with the coefficients of the example."""
    changes: dict[str, Any] = {"ionisation": dict(ionisation)} if ionisation else {}
    return _example("apd", changes, coarsen=coarsen)


def silicon() -> Device:
    """The silicon diode SI-1 on its own mesh."""
    return _example("si-1", {})


def _example(name: str, changes: dict[str, Any], **mesh: Any) -> Device:
    table = tomllib.loads((EXAMPLES / f"{name}.toml").read_text())["photodiode"]
    return device_of(read_settings("photodiode", {**table, **changes, "mesh": {**table["mesh"], **mesh}}), EXAMPLES)


def solve(device: Device, problem: Problem, times: int = 1) -> dict[str, Any]:
    """Observables at each voltage, and the least seconds of processor time in the steps, of so many runs."""
    # A step's Program is bound twice: for fields as they are set, and as a step leaves them. The second time is at the
    # first voltage once more, where nothing is to be solved, and does not count.
    model = photodiode(device, replace(problem, bias=(problem.bias[0], *problem.bias)))
    runs = (run(model, problem.steps + 1) for _ in range(times))
    rows, seconds = min((([first, *rest], a + sum(b)) for (first, _, *rest), (a, _, *b) in runs), key=itemgetter(1))
    return {"rows": rows, "seconds": seconds}


def run(model: Model, steps: int) -> tuple[list[dict[str, Any]], list[float]]:
    """From equilibrium, after compilation: observables and seconds of each step."""
    assert model.observe is not None
    rows, seconds = [], []
    with Engine(model.layouts("cartesian", 1), threads=1) as engine:
        start(model, engine)
        engine.prepare(model.step, looped=False)
        for _ in range(steps):
            began = time.process_time()
            outcome = engine.run(model.step)
            seconds.append(time.process_time() - began)
            if not outcome.ok:
                raise RuntimeError(str(model.explain(engine) if model.explain else outcome))
            engine.run(model.observe)
            rows.append({
                name: [engine.read(one) for one in item] if isinstance(item, tuple) else engine.read(item)
                for name, item in model.observables.items()
            })  # fmt: skip
    return rows, seconds
