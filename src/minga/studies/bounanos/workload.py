"""Pointwise scheme as a workload: iterations by cut, and costs of the rows of each layer during convergence."""

from __future__ import annotations

import time
import tomllib
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minga.case.load import read_settings
from minga.engine.begin import start
from minga.engine.engine import Engine, Outcome
from minga.engine.model import Model
from minga.errors import RunError
from minga.models.photodiode.case import device_of
from minga.models.photodiode.pointwise.scheme import Pointwise, pointwise
from minga.models.photodiode.solver.problem import Curve, Problem
from minga.models.photodiode.structure.device import Device
from minga.space.layout import Layout

__all__ = ["Profile", "Solved", "cut_rows", "newton_seconds", "paper_device", "profile", "solve"]

Floats = NDArray[np.float64]


def paper_device(coarsen: int = 1) -> Device:
    """Return the paper's photodiode (the example `apd`), with groups of `coarsen` rows merged into one.

    Its physics is that of the paper's reference counts: constant mobilities, Shockley-Read-Hall recombination, light,
    no ionisation.
    """
    text = files("minga.examples").joinpath("apd.toml").read_text(encoding="utf-8")
    section = tomllib.loads(text)["photodiode"]
    section["mesh"] = {**section["mesh"], "coarsen": coarsen}
    device = device_of(read_settings("photodiode", section), Path())
    none = np.zeros_like(device.radiative)
    return replace(device, radiative=none, auger_n=none, auger_p=none)


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """A solution: number of iterations, fields by name, and CPU time of this process for the iterations, s."""

    iterations: int
    fields: dict[str, Floats]
    seconds: float


def solve(device: Device, voltage: float, curve: Curve, how: Pointwise) -> Solved:
    """Solve a device at a voltage in this process; RunError if it does not converge within the limit."""
    model = pointwise(device, Problem(bias=(voltage,), curves=(curve,), ionisation=False), how)
    mark = "" if curve == "dark" else f"_{curve}"
    with _started(model) as engine:
        outcome, seconds = _timed(model, engine)
        if not outcome.ok:
            raise RunError(
                f"the pointwise scheme ended with {outcome.reason!r} after {how.limit} iterations at {voltage:g} V",
                remedy="allow more iterations, or use fewer rows",
            )
        iterations = engine.read(model.observables[f"iterations{mark}"])  # type: ignore[arg-type]
        fields = {name.removesuffix(mark): engine.gather(model.field(name)) for name in model.output}
    return Solved(int(iterations), {name: np.asarray(v) for name, v in fields.items()}, seconds)


def newton_seconds(device: Device, voltage: float, curve: Curve) -> float:
    """Return the CPU time of Newton's method from zero voltage to this one, s, without compilation."""
    from minga.models.photodiode.model import photodiode

    model = photodiode(device, Problem(bias=(voltage,), curves=(curve,), ionisation=False))
    with _started(model) as engine:
        outcome, seconds = _timed(model, engine)
        if not outcome.ok:
            raise RunError(f"Newton's method ended with {outcome.reason!r}", remedy="choose a smaller voltage")
        return seconds


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Newton steps for the potential per row and iteration, while the scheme converges.

    Attributes
    ----------
    iterations
        Iterations at the end of each window, shape (windows,).
    steps
        Means over the iterations of each window, shape (windows, rows).
    """

    iterations: NDArray[np.int64]
    steps: Floats

    def of_layers(self, device: Device) -> dict[str, Floats]:
        """Return the means over the rows of each layer, shape (windows,)."""
        return {layer.name: self.steps[:, layer.first : layer.last + 1].mean(axis=1) for layer in device.layers}


def profile(device: Device, voltage: float, curve: Curve, how: Pointwise, every: int, windows: int) -> Profile:
    """Observe the scheme for some windows of `every` iterations, or until it converges."""
    model = pointwise(
        device, Problem(bias=(voltage,) * windows, curves=(curve,), ionisation=False), replace(how, limit=every)
    )
    mark = "" if curve == "dark" else f"_{curve}"
    ends, steps = [0], [np.zeros(device.grid.shape)]
    with _started(model) as engine:
        for _ in range(windows):
            outcome = engine.run(model.step)
            if not outcome.ok and outcome.reason != "limit":
                raise RunError(f"the pointwise scheme ended with {outcome.reason!r}", remedy="use fewer rows")
            ends.append(ends[-1] + int(engine.read(model.observables[f"iterations{mark}"])))  # type: ignore[arg-type]
            steps.append(np.asarray(engine.gather(model.field("newton_steps" + mark)), np.float64))
            if outcome.ok:
                break
    each = np.diff(np.array(steps), axis=0) / np.diff(ends)[:, None]
    return Profile(np.array(ends[1:], np.int64), each)


def _started(model: Model) -> Engine:
    layout = Layout.single(model.grid.box, 1)
    engine = Engine(dict.fromkeys(model.grids, layout), threads=1)
    start(model, engine)
    return engine


def _timed(model: Model, engine: Engine) -> tuple[Outcome, float]:
    """Run a step, and return its outcome and CPU time in s, without compilation."""
    engine.prepare(model.step, looped=False)
    before = time.process_time()
    outcome = engine.run(model.step)
    return outcome, time.process_time() - before


def cut_rows(ends: ArrayLike, rows: int, coarse: int) -> tuple[int, ...]:
    """Return the cuts of `rows` rows transferred to a mesh of `coarse` rows, each segment with at least one row."""
    scaled = np.round(np.asarray(ends, float) * coarse / rows).astype(int)
    segments = len(scaled) - 1
    number = np.arange(segments + 1)
    scaled = np.maximum.accumulate(scaled - number) + number
    return tuple(int(end) for end in np.minimum(scaled, coarse - segments + number))
