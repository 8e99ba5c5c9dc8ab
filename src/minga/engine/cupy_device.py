"""An NVIDIA GPU: CuPy provides memory, streams and events; the driver loads and launches kernels."""

from __future__ import annotations

import bisect
import contextlib
import weakref
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from minga.compile.cache import default_cache, object_key
from minga.compile.ptx import ENTRY, TRIPLE, Schedule, print_ptx
from minga.compile.target import Target
from minga.engine.copy_out import Pending
from minga.engine.cuda_driver import driver
from minga.engine.device import DriverFunctions, Helper, Size
from minga.engine.device_kernels import entry, helper_ptx
from minga.errors import LayoutError, RunError
from minga.lang.graph import KernelGraph

__all__ = ["CupyDevice", "device_count", "visible_devices"]

_SMALL: Final = 1 << 16
_CHUNK: Final = 1 << 20
"""Size of an allocation of managed memory that is shared by small pieces."""
_LINE: Final = 256
_CONCURRENT_MANAGED_ACCESS: Final = 89  # cudaDevAttrConcurrentManagedAccess
_DEVICE_TO_HOST, _ANY_TO_ANY = 2, 4  # cudaMemcpyDeviceToHost, cudaMemcpyDefault
_NEWEST: Final = 90
"""Compute capability, in tenths, of the newest architecture that code is generated for; newer GPUs run it too."""


def _cupy() -> Any:
    try:
        import cupy
    except ImportError as error:
        raise LayoutError(
            f'device = "gpu" needs CuPy, which is not installed ({error})',
            remedy='pip install "minga[gpu]" for CUDA 12, or cupy-cuda13x for CUDA 13',
        ) from error
    return cupy


def device_count() -> int:
    """Return the number of GPUs visible to this process. Raise LayoutError if there is none, or CuPy is missing."""
    cupy = _cupy()
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception as error:  # CuPy raises its own errors if the driver is missing or too old
        raise LayoutError(
            f"no GPU can be used here: {error}", remedy="see `nvidia-smi`, or run on the processor"
        ) from error
    if count == 0:
        raise LayoutError("this machine has no GPU", remedy="run on the processor, or on a machine that has one")
    return count


def visible_devices() -> tuple[str, ...]:
    """Return the names of the visible GPUs, unique on a machine. Raise LayoutError in the cases of `device_count`."""
    count, runtime = device_count(), _cupy().cuda.runtime
    # The partitions of a divided GPU have the same bus address but different identifiers.
    return tuple(
        f"{runtime.deviceGetPCIBusId(number)} {runtime.getDeviceProperties(number).get('uuid', b'')[:16]!r}"
        for number in range(count)
    )


class _Memory:
    """Memory at an address, wrapped for NumPy arrays, which keep it alive."""

    def __init__(self, address: int, size: int, owner: object) -> None:
        self.owner = owner
        self.__array_interface__ = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}


class _Tally:
    """A count of bytes in use. It is an object of its own so that finalizers of memory do not keep the device alive."""

    def __init__(self) -> None:
        self.bytes = 0

    def add(self, count: int) -> None:
        """Add a number of bytes, which may be negative."""
        self.bytes += count


