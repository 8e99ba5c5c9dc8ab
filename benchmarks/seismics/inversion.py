"""An inversion of the same section by minga and by Devito's example, each with one thread and its own data."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.seismics.picture import draw
from benchmarks.seismics.section import Section
from benchmarks.waves.devito import PYTHON, installed
from minga.models.waves import (
    Cpml,
    Inversion,
    Medium,
    PointSource,
    Receivers,
    Ricker,
    Shot,
    Sponge,
    prepare,
    shot_traces,
)
from minga.models.waves.boundary import Face
from minga.models.waves.waves import Waves

__all__ = ["measure_inversion"]

SCRIPT = Path(__file__).parent / "scripts" / "devito_inversion.py"

Found = Mapping[str, Any]


def measure_inversion(quick: bool) -> dict[str, Any]:
    """Return misfits, errors of the models and seconds of both programs, and how far data and gradients differ."""
    section = Section.quick() if quick else Section()
    sponge, matched = Sponge(section.sponge, 0.16), Cpml(section.layer)
    found = {"minga": _searched(section, sponge), "minga, matched layers": _searched(section, matched)}
    if installed():
        found["devito"] = _devito(section)
    true, mask = section.true().astype(np.float64), section.mask() > 0
    initial, expected = _error(section.start(), true, mask), _data(section, Cpml(4 * section.layer))[0]
    result: dict[str, Any] = {"section": section.numbers(), "initial error": initial}
    for name, each in found.items():
        result[name] = {
            "seconds": float(each["seconds"]),
            "evaluations": int(each["evaluations"]),
            "misfits": [float(m / each["misfits"][0]) for m in each["misfits"]],
            "errors": [initial, *(_error(model, true, mask) for model in each["models"])],
            "data differ by": _relative(each["records"][0][: section.steps], expected),
        }
    if not quick:
        draw(section, {name: each["models"][-1] for name, each in found.items()}, result)
    if "devito" in found:
        result["devito"]["version"] = str(found["devito"]["version"])
        each = {name: result[name]["seconds"] / result[name]["evaluations"] for name in found}
        result["ratios"] = {name: each["devito"] / each[name] for name in found if name != "devito"}
        inner = Section.inner()
        search, start = _search(inner, matched)
        result["gradients differ by"] = _relative(search.gradient(start)[1]["vp"], _devito(inner)["gradient"])
    return result


def _waves(section: Section, vp: np.ndarray, boundary: Face) -> Waves:
    return prepare(
        section.cells, section.spacing, dt=section.dt, medium=Medium(vp), order=section.order, boundary=boundary
    )


def _shots(section: Section) -> list[Shot]:
    """Return the shots without data."""
    volume = section.spacing * section.spacing  # Devito's sources are not divided by the volume of their cell
    wavelet = Ricker(section.frequency, delay=1.0 / section.frequency, amplitude=volume)
    receivers = Receivers(section.places(section.receivers), interpolation="linear")
    sources = [PointSource(place, wavelet, interpolation="linear") for place in section.places(section.shots)]
    return [Shot([source], receivers) for source in sources]


def _data(section: Section, boundary: Face) -> list[np.ndarray]:
    """Return the traces of all shots in the true medium."""
    waves = _waves(section, section.true(), boundary)
    return [shot_traces(waves, shot, section.steps) for shot in _shots(section)]


def _search(section: Section, boundary: Face) -> tuple[Inversion, dict[str, np.ndarray]]:
    """Return the search and its start."""
    shots = [
        Shot(shot.sources, shot.receivers, data)
        for shot, data in zip(_shots(section), _data(section, boundary), strict=True)
    ]
    bounds = {"vp": (section.lowest, section.highest)}

    def waves(values: Mapping[str, np.ndarray], shot: Shot) -> Waves:
        return _waves(section, values["vp"], boundary)

    return Inversion(shots, waves, bounds=bounds, mask=section.mask()), {"vp": section.start()}


def _searched(section: Section, boundary: Face) -> Found:
    """Return misfits, models, data and the processor's seconds of the search."""
    search, start = _search(section, boundary)
    replace(search).gradient(start)  # compiles the kernels; what an inversion keeps of its shots is not kept
    models: list[np.ndarray] = []
    began = time.process_time()
    found = search.run(start, section.iterations, callback=lambda now: models.append(now.values["vp"].copy()))
    seconds = time.process_time() - began
    return {
        "seconds": seconds, "evaluations": found.evaluations, "misfits": found.misfits, "models": models,
        "records": [shot.data for shot in search.shots],
    }  # fmt: skip


def _devito(section: Section) -> Found:
    """Return the same of Devito's example."""
    with tempfile.TemporaryDirectory() as folder:
        given, answer = (str(Path(folder, name)) for name in ("given.npz", "answer.npz"))
        np.savez(given, true=section.true(), start=section.start(), mask=section.mask())
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [str(PYTHON), str(SCRIPT), json.dumps(section.numbers()), given, answer]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"Devito ended with status {done.returncode}:\n{done.stderr[-4000:]}")
        with np.load(answer) as stored:
            return dict(stored)


def _error(model: np.ndarray, true: np.ndarray, mask: np.ndarray) -> float:
    """Return the root mean square of a model's error, m/s, where it is sought."""
    return float(np.sqrt(np.square(model - true)[mask].mean()))


def _relative(one: np.ndarray, other: np.ndarray) -> float:
    """Return the difference relative to the second, in the norm of squares."""
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))
