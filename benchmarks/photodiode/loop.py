"""The same iterations of the pointwise scheme in the native loop, interpreted by Python, and driven by Python."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.photodiode.ours import apd
from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.models.photodiode.pointwise import kernels
from minga.models.photodiode.pointwise.scheme import Curve
from minga.models.photodiode.pointwise.setup import Pointwise, Setup
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.structure.device import Device
from minga.space.layout import Layout

VOLTS = -60.0
COARSEN = (20, 5, 1)
ITERATIONS, ROUNDS = 1000, 5


class Iterations:
    """The lit curve of a device: `begin` sets the voltage, `many` iterates, `one` is a single iteration."""

    def __init__(self, device: Device, iterations: int) -> None:
        self.device, self.iterations = device, iterations
        how = Pointwise(tolerance=1e-300, limit=iterations)  # as long as the limit says
        coefficients, setup = Coefficients(device), Setup.of(device, how)
        self.curve = curve = Curve.of("lit", device, coefficients, setup, False, how)
        self.values = {**coefficients.values, **setup.values, **curve.initial(device)}
        self.begin, self.many, self.one = Program("begin"), Program("many"), Program("one")
        change = VOLTS / device.thermal_voltage
        self.begin.apply(kernels.ramp(), curve.state[0].now, setup.share, change=change)
        self.begin.let(curve.iterations, 0)
        self.begin.let(curve.change, float("inf"))
        with self.many.repeat(until=curve.change < how.tolerance, limit=how.limit):
            self._record(self.many)
        self._record(self.one)

    def _record(self, program: Program) -> None:
        self.curve.iteration(program)
        program.let(self.curve.iterations, self.curve.iterations + 1)

    def in_a_loop(self, engine: Engine) -> None:
        """All iterations and tests in one Program."""
        engine.run(self.many)

    def driven(self, engine: Engine) -> None:
        """Python asks after every iteration whether it was the last."""
        change, how = self.curve.change, self.curve.how
        for _ in range(how.limit):
            engine.run(self.one)
            if engine.read(change) < how.tolerance:
                return

    def engine(self, native: bool) -> Engine:
        grid = self.device.grid
        return Engine({grid: Layout.single(grid.box, 1)}, threads=1, native=native)

    def time(self, way: Callable[[Engine], None], native: bool, rounds: int) -> tuple[float, np.ndarray]:
        """The least seconds of processor time an iteration, and the bits that it comes to."""
        least = float("inf")
        with self.engine(native) as engine:
            for _ in range(rounds + 1):  # the first one compiles
                for item, value in self.values.items():
                    engine.set(item, value)
                assert engine.run(self.begin).ok
                began = time.process_time()
                way(engine)
                least = min(least, time.process_time() - began)
                assert engine.read(self.curve.iterations) == self.iterations
            state = np.array([engine.gather(item.now) for item in self.curve.state])
        return least / self.iterations, state


def measure_loop(quick: bool) -> dict[str, Any]:
    """Microseconds an iteration each way, by the number of rows."""
    iterations, rounds = (6, 1) if quick else (ITERATIONS, ROUNDS)
    rows = []
    for coarsen in COARSEN[:1] if quick else COARSEN:
        work = Iterations(apd(coarsen), iterations)
        found = {
            "native": work.time(work.in_a_loop, True, rounds),
            "interpreted": work.time(work.in_a_loop, False, rounds),
            "driven": work.time(work.driven, True, rounds),
        }
        same = all(np.array_equal(state, found["native"][1]) for _, state in found.values())
        rows.append(
            {"rows": work.device.grid.shape[0], "same_bits": same}
            | {name: round(1e6 * seconds, 3) for name, (seconds, _) in found.items()}
        )
    return {"volts": VOLTS, "iterations": iterations, "rows": rows}
