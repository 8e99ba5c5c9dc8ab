"""The eight operations that a Program records, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from minga.engine.check import Operand, iterated_axes
from minga.lang.graph import KernelGraph
from minga.space.box import Box
from minga.space.field import Constant, Field, Register, Slot
from minga.space.grid import Grid
from minga.space.region import WHOLE, Region

ScalarValue = Register | bool | int | float | np.generic


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """A kernel applied to a region. `operands` are in the order of the graph's params.

    region   box (in the index space of iteration) around all cells; `cells` selects cells in it
    colour   colour of a red-black kernel; `done` is True for its last colour, when its reductions are complete
    checked  True if non-finite reductions end the run
    mask     cells where it is not 0 may be skipped; see `Program.masked`
    """

    graph: KernelGraph
    operands: tuple[Operand, ...]
    scalars: Mapping[str, ScalarValue]
    region: Box
    grid: Grid
    results: tuple[Register, ...]
    colour: int = 0
    done: bool = True
    cells: Region = WHOLE
    checked: bool = True
    mask: Slot | None = None

    @property
    def label(self) -> str:
        """Name of the kernel."""
        return self.graph.name

    def slot(self, param: int) -> Slot:
        """Return the slot passed to a stored parameter."""
        slot = self.operands[param]
        assert isinstance(slot, Slot)
        return slot

    @property
    def replicated(self) -> bool:
        """True if every rank holds all fields completely, so that every rank executes the whole operation."""
        return all(isinstance(o, Constant) or o.field.replicated for o in self.operands)

    @property
    def extent(self) -> tuple[int, ...]:
        """Number of cells of the grid along the axes of iteration."""
        axes = iterated_axes([o for o in self.operands if isinstance(o, Slot)])
        return tuple(self.grid.shape[axis] for axis in axes)


@dataclass(frozen=True, slots=True, eq=False)
class Let:
    """Assign the value of an expression of registers to a register; `graph` stores it as a field of one cell."""

    register: Register
    graph: KernelGraph
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Rotate:
    """Move the contents of slot k + 1 of each field to slot k, and those of the first to the last, by renaming."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """Copy a slot to a field with the same points on another layout, or the one of `boxes` selected by `number`."""

    source: Slot
    target: Slot
    boxes: tuple[Box, ...] = ()
    number: Register | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A Python function called between operations, with the slots it reads and writes (owned cells only).

    fills   slots of `writes` whose former values neither the function nor anything after it needs
    """

    function: Callable[..., None]
    reads: tuple[Slot, ...]
    writes: tuple[Slot, ...]
    label: str
    fills: tuple[Slot, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Refresh:
    """Make the halo of a slot valid to a width."""

    slot: Slot
    width: int


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """A loop. `until` is evaluated before each iteration; `limit` is the maximum number of iterations, None without.

    Work is planned for `expected` iterations of a loop with a condition, None if that is not known.
    """

    body: list[Operation]
    limit: int | Register | None
    until: Let | None
    expected: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class When:
    """Operations executed only if a condition of registers holds."""

    body: list[Operation]
    condition: Let


Operation = Apply | Let | Rotate | Move | Call | Refresh | Repeat | When


def flat(operations: Sequence[Operation]) -> Iterator[Operation]:
    """Yield all operations in order, each loop and branch before the operations in it."""
    for operation in operations:
        yield operation
        if isinstance(operation, Repeat | When):
            yield from flat(operation.body)
