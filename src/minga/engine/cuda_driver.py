"""C interface to the driver of NVIDIA GPUs: loading PTX, launching kernels, and describing errors.

Names and signatures: NVIDIA, "CUDA Driver API".
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from minga.errors import KernelError, RunError

__all__ = ["Driver", "driver"]

_NAMES: Final = ("libcuda.so.1", "nvcuda.dll")
_ERROR_LOG, _ERROR_LOG_BYTES = 5, 6  # CU_JIT_ERROR_LOG_BUFFER and its size
_LOG_BYTES: Final = 8192
_POINTER: Final = ctypes.c_void_p
_COUNT: Final = ctypes.c_uint


class Driver:
    """The loaded library. Functions that do not succeed raise RunError."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._launch = self._function("cuLaunchKernel", _POINTER, *[_COUNT] * 7, _POINTER, _POINTER, _POINTER)
        self._load = self._function(
            "cuModuleLoadDataEx", _POINTER, ctypes.c_char_p, _COUNT, _POINTER, _POINTER
        )  # fmt: skip
        self._find = self._function("cuModuleGetFunction", _POINTER, _POINTER, ctypes.c_char_p)
        self._unload = self._function("cuModuleUnload", _POINTER)
        self._prefetch = self._function("cuMemPrefetchAsync", _POINTER, ctypes.c_size_t, ctypes.c_int, _POINTER)

    def _function(self, name: str, *arguments: Any) -> Any:
        function = getattr(self._library, name)
        function.argtypes, function.restype = arguments, ctypes.c_int
        return function

    def address(self, name: str) -> int:
        """Return the address of a function, for native code."""
        return ctypes.cast(getattr(self._library, name), _POINTER).value or 0

    def load(self, ptx: str, name: str) -> int:
        """Translate PTX for the current device; return a module. Raise KernelError if the driver refuses it."""
        log = ctypes.create_string_buffer(_LOG_BYTES)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_BYTES)
        values = (_POINTER * 2)(ctypes.cast(log, _POINTER), _LOG_BYTES)
        module = _POINTER()
        code = self._load(ctypes.byref(module), ptx.encode(), 2, options, values)
        if code:
            said = log.value.decode(errors="replace").strip()
            raise KernelError(
                f"the GPU's driver cannot use the code of {name!r}: {self.error(code)}" + (f"\n{said}" if said else ""),
                remedy="update the driver, or run on the processor",
            )
        return module.value or 0

    def function(self, module: int, entry: str) -> int:
        """Return a kernel of a module."""
        function = _POINTER()
        self.check(self._find(ctypes.byref(function), module, entry.encode()), f"looking for the kernel {entry!r}")
        return function.value or 0

    def unload(self, module: int) -> None:
        """Release a module."""
        self._unload(module)

    def launch(self, function: int, grid: Sequence[int], block: Sequence[int], stream: int, *words: int) -> None:
        """Launch a kernel with word parameters on a stream."""
        values = (ctypes.c_uint64 * len(words))(*words)
        first = ctypes.addressof(values)
        params = (_POINTER * len(words))(*(first + 8 * number for number in range(len(words))))
        self.check(self._launch(function, *grid, *block, 0, stream, params, None), "launching a kernel")

    def prefetch(self, memory: np.ndarray, device: int, stream: int) -> None:
        """Move managed memory to a device, if the system can do so ahead of its use."""
        low, high = np.lib.array_utils.byte_bounds(memory)
        self._prefetch(low, high - low, device, stream)  # a hint: without it pages move when they are accessed

    def check(self, code: int, doing: str) -> None:
        """Raise RunError for a result other than success."""
        if code:
            raise RunError(
                f"the GPU reports an error: {self.error(code)}",
                where=doing,
                remedy="the cause may be any kernel launched before; see what else uses the GPU (nvidia-smi), or run "
                "on the processor",
            )

    def error(self, code: int) -> str:
        """Return the description of a result."""
        words = []
        for name in ("cuGetErrorName", "cuGetErrorString"):
            text = ctypes.c_char_p()
            if getattr(self._library, name)(ctypes.c_int(code), ctypes.byref(text)) == 0 and text.value:
                words.append(text.value.decode())
        return ", ".join(words) or f"number {code}"


@functools.cache
def driver() -> Driver:
    """Return the driver of this machine. Raise RunError if there is none."""
    for name in _NAMES:
        try:
            return Driver(ctypes.CDLL(name))
        except OSError:
            continue
    raise RunError(
        "the driver of NVIDIA GPUs is not installed here", remedy="install it, or run on the processor"
    )  # fmt: skip