class _Ranges:
    """Address ranges in use."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._entries: list[tuple[int, weakref.ref[_Memory]]] = []

    def add(self, start: int, size: int, memory: _Memory) -> None:
        """Add a range, and drop the ranges whose memory was released."""
        living = [(s, e) for s, e in zip(self._starts, self._entries, strict=True) if e[1]() is not None]
        living.append((start, (start + size, weakref.ref(memory))))
        living.sort(key=lambda item: item[0])
        self._starts, self._entries = [s for s, _ in living], [e for _, e in living]

    def has(self, address: int) -> bool:
        """Return True if an address lies in a range in use."""
        place = bisect.bisect(self._starts, address) - 1
        if place < 0:
            return False
        end, memory = self._entries[place]
        return address < end and memory() is not None


class _Leaving:
    """A copy to the host; an event of `device` signals its completion."""

    def __init__(self, event: Any, device: Any, keep: object) -> None:
        self._event = event
        self._device = device
        self._keep: object = keep

    def done(self) -> bool:
        """Return True if the copy is complete."""
        with self._device:
            return bool(self._event.done)

    def wait(self) -> None:
        """Wait until the copy is complete."""
        # A thread that has not used a device yet would otherwise get a context on device 0, regardless of its owner.
        try:
            with self._device:
                self._event.synchronize()
        except Exception as error:
            raise _failed(error, "copying a field from the GPU") from error


class CupyDevice:
    """`minga.engine.device.Device` on GPU `number`.

    `aware` means that MPI sends directly from its memory; `schedule` is the order in which its kernels visit cells.
    """

    def __init__(self, number: int = 0, *, aware: bool = False, schedule: Schedule = "auto") -> None:
        cupy = _cupy()
        self._cuda = cupy.cuda
        self._runtime = cupy.cuda.runtime
        self.number = number
        self.aware, self.schedule = aware, schedule
        self._place = self._cuda.Device(number)
        self._place.use()
        self._runtime.free(0)  # makes the device's context current on this thread
        self._driver = driver()
        properties = self._runtime.getDeviceProperties(number)
        name = properties["name"]
        self.name = name.decode() if isinstance(name, bytes) else str(name)
        capability = 10 * int(properties["major"]) + int(properties["minor"])
        if capability < 80:
            raise LayoutError(
                f"{self.name} has compute capability {capability / 10}", remedy="use a GPU of 8.0 (Ampere) or newer"
            )
        self.architecture = f"sm_{_NEWEST if capability >= _NEWEST else 80}"
        self._concurrent = bool(self._runtime.deviceGetAttribute(_CONCURRENT_MANAGED_ACCESS, number))
        self._free, self._total = map(int, self._runtime.memGetInfo())
        self._managed = _Tally()
        self._stream = self._cuda.Stream(non_blocking=True)
        self._leaving_stream = self._cuda.Stream(non_blocking=True)
        self._leaving: list[_Leaving] = []
        self._ranges = _Ranges()
        self._chunk: tuple[_Memory, int, int] | None = None
        self._modules: list[int] = []
        self._kernels: dict[tuple[str, bool], int] = {}
        self._helpers: dict[Helper, int] = {}
        self._worker = self.shared(_LINE)
        self.worker = int(self._worker.ctypes.data)

    def __repr__(self) -> str:
        route = "MPI sends from its memory" if self.aware else "messages through pinned memory"
        return f"GPU {self.number}: {self.name}, {route}"

    # Memory --------------------------------------------------------------------------------------------------------
    @property
    def memory(self) -> tuple[int, int]:
        """Free and total bytes of the device."""
        # Counted by requests: the driver counts managed memory as free as long as it lies on the host.
        return self._free - self._managed.bytes, self._total

    def shared(self, size: int) -> np.ndarray:
        """Allocate zeroed memory that host and device share."""
        size = max(1, size)
        if size >= _SMALL:
            array = np.asarray(self._allocated(size))
            self._runtime.memsetAsync(int(array.ctypes.data), 0, size, self._stream.ptr)
            self.synchronise()
            return array
        if self._chunk is None or self._chunk[2] + size > _CHUNK:
            memory = self._allocated(_CHUNK)
            whole = np.asarray(memory)
            whole[:] = 0
            self._chunk = memory, int(whole.ctypes.data), 0
        memory, start, used = self._chunk
        self._chunk = memory, start, used + -(-size // _LINE) * _LINE
        return np.asarray(_Memory(start + used, size, memory))

    def _allocated(self, size: int) -> _Memory:
        try:
            pointer = self._cuda.malloc_managed(size)
        except Exception as error:
            raise _failed(error, f"asking for {size} bytes") from error
        memory = _Memory(int(pointer.ptr), size, pointer)
        self._managed.add(size)
        weakref.finalize(memory, self._managed.add, -size)
        self._ranges.add(int(pointer.ptr), size, memory)
        return memory

    def pinned(self, size: int) -> np.ndarray:
        """Allocate zeroed pinned host memory."""
        size = max(1, size)
        try:
            pointer = self._cuda.alloc_pinned_memory(size)
        except Exception as error:
            raise _failed(error, f"asking for {size} bytes of pinned memory") from error
        array = self._array(int(pointer.ptr), size, pointer)
        array[:] = 0
        return array

    def message(self, size: int) -> np.ndarray:
        """Allocate a message buffer: device memory if MPI sends from it, otherwise pinned memory."""
        if not self.aware:
            return self.pinned(size)
        pointer = self._cuda.alloc(max(1, size))
        return self._array(int(pointer.ptr), max(1, size), pointer)  # only MPI and kernels may access it

    def staged(self, size: int) -> tuple[int, object]:
        """Allocate device memory, or pinned memory if the device is full; return its address and its owner."""
        try:
            pointer = self._cuda.alloc(max(1, size))
        except Exception:  # fields fill the device: the frame is staged on the host, which occupies the bus longer
            array = self.pinned(size)
            return int(array.ctypes.data), array
        return int(pointer.ptr), pointer

    def _array(self, address: int, size: int, owner: object) -> np.ndarray:
        memory = _Memory(address, size, owner)
        self._ranges.add(address, size, memory)
        return np.asarray(memory)

    def owns(self, address: int) -> bool:
        """Return True if kernels may use an address."""
        return self._ranges.has(address)

    def prefetch(self, memory: np.ndarray) -> None:
        """Move shared memory to the device ahead of its use, if the device supports it."""
        if self._concurrent:
            self._driver.prefetch(memory, self.number, self._stream.ptr)

    # Kernels -------------------------------------------------------------------------------------------------------
    def load(self, graph: KernelGraph, reductions: bool) -> int:
        """Load a traced kernel, once per graph; return its handle."""
        key = graph.code_digest(), reductions
        if key not in self._kernels:
            module = self._driver.load(self._ptx(graph, reductions), graph.name)
            self._modules.append(module)
            self._kernels[key] = self._driver.function(module, ENTRY)
        return self._kernels[key]

    def _ptx(self, graph: KernelGraph, reductions: bool) -> str:
        """Return the kernel's PTX, from the cache of machine code if possible."""
        cache, target = default_cache(), Target(TRIPLE, self.architecture, "", fma=True, rounding=True)
        key = object_key(graph.code_digest(), target, f"reductions={reductions} schedule={self.schedule}")
        known = cache.load(key) if cache else None
        if known is not None:
            return known.decode()
        text = print_ptx(graph, self.architecture, self.schedule, reductions=reductions)
        if cache:
            cache.store(key, text.encode(), {"kernel": graph.name, "cpu": self.architecture})
        return text

    def helper(self, name: Helper) -> int:
        """Load one of the engine's own kernels; return its handle."""
        if name not in self._helpers:
            if not self._helpers:
                self._modules.append(self._driver.load(helper_ptx(self.architecture), "minga"))
                self._helper_module = self._modules[-1]
            self._helpers[name] = self._driver.function(self._helper_module, entry(name))
        return self._helpers[name]

    def launch(self, function: int, grid: Size, block: Size, args: int) -> None:
        """Launch a kernel on the stream."""
        self._driver.launch(function, grid, block, self._stream.ptr, args, self.worker)

    def synchronise(self) -> None:
        """Wait until all launches are complete."""
        try:
            self._stream.synchronize()
        except Exception as error:
            raise _failed(error, "waiting for kernels") from error

    def fetch(self, source: int, target: int, size: int) -> None:
        """Copy bytes to host memory after all earlier launches, and wait for the copy."""
        try:
            self._runtime.memcpyAsync(target, source, size, _DEVICE_TO_HOST, self._stream.ptr)
        except Exception as error:
            raise _failed(error, "fetching what kernels stored") from error
        self.synchronise()

    def copy_staged(self, source: int, target: np.ndarray, keep: object) -> Pending:
        """Start a copy of staged memory to the host, concurrently with later launches."""
        # Waiting threads sleep: one may be the thread that writes frames.
        try:
            filled, there = (self._cuda.Event(block=True, disable_timing=True) for _ in range(2))
            filled.record(self._stream)
            self._leaving_stream.wait_event(filled)
            self._runtime.memcpyAsync(
                int(target.ctypes.data), source, target.nbytes, _ANY_TO_ANY, self._leaving_stream.ptr
            )
            there.record(self._leaving_stream)
            # The copied memory must live until the copy is complete, even if nobody waits for it.
            self._leaving = [copy for copy in self._leaving if not copy.done()]
        except Exception as error:
            raise _failed(error, "copying a field from the GPU") from error
        self._leaving.append(_Leaving(there, self._place, (keep, target, filled)))
        if not self._concurrent:
            self._leaving[-1].wait()  # on such systems shared memory must not be accessed while a kernel runs
        return self._leaving[-1]

    def elapsed(self, work: Callable[[], object]) -> float:
        """Return the seconds between the first and the last launch of `work`, by the device's clock."""
        first, last = self._cuda.Event(), self._cuda.Event()
        first.record(self._stream)
        work()
        last.record(self._stream)
        last.synchronize()
        return float(self._cuda.get_elapsed_time(first, last)) * 1e-3

    # Native code ---------------------------------------------------------------------------------------------------
    def functions(self) -> DriverFunctions:
        """Return the driver functions that native code calls."""
        return DriverFunctions(
            launch=self._driver.address("cuLaunchKernel"),
            copy=self._driver.address("cuMemcpyDtoHAsync_v2"),
            synchronise=self._driver.address("cuStreamSynchronize"),
            stream=int(self._stream.ptr),
        )

    def error(self, code: int) -> str:
        """Return the description of a driver result code."""
        return self._driver.error(code)

    def close(self) -> None:
        """Release streams and kernels; arrays stay readable."""
        with contextlib.suppress(Exception):  # the error was reported where it occurred; nothing is left to do about it
            self._stream.synchronize()
            self._leaving_stream.synchronize()
        self._leaving.clear()
        for module in self._modules:
            self._driver.unload(module)
        self._modules.clear()
        self._kernels.clear()
        self._helpers.clear()


def _failed(error: Exception, doing: str) -> RunError:
    return RunError(
        f"the GPU reports an error: {error}",
        where=doing,
        remedy="the cause may be any kernel launched before; see what else uses the GPU (nvidia-smi), or run on the "
        "processor",
    )
