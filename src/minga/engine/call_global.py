"""Calls of Python functions with whole fields, which rank 0 gathers, computes and scatters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minga.engine.operations import Call
from minga.engine.rank_zero import on_rank_zero
from minga.errors import ProgramError, shown
from minga.space.field import Field, Register, Slot

if TYPE_CHECKING:
    from minga.engine.engine import Engine

__all__ = ["Item", "global_call"]

Item = Field | Slot | Register


def global_call(function: Callable[..., Any], reads: Sequence[Item], writes: Sequence[Item]) -> Call:
    """Return the operation that calls a function with whole fields: see `Program.call_global`."""
    name = getattr(function, "__name__", "call_global")
    if not callable(function):
        raise ProgramError(f"call_global({shown(function)}): expected a function of arrays")
    sources, targets = _items(reads, "reads", name), _items(writes, "writes", name)

    def call(engine: Engine) -> None:
        given = [engine.read(item) if isinstance(item, Register) else engine.gather(item) for item in sources]
        whole: list[np.ndarray] = []

        def compute() -> list[np.ndarray | None]:
            whole.extend(_results(function(*given), targets, name))
            return [None if value.ndim else value for value in whole]

        numbers = on_rank_zero(engine.comm, compute, name)
        for index, (item, number) in enumerate(zip(targets, numbers, strict=True)):
            if isinstance(item, Register):
                assert number is not None
                engine.write(item, number.item())
            elif number is not None:
                engine.set(item, number)
            else:
                engine.scatter(item, whole[index] if whole else None)

    read, written = (tuple(item for item in items if isinstance(item, Slot)) for items in (sources, targets))
    fills = tuple(slot for slot in written if slot not in read)
    return Call(call, read, written, name, fills)


def _items(given: Sequence[Item], argument: str, name: str) -> tuple[Slot | Register, ...]:
    """Return slots and registers; raise ProgramError for anything else."""
    if not isinstance(given, list | tuple):
        raise ProgramError(f"call_global({name}): {argument}={shown(given)}", remedy=f"give a list: {argument}=[u]")
    for item in given:
        if not isinstance(item, Field | Slot | Register):
            raise ProgramError(f"call_global({name}): {argument} are fields and registers, found {shown(item)}")
    return tuple(item.now if isinstance(item, Field) else item for item in given)


def _results(returned: Any, targets: Sequence[Slot | Register], name: str) -> list[np.ndarray]:
    """Return an array for each target from what a function returned; raise ProgramError if they do not match."""
    several = list(returned) if isinstance(returned, tuple | list) and len(targets) != 1 else [returned]
    found = [] if returned is None else several
    if len(found) != len(targets):
        expected = "nothing" if not targets else ", ".join(map(repr, targets))
        raise ProgramError(
            f"{name} returned {shown(returned)} for {expected}",
            remedy="return an array for the only entry of writes, or a tuple with one array for each",
        )
    arrays = [np.asarray(value) for value in found]
    for target, array in zip(targets, arrays, strict=True):
        shape = () if isinstance(target, Register) else target.field.bounds.shape
        if array.shape != shape and array.ndim:
            raise ProgramError(f"{name} returned an array of shape {array.shape} for {target!r} of shape {shape}")
    return arrays
