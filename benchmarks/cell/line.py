"""The 1-D cell with resolved layers to its steady state, beside FiPy with as many cells or more."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from minga.engine.begin import start
from minga.engine.engine import Engine
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Constants, Electrode, Held, Problem, Species, Steps
from minga.space.grid import Grid

PYTHON = Path(__file__).parents[2] / ".venv-peers" / "bin" / "python"
PEER = Path(__file__).with_name("fipy_line.py")
DEBYE, VOLTAGE, EXACT = 0.05, 4.0, 0.8590507
"""The current over its limit, by an adaptive collocation method."""
CELLS = (24, 32, 48, 64, 96, 128, 192)


def measure_line(quick: bool, python: Path | None = None) -> dict[str, Any]:
    """Both programs; without FiPy only minga. minga takes the fewest cells that err no more than FiPy."""
    peer = [
        _fipy(n, steps, python or PYTHON) for n, steps in (((20, 10),) if quick else ((40, 60), (80, 60), (160, 60)))
    ]
    found: dict[str, Any] = {"exact": EXACT, "debye": DEBYE, "voltage": VOLTAGE, "rows": []}
    for other in filter(None, peer):
        ours = next((own for own in map(_minga, CELLS[:2] if quick else CELLS) if own["error"] <= other["error"]), None)
        row = {"fipy": other, "minga": ours}
        if ours is not None:
            row["times_as_fast"] = round(other["seconds"] / ours["seconds"], 1)
        found["rows"].append(row)
    if not found["rows"]:
        found["minga"] = [_minga(n) for n in CELLS[:2]]
    return found


def _minga(cells: int) -> dict[str, float]:
    """Processor time in the steps, from the first values to the steady state, the second time they are done."""
    widths = np.diff(0.5 - 0.5 * np.cos(np.pi * np.arange(cells + 1) / cells))
    held = Electrode({"cation": Held(1.0)})
    problem = Problem(
        Grid((cells,), axes=("y",), spacing=[widths], units="m"),
        (Species("cation", 1, 1.0, 1.0), Species("anion", -1, 1.0, 1.0)),
        Steps(7.0, 7.0, 1e-4, tolerance=1e-2), Constants(1.0, 1.0, 2.0 * DEBYE**2, 1.0, 1.0),
        cathode=held, anode=held, voltage=VOLTAGE,
    )  # fmt: skip
    model = electrodeposition(problem)
    with Engine(model.layouts("cartesian", 1), threads=1) as engine:
        for _ in range(2):
            start(model, engine)
            began = time.process_time()
            outcome = engine.run(model.step)
            seconds = time.process_time() - began
            assert outcome.ok, outcome
        assert model.observe is not None
        engine.run(model.observe)
        seen = {name: engine.read(model.observables[name]) for name in ("steps_taken", "J_over_Jlim")}
    return _row(cells, int(seen["steps_taken"]), seconds, float(seen["J_over_Jlim"]))


def _fipy(cells: int, steps: int, python: Path) -> dict[str, float] | None:
    if not python.exists() or subprocess.run([python, "-c", "import fipy"], capture_output=True).returncode:
        return None
    words = [str(python), str(PEER), str(cells), str(steps), str(DEBYE), str(VOLTAGE)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return _row(cells, steps, found["seconds"], found["J_over_Jlim"])


def _row(cells: int, steps: int, seconds: float, current: float) -> dict[str, float]:
    error = abs(current / EXACT - 1.0)
    return {"cells": cells, "steps": steps, "seconds": seconds, "J_over_Jlim": current, "error": error}
