"""Memory of one rank: arrays of its blocks, tables of slots, registers. Addresses are fixed until a halo must widen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from minga.engine.pages import zeroed
from minga.engine.reach import Reach
from minga.errors import ProgramError
from minga.lang.types import DType
from minga.space.box import Box
from minga.space.field import MARGIN, Field, Register, Slot
from minga.space.grid import Grid
from minga.space.layout import Layout
from minga.space.ownership import Ownership

LINE: Final = 64
PAGE: Final = 4096


@dataclass(slots=True)
class BlockArrays:
    """A field's copies on one block. Element [0, ...] is index `box.lo`; `table` holds base addresses by slot."""

    block: int
    owned: Box
    box: Box
    arrays: list[np.ndarray]
    table: np.ndarray

    def array(self, slot: int) -> np.ndarray:
        """Return the array that is slot number `slot` at present."""
        if len(self.arrays) == 1:
            return self.arrays[0]
        address = int(self.table[slot])
        return next(a for a in self.arrays if a.__array_interface__["data"][0] == address)

    def view(self, slot: int, box: Box) -> np.ndarray:
        """Return a box of a slot's array, given by index."""
        return self.array(slot)[box.slices(self.box.lo)]


@dataclass(slots=True)
class Stored:
    """The arrays of a field on this rank."""

    field: Field
    ownership: Ownership | None
    halo: Reach
    blocks: dict[int, BlockArrays]


Room = Callable[[int], np.ndarray]
"""Function that allocates a number of zeroed bytes."""
Carry = Callable[[BlockArrays, BlockArrays], None]
"""Function that copies the common cells of all slots from the first set of a block's arrays to the second."""


def carry(old: BlockArrays, new: BlockArrays) -> None:
    """Copy the common cells of all slots on the processor."""
    shared = old.box & new.box
    for k in range(len(old.arrays)):
        new.view(k, shared)[...] = old.view(k, shared)


