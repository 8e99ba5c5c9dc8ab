"""Where the commands of a bound Program work: on this machine's processor, or on a GPU (`minga.engine.gpu`).

A backend belongs to one binding: it makes the commands that call kernels, and keeps the memory that they use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, Protocol

import numpy as np

from minga.compile.llvm import Compiled, compile_kernel
from minga.engine import command as cmd
from minga.engine.comm import Channel
from minga.engine.device import Helper
from minga.engine.helpers import HelperKernels, helper_addresses
from minga.lang.graph import KernelGraph
from minga.space.box import Point

__all__ = ["LINE_WORDS", "Backend", "Host", "KernelCall", "copies_of"]

Kernels = dict[tuple[str, bool], Compiled]

LINE_WORDS: Final = 8
"""Words of a cache line."""


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One call of a traced kernel over the box `lo` .. `hi`, in tiles of the shape `tile` where it is cut into such.

    Its other attributes are those of `minga.engine.command.Kernel`.
    """

    graph: KernelGraph
    reductions: bool
    lo: Point
    hi: Point
    tile: Point
    args: np.ndarray
    category: cmd.Category
    label: str
    polls: tuple[Channel, ...] = ()
    block: int = -1

    @property
    def tiles(self) -> int:
        return prod(-(-(b - a) // size) for a, b, size in zip(self.lo, self.hi, self.tile, strict=True))

    @property
    def cells(self) -> int:
        return prod(b - a for a, b in zip(self.lo, self.hi, strict=True))


def copies_of(args: np.ndarray, workers: int) -> np.ndarray:
    """Arguments that workers change, a row for each, which shares no cache line with others."""
    copies = np.zeros((workers, -(-len(args) // LINE_WORDS) * LINE_WORDS), np.int64)
    copies[:, : len(args)] = args
    return copies


class Backend(Protocol):
    """Commands and memory of one binding."""

    @property
    def workers(self) -> int:
        """How many accumulate apart from one another."""

    @property
    def scratch(self) -> int:
        """Bytes of scratch memory that a worker needs."""

    def address(self, array: np.ndarray) -> int:
        """The address at which kernels find an array's first element, as long as the binding lives.

        What is not memory of this backend may be copied there: Python does not see what kernels store in the copy.
        """

    def words(self, count: int, *, ranks: bool = False) -> np.ndarray:
        """int64 words, all 0, that kernels and Python share; `ranks`: that MPI combines, too."""

    def message(self, size: int) -> np.ndarray:
        """Bytes that kernels pack or unpack, and MPI sends or receives."""

    def kernel(self, call: KernelCall) -> Sequence[cmd.Command]:
        """Call a traced kernel."""

    def helper(self, name: Helper, args: np.ndarray, tiles: int, category: cmd.Category, label: str) -> cmd.Command:
        """Call one of the engine's own kernels, with its argument words."""

    def rotate(self, tables: tuple[int, ...], slots: int) -> cmd.Command:
        """Rotate words that kernels read."""

    def clear(self, flag: np.ndarray) -> Sequence[cmd.Command]:
        """Set words to 0 before `finish_reductions` is called with them as its flag."""

    def on_host(self, memory: np.ndarray) -> tuple[Sequence[cmd.Command], int]:
        """What brings a register's 8 bytes where commands may test them, and the address there."""

    def settled(self, block: int = -1) -> Sequence[cmd.Command]:
        """What makes MPI and Python see all that kernels stored before. The time is booked as computing (`block`)."""


@dataclass(slots=True)
class Host:
    """The processor: kernels are done when their command is over, and all memory is Python's."""

    workers: int
    kernels: Kernels
    scratch: int = 0
    keep: list[object] = field(default_factory=list)
    helpers: HelperKernels = field(default_factory=helper_addresses)

    def compiled(self, graph: KernelGraph, reductions: bool = True) -> Compiled:
        reductions = reductions and bool(graph.reductions)
        key = (graph.code_digest(), reductions)
        if key not in self.kernels:
            self.kernels[key] = compile_kernel(graph, reductions=reductions)
        return self.kernels[key]

    def address(self, array: np.ndarray) -> int:
        self.keep.append(array)
        return int(array.__array_interface__["data"][0])

    def words(self, count: int, *, ranks: bool = False) -> np.ndarray:
        return np.zeros(count, np.int64)

    def message(self, size: int) -> np.ndarray:
        return np.zeros(size, np.uint8)

    def kernel(self, call: KernelCall) -> Sequence[cmd.Command]:
        code = self.compiled(call.graph, call.reductions)
        self.scratch = max(self.scratch, code.scratch_bytes(call.tile))
        args = self.address(call.args)
        return (
            cmd.Kernel(
                code.address, args, call.tiles, call.category, call.label, call.polls, call.cells, call.block
            ),
        )  # fmt: skip

    def helper(self, name: Helper, args: np.ndarray, tiles: int, category: cmd.Category, label: str) -> cmd.Command:
        function = {
            "copy_boxes": self.helpers.copy_boxes,
            "combine": self.helpers.combine_workers,
            "arg_candidates": self.helpers.arg_candidates,
            "finish_reductions": self.helpers.finish_reductions,
        }[name]
        return cmd.Kernel(function, self.address(args), tiles, category, label)

    def rotate(self, tables: tuple[int, ...], slots: int) -> cmd.Command:
        return cmd.Rotate(tables, slots)

    def clear(self, flag: np.ndarray) -> Sequence[cmd.Command]:
        return (cmd.Set(self.address(flag), 0),)

    def on_host(self, memory: np.ndarray) -> tuple[Sequence[cmd.Command], int]:
        return (), self.address(memory)

    def settled(self, block: int = -1) -> Sequence[cmd.Command]:
        return ()
