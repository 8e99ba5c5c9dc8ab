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
    """A kernel over a region. `operands` follow the graph's params.

    region  the box (in the index space of iteration) around all cells; `cells` says which of its cells
    colour  of a red-black kernel; `done` after its last colour, when its reductions are complete
    checked whether reductions that are not finite end the run
    mask    where it is not 0 nothing needs to be done; see `Program.masked`
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
        return self.graph.name

    def slot(self, param: int) -> Slot:
        """The slot a parameter that is stored stands for."""
        slot = self.operands[param]
        assert isinstance(slot, Slot)
        return slot

    @property
    def replicated(self) -> bool:
        """Whether all fields are held whole by every rank, so that every rank does the whole operation."""
        return all(isinstance(o, Constant) or o.field.replicated for o in self.operands)

    @property
    def extent(self) -> tuple[int, ...]:
        """Cells of the grid along the axes of iteration."""
        axes = iterated_axes([o for o in self.operands if isinstance(o, Slot)])
        return tuple(self.grid.shape[axis] for axis in axes)


@dataclass(frozen=True, slots=True, eq=False)
class Let:
    """A register becomes the value of an expression of registers; `graph` stores it as a field of one cell."""

    register: Register
    graph: KernelGraph
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Rotate:
    """Slot k of each field becomes what slot k + 1 was; the last becomes the first."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """Copy a slot to a field of the same points on another layout; or of `boxes` the one that `number` says."""

    source: Slot
    target: Slot
    boxes: tuple[Box, ...] = ()
    number: Register | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A Python function between operations, with what it reads and writes (owned cells only)."""

    function: Callable[..., None]
    reads: tuple[Slot, ...]
    writes: tuple[Slot, ...]
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Refresh:
    """Make the halo of a slot valid to a width."""

    slot: Slot
    width: int


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """A loop. `until` is evaluated before each round; at most `limit` rounds (None: no bound)."""

    body: list[Operation]
    limit: int | Register | None
    until: Let | None


@dataclass(frozen=True, slots=True, eq=False)
class When:
    """Operations done only if a condition of registers holds."""

    body: list[Operation]
    condition: Let


Operation = Apply | Let | Rotate | Move | Call | Refresh | Repeat | When


def flat(operations: Sequence[Operation]) -> Iterator[Operation]:
    """All operations in their order, each loop and branch before those in it."""
    for operation in operations:
        yield operation
        if isinstance(operation, Repeat | When):
            yield from flat(operation.body)
