"""Start of a model: setting its initial values in an engine, and checking that they are finite."""

from __future__ import annotations

from collections.abc import Iterable

from minga.engine.engine import Engine, FieldValue
from minga.engine.finite import all_finite, first_not_finite, floating_outputs
from minga.engine.model import Model
from minga.errors import RunError
from minga.space.field import SEED, STEP, Slot

__all__ = ["check_start", "start"]


def start(model: Model, engine: Engine, values: Iterable[tuple[Slot, FieldValue]] | None = None) -> None:
    """Set a model's initial values in an engine. Collective.

    Parameters
    ----------
    model, engine
        The model, and the engine whose fields and registers are set.
    values
        Initial values of the slots, instead of evaluating those of the model's fields.

    Raises
    ------
    LayoutError
        If the engine's layout cuts the model's grid at positions on which its results would depend.
    """
    if model.cuts:
        model.check_cuts(engine.storage.layout(model.grid))
    engine.reset_registers()
    engine.write(SEED, model.seed)
    engine.write(STEP, 0)
    for register, value in model.registers.items():
        engine.write(register, value)
    for slot, initial in model.start_values() if values is None else values:
        engine.set(slot, initial)


def check_start(model: Model, engine: Engine) -> None:
    """Raise RunError on every rank if given initial values of an output field are NaN or infinite. Collective."""
    fields = floating_outputs(model)
    slots = [slot for slot in model.given if slot.field in fields]
    present = [slot.field for slot in slots if slot.index == 0]
    if engine.device is not None and len(present) == len(slots) and all_finite(engine, present):
        return  # avoids copying the fields to the host
    for slot, cell in first_not_finite(engine, slots):
        raise RunError(
            f"model {model.name!r}: the initial values of {slot!r} are not finite at cell {cell}",
            remedy=f"give numbers: initial={{{slot.field.name!r}: ...}}",
        )
