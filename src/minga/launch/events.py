"""Events that ranks report to the process that started them: marked lines of JSON on standard output.

Anything else that the ranks print (as a Python case may do) goes to standard error, so that ``--json`` prints a single
object.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TextIO

from minga.plan.drop import Drop
from minga.view.progress import Listener, Progress

__all__ = ["ANSWER", "DROP", "EventWriter", "dispatch", "silence_stdout"]

ANSWER = "answer"
"""Event of ranks that have agreed on their last step."""

DROP = "drop"
"""Event of ranks whose run would be shorter without some hosts."""

_MARK = "\x1eminga "


class EventWriter:
    """A listener on rank 0 that passes everything on to the process that started the ranks.

    It takes over standard output: from then on that carries only events, and prints go to standard error.
    """

    def __init__(self) -> None:
        self._stream: TextIO = os.fdopen(os.dup(1), "w", encoding="utf-8")
        self.broken = False
        silence_stdout()

    def progress(self, progress: Progress) -> None:
        """Report progress."""
        self._send("progress", asdict(progress))

    def note(self, text: str) -> None:
        """Report a note for the user."""
        self._send("note", {"text": text})

    def answer(self) -> None:
        """Report that the last step is done and only output follows."""
        self._send(ANSWER, {})

    def drop(self, drop: Drop) -> None:
        """Report ranks whose hosts the run should continue without."""
        self._send(DROP, asdict(drop))

    def _send(self, kind: str, content: dict[str, object]) -> None:
        if self.broken:
            return
        try:
            self._stream.write(_MARK + json.dumps({"event": kind, **content}) + "\n")
            self._stream.flush()
        except OSError:
            self.broken = True  # the launcher is gone; the caller checks this flag and stops


def silence_stdout() -> None:
    """Redirect standard output to standard error, also for libraries."""
    sys.stdout.flush()
    os.dup2(2, 1)


def dispatch(line: str, listener: Listener, on_drop: Callable[[Drop], object] = lambda drop: None) -> str | None:
    """Pass an event line to a listener and return the event's name; None if the line is not an event.

    ``on_drop`` is called with hosts without which the run should continue.
    """
    if not line.startswith(_MARK):
        return None
    content = json.loads(line[len(_MARK) :])
    event: str = content.pop("event")
    match event:
        case "progress":
            listener.progress(Progress(**content))
        case "note":
            listener.note(content["text"])
        case _ if event == DROP:
            on_drop(Drop(**{**content, "ranks": tuple(content["ranks"])}))
    return event
