"""Devices and curves that tests of photodiodes share."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
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


def table(example: str) -> dict[str, Any]:
    """The table of an example."""
    found: dict[str, Any] = tomllib.loads((EXAMPLES / f"{example}.toml").read_text())["photodiode"]
    return found


def device(example: str, **changes: Any) -> Device:
    """The device of an example, with other settings in its table."""
    return device_of(read_settings("photodiode", merged(table(example), changes)), EXAMPLES)


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


def graded_half(length: float, cap: float, first: float) -> Floats:
    """Positions from 0 to `length`, whose distances grow by 1.1 from `first` up to `cap`, scaled to end there."""
    found, step = [0.0], first
    while found[-1] < length * (1.0 - 1e-12):
        found.append(found[-1] + step)
        step = min(1.1 * step, cap)
    return np.array(found) * (length / found[-1])


def junction(tau: float = 1e-8) -> Device:
    """Device AC-1: a silicon p+n diode of 101 um."""
    left, right = graded_half(1.0, 0.02, 1e-3), graded_half(100.0, 0.2, 1e-3)
    positions = np.concatenate((1.0 - left[::-1], 1.0 + right[1:]))
    layers = [
        {"name": name, "material": "Si", "thickness": thick, "tau_n": tau, "tau_p": tau, **doping}
        for name, thick, doping in (("p", 1.0, {"p": 1e18}), ("n", 100.0, {"n": 1e15}))
    ]
    table = {
        "bias": [0.0], "recombination": ["srh"], "contacts": {"anode": "ohmic", "cathode": "ohmic"},
        "mesh": {"positions": [float(f"{value:.15g}") for value in positions]}, "layers": layers,
    }  # fmt: skip
    return device_of(read_settings("photodiode", table), EXAMPLES)


def absorbing_pin() -> Device:
    """Device PIN-A: 1e20 pairs in the middle layer, of InGaAs with speeds that saturate at 1e7 cm/s."""
    parts = [np.concatenate((graded_half(0.5 * t, 0.01, 5e-4), t - graded_half(0.5 * t, 0.01, 5e-4)[-2::-1]))
             for t in (0.5, 1.0, 0.5)]  # fmt: skip
    positions = np.concatenate((parts[0], 0.5 + parts[1][1:], 1.5 + parts[2][1:]))
    layers = [
        {"name": name, "material": "InGaAs", "thickness": t, "tau_n": 1e-7, "tau_p": 1e-7, **doping}
        for name, t, doping in (("p", 0.5, {"p": 1e18}), ("i", 1.0, {"n": 1e15}), ("n", 0.5, {"n": 1e18}))
    ]
    table = {
        "bias": [0.0], "recombination": ["srh"], "contacts": {"anode": "ohmic", "cathode": "ohmic"},
        "mesh": {"positions": [float(f"{value:.15g}") for value in positions]}, "layers": layers,
    }  # fmt: skip
    made = device_of(read_settings("photodiode", table), EXAMPLES)
    x, ones = 1e4 * made.nodes[0], np.ones(made.grid.shape)
    faces = np.concatenate(([0.0], 0.5 * (x[1:] + x[:-1]), [2.0]))
    share = (np.minimum(faces[1:], 1.5) - np.maximum(faces[:-1], 0.5)).clip(0.0) / np.diff(faces)
    return replace(
        made, generation=1e20 * share, field_mobility=True, velocity_n=1e7 * ones, velocity_p=1e7 * ones,
        exponent_n=ones, exponent_p=ones,
    )  # fmt: skip


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
                row: dict[str, Any] = {
                    name: [engine.read(one) for one in item] if isinstance(item, tuple) else engine.read(item)
                    for name, item in model.observables.items()
                }
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
