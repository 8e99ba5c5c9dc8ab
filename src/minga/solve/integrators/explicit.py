"""Explicit methods with steps of a given length: each stage is a kernel of rates and of all that is made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.expr import as_node, cast, where
from minga.solve.integrators.stages import Stage
from minga.solve.integrators.workspace import Recorded, like, weighted
from minga.solve.rates import Rates, rates_kernel
from minga.space.field import STEP, TIME, Field, Register, Slot

__all__ = ["Given", "Kicks", "Recording", "explicit", "length"]

Kicks = Callable[[Any, Sequence[Any], Sequence[Any]], Sequence[Any]]
"""Returns what noise adds to each field: from the length of the step, the cells and the amplitudes."""


class Recording:
    """The recording of the stages of one method for some fields."""

    def __init__(
        self, name: str, program: Program, rates: Rates, fields: tuple[Field, ...], levels: Sequence[str],
        kicks: Kicks | None = None,
    ) -> None:  # fmt: skip
        self.name, self.program, self.rates, self.fields, self.kicks = name, program, rates, fields, kicks
        names = sorted(set(levels) - {"now", "next"})
        self.work = {level: tuple(like(item, level) for item in fields) for level in names}

    def slots(self, level: str) -> tuple[Slot, ...]:
        """Return the slots of a level, one for each field."""
        if level in ("now", "next"):
            return tuple(item.now if level == "now" else item.next for item in self.fields)
        return tuple(item.now for item in self.work[level])

    @property
    def workspace(self) -> tuple[Field, ...]:
        """All fields of the workspace."""
        return tuple(item for group in self.work.values() for item in group)

    def stage(self, stage: Stage, number: int, dt: object) -> None:
        """Record one stage: a kernel that computes the rates and all that is stored from them."""
        names = [name for update in stage.updates for name in (*update.levels, *update.rates)]
        targets = [update.target for update in stage.updates] + ([stage.kept] if stage.kept else [])
        sources = [name for name in dict.fromkeys(names) if name != stage.at and name not in targets]
        count, rates = len(self.fields), self.rates

        def compute(state: list[Any], others: list[Any], constants: list[Any], out: list[Any], **scalars: Any) -> None:
            here = (0,) * len(state[0].axes)
            h = scalars.pop("dt")
            f = rates.function(state, constants, TIME, **scalars)
            noise = None if rates.noise is None else rates.noise(state, constants, TIME, **scalars)

            def level(name: str, i: int) -> Any:
                if name == stage.at:
                    return state[i][here]
                if name in targets:
                    return out[targets.index(name) * count + i][here]
                return others[sources.index(name) * count + i][here]

            values: list[Any] = []
            kicks = None if noise is None or self.kicks is None else self.kicks(h, state, noise)
            for update in stage.updates:
                for i in range(count):
                    known = {name: level(name, i) for name in (*update.levels, *update.rates)} | {"": f[i]}
                    total = h * weighted({"": update.rate, **update.rates}, known)
                    if update.levels:
                        total = weighted(update.levels, known) + total
                    if kicks is not None and kicks[i] is not None:
                        total = total + kicks[i]
                    values.append(total)
            values += list(f) if stage.kept else []
            for target, value in zip(out, values, strict=True):
                target[here] = cast(as_node(value), target.dtype)

        outs = [slot for name in targets for slot in self.slots(name)]
        others = [slot for name in sources for slot in self.slots(name)]
        rates.ready(self.program, self.slots(stage.at))
        kernel = rates_kernel(compute, f"{self.name}-{number + 1}", rates)
        self.program.apply(
            kernel, self.slots(stage.at), others, rates.constants, outs, dt=dt, **rates.scalars
        )  # fmt: skip


class Given:
    """A step of a given length: the times of its stages, and its end.

    The time is that of an origin plus a number of steps times the length, rounded once. The number begins again, and
    the origin is the present time, whenever something else has changed the time or the length.
    """

    def __init__(self, program: Program, dt: float | Register) -> None:
        self.program, self.dt = program, dt
        self.count = Register(f"{program.name}.count", "i8")
        self.origin = Register(f"{program.name}.origin")
        self.before = Register(f"{program.name}.end")
        again = self.before == TIME
        if isinstance(dt, Register):
            length = Register(f"{program.name}.length")
            again = again & (dt == length)
        program.let(self.count, where(again, self.count, 0))
        program.let(self.origin, where(again, self.origin, TIME))
        if isinstance(dt, Register):
            program.let(length, dt)

    def set(self, share: float) -> None:
        """Record that the time is that of a fraction of the step."""
        self.program.let(TIME, self.origin + (cast(self.count, "f8") + share) * self.dt)

    def end(self) -> None:
        """Record that the time is that of the end of the step."""
        self.set(1.0)
        self.program.let(self.count, self.count + 1)
        self.program.let(self.before, TIME)


def length(name: str, dt: float | Register | None) -> float | Register:
    """Return the length of the steps; raise ProgramError if there is none."""
    if dt is None:
        raise ProgramError(f"integrator {name!r} needs dt", remedy="give a number, or a register")
    return dt


def explicit(name: str, stages: tuple[Stage, ...], kicks: Kicks | None = None) -> Callable[..., Recorded]:
    """Return the function that records a step of a given length."""

    def record(
        program: Program, rates: Rates, fields: tuple[Field, ...], dt: float | Register | None, **_: object
    ) -> Recorded:  # fmt: skip
        step = length(name, dt)
        levels = [update.target for stage in stages for update in stage.updates]
        recording = Recording(name, program, rates, fields, levels, kicks)
        time = Given(program, step)
        for number, stage in enumerate(stages):
            if number:
                time.set(stage.time)
            recording.stage(stage, number, step)
        time.end()
        program.rotate(*fields)
        if rates.noise is not None:
            program.let(STEP, STEP + 1)
        return Recorded(recording.workspace)

    return record
