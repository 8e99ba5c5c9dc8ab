"""Explicit methods that choose their steps inside the Program.

A rejected attempt leaves no trace, and since the largest error is a reduction, all ranks take the same steps. The rates
at the beginning are computed anew for each step: whatever comes between two steps may have changed the fields, or what
the rates depend on.

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
from minga.solve.integrators.explicit import Recording
from minga.solve.integrators.stages import Stage
from minga.solve.integrators.workspace import Recorded, weighted
from minga.solve.permitted import PermittedErrors, sizes
from minga.solve.rates import Rates, rates_kernel
from minga.space.field import TIME, Field, Register

__all__ = ["adaptive", "first_step"]


class _Adaptive:
    """The recording of a method with an estimate of the error."""

    def __init__(
        self, name: str, order: int, stages: tuple[Stage, ...], weights: Mapping[str, float], program: Program,
        rates: Rates, fields: tuple[Field, ...], permitted: PermittedErrors,
    ) -> None:  # fmt: skip
        self.name, self.order, self.stages, self.weights = name, order, stages, weights
        self.program, self.rates, self.fields, self.permitted = program, rates, fields, permitted
        stored = [name for stage in stages for name in (stage.kept, *(each.target for each in stage.updates))]
        self.recording = Recording(name, program, rates, fields, ["a", "k1", *stored])

    def record(self, dt: float | Register | None, target: Register | None) -> Recorded:
        """Record one accepted step of a length that the method chooses."""
        program, name, recording, slots = self.program, self.program.name, self.recording, self.recording.slots
        wish = Register(f"{name}.wish", initial=0.0 if dt is None or isinstance(dt, Register) else dt)
        start, h, rest, before = (Register(f"{name}.{word}") for word in ("start", "dt", "rest", "error_before"))
        fresh, done = Register(f"{name}.going", "i8"), Register(f"{name}.done", "i8")
        shrunk, factor = Register(f"{name}.shrunk", "i8"), Register(f"{name}.factor")
        error = Register(f"{name}.error")
        program.let(start, TIME)
        found = self.begin()
        self.permitted.see(program, found, "size")
        with program.when(fresh.node == 0):
            program.let(wish, where(wish > 0.0, wish, first_step(self.permitted.fastest(found, "rate"))))
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
                self.estimate(h, error)
            self.control(error, start, h, wish, before, done, shrunk, factor)
        landed = h >= rest
        program.let(TIME, where(landed, start if target is None else target, start + h))
        program.rotate(*self.fields)
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

    def begin(self) -> Any:
        """Record the rates at the beginning, and the sizes of values and rates."""
        rates = self.rates

        def compute(state: list[Any], constants: list[Any], k: list[Any], **scalars: Any) -> dict[str, Any]:
            here = (0,) * len(state[0].axes)
            values = [as_node(value) for value in rates.function(state, constants, TIME, **scalars)]
            for target, value in zip(k, values, strict=True):
                target[here] = cast(value, target.dtype)
            return sizes("size", [u[here] for u in state]) | sizes("rate", values)

        kernel, slots = rates_kernel(compute, f"{self.name}-begin", rates, step=False), self.recording.slots
        rates.ready(self.program, slots("now"))
        return self.program.apply(kernel, slots("now"), rates.constants, slots("k1"), **rates.scalars)

    def first(self) -> Kernel:
        """Return the kernel of the first stage, whose rates are known."""
        share = self.stages[0].time

        def first(state: list[Any], k: list[Any], out: list[Any], *, dt: Any) -> None:
            here = (0,) * len(state[0].axes)
            for u, rate, target in zip(state, k, out, strict=True):
                target[here] = cast(u[here] + (dt * share) * rate[here], target.dtype)

        return Kernel(first, name=f"{self.name}-1")

    def estimate(self, h: Register, error: Register) -> None:
        """Record the largest error of the attempt in units of the permitted one, from the rates at its end."""
        rates, weights, count = self.rates, self.weights, len(self.fields)
        kept = [name for name in weights if name]

        def compute(state: list[Any], others: list[Any], constants: list[Any], **scalars: Any) -> dict[str, Any]:
            here = (0,) * len(state[0].axes)
            h = scalars.pop("dt")
            errors = []
            for i, value in enumerate(rates.function(state, constants, TIME, **scalars)):
                terms = {name: others[kept.index(name) * count + i][here] for name in kept} | {"": value}
                errors.append(h * weighted(weights, terms))
            return sizes("error", errors) | sizes("size", [u[here] for u in state])

        kernel, slots = rates_kernel(compute, f"{self.name}-error", rates), self.recording.slots
        rates.ready(self.program, slots("next"))
        others = [slot for name in kept for slot in slots(name)]
        found = self.program.apply(kernel, slots("next"), others, rates.constants, dt=h, **rates.scalars)
        self.program.let(error, self.permitted.share(found, "error", "size"))


def first_step(fastest: Any) -> Any:
    """Return the length of the first step: a hundredth of the time in which values change by themselves."""
    return where(fastest > 0.0, 0.01 / where(fastest > 0.0, fastest, 1.0), 1e-6)


def adaptive(
    name: str, order: int, stages: tuple[Stage, ...], weights: Mapping[str, float]
) -> Callable[..., Recorded]:  # fmt: skip
    """Return the function that records an accepted step."""

    def record(
        program: Program, rates: Rates, fields: tuple[Field, ...], dt: float | Register | None,
        target: Register | None, permitted: PermittedErrors,
    ) -> Recorded:  # fmt: skip
        return _Adaptive(name, order, stages, weights, program, rates, fields, permitted).record(dt, target)

    return record
