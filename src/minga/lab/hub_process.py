"""Starting the hub or switch of a lab as a separate program, and reading its counters."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from minga.errors import LaunchError
from minga.lab import hub
from minga.lab.commands import detached
from minga.lab.state import State, filing
from minga.launch.processes import Process, descendants, kill, process_here

__all__ = ["hub_counts", "start_hub"]

_PATIENCE = 20.0


def start_hub(state: State, note: Callable[[Process], None]) -> Process:
    """Start the hub in the namespace of the switch, and wait until it forwards frames.

    ``note`` is called with the process at once. The hub also ends by itself when its ports disappear.

    Raises
    ------
    LaunchError
        If the hub does not start within 20 seconds.
    """
    log = state.folder / "hub.log"
    with filing():
        errors = log.open("w")
    with errors:
        child = detached(_hub_command(state), stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
    process = process_here(child.pid)
    if process is not None:
        note(process)
        with contextlib.suppress(OSError):  # root only; a real switch does not wait for the nodes' programs
            os.sched_setscheduler(child.pid, os.SCHED_RR, os.sched_param(1))
    end = time.monotonic() + _PATIENCE
    while child.poll() is None and time.monotonic() < end:
        if process is not None and _counts(state) is not None:
            return process
        time.sleep(0.005)
    kill([child.pid, *descendants(child.pid)])
    said = log.read_text(errors="replace").strip()
    raise LaunchError(f"the {state.lab.wiring} of the lab did not start: {said or 'it printed nothing'}")


def hub_counts(state: State) -> dict[str, Any] | None:
    """Return the current counters of :mod:`minga.lab.hub`, or None if the lab has no such program."""
    counts = _counts(state)
    if state.hub is None or counts is None or not state.hub.lives:
        return counts
    before = _status(state).stat().st_mtime_ns
    os.kill(state.hub.pid, signal.SIGUSR1)  # it writes them anew, within 0.2 seconds
    end = time.monotonic() + 1.0
    while _status(state).stat().st_mtime_ns == before and time.monotonic() < end:
        time.sleep(0.005)
    return _counts(state)


def _counts(state: State) -> dict[str, Any] | None:
    try:
        counts: dict[str, Any] = json.loads(_status(state).read_text())
    except (OSError, ValueError):
        return None
    return counts


def _status(state: State) -> Path:
    return state.folder / "hub.json"


def _hub_command(state: State) -> list[str]:
    lab = state.lab
    rates = [lab.rate or 0.0] if lab.wiring == "hub" else [rate or 0.0 for rate in lab.rates]
    options = {
        "ports": ",".join(f"p{node}" for node in range(len(lab.nodes))),
        "rate": ",".join(str(rate) for rate in rates),
        "latency": lab.latency,
        "loss": lab.loss,
        "duplicate": lab.duplicate,
        "reorder": lab.reorder,
        "seed": lab.seed,
        "switches": ",".join(map(str, lab.switches)),
        "uplink": lab.uplink,
        "status": _status(state),
    }
    return [
        *state.prefix,
        "nsenter",
        f"--net=/run/netns/{state.namespace(None)}",
        sys.executable,
        "-I",
        str(Path(hub.__file__)),
        *(f"--{name}={value}" for name, value in options.items()),
        *(() if lab.wiring == "hub" else ("--switch",)),
    ]
