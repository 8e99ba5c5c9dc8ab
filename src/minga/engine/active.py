"""Active tiles in memory: a record of which tiles of which blocks changed, kept between runs of a Program.

A tile must be computed if it, or a tile around it, holds values that differ from those two steps before (see
active_check). The record is lost, and every tile is computed again, when anything other than the Program itself
changes its fields.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from minga.engine.active_check import read_fields, registers_used, stored_fields, unfit_program, widest_read
from minga.engine.active_kernels import (
    COUNTER_COMPUTED,
    COUNTER_LOOKED,
    COUNTER_WORDS,
    STATE_LEFT,
    STATE_PATIENCE,
    STATE_WAIT,
    STATE_WORDS,
    STATE_WORTHWHILE,
)
from minga.engine.program import Apply, Call, Let, Move, Operation, Repeat, Rotate, When, flat
from minga.engine.reach import Reach, requirements
from minga.engine.storage import Storage
from minga.errors import ProgramError
from minga.space.box import Box, Point
from minga.space.field import Field, Register, Slot
from minga.space.region import Region

LINE = 64

PATIENCE = 128
"""Number of steps that compute all tiles after a step in which more than one cell in WORTHWHILE needed computing."""
WORTHWHILE = 6
"""Upper bound of the cost of computing and comparing one tile separately, relative to a sweep over all tiles."""


@dataclass(frozen=True, slots=True)
class TileCut:
    """The division of a block into tiles: `count` tiles of `size` along each axis, the last one extended to the end."""

    box: Box
    size: Point
    count: Point

    @classmethod
    def of(cls, box: Box, size: Sequence[int]) -> TileCut:
        """Return the division of a box into tiles of at least `size`, or one tile along an axis that is shorter."""
        return cls(box, tuple(size), tuple(max(1, n // s) for n, s in zip(box.shape, size, strict=True)))

    def tile(self, axis: int, index: int) -> int:
        """Return the tile of an index along an axis: -1 below the block, `count` above it."""
        if index < self.box.lo[axis]:
            return -1
        if index >= self.box.hi[axis]:
            return self.count[axis]
        return min((index - self.box.lo[axis]) // self.size[axis], self.count[axis] - 1)

    def cuts(self, axis: int) -> list[int]:
        """Return the indices at which tiles begin along an axis, followed by the end of the block."""
        low = self.box.lo[axis]
        return [*(low + k * self.size[axis] for k in range(self.count[axis])), self.box.hi[axis]]

    @property
    def largest(self) -> Point:
        """Upper bound of the tile size along each axis."""
        last = (n - (c - 1) * s for n, c, s in zip(self.box.shape, self.count, self.size, strict=True))
        return tuple(map(max, self.size, last))


@dataclass(frozen=True, slots=True, eq=False)
class Flags:
    """The flags of one block's tiles in two slots; `table` holds their addresses by slot and rotates with the field.

    An array holds the `changed` flags of all tiles, then the `wake` flags; a ring of one entry surrounds the tiles.
    """

    cut: TileCut
    arrays: tuple[np.ndarray, np.ndarray]
    table: np.ndarray

    @classmethod
    def of(cls, cut: TileCut) -> Flags:
        """Return zeroed flags for the tiles of a block."""
        rows = [count + 2 for count in cut.count]
        # Eight flags are read at once, even when the read starts at the last tile.
        rows[-1] = -(-(rows[-1] + 8) // LINE) * LINE
        arrays = np.zeros((2, *rows), np.uint8), np.zeros((2, *rows), np.uint8)
        table = np.array([array.__array_interface__["data"][0] for array in arrays], np.int64)
        return cls(cut, arrays, table)

    @property
    def wake(self) -> int:
        """Offset in bytes from a tile's `changed` flag to its `wake` flag."""
        return self.arrays[0].strides[0]

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between neighbouring tiles along each axis."""
        return self.arrays[0].strides[1:]

    def place(self, tile: Sequence[int]) -> int:
        """Return the byte offset of a tile's `changed` flag."""
        return sum((k + 1) * stride for k, stride in zip(tile, self.strides, strict=True))

    def decided_by(self, box: Box, reach: Sequence[int]) -> list[int]:
        """Return the byte offsets of the `wake` flags of all tiles within reach of a box of ghost cells."""
        near = box.grow(reach, reach) & self.cut.box
        if near.empty:
            return []
        tiles = [range(self.cut.tile(a, near.lo[a]), self.cut.tile(a, near.hi[a] - 1) + 1) for a in range(near.ndim)]
        return [self.wake + self.place(tile) for tile in itertools.product(*tiles)]

    def wake_ends(self) -> None:
        """Wake the tiles next to ghost cells."""
        for array in self.arrays:
            inside = array[1][tuple(slice(1, count + 1) for count in self.cut.count)]
            for axis in range(inside.ndim):
                for end in (0, -1):
                    inside[(slice(None),) * axis + (end,)] = 1


@dataclass(slots=True, eq=False)
class Activity:
    """The active tiles of one operation on this rank.

    rotated    field with whose slots the flags rotate; all stored fields have the same tiles
    counters   numbers of cells examined and computed, one cache line per worker
    state      words used by `begin_step`
    reach      distance from a cell within which other cells influence it
    needs      extent around the blocks that each step finds valid, for the slots it reads
    """

    rotated: Field
    fields: frozenset[Field]
    inputs: frozenset[Field]
    registers: frozenset[str]
    tile: Point
    reach: Point
    needs: Mapping[Slot, Reach]
    blocks: dict[int, Flags]
    counters: np.ndarray
    state: np.ndarray

    def keeps(self, item: Field, reach: Reach) -> bool:
        """Return True if the ghost cells of a field within reach date from two steps before.

        Copying a tile that has not changed since can then be skipped. Ghost cells farther out may be older, because
        they are not exchanged in every step.
        """
        need = self.needs.get(item.now)
        return need is not None and need.covers(reach)

    def forget(self) -> None:
        """Mark every tile as changed."""
        for flags in self.blocks.values():
            for array in flags.arrays:
                array[...] = 1
        # The next step computes all tiles and the one after it compares them all; only then are the changes known.
        self.state[STATE_LEFT], self.state[STATE_WAIT] = 1, 4

    def forget_ghosts(self) -> None:
        """Mark ghost cells as changed."""
        for flags in self.blocks.values():
            flags.wake_ends()


