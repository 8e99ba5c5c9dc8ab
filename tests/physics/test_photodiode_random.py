"""Random layered devices: every one is solved from forward bias to breakdown, or refused with a layer that is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minga.case.load import read_settings
from minga.models.photodiode.case import device_of
from minga.models.photodiode.solver.failures import floating_layers
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.device import Device

from .photodiodes import EXAMPLES, solved

FAMILIES = (("Si",), ("InP", "InGaAs", "InGaAsP"))
FORWARD = (0.0, 0.3, 0.6, 0.9)
REVERSE = (0.0, -1.0, -3.0, -10.0, -20.0, -40.0, -80.0, -160.0, -320.0)
BATCH = 10


def random_device(seed: int) -> Device:
    """Two to six layers of one family, doped ones at the ends, with random physics."""
    draw = np.random.default_rng(seed)
    family = FAMILIES[int(draw.random() < 0.6)]
    count = int(draw.integers(2, 7))
    layers: list[dict[str, Any]] = []
    for k in range(count):
        end = k in (0, count - 1)
        material = family[int(draw.integers(len(family)))]
        layer: dict[str, Any] = {"name": f"layer {k}", "material": material}
        layer["thickness"] = float(10.0 ** draw.uniform(-1.3, 0.5))
        kind = "p" if k == 0 or (not end and draw.random() < 0.4) else "n"
        layer[kind] = float(10.0 ** draw.uniform(17.0 if end else 14.0, 18.7))
        if material == "InGaAsP":
            layer["y"] = float(draw.uniform(0.1, 0.9))
        layers.append(layer)
    table = {
        "bias": [0.0], "layers": layers, "contacts": {"anode": "ohmic", "cathode": "ohmic"},
        "mesh": {"graded": {"first": "1 nm", "growth": 1.2, "cap": "30 nm"}},
        "statistics": "fermi-dirac" if draw.random() < 0.3 else "boltzmann",
        "mobility": ("constant", "doping", "doping-field")[int(draw.integers(3))],
        "emission": bool(draw.random() < 0.3),
    }  # fmt: skip
    return device_of(read_settings("photodiode", table), EXAMPLES)


def tried(device: Device, problem: Problem) -> tuple[list[dict[str, Any]], str | None]:
    """The curve of a device, or the explanation of a failure."""
    try:
        return solved(device, problem), None
    except AssertionError as error:
        return [], str(error)


def check(seed: int) -> bool:
    """Solve a device in both directions; return True if both curves reach their ends."""
    device = random_device(seed)
    reached = True
    for biases in (FORWARD, REVERSE):
        rows, problem = tried(device, Problem(biases, ionisation=True))
        if problem is not None:
            assert "at: layer 'layer " in problem
            assert floating_layers(device) or "multiplies the current" in problem, f"seed {seed}: {problem}"
            reached = False
            continue
        currents = [row["J"] for row in rows]
        assert np.isfinite(currents).all()
        sign = 1.0 if biases is FORWARD else -1.0
        assert all(sign * current > 0.0 for current in currents[1:]), f"seed {seed}: {currents}"
        if biases is REVERSE:
            assert rows[-1]["V"] == REVERSE[-1] or rows[-1]["breakdown"] < 0.0
    return reached


@pytest.mark.parametrize("seed", [1, 13])
def test_a_random_device(seed: int) -> None:
    assert check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, BATCH))
def test_random_devices(first: int) -> None:
    reached = [check(seed) for seed in range(first, first + BATCH)]
    assert sum(reached) >= BATCH // 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 5, 10, 15, 17])
def test_schemes_agree_on_random_devices(seed: int) -> None:
    device = random_device(seed)
    biases = (0.0, 0.4, -2.0)
    newton = solved(device, Problem(biases, ionisation=False))
    gummel = solved(device, Problem(biases, ionisation=False, scheme="gummel"))
    for one, other in zip(newton[1:], gummel[1:], strict=True):
        assert other["J"] == pytest.approx(one["J"], rel=1e-5, abs=1e-12)
