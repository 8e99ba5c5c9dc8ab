"""The commands ``minga watch RUN`` and ``minga run --serve``: serve the live page of a run from a separate process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from minga.errors import CaseError
from minga.output.directory import RunDirectory

__all__ = ["newest_run", "start_server", "watch"]

PATIENCE = 120.0
"""Seconds that the page of `--serve` stays available after the run without requests. Browsers wake pages in the
background once a minute."""


def watch(run: Path | None, port: int) -> None:
    """Serve the page of a run, by default the newest one under ``runs``, until Ctrl-C."""
    from minga.view.live.server import LiveServer

    directory = RunDirectory.open_early(run) if run is not None else newest_run()
    with LiveServer(directory, port) as server:
        sys.stderr.write(f"minga: {directory.path} is at {server.address}\nPress Ctrl-C to close the page.\n")
        sys.stderr.flush()
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            sys.stderr.write("\n")


def newest_run(parent: Path = Path("runs")) -> RunDirectory:
    """Return the run that was started last; raise CaseError if there is none."""
    cases = list(parent.glob("*/case.toml"))
    if not cases:
        raise CaseError(f"there is no run in {parent}", key="RUN", remedy="name the directory of a run")
    return RunDirectory(max(cases, key=lambda case: case.stat().st_mtime).parent)


def start_server(directory: RunDirectory) -> str:
    """Start a process that serves the page of a run while either is in use, and return a note for the user.

    The process runs in the background, in its own session and without open files of this process, so neither a Ctrl-C
    here nor its end there affects the other process.
    """
    try:
        said = subprocess.run(
            [sys.executable, "-m", "minga.view.live", str(directory.path), str(PATIENCE)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            check=False,
        ).stdout
    except OSError as error:
        said = error.strerror or ""
    lines = said.split("\n")
    address = next((line for line in lines if line.startswith("http://")), None)
    return f"minga: live at {address}" if address else f"minga: the live page could not be started: {lines[-1]}"
