"""GPU launches in the records of the native loop, which calls the driver's functions by address."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from minga.engine import loop_code as words
from minga.engine.command import Category, Command, Fetch, Launch, Synchronise
from minga.engine.device import Device
from minga.errors import RunError

__all__ = ["Launcher"]


class Launcher:
    """Encodes the device commands of one list; it lives as long as the list."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._functions = device.functions()
        self._kept: list[NDArray[np.int64]] = []
        self._worker = device.worker

    def encode(self, command: Launch | Synchronise | Fetch) -> tuple[int, ...]:
        """Return the words of a command's record."""
        functions = self._functions
        match command:
            case Launch():
                return words.OP_LAUNCH, functions.launch, self._launch(command), command.column
            case Synchronise():
                return words.OP_SYNCHRONISE, functions.synchronise, functions.stream, command.column
            case Fetch():
                copy = self._array(
                    functions.copy,
                    command.target,
                    command.source,
                    command.size,
                    functions.stream,
                    functions.synchronise,
                )
                return words.OP_FETCH, copy, Category.COMPUTE

    def _launch(self, command: Launch) -> int:
        """Return the address of the arguments of cuLaunchKernel, which include the addresses of kernel parameters."""
        values = self._array(command.args, self._worker)
        params = self._array(values, values + 8)
        return self._array(command.function, *command.grid, *command.threads, 0, self._functions.stream, params, 0)

    def _array(self, *values: int) -> int:
        array = np.array(values, np.int64)
        self._kept.append(array)
        return int(array.ctypes.data)

    def failure(self, command: Command, code: int) -> RunError:
        """Return the error for a driver function that did not return 0."""
        where = f"launching {command.label!r}" if isinstance(command, Launch) else "waiting for the GPU"
        return RunError(
            f"the GPU reports an error: {self._device.error(code)}",
            where=where,
            remedy="the cause may be any kernel launched before; run with native=False to learn more, "
            "or on the processor",
        )
