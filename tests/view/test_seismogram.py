"""Pictures of what receivers recorded."""

from __future__ import annotations

import io

import numpy as np
import PIL.Image

from minga.output.traces import Recorded
from minga.view.seismogram import _panels, seismogram


def recorded(quantities: tuple[str, ...]) -> Recorded:
    """Four receivers on a line, 20 samples of noise."""
    positions = np.zeros((4, 3))
    positions[:, 2] = [0.0, 10.0, 0.0, 10.0]
    samples = np.random.default_rng(1).normal(size=(20, 4))
    return Recorded(samples, np.arange(20) * 0.01, positions, np.zeros((1, 3)), quantities)


def test_each_quantity_has_a_panel() -> None:
    found = _panels(recorded(("vz", "vz", "vx", "vx")))
    assert {name: columns.tolist() for name, columns in found.items()} == {"vz": [0, 1], "vx": [2, 3]}
    assert {name: len(columns) for name, columns in _panels(recorded(())).items()} == {"": 4}
    one, two = (PIL.Image.open(io.BytesIO(seismogram(recorded(q)))).width for q in ((), ("vz", "vz", "vx", "vx")))
    assert two > 1.3 * one
