"""Server of ``minga run --serve``, started as ``python -m minga.view.live RUN PATIENCE``; it outlives the run briefly.

Its first line on standard output is the page's address. Then it continues in the background, silently, and ends when
the run is over and no page has been requested for PATIENCE seconds.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from minga.output.directory import RunDirectory
from minga.view.live.server import LiveServer


def main(arguments: list[str]) -> None:
    """Serve the run in the given directory."""
    run, patience = arguments
    with LiveServer(RunDirectory(Path(run))) as server:
        sys.stdout.write(server.address + "\n")
        sys.stdout.flush()
        if os.fork():
            os._exit(0)  # the starting process need not wait for the server
        silence()
        server.serve_until_forgotten(float(patience))


def silence() -> None:
    """Detach from the terminal and from pipes whose end others wait for."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


if __name__ == "__main__":
    main(sys.argv[1:])
