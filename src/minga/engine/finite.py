"""Checks that fields are finite, computed where the fields are stored."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.program import Program
from minga.errors import RunError
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.kernel import Kernel
from minga.space.field import Field, Register, Slot

__all__ = ["all_finite", "check_finite", "first_not_finite", "floating_outputs"]


def all_finite(engine: Engine, fields: Sequence[Field]) -> bool:
    """Return True if no value is NaN or infinite. Collective; a kernel runs on the engine's device."""
    found = True
    for item in fields:
        program, count = _program(item)
        engine.run(program)
        found &= engine.read(count) == 0
    return found


def check_finite(model: Model, engine: Engine, step: int) -> None:
    """Raise RunError on every rank, naming the first cell, if an output field is NaN or infinite. Collective."""
    fields = floating_outputs(model)
    if engine.device is not None and all_finite(engine, fields):
        return  # avoids copying the fields to the host
    for slot, cell in first_not_finite(engine, [item.now for item in fields]):
        raise RunError(
            f"field {slot.field.name!r} is not finite at cell {cell} after step {step}",
            remedy=_remedy(model),
        )


def _remedy(model: Model) -> str:
    """Return what to do: the cause that was named before the start, if one was, and otherwise those that are usual."""
    causes = [text for text in model.warnings if "grow" in text]
    if causes:
        return f"see the warning before the start: {causes[0]}"
    return (
        "use a smaller time step, or see whether the model divides by 0, or takes the root or the logarithm of a "
        "negative value; the last frames show where it began"
    )


def floating_outputs(model: Model) -> list[Field]:
    """Return the output fields that can hold non-finite values and are distributed over ranks."""
    return [item for item in map(model.field, model.output) if item.dtype in ("f4", "f8") and not item.replicated]


def first_not_finite(engine: Engine, slots: Sequence[Slot]) -> Iterator[tuple[Slot, tuple[int, ...]]]:
    """Yield the slots that contain NaN or infinity, each with its first such cell. Collective."""
    nowhere = np.iinfo(np.int64).max
    first = np.full(max(1, len(slots)), nowhere, np.int64)
    for number, slot in enumerate(slots):
        bounds = slot.field.bounds
        for box, values in engine.blocks(slot):
            bad = ~np.isfinite(values)
            if bad.any():
                local = np.unravel_index(int(np.argmax(bad)), values.shape)
                index = [int(i) + low - start for i, low, start in zip(local, box.lo, bounds.lo, strict=True)]
                first[number] = min(first[number], int(np.ravel_multi_index(index, bounds.shape)))
    engine.comm.allreduce(first, "min")
    for slot, place in zip(slots, first.tolist(), strict=False):
        if place != nowhere:
            bounds = slot.field.bounds
            yield slot, tuple(int(i) + low for i, low in zip(np.unravel_index(place, bounds.shape), bounds.lo))


@functools.lru_cache(maxsize=64)
def _program(item: Field) -> tuple[Program, Register]:
    program = Program(f"finite {item.name}")
    count = program.apply(Kernel(_not_finite, name="finite"), item)
    assert isinstance(count, Register)
    return program, count


def _not_finite(u: CellReader) -> Reduced:
    value = u[(0,) * len(u.axes)]
    return mg.count(value - value != 0)
