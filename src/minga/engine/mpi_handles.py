"""MPI for native code: addresses of its functions, and handles as the library represents them in memory."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import MPIBroadcast, MPIChannel, MPIComm
from minga.engine.command import Allreduce

_FUNCTIONS: Final = ("MPI_Start", "MPI_Startall", "MPI_Test", "MPI_Allreduce")


@functools.cache
def mpi_functions() -> dict[str, int]:
    """Return the addresses of MPI's functions as mpi4py finds them. Raise AttributeError if the library hides them."""
    from mpi4py import MPI

    library = ctypes.CDLL(MPI.__file__)  # already loaded; its handle gives access to the libraries it is linked with
    return {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in _FUNCTIONS}


class Handles:
    """Handles of a communicator, of its channels' requests and of persistent collectives, at fixed addresses."""

    def __init__(self, comm: MPIComm) -> None:
        from mpi4py import MPI

        self._mpi: Any = MPI
        self._communicator = comm.communicator
        self._collectives: dict[tuple[int, int, str], Any] = {}
        self._requests: dict[int, tuple[NDArray[np.uint8], int, object]] = {}
        self._copies: list[NDArray[np.int64]] = []
        self._status = np.zeros(MPI._sizeof(MPI.Status) // 8 + 1, np.int64)

    @property
    def status(self) -> int:
        """Address of memory for a status, which is never read."""
        return int(self._status.ctypes.data)

    @property
    def request_bytes(self) -> int:
        """Bytes of a request's handle."""
        return int(self._mpi._sizeof(self._mpi.Request))

    @property
    def communicator(self) -> int:
        """Handle of the communicator."""
        return self._handle(self._communicator)

    @property
    def int64(self) -> int:
        """Handle of the type MPI_INT64_T."""
        return self._handle(self._mpi.INT64_T)

    def channel(self, channel: MPIChannel | MPIBroadcast) -> tuple[int, int]:
        """Return the count and the address of a channel's requests."""
        return self._in_memory(channel, channel.requests)

    def collective(self, command: Allreduce) -> tuple[int, int] | None:
        """Return the count (1) and address of a persistent collective's request; None if unsupported (before MPI 4)."""
        array = command.words
        key = int(array.ctypes.data), array.size, command.operation
        if key not in self._collectives:
            try:
                self._collectives[key] = self._communicator.Allreduce_init(
                    self._mpi.IN_PLACE, [array, self._mpi.INT64_T], op=self._operation(command)
                )
            except NotImplementedError:
                return None
        return self._in_memory(self._collectives[key], [self._collectives[key]])

    def blocking(self, command: Allreduce) -> tuple[int, int, int, int]:
        """Return the addresses of a copy and of the words of an Allreduce, their number, and its operation's handle."""
        copy = np.empty_like(command.words)
        self._copies.append(copy)
        operation = self._handle(self._operation(command))
        return int(copy.ctypes.data), int(command.words.ctypes.data), copy.size, operation

    def error(self, code: int) -> str:
        """Return the description of an MPI function's result."""
        return str(self._mpi.Get_error_string(code))

    def close(self) -> None:
        """Free the persistent collectives."""
        for request in self._collectives.values():
            request.Free()
        self._collectives = {}

    def _operation(self, command: Allreduce) -> Any:
        return {"sum": self._mpi.SUM, "max": self._mpi.MAX, "min": self._mpi.MIN}[command.operation]

    def _bytes(self, item: Any) -> bytes:
        """Return an MPI object's handle: an int in some libraries, a pointer in others."""
        return ctypes.string_at(self._mpi._addressof(item), self._mpi._sizeof(item))

    def _handle(self, item: Any) -> int:
        """Return a handle as a word, which is how it is passed to a function."""
        return int.from_bytes(self._bytes(item), sys.byteorder, signed=True)

    def _in_memory(self, owner: object, requests: Sequence[Any]) -> tuple[int, int]:
        """Return the number and the address of the requests' handles, stored one after another.

        Persistent requests keep their handles until they are freed.
        """
        if id(owner) not in self._requests:
            data = b"".join(self._bytes(request) for request in requests)
            # The owner is kept alive so that no other object gets its id.
            self._requests[id(owner)] = np.frombuffer(bytearray(data), np.uint8), len(requests), owner
        memory, count, _ = self._requests[id(owner)]
        return count, int(memory.ctypes.data)
