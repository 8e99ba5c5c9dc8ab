"""A server of the live page of a run, in a thread of a test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from minga.output.directory import RunDirectory
from minga.view.live.server import LiveServer


@contextmanager
def serving(run: RunDirectory) -> Iterator[LiveServer]:
    """Serve the live page of a run inside the ``with`` block."""
    with LiveServer(run) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
