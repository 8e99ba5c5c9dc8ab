"""Commands on a GPU: kernels run on one stream, and the host waits when it needs to see what they stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from minga.compile.ptx import launch
from minga.engine import command as cmd
from minga.engine.backend import KernelCall
from minga.engine.command import Site
from minga.engine.device import Device, Helper
from minga.engine.device_kernels import helper_launch, rotate_args

__all__ = ["Gpu"]


@dataclass(slots=True)
class Gpu:
    """The backend of one binding on a device; `timed` waits for every kernel of a block to measure its duration."""

    device: Device
    timed: bool = False
    waves: bool = False
    sites: list[tuple[KernelCall, Site]] = field(default_factory=list)
    keep: list[object] = field(default_factory=list)
    _copies: dict[int, int] = field(default_factory=dict)

    @property
    def workers(self) -> int:
        """Number of workers, always 1."""
        return 1

    @property
    def scratch(self) -> int:
        """Bytes of scratch memory per worker, always 0."""
        return 0

    def address(self, array: np.ndarray) -> int:
        """Return the address of an array's first element on the device, copying the array there if necessary."""
        address = int(array.__array_interface__["data"][0])
        if self.device.owns(address):
            self.keep.append(array)
            return address
        if id(array) not in self._copies:
            self._copies[id(array)] = self._copied(array)
        return self._copies[id(array)]

    def _copied(self, array: np.ndarray) -> int:
        """Return the address of a copy with the same strides; keep the original alive, as its id is the cache key."""
        low, high = np.lib.array_utils.byte_bounds(array)
        first = int(array.__array_interface__["data"][0])
        memory = self.device.shared(max(1, high - low))
        start = int(memory.__array_interface__["data"][0]) + first - low
        skip = start - int(memory.__array_interface__["data"][0])
        copy = np.ndarray(array.shape, array.dtype, memory, skip, array.strides)
        copy[...] = array
        self.keep += [array, memory]
        return start

    def words(self, count: int, *, ranks: bool = False) -> np.ndarray:
        """Allocate zeroed int64 words: pinned memory for words that ranks combine, otherwise shared memory."""
        memory = self.device.pinned(8 * count) if ranks else self.device.shared(8 * count)
        return memory.view(np.int64)

    def message(self, size: int) -> np.ndarray:
        """Allocate a message buffer."""
        return self.device.message(size)

    def kernel(self, call: KernelCall) -> Sequence[cmd.Command]:
        """Return the commands that launch a traced kernel, and wait for it if it is timed."""
        reductions = call.reductions and bool(call.graph.reductions)
        size = launch(call.graph, call.lo, call.hi, reductions=reductions, schedule=self.device.schedule)
        function = self.device.load(call.graph, reductions)
        launched = cmd.Launch(
            function, self.address(call.args), size.grid, size.block, call.category, call.label, call.cells, call.block
        )
        if not self.timed or call.block < 0:
            return (launched,)
        return launched, *self.settled(call.block)

    def helper(self, name: Helper, args: np.ndarray, tiles: int, category: cmd.Category, label: str) -> cmd.Command:
        """Return the command that launches one of the engine's own kernels."""
        grid, block = helper_launch(name, args)
        return cmd.Launch(self.device.helper(name), self.address(args), grid, block, category, label)

    def rotate(self, tables: tuple[int, ...], slots: int) -> cmd.Command:
        """Return the command that rotates words with a kernel."""
        return self.helper("rotate", rotate_args(tables, slots), 1, cmd.Category.OTHER, "rotate")

    def clear(self, flag: np.ndarray) -> Sequence[cmd.Command]:
        """Return no commands: the kernel clears its flag."""
        return ()  # on the host this would have to wait for the kernels before

    def on_host(self, memory: np.ndarray) -> tuple[Sequence[cmd.Command], int]:
        """Return the command that copies a register's 8 bytes to pinned memory, and the address there."""
        word = self.device.pinned(8)
        self.keep.append(word)
        target = int(word.ctypes.data)
        return (cmd.Fetch(self.address(memory), target, memory.nbytes),), target

    def settled(self, block: int = -1) -> Sequence[cmd.Command]:
        """Return the command that waits for all launches."""
        return (cmd.Synchronise(block),)
