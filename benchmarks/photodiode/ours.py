"""The devices, and minga's side: curves, and the seconds that they take."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import minga
from minga.engine.drive import start
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.models.photodiode.case import device_of, read_settings
from minga.models.photodiode.device import Device
from minga.models.photodiode.model import photodiode
from minga.models.photodiode.problem import Problem

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
    return device_of(read_settings({**table, **changes, "mesh": {**table["mesh"], **mesh}}), EXAMPLES)


def solve(device: Device, problem: Problem, times: int = 1) -> dict[str, Any]:
    """Observables at each voltage, and the least seconds of processor time in the steps, of so many runs."""
    model = photodiode(device, problem)
    rows, seconds = min((_run(model, problem.steps) for _ in range(times)), key=lambda found: found[1])
    return {"rows": rows, "seconds": seconds}


def _run(model: Model, steps: int) -> tuple[list[dict[str, Any]], float]:
    """From equilibrium, after compilation."""
    assert model.observe is not None
    with Engine(model.layouts("cartesian", 1), threads=1) as engine:
        start(model, engine)
        engine.prepare(model.step)
        rows, seconds = [], 0.0
        for _ in range(steps):
            began = time.process_time()
            outcome = engine.run(model.step)
            seconds += time.process_time() - began
            if not outcome.ok:
                raise RuntimeError(str(model.explain(engine) if model.explain else outcome))
            engine.run(model.observe)
            rows.append({name: engine.read(item) for name, item in model.observables.items()})
    return rows, seconds
