"""Messages between ranks that carry parts of checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from numpy.typing import NDArray

from minga.engine.comm import Comm, Envelope

__all__ = ["exchange"]

_TAG: Final = 29_000
"""Tag that no exchange of cells has."""


def exchange(comm: Comm, sends: Mapping[int, NDArray[Any]], receives: Mapping[int, NDArray[Any]]) -> None:
    """Send bytes to other ranks, receive bytes from other ranks, by their numbers, and wait until that is done."""
    if not sends and not receives:
        return
    channel = comm.channel(
        [Envelope(peer, buffer) for peer, buffer in sends.items()],
        [Envelope(peer, buffer) for peer, buffer in receives.items()],
        _TAG,
    )
    try:
        channel.start()
        channel.wait()
    finally:
        channel.close()
