"""``python -m minga.view.live RUN PATIENCE``: the server of ``minga run --serve``, which outlives the run a little.

Its first line on standard output is the page's address. Then it goes on in the background, silent, and ends when the
run is over and nobody has looked for PATIENCE seconds.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from minga.output.directory import RunDirectory
from minga.view.live.server import LiveServer


def main(arguments: list[str]) -> None:
    """Serve the run in the directory that is named."""
    run, patience = arguments
    with LiveServer(RunDirectory(Path(run))) as server:
        sys.stdout.write(server.address + "\n")
        sys.stdout.flush()
        if os.fork():
            os._exit(0)  # whoever started this need not wait for it
        silence()
        server.serve_until_forgotten(float(patience))


def silence() -> None:
    """Let go of the terminal and of pipes that others wait for the end of."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


if __name__ == "__main__":
    main(sys.argv[1:])
