"""Devices and runs that tests of transients share."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray
from numpy.typing import NDArray

import minga as mg
from minga.case.load import read_settings
from minga.engine.comm import Comm, run_virtual
from minga.models.photodiode.case import device_of
from minga.models.photodiode.solver.circuit import Circuit
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.transients.model import transient
from minga.models.photodiode.transients.problem import Transient
from minga.output.checkpoint.keeper import Checkpointing

Floats = NDArray[np.float64]
PHYSICS = Problem((0.0,), ionisation=False)
COARSE = [
    {"material": "InGaAs", "thickness": thickness} | doping
    for thickness, doping in ((0.2, {"p": 1e17}), (0.6, {"n": 1e15}), (0.2, {"n": 1e17}))
]
"""Layers of the device `coarse`."""


def grown(first: float, growth: float, cap: float, length: float) -> Floats:
    """Nodes whose spacings grow from 0 up to a length, to which they are scaled."""
    places, spacing = [0.0], first
    while places[-1] < length * (1.0 - 1e-12):
        places.append(places[-1] + spacing)
        spacing = min(spacing * growth, cap)
    return np.array(places) * (length / places[-1])


def stack(layers: Sequence[dict[str, Any]], places: Floats, **options: Any) -> Device:
    """A device with nodes at given places, cm."""
    table = {
        "layers": list(layers),
        "contacts": {"anode": "ohmic", "cathode": "ohmic"},
        "mesh": {"positions": [1e4 * float(x) for x in places]},
        "recombination": ["srh"],
    }
    return device_of(read_settings("photodiode", {**table, **options}), Path())


@functools.cache
def pin_a() -> Device:
    """Device PIN-A: In0.53Ga0.47As, p 1e18 0.5 um, n 1e15 1 um, n 1e18 0.5 um; 1e20 pairs in the middle layer."""
    parts = [grown(5e-8, 1.1, 1e-6, 0.5 * length) for length in (0.5e-4, 1e-4, 0.5e-4)]
    places = np.zeros(1)
    for half in parts:
        layer = np.concatenate((half, 2.0 * half[-1] - half[-2::-1]))
        places = np.concatenate((places, places[-1] + layer[1:]))
    layers = [
        {"material": "InGaAs", "thickness": thickness} | doping
        for thickness, doping in ((0.5, {"p": 1e18}), (1.0, {"n": 1e15}), (0.5, {"n": 1e18}))
    ]
    device = stack(layers, places, mobility="field")
    lengths = np.diff(device.nodes[0])
    middle = np.where((device.nodes[0][:-1] > 0.5e-4 - 1e-11) & (device.nodes[0][1:] < 1.5e-4 + 1e-11), lengths, 0.0)
    share = np.zeros(device.grid.shape)
    share[:-1] += 0.5 * middle
    share[1:] += 0.5 * middle
    return replace(device, generation=1e20 * share / device.volumes)


@functools.cache
def ac_1(lifetime: float = 1e-8) -> Device:
    """Device AC-1: silicon, p 1e18 1 um, n 1e15 100 um."""
    p, n = grown(1e-7, 1.1, 2e-6, 1e-4), grown(1e-7, 1.1, 2e-5, 1e-2)
    places = np.concatenate((1e-4 - p[::-1], 1e-4 + n[1:]))
    layers = [
        {"material": "Si", "thickness": thickness, "tau_n": lifetime, "tau_p": lifetime} | doping
        for thickness, doping in ((1.0, {"p": 1e18}), (100.0, {"n": 1e15}))
    ]
    return stack(layers, places)


@functools.cache
def coarse(**options: Any) -> Device:
    """A p-i-n diode of few nodes with light in its middle layer."""
    device = stack(COARSE, np.linspace(0.0, 1e-4, 51), **options)
    return replace(device, generation=np.where(device.layer == 1, 1e20, 0.0))


@functools.cache
def window(symmetry: str = "plane", columns: int = 8) -> Device:
    """A p region of few nodes under an anode that covers a part of the surface, with light above the substrate."""
    table = {
        "width": 2.0,
        "columns": columns,
        "symmetry": symmetry,
        "mesh": {"nodes": 25},
        "recombination": ["srh"],
        "contacts": {"anode": {"y": [0.0, 0.8]}, "cathode": "ohmic"},
        "regions": [{"name": "p", "x": [0.0, 0.3], "y": [0.0, 1.0], "doping": -1e17}],
        "layers": [
            {"material": "InGaAs", "thickness": 0.9, "n": 5e15},
            {"material": "InGaAs", "thickness": 0.3, "n": 1e17},
        ],
    }
    device = device_of(read_settings("photodiode", table), Path())
    return replace(device, generation=np.where(device.layer == 0, 1e21, 0.0))


@functools.cache
def wide(symmetry: str = "plane", **options: Any) -> Device:
    """The device `coarse` with three nodes across."""
    device = stack(COARSE, np.linspace(0.0, 1e-4, 51), width=2.0, columns=3, symmetry=symmetry, **options)
    return replace(device, generation=np.where(device.layer == 1, 1e20, 0.0))


def loaded(load: float = 0.0, inductance: float = 0.0, pad: float = 0.0) -> Circuit:
    """A circuit of a device of 1 cm2."""
    return Circuit(1.0, load, pad=pad, inductance=inductance)


def followed(
    device: Device, what: Transient, stops: Sequence[float] = (), *, physics: Problem = PHYSICS, ranks: int = 1,
    threads: int = 1, fields: bool = False, most: int = 1_000_000,
) -> list[dict[str, Any]]:  # fmt: skip
    """Observables of the steady state and after each of `most` steps or less, which also end at the given times."""
    model = transient(device, physics, what)
    assert model.clock is not None
    target, observe, over = model.clock.target, model.observe, model.over
    assert target is not None
    assert observe is not None
    assert over is not None

    def work(comm: Comm) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        with mg.Engine(model.layouts("slabs", comm.size), comm=comm, threads=threads) as engine:
            for slot, value in model.start_values():
                engine.set(slot, value)
            for register, start in model.registers.items():
                engine.write(register, start)
            while not rows or (not engine.read(over.register) and len(rows) <= most):
                now = rows[-1]["t"] if rows else -1.0
                engine.write(target, next((stop for stop in stops if stop > now), math.inf))
                outcome = engine.run(model.step)
                if not outcome.ok:
                    assert model.explain is not None
                    raise model.explain(engine) or AssertionError(outcome)
                engine.run(observe)
                row: dict[str, Any] = {name: engine.read(r) for name, r in model.observables.items()}  # type: ignore[arg-type]
                if fields:
                    row["fields"] = {name: engine.gather(model.field(name)) for name in model.output}
                rows.append(row)
        return rows

    return run_virtual(ranks, work)[0]


def at(rows: Sequence[dict[str, Any]], time: float) -> dict[str, Any]:
    """The row at this time, but for rounding."""
    return next(row for row in rows if math.isclose(row["t"], time, rel_tol=1e-12))


def step(before: float, after: float, time: float = 0.0) -> tuple[tuple[float, float], tuple[float, float]]:
    """Times and values of a jump."""
    return (time, time), (before, after)


def assert_same_bits(one: Sequence[dict[str, Any]], two: Sequence[dict[str, Any]]) -> None:
    """Assert that what `followed` returned with `fields` is the same to the last bit."""
    for row, other in zip(one, two, strict=True):
        fields, others = row.pop("fields"), other.pop("fields")
        assert row == other
        for name, values in fields.items():
            assert values.tobytes() == others[name].tobytes(), name


def interrupted(model: mg.Model, out: Path, *, every: int, steps: int) -> xarray.Dataset:
    """Assert that a run that ends after some steps and is resumed has the bits of a whole one, which is returned."""
    whole = mg.run(model)
    kept: dict[str, Any] = {"out": out, "checkpoint": Checkpointing(steps=every, at_end=True)}
    mg.run(model, steps=steps, **kept)
    rest = mg.run(model, resume=True, **kept)
    assert rest.attrs["digest"] == whole.attrs["digest"]
    for name in ("t", "J", "V", "charge"):
        assert rest[name].values.tobytes() == whole[name].values.tobytes()
    return whole
