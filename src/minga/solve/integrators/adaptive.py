"""Explicit methods that choose their steps inside the Program.

The rates at the beginning are computed anew for each step: whatever comes between two steps may have changed the
fields, or what the rates depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minga.compile.explain import Kernel
from minga.engine.program import Program
from minga.lang.elementary import pow
from minga.lang.expr import Node, as_node, cast, extreme
from minga.solve.integrators.explicit import Recording
from minga.solve.integrators.stages import Stage
from minga.solve.integrators.step_control import StepControl
from minga.solve.integrators.workspace import Recorded, weighted
from minga.solve.permitted import PermittedErrors, sizes
from minga.solve.rates import Rates, rates_kernel
from minga.space.field import TIME, Field, Register

__all__ = ["adaptive"]


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
        program, recording, slots = self.program, self.recording, self.recording.slots
        h = Register(f"{program.name}.dt")
        control = StepControl(program, h, dt, target)
        beta = 0.04 if self.order == 5 else 0.08
        program.let(control.start, TIME)
        found = self.begin()
        self.permitted.see(program, found, "size")
        control.begin(self.permitted.fastest(found, "rate"), 1e-4)
        with control.attempts():
            with program.unchecked():
                program.apply(self.first(), slots("now"), slots("k1"), slots("a"), dt=h)
                for number, stage in enumerate(self.stages):
                    program.let(TIME, control.start + stage.time * h)
                    recording.stage(stage, number + 1, h)
                program.let(TIME, control.start + h)
                self.estimate(h, control.error)
            control.decide(1.0 / self.order - 0.75 * beta, beta, 10.0, self.reduced)
        control.end()
        program.rotate(*self.fields)
        return Recorded(self.recording.workspace, control.wish)

    def reduced(self, error: Node) -> Node:
        """Return the factor by which a rejected attempt is shortened."""
        return extreme("max", (0.2, 0.9 * pow(error, -1.0 / self.order)))

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
