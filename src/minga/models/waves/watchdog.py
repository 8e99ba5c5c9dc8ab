"""Watchdog of experimental matched layers: a run ends with an error when waves grow in one of them.

The largest |p| of the model and of each layer are taken CHECKS times in a span of two periods of the sources. Waves
that leave the model are larger in it, or decay in the layer. A layer counts as unstable if it has larger waves than the
model, which have risen from span to span PATIENCE times in a row, and GROWTH times since the model had larger ones.
Growth is exponential, so that it is noticed while the waves are a small part of the largest |p| so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.errors import RunError
from minga.lang import functions as mg
from minga.lang.cell import Reduced
from minga.lang.kernel import Kernel
from minga.models.waves.boundary import Cpml
from minga.space.box import Box
from minga.space.field import STEP, Register

if TYPE_CHECKING:
    from minga.models.waves.waves import Waves

__all__ = ["record_watch"]

CHECKS: Final = 16
PATIENCE: Final = 4
GROWTH: Final = 10.0
SMALL: Final = 1e-5
"""Part of the largest |p| so far below which waves do not matter."""


def record_watch(step: Program, waves: Waves, frequency: float) -> None:
    """Record the watch of all matched layers at the end of a step.

    Parameters
    ----------
    step
        Program of the time step, which has counted the step.
    waves
        The waves.
    frequency
        Frequency of the sources, Hz.
    """
    layers = list(_layers(waves))
    every = max(1, round(2.0 / (frequency * waves.dt * CHECKS)))
    p, spans = waves.fields[0], [_Span(name) for name in ("model", *(str(number) for number in range(len(layers))))]
    now = [Register(f"watch.{span.name}", p.dtype) for span in spans]
    most = Register("watch.most")

    def watch(engine: Engine) -> None:
        for span, amplitude in zip(spans, now, strict=True):
            span.add(engine, float(engine.read(amplitude)))
        step = int(engine.read(STEP))
        if step // every % CHECKS:
            return
        model, *others = (span.take(engine) for span in spans)
        largest = max(model, float(engine.read(most)))
        engine.write(most, largest)
        for (face, _), span, value in zip(layers, spans[1:], others, strict=True):
            if span.grows(engine, value, model) and value > SMALL * largest:
                raise _unstable(face, step, value, largest)

    with step.when(STEP % every == 0):
        for register, box in zip(now, (waves.domain.inside, *(box for _, box in layers)), strict=True):
            step.apply(_LARGEST, p, region=box, into=register)
        step.call(watch)


class _Span:
    """Largest |p| of a part of the grid in a span of steps, and its rise from span to span, in registers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.largest, self.before, self.settled = (
            Register(f"watch.{name}.{what}") for what in ("largest", "before", "settled")
        )
        self.rises = Register(f"watch.{name}.rises", "i8")

    def add(self, engine: Engine, value: float) -> None:
        """Note a value of the present span."""
        engine.write(self.largest, max(value, float(engine.read(self.largest))))

    def take(self, engine: Engine) -> float:
        """Return the largest value, and begin the next span."""
        found = float(engine.read(self.largest))
        engine.write(self.largest, 0.0)
        return found

    def grows(self, engine: Engine, value: float, model: float) -> bool:
        """Note the largest value of a span; return whether it has risen long enough above that of the model."""
        if value <= model:
            engine.write(self.settled, value)
        risen = int(engine.read(self.rises)) + 1 if value > max(model, float(engine.read(self.before))) else 0
        engine.write(self.rises, risen)
        engine.write(self.before, value)
        return risen >= PATIENCE and value > GROWTH * float(engine.read(self.settled))


def _layers(waves: Waves) -> Sequence[tuple[str, Box]]:
    """Return the name of the face and the cells of each matched layer."""
    whole = waves.grid.box
    found = []
    for axis, pair in enumerate(waves.faces):
        for end, face in zip(("low", "high"), pair, strict=True):
            if isinstance(face, Cpml):
                low, high = list(whole.lo), list(whole.hi)
                if end == "low":
                    high[axis] = low[axis] + face.cells
                else:
                    low[axis] = high[axis] - face.cells
                found.append((f"the {end} end of {waves.domain.axes[axis]}", Box(tuple(low), tuple(high))))
    return found


def _unstable(face: str, step: int, value: float, largest: float) -> RunError:
    return RunError(
        f"waves grow in the experimental matched layer at {face}: after {step} steps |p| is {value:.3g} there, "
        f"{value / largest:.2g} of its largest value in the model",
        where=f"step {step}",
        remedy='choose the boundary "sponge" for this face, or a shorter run; what was written before is sound to '
        "about this fraction",
    )


def _largest(p: Any) -> Reduced:
    return mg.max(mg.abs(p[(0,) * len(p.axes)]))


_LARGEST = Kernel(_largest)
