"""Copies of a field's cells out of the engine: immediate on a CPU, concurrent with computing on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from minga.engine.storage import Storage
from minga.errors import LayoutError
from minga.space.box import Box
from minga.space.field import Slot

__all__ = ["DONE", "Pending", "Together", "check_target", "copy_on_host", "page_aligned"]

PAGE: Final = 4096


class Pending(Protocol):
    """A copy in progress. The field may be changed meanwhile; the target must not be accessed."""

    def done(self) -> bool:
        """Return True if the copy is complete."""

    def wait(self) -> None:
        """Wait until the copy is complete. Any thread may wait, repeatedly."""


class _Done:
    """A copy that is complete from the start."""

    def done(self) -> bool:
        """Return True."""
        return True

    def wait(self) -> None:
        """Return at once."""
        return


DONE: Final[Pending] = _Done()


class Together:
    """Several copies combined into one."""

    def __init__(self, parts: Sequence[Pending]) -> None:
        self._parts = tuple(parts)

    def done(self) -> bool:
        """Return True if all copies are complete."""
        return all(part.done() for part in self._parts)

    def wait(self) -> None:
        """Wait until all copies are complete."""
        for part in self._parts:
            part.wait()


def check_target(slot: Slot, box: Box, target: np.ndarray) -> None:
    """Raise LayoutError for an array that cannot hold the cells of a box."""
    if target.shape != box.shape or target.dtype != np.dtype(slot.field.dtype) or not target.flags.c_contiguous:
        raise LayoutError(
            f"the cells of {slot.field.name!r} on {box} were to be copied to an array of shape {target.shape} and "
            f"{target.dtype}",
            remedy=f"give a contiguous array of shape {box.shape} and {slot.field.dtype}",
        )


def copy_on_host(storage: Storage, slot: Slot, box: Box, target: np.ndarray) -> Pending:
    """Copy this rank's cells of a box into an array of the box's shape."""
    for owned, view in storage.pieces(slot):
        part = owned & box
        if not part.empty:
            target[part.slices(box.lo)] = view[part.slices(owned.lo)]
    return DONE


def page_aligned(size: int) -> np.ndarray:
    """Allocate bytes that begin at a page boundary."""
    memory = np.zeros(size + PAGE, np.uint8)
    skip = -int(memory.ctypes.data) % PAGE
    return memory[skip : skip + size]
