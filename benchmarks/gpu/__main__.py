"""python -m benchmarks.gpu [--quick] [--out FILE] [--table]: cell updates a second on a GPU, by each schedule.

It needs NumPy, llvmlite, CuPy and this repository, and no network. Each line is a whole run of the engine, from the
call in Python to its return; `device` goes by the device's own clock, from the first launch to the end of the last. The
bound is the bandwidth that a plain copy reaches here, over the bytes that a cell needs at least.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import minga as mg
from benchmarks.command import asked
from benchmarks.gpu.cases import CASES, Case
from benchmarks.gpu.multigrid import NAME, measured_solve
from benchmarks.gpu.report import markdown
from benchmarks.page import put_into_page
from minga.compile.ptx import Schedule, launch
from minga.engine.cupy_device import CupyDevice

SCHEDULES: tuple[Schedule, ...] = ("straight", "tile", "march")


@dataclass(frozen=True, slots=True)
class Line:
    """One case by one schedule. Rates in cell updates a second; `predicted`: what the bound allows."""

    case: str
    shape: tuple[int, ...]
    schedule: str
    same_as: str
    """A schedule with the same code; empty for none."""
    steps: int
    rate: float
    lowest: float
    highest: float
    device: float
    bytes: float
    predicted: float
    of_bound: float
    launch: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and store."""
    names = [*(case.name for case in CASES), NAME]
    options = asked("benchmarks.gpu", "Cell updates on a GPU", names, "gpu.json", table=True, arguments=arguments)
    if options.table:
        print(markdown(options.before()), end="")
        return 0
    bandwidth = copy_bandwidth(1 << (26 if options.quick else 31))
    device = CupyDevice()
    about = {"device": device.name, "memory": device.memory[1], "architecture": device.architecture, **versions()}
    print(f"{device.name}: a copy moves {bandwidth / 1e9:.0f} GB/s")
    lines = []
    for case in CASES:
        if case.name in options.only:
            lines += measured(case, bandwidth, quick=options.quick)
    solve = measured_solve(CupyDevice(), bandwidth, quick=options.quick) if NAME in options.only else None
    found: dict[str, Any] = {
        "about": about,
        "copy_bandwidth": bandwidth,
        "quick": options.quick,
        "lines": [asdict(x) for x in lines],
    }
    if solve is not None:
        found[NAME] = asdict(solve)
    if options.store(found):
        put_into_page("gpu", markdown(found))
    return 0


def measured(case: Case, bandwidth: float, *, quick: bool) -> list[Line]:
    """All schedules of a case, in turn; a schedule that gives the code of another is named so and measured again."""
    lines: list[Line] = []
    shape = case.small if quick else case.shape
    codes: dict[str, str] = {}
    for schedule in SCHEDULES:
        model = case.model(shape)
        code = case.code(model, schedule)
        same = next((name for name, other in codes.items() if other == code), "")
        codes[schedule] = code
        device = CupyDevice(schedule=schedule)
        with mg.Engine(model.layouts("single", 1), device=device) as engine:
            for slot, value in model.start_values():
                engine.set(slot, value)
            cells = case.cells_of(shape)
            steps = steps_for(lambda n, engine=engine, model=model: engine.run(model.step, n), quick)  # type: ignore[misc]
            seconds = []
            for _ in range(3 if quick else 5):
                began = time.perf_counter()
                assert engine.run(model.step, steps)
                seconds.append(time.perf_counter() - began)
            on_device = device.elapsed(lambda engine=engine, model=model, n=steps: engine.run(model.step, n)) / steps  # type: ignore[misc]
        median = statistics.median(seconds) / steps
        bound = bandwidth / case.bytes
        step = case.step(model)
        size = launch(step.graph, step.region.lo, step.region.hi, schedule=schedule)
        line = Line(
            case.name, tuple(shape), schedule, same, steps, cells / median, cells * steps / max(seconds),
            cells * steps / min(seconds), cells / on_device, case.bytes, bound, cells / median / bound,
            f"{size.grid} blocks of {size.block}",
        )  # fmt: skip
        lines.append(line)
        print(
            f"{case.name:10} {'x'.join(map(str, shape)):>16} {schedule:9} {line.rate / 1e9:8.2f}e9 cells/s "
            f"({line.lowest / 1e9:.2f} .. {line.highest / 1e9:.2f}), device {line.device / 1e9:.2f}e9, bound "
            f"{bound / 1e9:.2f}e9 at {case.bytes:g} B a cell: {100 * line.of_bound:.0f} %"
            + (f"  [code of {same!r}]" if same else "")
        )
    return lines


def steps_for(run: Callable[[int], object], quick: bool) -> int:
    """Steps that take about a quarter of a second, after a warm-up in which kernels are compiled."""
    run(2)
    began = time.perf_counter()
    run(4)
    step = (time.perf_counter() - began) / 4
    return 4 if quick else int(np.clip(0.25 / step, 4, 20_000))


def copy_bandwidth(size: int) -> float:
    """Bytes read and written a second by a copy within the device, the best of some."""
    import cupy

    a, b = cupy.zeros(size, cupy.uint8), cupy.empty(size, cupy.uint8)
    best = 0.0
    for _ in range(6):
        first, last = cupy.cuda.Event(), cupy.cuda.Event()
        first.record()
        for _ in range(4):
            b[...] = a
        last.record()
        last.synchronize()
        best = max(best, 4 * 2 * size / (cupy.cuda.get_elapsed_time(first, last) * 1e-3))
    del a, b
    cupy.get_default_memory_pool().free_all_blocks()
    return best


def versions() -> dict[str, Any]:
    """What the numbers depend on."""
    import cupy
    import llvmlite

    return {
        "cupy": cupy.__version__,
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "llvmlite": llvmlite.__version__,
        "python": sys.version.split()[0],
    }


if __name__ == "__main__":
    sys.exit(main())
