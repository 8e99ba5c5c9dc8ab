"""The 1-D cell with resolved layers to its steady state, beside FiPy and DEVSIM, to the same error of the current."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minga.engine.begin import start
from minga.engine.engine import Engine
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Constants, Electrode, Held, Problem, Species, Steps
from minga.space.grid import Grid

PYTHON = Path(__file__).parents[2] / ".venv-peers" / "bin" / "python"
PEERS = {
    "FiPy": (("fipy",), Path(__file__).with_name("fipy_line.py")),
    "DEVSIM": (("devsim", "scipy_openblas32"), Path(__file__).with_name("devsim_line.py")),
}
"""Programs beside this one by their names: the packages that they take, and what runs them."""
DEBYE, VOLTAGE, EXACT = 0.05, 4.0, 0.8590507
"""The current over its limit, by an adaptive collocation method."""
CELLS = (24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)


def measure_line(quick: bool, python: Path | None = None) -> dict[str, Any]:
    """All programs; without the others only minga, which takes the fewest cells that err no more than theirs."""
    found: dict[str, Any] = {"exact": EXACT, "debye": DEBYE, "voltage": VOLTAGE, "rows": []}
    for name, (packages, program) in PEERS.items():
        if not _has(python or PYTHON, packages):
            continue
        for cells, steps in ((20, 10),) if quick else ((40, 60), (80, 60), (160, 60)):
            other = _peer(python or PYTHON, program, cells, steps)
            tried = map(_minga, CELLS[:2] if quick else CELLS)
            ours = next((own for own in tried if own["error"] <= other["error"]), None)
            row = {"peer": name, "theirs": other, "minga": ours}
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


def _has(python: Path, packages: Sequence[str]) -> bool:
    """Return whether this Python has the packages, without importing them: DEVSIM needs a library first."""
    check = f"import importlib.util as u; assert all(map(u.find_spec, {tuple(packages)!r}))"
    return python.exists() and not subprocess.run([python, "-c", check], capture_output=True).returncode


def _peer(python: Path, program: Path, cells: int, steps: int) -> dict[str, float]:
    command = [str(python), str(program), str(cells), str(steps), str(DEBYE), str(VOLTAGE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return _row(cells, steps, found["seconds"], found["J_over_Jlim"])


def _row(cells: int, steps: int, seconds: float, current: float) -> dict[str, float]:
    error = abs(current / EXACT - 1.0)
    return {"cells": cells, "steps": steps, "seconds": seconds, "J_over_Jlim": current, "error": error}
