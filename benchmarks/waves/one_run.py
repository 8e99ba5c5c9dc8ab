"""One run in a process of its own: `python -m benchmarks.waves.one_run ORDER` prints what it took as JSON.

The clock starts at the first frame, step 0, when everything has been compiled and every library is loaded.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import minga as mg
from benchmarks.waves.arms import ARMS, Order
from benchmarks.waves.model import DT, PUBLIC
from minga.models.waves.boundary import Random
from minga.models.waves.model import fletcher
from minga.running.loop import drive
from minga.running.observers.finite import Finite

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def carry_out(order: Order) -> dict[str, Any]:
    """Do a run.

    Seconds: `compute` of the steps, `returned` until the program could end, `durable` until the disk has everything.
    Bytes: `base` before the first frame, `peak` from then on, where the system tells.
    """
    layer = 8 if order.size >= 48 else 4
    model = fletcher((order.size - 2 * layer,) * 3, dt=DT, medium=PUBLIC, boundary=Random(layer))
    with mg.Engine(mg.Layout.single(model.grid.box, 1), grid=model.grid) as engine:
        _warm_up(order, model, engine)
        arm = ARMS[order.arm](order, model)
        base, began = _memory("VmRSS"), time.perf_counter()

        def take(simulation: mg.Simulation) -> None:
            nonlocal base, began
            if simulation.step == 0:  # the initial values, which take more memory than frames do, are there
                _forget_peak()
                base, began = _memory("VmRSS"), time.perf_counter()
            arm.take(simulation.step, simulation.engine)

        frames = mg.observer(take, order.steps, start=True, end=True)
        result = drive(model, engine, order.steps * (order.frames - 1), [frames, Finite(order.steps)])
        computed = time.perf_counter() - began
        arm.close()
        returned = time.perf_counter() - began
        return {
            "compute": result.seconds, "left_solver": computed, "returned": returned,
            "durable": returned + arm.backlog, "base": base, "peak": _memory("VmHWM"), "counters": arm.counters,
        }  # fmt: skip


def _warm_up(order: Order, model: mg.Model, engine: mg.Engine) -> None:
    """Three frames of the same kind on a fast disk, thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        arm = ARMS[order.arm](replace(order, folder=folder, rate=1e12, depth=1e12, copy=0.0), model)
        take = mg.observer(lambda simulation: arm.take(simulation.step, simulation.engine), 2, start=True, end=True)
        drive(model, engine, 4, [take])
        arm.close()


def _forget_peak() -> None:
    """Begin anew with the most memory that this process has had."""
    with contextlib.suppress(OSError):
        CLEAR.write_text("5")


def _memory(key: str) -> int | None:
    """Bytes that the system has under this name for this process."""
    try:
        found = re.search(rf"^{key}:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def main(content: Mapping[str, Any]) -> None:
    print(json.dumps(carry_out(Order(**content))))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
