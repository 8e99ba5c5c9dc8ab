"""Commands of a bound Program, a flat list that Python interprets and the native loop executes with the same effect.

Every operand is an address of memory that lives as long as the binding; nothing is looked up while the list runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal

import numpy as np

from minga.engine.comm import Channel


@dataclass(slots=True)
class Label:
    """A position in the list of commands, known once everything is emitted."""

    position: int = -1


class Category(IntEnum):
    """A category of the ledger to which time is assigned."""

    COMPUTE = 0
    BOUNDARY = 1
    PACK = 2
    SEND = 3
    WAIT = 4
    REDUCE = 5
    CALL = 6
    OTHER = 7
    BALANCE = 8


KERNELS = Category.COMPUTE, Category.BOUNDARY
"""Categories of the kernels that a model's operations call."""


@dataclass(slots=True, eq=False)
class Site:
    """The address of a kernel's code at one place of a list: another way to compile it may take its place."""

    function: int
    words: list[np.ndarray] = field(default_factory=list)
    """Words that hold the address, each an array of one."""

    def use(self, function: int) -> None:
        """Call the code at another address from now on; no worker may be computing."""
        self.function = function
        for word in self.words:
            word[0] = function


@dataclass(frozen=True, slots=True)
class Kernel:
    """Call `function(args, tile, worker)` for every tile, distributed over all workers.

    `polls` holds the channels in flight meanwhile. `cells` is the number of cells of the box that the kernel covers, if
    it covers one; it is recorded with events. `block` is its number among the blocks of this rank that are timed
    individually, or -1. `site` holds the function if it may change.
    """

    function: int
    args: int
    tiles: int
    category: Category
    label: str
    polls: tuple[Channel, ...] = ()
    cells: int = 0
    block: int = -1
    site: Site | None = None

    @property
    def present(self) -> int:
        """The function that is called at present."""
        return self.function if self.site is None else self.site.function

    @property
    def column(self) -> int:
        """Ledger column of its time: its category, or the column of its block, after all categories."""
        return self.category if self.block < 0 else len(Category) + self.block


@dataclass(frozen=True, slots=True)
class Launch:
    """Launch `function(args, worker)` on a GPU after all earlier launches, and continue at once.

    `grid` and `threads` are the numbers of blocks, and of threads in a block, along x, y and z. The other attributes
    are those of `Kernel`; the recorded time is that of launching.
    """

    function: int
    args: int
    grid: tuple[int, int, int]
    threads: tuple[int, int, int]
    category: Category
    label: str
    cells: int = 0
    block: int = -1

    @property
    def column(self) -> int:
        """Ledger column of its time."""
        return self.category if self.block < 0 else len(Category) + self.block


@dataclass(frozen=True, slots=True)
class Synchronise:
    """Wait until all launches are complete. `block` is the block to which the time is assigned, as for `Kernel`."""

    block: int = -1

    @property
    def column(self) -> int:
        """Ledger column of its time, counted as computing because the device computes meanwhile."""
        return Category.COMPUTE if self.block < 0 else len(Category) + self.block


@dataclass(frozen=True, slots=True)
class Fetch:
    """Copy `size` bytes that kernels stored at `source` to `target` on the host once all launches are complete."""

    source: int
    target: int
    size: int


@dataclass(frozen=True, slots=True)
class Start:
    """Start the messages of a channel, whose buffers are packed, and count them in its `started`."""

    channel: Channel


@dataclass(frozen=True, slots=True)
class Wait:
    """Complete the messages of a channel."""

    channel: Channel


@dataclass(frozen=True, slots=True)
class Allreduce:
    """Combine int64 words over all ranks, in place; the result is the same on each."""

    words: np.ndarray
    operation: Literal["sum", "max", "min"]


@dataclass(frozen=True, slots=True)
class Rotate:
    """Move the value of slot k + 1 to slot k in each table, cyclically.

    `tables` holds the addresses of `slots` consecutive words.
    """

    tables: tuple[int, ...]
    slots: int


@dataclass(frozen=True, slots=True)
class Jump:
    """Continue at command number `target`."""

    target: int


@dataclass(frozen=True, slots=True)
class JumpIf:
    """Continue at `target` if the byte at `address` is non-zero (`when` True) or zero (`when` False)."""

    address: int
    when: bool
    target: int


@dataclass(frozen=True, slots=True)
class Switch:
    """Continue at the target numbered by the int64 word at `address`, or at the next command if there is none."""

    address: int
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Set:
    """Store `value` in the word at `address`."""

    address: int
    value: int


@dataclass(frozen=True, slots=True)
class Count:
    """Add `rounds` to the word at `counter` and continue at `target` while it is below the word at `limit`.

    If it is not, more rounds than one are not added. `looks` is subtracted from the
    rounds that are left until the next interrupt.
    """

    counter: int
    limit: int
    target: int
    rounds: int = 1
    looks: int = 1


@dataclass(frozen=True, slots=True)
class Call:
    """Call a Python function; the native loop returns to Python for it and is re-entered after it."""

    function: Callable[[], None]
    label: str
    category: Category = Category.CALL


@dataclass(frozen=True, slots=True)
class End:
    """End the program; `reason` is a number of `minga.engine.program.REASONS`."""

    reason: int


Command = (
    Kernel
    | Launch
    | Synchronise
    | Fetch
    | Start
    | Wait
    | Allreduce
    | Rotate
    | Jump
    | JumpIf
    | Switch
    | Set
    | Count
    | Call
    | End
)
