"""MPI messages between two ranks of a communicator, through the library that mpi4py has loaded."""

from __future__ import annotations

from typing import Any

__all__ = ["MpiWire"]

_MOST = 1 << 28


class MpiWire:
    """One end of a connection: messages of this rank to and from ``peer``. ``communicator`` is one of mpi4py."""

    transport = "mpi"
    least = 0
    most = _MOST

    def __init__(self, communicator: Any, peer: int, tag: int = 2) -> None:
        from mpi4py import MPI

        self.communicator, self.peer, self.tag = communicator, peer, tag
        self._byte = MPI.BYTE

    def send(self, data: memoryview) -> None:
        """Send a message."""
        self.communicator.Send((data, self._byte), self.peer, self.tag)

    def receive(self, data: memoryview) -> None:
        """Receive a message."""
        self.communicator.Recv((data, self._byte), self.peer, self.tag)

    def both(self, sent: memoryview, received: memoryview) -> None:
        """Send and receive at the same time."""
        byte, peer, tag = self._byte, self.peer, self.tag
        self.communicator.Sendrecv((sent, byte), peer, tag, (received, byte), peer, tag)

    def close(self) -> None:
        """Do nothing, as no resources are held."""
