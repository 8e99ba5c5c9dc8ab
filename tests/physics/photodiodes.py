"""Devices and curves that tests of photodiodes share."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import minga as mg
from minga.case.load import read_settings
from minga.engine.comm import Comm, run_virtual
from minga.models.photodiode.case import device_of
from minga.models.photodiode.model import photodiode
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.device import Device

Floats = NDArray[np.float64]
EXAMPLES = Path(mg.__file__).parent / "examples"


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A table with other entries; a table among them is merged, too."""
    found = dict(base)
    for name, value in changes.items():
        old = found.get(name)
        found[name] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return found


def device(example: str, **changes: Any) -> Device:
    """The device of an example, with other settings in its table."""
    table = tomllib.loads((EXAMPLES / f"{example}.toml").read_text())["photodiode"]
    return device_of(read_settings("photodiode", merged(table, changes)), EXAMPLES)


def silicon(nodes: int | None = None) -> Device:
    """Device SI-1: on its own mesh, or with nodes at equal distances."""
    if nodes is None:
        return device("si-1")
    table = tomllib.loads((EXAMPLES / "si-1.toml").read_text())["photodiode"]
    return device_of(read_settings("photodiode", {**table, "mesh": {"nodes": nodes}}), EXAMPLES)


@functools.cache
def apd(coarsen: int = 1, ionisation: str = "cook", charge: float | None = None, columns: int = 0) -> Device:
    """The avalanche photodiode, with `coarsen` rows made one; `columns` 1 um apart, 0 for one axis."""
    table = tomllib.loads((EXAMPLES / "apd.toml").read_text())["photodiode"]
    layers = [dict(layer) for layer in table["layers"]]
    if charge is not None:
        next(layer for layer in layers if layer["name"] == "Charge")["n"] = charge
    sets = {"InP": ionisation, "InGaAsP": ionisation, "InGaAs": "pearsall"}
    changes = {"mesh": {"coarsen": coarsen}, "layers": layers, "ionisation": sets}
    if columns:
        changes |= {"columns": columns, "width": float(columns)}
    return device_of(read_settings("photodiode", merged(table, changes)), EXAMPLES)


def solved(device: Device, problem: Problem, *, ranks: int = 1, threads: int = 1) -> list[dict[str, float]]:
    """Observables after each step of a run, until it is over; with the state's bits as `state` on one rank."""
    model = photodiode(device, problem)

    def work(comm: Comm) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        layouts = model.layouts("slabs", comm.size)
        with mg.Engine(layouts, comm=comm, threads=threads) as engine:
            for slot, value in model.start_values():
                engine.set(slot, value)
            for register, value in model.registers.items():
                engine.write(register, value)
            for _ in range(problem.steps):
                outcome = engine.run(model.step)
                if not outcome.ok:
                    assert model.explain is not None
                    raise AssertionError(model.explain(engine))
                assert model.observe is not None
                engine.run(model.observe)
                row: dict[str, Any] = {name: engine.read(r) for name, r in model.observables.items()}  # type: ignore[arg-type]
                row["fields"] = {name: engine.gather(model.field(name)) for name in model.output}
                rows.append(row)
                if model.over is not None and engine.read(model.over.register):
                    break
        return rows

    return run_virtual(ranks, work)[0]


def digits(value: float, expected: str) -> bool:
    """Whether a number is the printed one, to all digits printed: within half a unit of the last, and a bit."""
    mantissa = expected.lower().partition("e")[0].lstrip("+-")
    places = len(mantissa.partition(".")[2])
    exponent = int(expected.lower().partition("e")[2] or 0)
    return abs(value - float(expected)) <= 0.51 * 10.0 ** (exponent - places)


def assert_digits(found: Sequence[float], expected: Sequence[str], *, also: float = 0.0) -> None:
    """All numbers to all digits; `also`: relative, beyond that."""
    for value, text in zip(found, expected, strict=True):
        assert digits(value, text) or abs(value / float(text) - 1.0) <= also, f"{value!r} is not {text}"
