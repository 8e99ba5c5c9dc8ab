"""Signals received in a thread: while the main thread runs native code, Python calls no signal handler."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Final

__all__ = ["GRACE", "signals_in_thread"]

GRACE: Final = 5.0
"""Seconds after Ctrl-C or a termination signal in which a run has to end its step."""


@contextlib.contextmanager
def signals_in_thread(receive: Callable[[bytes], bool]) -> Iterator[threading.Event]:
    """Pass the numbers of arriving signals to a function that runs in a thread, inside the ``with`` block.

    Only signals for which Python has a handler arrive, and only the main thread may enter the block. The event that
    the block gets is set at its end; `receive` may wait for it.

    Parameters
    ----------
    receive
        Called with the numbers of one or more signals, one byte each. It returns True to receive no more of them.
    """
    reading, writing = socket.socketpair()
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            numbers = reading.recv(64)
            if numbers.strip(b"\0") and receive(numbers):
                return

    with reading, writing:
        writing.setblocking(False)
        thread = threading.Thread(target=watch, name="signals", daemon=True)
        thread.start()
        before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        try:
            yield over
        finally:
            over.set()
            signal.set_wakeup_fd(before)
            with contextlib.suppress(BlockingIOError):
                writing.send(b"\0")
            thread.join()
