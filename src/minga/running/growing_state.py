"""Checkpoints of a run on an unbounded plane: its cells, whatever window they lie on, and the frames so far.

Blocks of a checkpoint belong to one grid, that of the first window; so the cells are put into it as the data of an
observer, and are restored on a window of their own.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.sparse import SparseValues
from minga.running.growing import Growing
from minga.running.observer import Observer
from minga.running.simulation import Simulation
from minga.space.box import Box

__all__ = ["GrowingState"]


class GrowingState(Observer):
    """Observer whose state is that of the plane.

    Parameters
    ----------
    growing
        The window of the run.
    """

    name = "plane"

    def __init__(self, growing: Growing) -> None:
        self._growing = growing
        self._simulation: Simulation

    def start(self, simulation: Simulation) -> None:
        """Note the run."""
        self._simulation = simulation

    def state(self) -> Any:
        """Return the window, the cells, the registers and the frames; collective."""
        stepper = self._simulation.stepper
        window = self._growing.growth.window
        return {
            "window": [list(window.lo), list(window.hi)],
            "values": _as_text(self._growing.values(stepper.state.changing)),
            "registers": {name: list(said) for name, said in stepper.state.registers(self._growing.engine).items()},
            "frames": {str(step): _as_text(values) for step, values in self._growing.frames.items()},
        }

    def resume(self, simulation: Simulation, state: Any) -> None:
        """Go on with the cells of a checkpoint."""
        low, high = state["window"]
        registers = {name: (str(dtype), int(bits)) for name, (dtype, bits) in state["registers"].items()}
        self._growing.replace(simulation, Box(tuple(low), tuple(high)), _of_text(state["values"]), registers)
        frames = {int(step): _of_text(values) for step, values in state["frames"].items()}
        self._growing.frames = {step: values for step, values in frames.items() if step <= self._growing.kept_until}


def _as_text(values: Mapping[str, SparseValues]) -> dict[str, list[Any]]:
    """Return values as data for JSON: the number of axes, the type, and compressed points and values."""
    return {
        name: [one.points.shape[1], one.values.dtype.str, *(_packed(part) for part in (one.points, one.values))]
        for name, one in values.items()
    }


def _of_text(data: Mapping[str, list[Any]]) -> dict[str, SparseValues]:
    found = {}
    for name, (axes, dtype, points, values) in data.items():
        places = np.frombuffer(_unpacked(points), "<i8").astype(np.int64).reshape(-1, axes)
        found[name] = SparseValues(places, np.frombuffer(_unpacked(values), dtype))
    return found


def _packed(array: NDArray[Any]) -> str:
    return base64.b64encode(zlib.compress(array.astype(array.dtype.newbyteorder("<")).tobytes())).decode()


def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))
