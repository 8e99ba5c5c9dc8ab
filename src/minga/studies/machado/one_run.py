"""One run in a process of its own, which prints its times as JSON: ``python -m minga.studies.machado.one_run ORDER``.

The clock starts at the first frame, step 0, when everything has been compiled and every library is loaded.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.models.waves.boundary import Random
from minga.models.waves.medium import Medium
from minga.models.waves.model import fletcher
from minga.models.waves.source import PointSource
from minga.running.loop import drive
from minga.running.observer import observer
from minga.running.observers.finite import Finite
from minga.running.simulation import Simulation
from minga.space.layout import Layout
from minga.studies.machado.arms import ARMS, Order

__all__ = ["DT", "PUBLIC", "SOURCE", "carry_out"]

PUBLIC: Final = Medium(vp=3000.0, epsilon=0.24, delta=0.10, theta=math.pi / 4, phi=1.0)
"""The homogeneous TTI medium of the public codes."""
DT: Final = 0.001
"""Time step of the public codes, in s."""
SOURCE: Final = PointSource(injection="legacy")
"""A source as in the public codes, in the middle."""
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def carry_out(order: Order) -> dict[str, Any]:
    """Do a run.

    Returns
    -------
    dict
        Seconds: `compute` of the steps, `returned` until the program could end, `durable` until the disk has
        everything. Bytes: `base` before the first frame, `peak` from then on, where the system tells them.
    """
    layer = 8 if order.size >= 48 else 4
    model = fletcher((order.size - 2 * layer,) * 3, dt=DT, medium=PUBLIC, boundary=Random(layer), sources=[SOURCE])
    with Engine(Layout.single(model.grid.box, 1), grid=model.grid) as engine:
        _warm_up(order, model, engine)
        arm = ARMS[order.arm](order, model)
        base, began = _memory("VmRSS"), time.perf_counter()

        def take(simulation: Simulation) -> None:
            nonlocal base, began
            if simulation.step == 0:  # the initial values, which take more memory than frames do, are there
                _forget_peak()
                base, began = _memory("VmRSS"), time.perf_counter()
            arm.take(simulation.step, simulation.engine)

        frames = observer(take, order.steps, start=True, end=True)
        result = drive(model, engine, order.steps * (order.frames - 1), [frames, Finite(order.steps)])
        computed = time.perf_counter() - began
        arm.close()
        returned = time.perf_counter() - began
        return {
            "compute": result.seconds, "left_solver": computed, "returned": returned,
            "durable": returned + arm.backlog, "base": base, "peak": _memory("VmHWM"), "counters": arm.counters,
        }  # fmt: skip


def _warm_up(order: Order, model: Model, engine: Engine) -> None:
    """Write three frames of the same kind to a fast disk, and throw them away."""
    with tempfile.TemporaryDirectory() as folder:
        arm = ARMS[order.arm](replace(order, folder=folder, rate=1e12, depth=1e12, copy=0.0), model)
        take = observer(lambda simulation: arm.take(simulation.step, simulation.engine), 2, start=True, end=True)
        drive(model, engine, 4, [take])
        arm.close()


def _forget_peak() -> None:
    """Restart the system's record of the most memory that this process has had."""
    with contextlib.suppress(OSError):
        _CLEAR.write_text("5")


def _memory(key: str) -> int | None:
    """Return the bytes that the system has under this name for this process."""
    try:
        found = re.search(rf"^{key}:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


if __name__ == "__main__":
    print(json.dumps(carry_out(Order(**json.loads(sys.argv[1])))))
