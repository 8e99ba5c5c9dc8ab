"""Explicit methods that choose their steps inside the Program.

A rejected attempt leaves no trace, and since the largest error is a reduction, all ranks take the same steps.

Source: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, IV.2 (PI control).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from minga.compile.explain import Kernel
from minga.engine.program import Program
from minga.lang.elementary import clip, pow
from minga.lang.expr import as_node, cast, extreme, where
from minga.lang.functions import max as largest
from minga.solve.integrators.explicit import Recording
from minga.solve.integrators.stages import Stage
from minga.solve.integrators.workspace import Recorded, like, most, weighted
from minga.solve.rates import Rates, rates_kernel
from minga.space.field import TIME, Field, Register

__all__ = ["adaptive"]


class _Adaptive:
    """The recording of a method with an estimate of the error."""

    def __init__(
        self, name: str, order: int, stages: tuple[Stage, ...], weights: Mapping[str, float], program: Program,
        rates: Rates, fields: tuple[Field, ...],
    ) -> None:  # fmt: skip
        self.name, self.order, self.stages, self.weights = name, order, stages, weights
        self.program, self.rates, self.fields = program, rates, fields
        levels = ["a", *(stage.kept for stage in stages), *(each.target for stage in stages for each in stage.updates)]
        self.recording = Recording(name, program, rates, fields, levels)
        self.recording.work["k1"] = tuple(like(item, "k1", slots=2) for item in fields)

    def record(self, dt: float | Register | None, target: Register | None, tolerance: float) -> Recorded:
        """Record one accepted step of a length that the method chooses."""
        program, name, recording, slots = self.program, self.program.name, self.recording, self.recording.slots
        wish = Register(f"{name}.wish", initial=0.0 if dt is None or isinstance(dt, Register) else dt)
        start, h, rest, before = (Register(f"{name}.{word}") for word in ("start", "dt", "rest", "error_before"))
        fresh, done = Register(f"{name}.going", "i8"), Register(f"{name}.done", "i8")
        shrunk, factor = Register(f"{name}.shrunk", "i8"), Register(f"{name}.factor")
        program.let(start, TIME)
        with program.when(fresh.node == 0):
            norms = self.begin(tolerance)
            guess = where((norms.size < 1e-5) | (norms.slope < 1e-5), 1e-6, 0.01 * norms.size / norms.slope)
            program.let(wish, where(wish > 0.0, wish, guess))
            program.let(before, 1e-4)
            program.let(fresh, 1)
        program.let(rest, math.inf if target is None else target - start)
        near = rest <= wish * (1.0 + 1e-9)
        program.let(h, where(near, rest, where(rest < 2.0 * wish, 0.5 * rest, wish)))
        program.let(done, 0)
        program.let(shrunk, 0)
        with program.repeat(until=done > 0, limit=200, expected=1):
            with program.unchecked():
                program.apply(
                    self.first(),
                    slots("now"),
                    slots("k1"),
                    slots("a"),
                    dt=h,
                )
                for number, stage in enumerate(self.stages):
                    program.let(TIME, start + stage.time * h)
                    recording.stage(stage, number + 1, h)
                program.let(TIME, start + h)
                error = self.estimate(h, tolerance)
            self.control(error, start, h, wish, before, done, shrunk, factor)
        landed = h >= rest
        program.let(TIME, where(landed, start if target is None else target, start + h))
        program.rotate(*self.fields, *self.recording.work["k1"])
        return Recorded(self.recording.workspace, wish)

    def control(
        self, error: Register, start: Register, h: Register, wish: Register, before: Register, done: Register,
        shrunk: Register, factor: Register,
    ) -> None:  # fmt: skip
        """Record the decision on an attempt, and the length of the next one."""
        program, order = self.program, self.order
        beta = 0.04 if order == 5 else 0.08
        alpha = 1.0 / order - 0.75 * beta
        finite = (error >= 0.0) & (error < math.inf)
        safe = extreme("max", (where(finite, error, 1e10), 1e-10))
        good = finite & (error <= 1.0) & (start + h > start)  # or the time would stand still
        grown = 0.9 * pow(safe, -alpha) * pow(before, beta)
        highest = where(shrunk > 0, 1.0, 10.0)
        reduced = extreme("max", (0.2, 0.9 * pow(safe, -1.0 / order)))
        program.let(factor, where(good, extreme("min", (clip(grown, 0.2, 10.0), highest)), reduced))
        program.let(before, where(good, extreme("max", (safe, 1e-4)), before))
        # A step that was shortened to end at the target says nothing against the wish.
        longer = where(h < wish, extreme("max", (wish, h * factor)), h * factor)
        program.let(wish, where(good, where(shrunk > 0, h * factor, longer), h * factor))
        program.let(done, where(good, 1, 0))
        program.let(shrunk, where(good, shrunk, 1))
        program.let(h, where(good, h, h * factor))

    def begin(self, tolerance: float) -> Any:
        """Record the first rates, and the sizes of values and rates in units of the tolerance."""
        rates = self.rates

        def compute(state: list[Any], constants: list[Any], k: list[Any], **scalars: Any) -> dict[str, Any]:
            here = (0,) * len(state[0].axes)
            sizes: list[Any] = []
            slopes: list[Any] = []
            for u, target, value in zip(state, k, rates.function(state, constants, TIME, **scalars), strict=True):
                scale = tolerance * (1.0 + abs(u[here]))
                sizes.append(abs(u[here]) / scale)
                slopes.append(abs(as_node(value)) / scale)
                target[here] = cast(as_node(value), target.dtype)
            return {"size": largest(most(sizes)), "slope": largest(most(slopes))}

        kernel, slots = rates_kernel(compute, f"{self.name}-begin", rates, step=False), self.recording.slots
        rates.ready(self.program, slots("now"))
        return self.program.apply(kernel, slots("now"), rates.constants, slots("k1"), **rates.scalars)

    def first(self) -> Kernel:
        """Return the kernel of the first stage, whose rates are those of the end of the step before."""
        share = self.stages[0].time

        def first(state: list[Any], k: list[Any], out: list[Any], *, dt: Any) -> None:
            here = (0,) * len(state[0].axes)
            for u, rate, target in zip(state, k, out, strict=True):
                target[here] = cast(u[here] + (dt * share) * rate[here], target.dtype)

        return Kernel(first, name=f"{self.name}-1")

    def estimate(self, h: Register, tolerance: float) -> Register:
        """Record the rates at the end of the attempt, and the largest error in units of the tolerance."""
        rates, weights, count = self.rates, self.weights, len(self.fields)
        kept = [name for name in weights if name]

        def compute(
            state: list[Any], now: list[Any], others: list[Any], constants: list[Any], k: list[Any], **scalars: Any
        ) -> Any:
            here = (0,) * len(state[0].axes)
            h = scalars.pop("dt")
            errors = []
            for i, value in enumerate(rates.function(state, constants, TIME, **scalars)):
                terms = {name: others[kept.index(name) * count + i][here] for name in kept} | {"": value}
                error = h * weighted(weights, terms)
                size = extreme("max", (abs(now[i][here]), abs(state[i][here])))
                errors.append(abs(error) / (tolerance * (1.0 + size)))
                k[i][here] = cast(as_node(value), k[i].dtype)
            return largest(most(errors))

        kernel, slots = rates_kernel(compute, f"{self.name}-error", rates), self.recording.slots
        rates.ready(self.program, slots("next"))
        others = [slot for name in kept for slot in slots(name)]
        ends = [item.next for item in self.recording.work["k1"]]
        found = self.program.apply(
            kernel,
            slots("next"),
            slots("now"),
            others,
            rates.constants,
            ends,
            dt=h,
            **rates.scalars,
        )
        assert isinstance(found, Register)
        return found


def adaptive(
    name: str, order: int, stages: tuple[Stage, ...], weights: Mapping[str, float]
) -> Callable[..., Recorded]:  # fmt: skip
    """Return the function that records an accepted step."""

    def record(
        program: Program, rates: Rates, fields: tuple[Field, ...], dt: float | Register | None,
        target: Register | None, tolerance: float,
    ) -> Recorded:  # fmt: skip
        return _Adaptive(name, order, stages, weights, program, rates, fields).record(dt, target, tolerance)

    return record
