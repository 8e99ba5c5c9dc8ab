"""A fake GPU that runs the PTX itself, on the machine of `ptx_machine`: slow, for a few steps of small grids."""

from __future__ import annotations

from typing import Any

import numpy as np

from fake_device import FakeDevice
from minga.compile.ptx import print_ptx
from minga.engine.device import HELPERS, Helper, Size
from minga.engine.device_kernels import helper_ptx
from minga.lang.graph import KernelGraph
from ptx_machine import run

_GENERIC: tuple[Helper, ...] = ("arg_candidates", "finish_reductions")
"""One thread does most; where an address points may depend on the record."""


class _Bytes:
    """Memory by its addresses in this process: a row of items of which number 0 would lie at address 0."""

    def __init__(self, items: np.ndarray) -> None:
        self._items = items
        self._first = int(items.ctypes.data) // items.itemsize
        self.size = self._first + items.size

    def __getitem__(self, numbers: Any) -> Any:
        assert np.min(numbers) >= self._first, "outside the memory"
        return self._items[numbers - self._first]

    def __setitem__(self, numbers: Any, values: Any) -> None:
        assert np.min(numbers) >= self._first, "outside the memory"
        self._items[numbers - self._first] = values

    def view(self, dtype: Any) -> _Bytes:
        return _Bytes(self._items.view(dtype))


class PtxDevice(FakeDevice):
    """Memory is one piece, so that a kernel that strays out of it is noticed. `launched`: names of kernels."""

    name = "a machine for PTX"

    def __init__(self, size: int = 1 << 23) -> None:
        memory = np.zeros(size + 4096, np.uint8)
        skip = -int(memory.ctypes.data) % 4096
        self._arena, self._used = memory[skip : skip + size // 8 * 8], 0
        self.bytes = _Bytes(self._arena)
        self._programs: dict[int, tuple[str, str]] = {}
        self.launched: set[str] = set()
        super().__init__()

    def _own(self, size: int) -> np.ndarray:
        start = self._used
        self._used += -(-max(1, size) // 64) * 64
        assert self._used <= self._arena.size, "too small a memory"
        return self._arena[start : start + size]

    def owns(self, address: int) -> bool:
        first = int(self._arena.ctypes.data)
        return first <= address < first + self._used

    def put(self, array: np.ndarray) -> int:
        """For the machine: constants of a kernel."""
        memory = self._own(array.nbytes)
        memory[:] = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        return int(memory.ctypes.data)

    def load(self, graph: KernelGraph, reductions: bool) -> int:
        key = graph.digest(), reductions
        if key not in self._known:
            self._known[key] = 1000 + len(self._known)
            text = print_ptx(graph, self.architecture, reductions=reductions)
            self._programs[self._known[key]] = graph.name, text
        return self._known[key]

    def launch(self, function: int, grid: Size, block: Size, args: int) -> None:
        if function < 1000:
            name = HELPERS[function - 1]
            called, text = name, only(name, self.architecture)
        else:
            called, text = self._programs[function]
        assert self.owns(args)
        self.launched.add(called)
        generic = called in _GENERIC
        self._queue.append(lambda: run(text, self, [args, self.worker], grid, block, generic=generic))  # type: ignore[arg-type]


def only(name: Helper, architecture: str) -> str:
    """One kernel of the module."""
    parts = helper_ptx(architecture).split("\t// .globl")
    return next(part for part in parts if f".entry gpu_{name}(" in part)