@dataclass(frozen=True, slots=True)
class Touched:
    """Fields and registers that a Program changes, and the operations that keep track of their own changes."""

    active: frozenset[Apply]
    fields: frozenset[Field]
    registers: frozenset[str]
    exchanged: frozenset[Field]


@dataclass(slots=True)
class ActiveTiles:
    """All activities of an engine."""

    workers: int
    known: dict[Apply, Activity] = field(default_factory=dict)
    counted: np.ndarray = field(default_factory=lambda: np.zeros(COUNTER_WORDS, np.int64))
    """Counts of activities that no longer exist."""

    def of(self, apply: Apply, storage: Storage) -> Activity:
        """Return the activity of an operation, creating its flags at first use."""
        activity = self.known.get(apply)
        if activity is None:
            tile = tile_of(apply)
            lead = apply.slot(min(apply.graph.written)).field
            blocks = {
                number: Flags.of(TileCut.of(arrays.owned, tile))
                for number, arrays in storage.stored(lead).blocks.items()
                if not arrays.owned.empty
            }
            counters = np.zeros((self.workers, COUNTER_WORDS), np.int64)
            fields, inputs = stored_fields(apply), read_fields(apply)
            state = np.zeros(STATE_WORDS, np.int64)
            state[STATE_PATIENCE], state[STATE_WORTHWHILE] = PATIENCE, WORTHWHILE
            reach = widest_read(apply.graph, apply.operands)
            needs, _ = requirements(apply, Reach.none(apply.grid.ndim))
            activity = Activity(
                lead, fields, inputs, registers_used(apply), tile, reach, needs, blocks, counters, state
            )
            activity.forget()
            self.known[apply] = activity
        return activity

    def restart(self) -> None:
        """Discard all activities because the blocks have changed; their counts are kept."""
        self.counted = sum((activity.counters.sum(axis=0) for activity in self.known.values()), self.counted)
        self.known.clear()

    def forget(self, registers: Iterable[Register] | None = None) -> None:
        """Mark all tiles as changed, either of all operations or of those that use one of some registers."""
        for activity in self.known.values():
            if registers is None or any(register.key in activity.registers for register in registers):
                activity.forget()

    def enter(self, touched: Touched) -> None:
        """Mark what a Program about to run touches in the active operations of other Programs as changed."""
        for apply, activity in self.known.items():
            if apply in touched.active:
                continue
            if touched.fields & (activity.fields | activity.inputs) or touched.registers & activity.registers:
                activity.forget()
            elif touched.exchanged & activity.inputs:
                activity.forget_ghosts()

    @property
    def cells(self) -> tuple[int, int]:
        """Number of cells in skipped tiles, and in all tiles examined, since the engine was created."""
        total = sum((activity.counters.sum(axis=0) for activity in self.known.values()), self.counted)
        looked = int(total[COUNTER_LOOKED])
        return looked - int(total[COUNTER_COMPUTED]), looked


def tile_of(apply: Apply) -> Point:
    """Return the shape of an operation's tiles, at least as wide as one tile's cells read beyond it."""
    assert apply.cells.active is not None
    return tuple(map(max, apply.cells.active, widest_read(apply.graph, apply.operands)))


def active_operations(operations: Sequence[Operation]) -> list[Apply]:
    """Return the operations on active tiles. Raise ProgramError if the rest of the Program rules one out."""
    found = [item for item in flat(operations) if isinstance(item, Apply) and item.cells.active is not None]
    for apply in found:
        reason = unfit_program(operations, apply)
        if reason is not None:
            raise ProgramError(
                f"apply({apply.label}) cannot be done on active tiles only: {reason}",
                where=apply.graph.where or None,
                remedy="drop region=mg.Region(active=...); it needs a Program that applies it, then rotates its fields",
            )
    return found


def on_all_cells(operations: Sequence[Operation]) -> list[Operation]:
    """Return the same operations with none restricted to active tiles."""
    found: list[Operation] = []
    for operation in operations:
        if isinstance(operation, Apply) and operation.cells.active is not None:
            found.append(replace(operation, cells=Region(operation.region)))
        elif isinstance(operation, Repeat | When):
            found.append(replace(operation, body=on_all_cells(operation.body)))
        else:
            found.append(operation)
    return found


def touched(operations: Sequence[Operation], exchanged: frozenset[Field]) -> Touched:
    """Return what a Program changes; `exchanged` holds the fields whose ghost cells it may write."""
    active = frozenset(active_operations(operations))
    fields: set[Field] = set()
    registers: set[str] = set()
    for operation in flat(operations):
        match operation:
            case Apply():
                fields |= stored_fields(operation)
                registers |= {register.key for register in operation.results}
            case Rotate():
                fields |= set(operation.fields)
            case Move():
                fields.add(operation.target.field)
            case Call():
                fields |= {slot.field for slot in operation.writes}
            case Let():
                registers.add(operation.register.key)
            case _:
                pass
    return Touched(active, frozenset(fields), frozenset(registers), exchanged)
