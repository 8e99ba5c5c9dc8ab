"""Commands: what a bound Program is made of. A flat list that Python interprets and the native loop runs alike.

Everything is an address into memory that lives as long as the binding; nothing is looked up while the list runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import numpy as np

from minga.engine.comm import Channel


@dataclass(slots=True)
class Label:
    """A place in the list of commands, known once everything is emitted."""

    position: int = -1


class Category(IntEnum):
    """Where a second goes in the ledger."""

    COMPUTE = 0
    BOUNDARY = 1
    PACK = 2
    SEND = 3
    WAIT = 4
    REDUCE = 5
    CALL = 6
    OTHER = 7
    BALANCE = 8


@dataclass(frozen=True, slots=True)
class Kernel:
    """Call `function(args, tile, worker)` for every tile, by all workers. `polls`: channels in flight meanwhile.

    `cells`: of the box it goes through, where it does; for those who look at events. `block`: its number among those
    blocks of this rank that are timed one by one, or -1.
    """

    function: int
    args: int
    tiles: int
    category: Category
    label: str
    polls: tuple[Channel, ...] = ()
    cells: int = 0
    block: int = -1

    @property
    def column(self) -> int:
        """Where its time is booked: in its category, or behind all categories in the column of its block."""
        return self.category if self.block < 0 else len(Category) + self.block


@dataclass(frozen=True, slots=True)
class Launch:
    """Launch `function(args, worker)` on a GPU, after all that was launched before, and go on at once.

    `grid` and `threads`: blocks, and threads of a block, along x, y and z. Others are as those of `Kernel`; what is
    booked is the time of launching.
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
        """Where its time is booked."""
        return self.category if self.block < 0 else len(Category) + self.block


@dataclass(frozen=True, slots=True)
class Synchronise:
    """Wait until all that was launched is done. `block`: whose computing the time is, as for `Kernel`."""

    block: int = -1

    @property
    def column(self) -> int:
        """Where its time is booked: the device computes meanwhile."""
        return Category.COMPUTE if self.block < 0 else len(Category) + self.block


@dataclass(frozen=True, slots=True)
class Fetch:
    """Copy `size` bytes that kernels stored at `source` to `target` on the host, when all that was launched is done."""

    source: int
    target: int
    size: int


@dataclass(frozen=True, slots=True)
class Start:
    """Begin the messages of a channel (its buffers are packed), and count that in its `started`."""

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
    """Slot k of each table becomes what slot k + 1 was. tables: addresses of `slots` consecutive words."""

    tables: tuple[int, ...]
    slots: int


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on at command number `target`."""

    target: int


@dataclass(frozen=True, slots=True)
class JumpIf:
    """Go on at `target` if the byte at `address` is non-zero (`when` True) or zero (`when` False)."""

    address: int
    when: bool
    target: int


@dataclass(frozen=True, slots=True)
class Switch:
    """Go on at the target whose number the int64 word at `address` holds, or at the next command if it has none."""

    address: int
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Set:
    """Store `value` into the word at `address`."""

    address: int
    value: int


@dataclass(frozen=True, slots=True)
class Count:
    """Add 1 to the word at `counter`; go on at `target` while it is below the word at `limit`."""

    counter: int
    limit: int
    target: int


@dataclass(frozen=True, slots=True)
class Call:
    """Run a Python function (the native loop returns for it and is entered again behind it)."""

    function: Callable[[], None]
    label: str


@dataclass(frozen=True, slots=True)
class End:
    """The program is over; `reason` is a number of `minga.engine.program.REASONS`."""

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