def allocate(box: Box, owned: Box, dtype: DType, number: int, room: Room = zeroed) -> np.ndarray:
    """Allocate a zeroed array over `box` with favourable alignment, in memory obtained from `room`.

    The first owned cell of a row is aligned to a cache line, no stride is a multiple of a page, and the base addresses
    of successive arrays (`number`) are staggered within a page: caches and the store buffer alias on equal low address
    bits.
    """
    size = np.dtype(dtype).itemsize
    lead = max(0, owned.lo[-1] - box.lo[-1]) * size
    front = -lead % LINE
    strides = [size]
    row = -(-(front + max(1, box.shape[-1]) * size) // LINE) * LINE
    for axis in range(box.ndim - 2, -1, -1):
        if row % PAGE == 0:
            row += LINE
        strides.insert(0, row)
        row *= max(1, box.shape[axis])
    total = row + front + PAGE + LINE
    buffer = room(total + LINE)
    stagger = (number * 5 * LINE) % PAGE
    base = -(buffer.ctypes.data + stagger) % LINE + stagger
    return np.ndarray(box.shape, dtype, buffer, base + front, tuple(strides))


@dataclass(slots=True)
class Storage:
    """The fields and registers of one rank."""

    layouts: Mapping[Grid, Layout]
    rank: int
    fields: dict[Field, Stored] = field(default_factory=dict)
    registers: dict[str, np.ndarray] = field(default_factory=dict)
    dtypes: dict[str, DType] = field(default_factory=dict)
    initials: dict[str, bool | int | float] = field(default_factory=dict)
    groups: dict[int, tuple[tuple[Register, ...], list[np.ndarray] | np.ndarray]] = field(default_factory=dict)
    """Tuples of registers, by their identity, with their values."""
    room: Room = zeroed
    carry: Carry = carry
    settle: Callable[[], None] | None = None
    """Function that waits until nothing else uses the fields."""
    seen: set[Field] = field(default_factory=set)
    """Fields that Python has been given views of, or has set."""
    _count: int = 0

    def layout(self, grid: Grid) -> Layout:
        """Return the layout of a grid's blocks."""
        if grid not in self.layouts:
            raise ProgramError(
                f"the engine has no layout for {grid!r}",
                remedy='pass model.layouts("cartesian", ranks), or layouts={grid: layout, ...} with every grid stored',
            )
        return self.layouts[grid]

    def check_known(self, item: Field) -> None:
        """Raise ProgramError for a field without values if another field of the same name exists."""
        if item not in self.fields and any(known.name == item.name for known in self.fields):
            raise ProgramError(
                f"the engine has a field {item.name!r}, which is not the {item!r} that is requested",
                remedy="use the object that its Programs were recorded with, such as model.field(name)",
            )

    def stored(self, item: Field, halo: Reach | None = None) -> Stored:
        """Return a field's arrays; allocate them at first use, and again (keeping contents) for a wider halo."""
        stored = self.fields.get(item)
        if stored is not None and halo is None:
            return stored
        need = halo or Reach.none(item.grid.ndim)
        if stored is not None and stored.halo.covers(Reach(need.lo, need.hi, True)):
            return stored
        wide = need if stored is None else stored.halo.union(need)
        fresh = self.allocate_field(item, Reach(wide.lo, wide.hi, False))
        if stored is not None:
            for number, old in stored.blocks.items():
                self.carry(old, fresh.blocks[number])
        self.fields[item] = fresh
        return fresh

    def allocate_field(self, item: Field, halo: Reach) -> Stored:
        """Allocate new arrays for a field on the present layouts; the old arrays are unaffected."""
        if item.replicated:
            box = item.bounds.grow((MARGIN,) * item.bounds.ndim, (MARGIN,) * item.bounds.ndim)
            return Stored(item, None, halo, {0: self._block(item, 0, item.bounds, box)})
        layout = self.layout(item.grid)
        ownership = Ownership.of(item.grid, layout, item.centre, None, item.on)
        blocks = {}
        for number in layout.blocks_of(self.rank):
            owned, box = ownership.owned(number), ownership.stored(number, halo.lo, halo.hi)
            blocks[number] = self._block(item, number, owned, box)
        return Stored(item, ownership, halo, blocks)

    def _block(self, item: Field, number: int, owned: Box, box: Box) -> BlockArrays:
        arrays = []
        for _ in range(item.slots):
            self._count += 1
            arrays.append(allocate(box, owned, item.dtype, self._count, self.room))
        table = self.room(8 * len(arrays)).view(np.int64)
        table[:] = [a.__array_interface__["data"][0] for a in arrays]
        return BlockArrays(number, owned, box, arrays, table)

    def register(self, name: str, dtype: DType, initial: bool | int | float = 0) -> np.ndarray:
        """Return the 8 bytes of a register, given by its name in graphs, as an array of one value."""
        memory = self.registers.get(name)
        if memory is None:
            memory = self.registers[name] = self.room(8).view(np.int64)
            self.dtypes[name] = dtype
            memory.view(np.dtype(dtype))[0] = initial
        elif self.dtypes[name] != dtype:
            raise ProgramError(
                f"two registers are called {name.lstrip('$@')!r}, one {self.dtypes[name]}, one {dtype}",
                remedy="give each register a name of its own",
            )
        return memory.view(np.dtype(dtype))[:1]

    def of(self, register: Register) -> np.ndarray:
        """Return a register's value as an array of one element."""
        known = self.initials.setdefault(register.key, register.initial)
        if known != register.initial:
            raise ProgramError(
                f"two registers are called {register.name!r}, one starts at {known}, one at {register.initial}",
                remedy="give each register a name of its own, or use one object",
            )
        return self.register(register.key, register.dtype, register.initial)

    def of_all(self, registers: tuple[Register, ...]) -> list[np.ndarray] | np.ndarray:
        """Return the values of registers as by `of`, at once if the same tuple was given before.

        They are one array if all are f8 and none was known before, so that they are stored side by side. A tuple is
        kept as long as the storage: for the many registers of a model's observables, not for passing ones.
        """
        known = self.groups.get(id(registers))
        if known is None:
            known = self.groups[id(registers)] = registers, self._group(registers)
        return known[1]

    def _group(self, registers: tuple[Register, ...]) -> list[np.ndarray] | np.ndarray:
        keys = {register.key for register in registers}
        fresh = len(keys) == len(registers) > 0 and keys.isdisjoint(self.registers)
        if not fresh or any(register.dtype != "f8" for register in registers):
            return [self.of(register) for register in registers]
        together = self.room(8 * len(registers)).view(np.int64)
        values = together.view(np.float64)
        for number, register in enumerate(registers):
            self.registers[register.key], self.dtypes[register.key] = together[number : number + 1], register.dtype
            values[number] = register.initial
            self.of(register)
        return values

    def reset_registers(self) -> None:
        """Reset all registers known here to their declared initial values."""
        for key, initial in self.initials.items():
            self.register(key, self.dtypes[key], initial)[0] = initial

    def before_access(self, item: Field) -> None:
        """Prepare for Python's access to a field's values; to be called before it."""
        self.seen.add(item)
        if self.settle is not None:
            self.settle()

    def pieces(self, slot: Slot) -> Iterator[tuple[Box, np.ndarray]]:
        """Yield this rank's owned boxes of a slot with views of their values."""
        self.before_access(slot.field)
        for block in self.stored(slot.field).blocks.values():
            if not block.owned.empty:
                yield block.owned, block.view(slot.index, block.owned)
