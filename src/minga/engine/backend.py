"""Execution target of a bound Program's commands: this machine's processor, or a GPU (`minga.engine.gpu`).

A backend belongs to one binding: it creates the commands that call kernels, and keeps the memory that they use alive.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, Protocol

import numpy as np

from minga.compile.llvm import Compiled, compile_kernel
from minga.compile.target import Target, host_target
from minga.engine import command as cmd
from minga.engine.comm import Channel
from minga.engine.device import Helper
from minga.engine.helpers import HelperKernels, helper_addresses
from minga.lang.graph import KernelGraph
from minga.space.box import Point

__all__ = ["LINE_WORDS", "Backend", "Host", "KernelCall", "copies_of"]

Kernels = dict[tuple[str, bool], Compiled]

LINE_WORDS: Final = 8
"""Number of words in a cache line."""


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One call of a traced kernel over the box `lo` .. `hi`, cut into tiles of the shape `tile`.

    The other attributes are those of `minga.engine.command.Kernel`.
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
        """Number of tiles of the box."""
        return prod(-(-(b - a) // size) for a, b, size in zip(self.lo, self.hi, self.tile, strict=True))

    @property
    def cells(self) -> int:
        """Number of cells of the box."""
        return prod(b - a for a, b in zip(self.lo, self.hi, strict=True))


def copies_of(args: np.ndarray, workers: int) -> np.ndarray:
    """Return one copy of the arguments per worker, for arguments that workers change; no two share a cache line."""
    copies = np.zeros((workers, -(-len(args) // LINE_WORDS) * LINE_WORDS), np.int64)
    copies[:, : len(args)] = args
    return copies


class Backend(Protocol):
    """The commands and memory of one binding."""

    @property
    def waves(self) -> bool:
        """True if calls of several rounds of a loop can be executed in bands."""

    @property
    def sites(self) -> list[tuple[KernelCall, cmd.Site]]:
        """The kernel calls whose code may be exchanged, in the order in which they were bound."""

    @property
    def workers(self) -> int:
        """Number of workers that accumulate separately."""

    @property
    def scratch(self) -> int:
        """Bytes of scratch memory that each worker needs."""

    def address(self, array: np.ndarray) -> int:
        """Return the address at which kernels find an array's first element during the life of the binding.

        An array that is not memory of this backend may be copied; Python does not see what kernels store in the copy.
        """

    def words(self, count: int, *, ranks: bool = False) -> np.ndarray:
        """Allocate zeroed int64 words shared by kernels and Python, and with `ranks` also combined by MPI."""

    def message(self, size: int) -> np.ndarray:
        """Allocate a buffer that kernels pack or unpack and MPI sends or receives."""

    def kernel(self, call: KernelCall) -> Sequence[cmd.Command]:
        """Return the commands that call a traced kernel."""

    def helper(self, name: Helper, args: np.ndarray, tiles: int, category: cmd.Category, label: str) -> cmd.Command:
        """Return the command that calls one of the engine's own kernels with its argument words."""

    def rotate(self, tables: tuple[int, ...], slots: int) -> cmd.Command:
        """Return the command that rotates words read by kernels."""

    def clear(self, flag: np.ndarray) -> Sequence[cmd.Command]:
        """Return the commands that zero the words used as the flag of `finish_reductions`, to run before it."""

    def on_host(self, memory: np.ndarray) -> tuple[Sequence[cmd.Command], int]:
        """Return the commands that move a register's 8 bytes to where commands can test them, and the address there."""

    def settled(self, block: int = -1) -> Sequence[cmd.Command]:
        """Return the commands that make all earlier stores of kernels visible to MPI and Python.

        Their time is recorded as computing (of `block`).
        """


@dataclass(slots=True)
class _Recent:
    """The kernels that any engine of this process used last: the next engine does not read and link them again."""

    most: int
    known: OrderedDict[tuple[str, bool, Target], Compiled] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def compiled(self, graph: KernelGraph, reductions: bool) -> Compiled:
        key = (graph.code_digest(), reductions, host_target())
        with self.lock:
            found = self.known.pop(key, None)
        found = found or compile_kernel(graph, reductions=reductions)
        with self.lock:
            self.known[key] = found
            while len(self.known) > self.most:
                self.known.popitem(last=False)
        return found


_RECENT: Final = _Recent(256)


@dataclass(slots=True)
class Host:
    """The processor: kernels are complete when their command ends, and Python accesses all memory directly."""

    workers: int
    kernels: Kernels
    scratch: int = 0
    keep: list[object] = field(default_factory=list)
    waves: bool = True
    sites: list[tuple[KernelCall, cmd.Site]] = field(default_factory=list)

    @property
    def helpers(self) -> HelperKernels:
        """The addresses of the engine's own kernels, which are compiled at first use."""
        return helper_addresses()

    def compiled(self, graph: KernelGraph, reductions: bool = True) -> Compiled:
        """Return the compiled kernel of a graph, from the cache if possible."""
        reductions = reductions and bool(graph.reductions)
        key = (graph.code_digest(), reductions)
        if key not in self.kernels:
            self.kernels[key] = _RECENT.compiled(graph, reductions)
        return self.kernels[key]

    def address(self, array: np.ndarray) -> int:
        """Return the address of an array's first element and keep the array alive."""
        self.keep.append(array)
        return int(array.__array_interface__["data"][0])

    def words(self, count: int, *, ranks: bool = False) -> np.ndarray:
        """Allocate zeroed int64 words."""
        return np.zeros(count, np.int64)

    def message(self, size: int) -> np.ndarray:
        """Allocate a zeroed message buffer."""
        return np.zeros(size, np.uint8)

    def kernel(self, call: KernelCall) -> Sequence[cmd.Command]:
        """Return the command that calls a traced kernel."""
        code = self.compiled(call.graph, call.reductions)
        self.scratch = max(self.scratch, code.scratch_bytes(call.tile))
        args, site = self.address(call.args), cmd.Site(code.address)
        self.sites.append((call, site))
        return (
            cmd.Kernel(
                code.address, args, call.tiles, call.category, call.label, call.polls, call.cells, call.block, site
            ),
        )  # fmt: skip

    def helper(self, name: Helper, args: np.ndarray, tiles: int, category: cmd.Category, label: str) -> cmd.Command:
        """Return the command that calls one of the engine's own kernels."""
        function = {
            "copy_boxes": self.helpers.copy_boxes,
            "combine": self.helpers.combine_workers,
            "arg_candidates": self.helpers.arg_candidates,
            "finish_reductions": self.helpers.finish_reductions,
        }[name]
        return cmd.Kernel(function, self.address(args), tiles, category, label)

    def rotate(self, tables: tuple[int, ...], slots: int) -> cmd.Command:
        """Return the command that rotates words."""
        return cmd.Rotate(tables, slots)

    def clear(self, flag: np.ndarray) -> Sequence[cmd.Command]:
        """Return the command that zeroes a flag."""
        return (cmd.Set(self.address(flag), 0),)

    def on_host(self, memory: np.ndarray) -> tuple[Sequence[cmd.Command], int]:
        """Return no commands and the address of the register's memory."""
        return (), self.address(memory)

    def settled(self, block: int = -1) -> Sequence[cmd.Command]:
        """Return no commands: stores are visible at once."""
        return ()
