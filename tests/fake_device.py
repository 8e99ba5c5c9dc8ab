"""A GPU for tests that have none: launches wait until someone waits for them, then run as code for the processor.

So whoever looks at memory without waiting finds old values. Argument words are looked through: every address must be
the device's own.
"""

from __future__ import annotations

import bisect
import ctypes
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from minga.compile.abi import offsets
from minga.compile.llvm import Compiled, compile_kernel
from minga.compile.ptx import Schedule
from minga.engine.copy_out import Pending
from minga.engine.device import HELPERS, DriverFunctions, Helper, Size
from minga.engine.device_kernels import helper_ptx
from minga.engine.helpers import helper_addresses
from minga.engine.workers import Workers
from minga.errors import RunError
from minga.lang.graph import KernelGraph

Words = ctypes.POINTER(ctypes.c_int64)
LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * 11)
COPY = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * 4)
SYNCHRONISE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64)
ILLEGAL_ADDRESS = 700


def word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


class FakeDevice:
    """`minga.engine.device.Device` of NumPy arrays. `log`: what was asked for, in order."""

    name = "a fake GPU"
    architecture = "sm_80"
    schedule: Schedule = "auto"

    def __init__(self, memory: int = 1 << 30) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.total = memory
        self.used = 0
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._kept: list[np.ndarray] = []
        self._queue: deque[Callable[[], Any]] = deque()
        self._running = threading.Lock()
        self._kernels: dict[int, tuple[Compiled, bool]] = {}
        self._known: dict[tuple[str, bool], int] = {}
        self._helpers: dict[int, Helper] = {}
        self._workers = Workers()
        self._worker_words = self._own(64)
        self.worker = int(self._worker_words.ctypes.data)
        self._native = LAUNCH(self._native_launch), COPY(self._native_copy), SYNCHRONISE(self._native_synchronise)
        self.errors: list[BaseException] = []
        self.fail: str | None = None
        """What the next wait is to fail with."""

    def __repr__(self) -> str:
        return self.name

    # Memory --------------------------------------------------------------------------------------------------------
    @property
    def memory(self) -> tuple[int, int]:
        return self.total - self.used, self.total

    def shared(self, size: int) -> np.ndarray:
        self.used += size
        return self._own(size)

    def pinned(self, size: int) -> np.ndarray:
        return self._own(size)

    def message(self, size: int) -> np.ndarray:
        return self._own(size)

    def staged(self, size: int) -> tuple[int, object]:
        memory = self._own(size)
        return int(memory.ctypes.data), memory

    def _own(self, size: int) -> np.ndarray:
        memory = np.zeros(size + 64, np.uint8)
        skip = -int(memory.ctypes.data) % 64
        start = int(memory.ctypes.data) + skip
        place = bisect.bisect(self._starts, start)
        self._starts.insert(place, start)
        self._ends.insert(place, start + size)
        self._kept.append(memory)
        return memory[skip : skip + size]

    def owns(self, address: int) -> bool:
        place = bisect.bisect(self._starts, address) - 1
        return place >= 0 and address < self._ends[place]

    def prefetch(self, memory: np.ndarray) -> None:
        assert self.owns(int(memory.ctypes.data))
        self.log.append(("prefetch", memory.nbytes))

    # Kernels -------------------------------------------------------------------------------------------------------
    def load(self, graph: KernelGraph, reductions: bool) -> int:
        key = graph.digest(), reductions
        if key not in self._known:
            code = compile_kernel(graph, reductions=reductions)
            self._known[key] = code.address
            self._kernels[code.address] = code, reductions
        return self._known[key]

    def helper(self, name: Helper) -> int:
        assert f".entry gpu_{name}(" in helper_ptx(self.architecture)
        number = 1 + HELPERS.index(name)
        self._helpers[number] = name
        return number

    def launch(self, function: int, grid: Size, block: Size, args: int) -> None:
        assert self.owns(args), "arguments that the device does not see"
        assert all(n >= 1 for n in (*grid, *block))
        if function in self._helpers:
            name = self._helpers[function]
            self.log.append(("launch", name))
            self.queue(lambda: self._help(name, args))
        else:
            code, reductions = self._kernels[function]
            assert block[0] % 32 == 0
            assert block[0] * block[1] * block[2] <= 256
            self._check(code, args, reductions)
            self.log.append(("launch", code.graph.name))
            self.queue(lambda: self._run(code, args))

    def _check(self, code: Compiled, args: int, reductions: bool) -> None:
        """All addresses among a kernel's words are the device's, and so are those that they lead to."""
        words, graph = offsets(code.graph), code.graph
        for number in words.fields:
            assert self.owns(word(args + 8 * number)), f"{graph.name}: a slot"
            assert self.owns(word(word(args + 8 * number))), f"{graph.name}: an array"
        for number in (*words.scalars, *(words.reductions if reductions else ())):
            assert self.owns(word(args + 8 * number)), f"{graph.name}: a scalar or an accumulator"

    def _run(self, code: Compiled, args: int) -> None:
        words, n = offsets(code.graph), code.graph.ndim
        tile = [word(args + 8 * (words.tile + axis)) for axis in range(n)]
        tiles = int(np.prod([word(args + 8 * (words.tiles + axis)) for axis in range(n)]))
        self._workers.reserve(code.scratch_bytes(tile))
        self._workers.run(code.address, args, tiles)

    def _help(self, name: Helper, args: int) -> None:
        helpers = helper_addresses()
        if name == "rotate":
            tables, slots = word(args), word(args + 8)
            for number in range(tables):
                table = np.ctypeslib.as_array(ctypes.cast(word(args + 16 + 8 * number), Words), (slots,))
                table[:] = np.roll(table, -1)
            return
        if name == "finish_reductions":
            ctypes.c_uint8.from_address(word(args + 8)).value = 0
        functions = {
            "copy_boxes": helpers.copy_boxes,
            "combine": helpers.combine_workers,
            "arg_candidates": helpers.arg_candidates,
            "finish_reductions": helpers.finish_reductions,
        }
        self._workers.run(functions[name], args, word(args) if name == "copy_boxes" else 1)

    def queue(self, work: Callable[[], Any]) -> None:
        """Have some work done after what was launched before."""
        self._queue.append(work)

    def synchronise(self) -> None:
        self.log.append(("synchronise",))
        self._drain()

    def _drain(self) -> None:
        """Run what was launched so far, in order. Like a stream, it serves several threads that wait at once."""
        with self._running:
            while self._queue:
                self._queue.popleft()()
        if self.fail is not None:
            said, self.fail = self.fail, None
            raise RunError(said)

    def fetch(self, source: int, target: int, size: int) -> None:
        assert self.owns(source)
        self.log.append(("fetch", size))
        self._drain()
        ctypes.memmove(target, source, size)

    def copy_staged(self, source: int, target: np.ndarray, keep: object) -> Pending:
        pending = _Later(self, source, target, keep)
        self.log.append(("copy out", target.nbytes))
        self.queue(pending.stage)
        return pending

    # Native code ---------------------------------------------------------------------------------------------------
    def functions(self) -> DriverFunctions:
        launch, copy, synchronise = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in self._native)
        return DriverFunctions(launch, copy, synchronise, 77)

    def error(self, code: int) -> str:
        return f"fake error {code}"

    def _caught(self, work: Callable[[], None]) -> int:
        try:
            work()
        except BaseException as error:
            self.errors.append(error)
            return ILLEGAL_ADDRESS
        return 0

    def _native_launch(self, function: int, *rest: int) -> int:
        grid, block, (shared, stream, params, extra) = rest[0:3], rest[3:6], rest[6:10]
        assert (shared, stream, extra) == (0, 77, 0)
        return self._caught(lambda: self._launch(function, grid, block, params))  # type: ignore[arg-type]

    def _launch(self, function: int, grid: Size, block: Size, params: int) -> None:
        assert word(word(params + 8)) == self.worker
        self.launch(function, grid, block, word(word(params)))

    def _native_copy(self, target: int, source: int, size: int, stream: int) -> int:
        def copy() -> None:
            assert stream == 77
            assert self.owns(source)
            self.queue(lambda: ctypes.memmove(target, source, size) and None)

        self.log.append(("fetch", size))
        return self._caught(copy)

    def _native_synchronise(self, stream: int) -> int:
        return self._caught(self.synchronise)

    def close(self) -> None:
        self._drain()


class _Later:
    """A copy that leaves when the device is waited for."""

    def __init__(self, device: FakeDevice, source: int, target: np.ndarray, keep: object) -> None:
        self._device, self._source, self._target, self._keep = device, source, target, keep
        self._copied = False

    def stage(self) -> None:
        ctypes.memmove(self._target.ctypes.data, self._source, self._target.nbytes)
        self._copied = True

    def done(self) -> bool:
        return self._copied

    def wait(self) -> None:
        if not self._copied:
            self._device.synchronise()
        assert self._copied


__all__ = ["FakeDevice"]
