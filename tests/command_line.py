"""Run the command ``minga`` from a test, in this process (quick) or in one of its own (what a person sees)."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

SMALL = """\
model = "automaton"

[grid]
shape = [40, 64]
boundary = "periodic"

[automaton]
rule = "B3/S23"
init = {soup = 0.3, seed = 1}

[run]
steps = 10
ranks = 1

[output]
every = 5
pictures = 0
report = false
"""


@dataclass(frozen=True, slots=True)
class Said:
    """How a command ended and what it printed."""

    status: int
    out: str
    err: str


def in_process(*words: object) -> Said:
    """Run ``minga WORDS`` in this process."""
    from minga.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    status = 0
    with (
        mock.patch.object(sys, "argv", ["minga", *map(str, words)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Said(status, out.getvalue(), err.getvalue())


def command(*words: object) -> list[str]:
    """The command line of ``minga WORDS`` with this Python."""
    return [sys.executable, "-m", "minga", *map(str, words)]


def as_person(*words: object, timeout: float = 120, **environment: str) -> Said:
    """Run ``minga WORDS`` in a process of its own."""
    with subprocess.Popen(
        command(*words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            for _ in range(2):  # the second one ends the ranks, which are in a session of their own
                process.send_signal(signal.SIGINT)
                time.sleep(2)
            raise
        finally:
            process.kill()
    return Said(process.returncode, out, err)


@contextlib.contextmanager
def nothing_written(folder: Path) -> Iterator[None]:
    """Fail if anything in a folder appears, goes or changes inside the ``with`` block."""

    def state() -> dict[str, tuple[int, int]]:
        return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(folder.rglob("*"))}

    before = state()
    yield
    assert state() == before
