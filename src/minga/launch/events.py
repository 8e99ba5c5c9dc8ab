"""What the ranks tell the process that started them: one line of JSON each, marked, on standard output.

Whatever else the ranks print (a Python case may) goes to standard error, so that ``--json`` leaves one object only.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import TextIO

from minga.view.progress import Listener, Progress

__all__ = ["ANSWER", "EventWriter", "dispatch", "silence_stdout"]

ANSWER = "answer"
"""The event of ranks that have agreed on their last step."""

_MARK = "\x1eminga "


class EventWriter:
    """The listener on rank 0 that passes everything on to the process that started the ranks.

    Takes over standard output: from here on it belongs to the events, and prints go to standard error.
    """

    def __init__(self) -> None:
        self._stream: TextIO = os.fdopen(os.dup(1), "w", encoding="utf-8")
        self.broken = False
        silence_stdout()

    def progress(self, progress: Progress) -> None:
        self._send("progress", asdict(progress))

    def note(self, text: str) -> None:
        self._send("note", {"text": text})

    def answer(self) -> None:
        """The last step is done; what follows is output."""
        self._send(ANSWER, {})

    def _send(self, kind: str, content: dict[str, object]) -> None:
        if self.broken:
            return
        try:
            self._stream.write(_MARK + json.dumps({"event": kind, **content}) + "\n")
            self._stream.flush()
        except OSError:
            self.broken = True  # whoever started us is gone; the caller looks at this and stops


def silence_stdout() -> None:
    """Send what this process prints to standard error, also what libraries print."""
    sys.stdout.flush()
    os.dup2(2, 1)


def dispatch(line: str, listener: Listener) -> str | None:
    """Hand an event line to a listener; the event, None where the line is none."""
    if not line.startswith(_MARK):
        return None
    content = json.loads(line[len(_MARK) :])
    event: str = content.pop("event")
    match event:
        case "progress":
            listener.progress(Progress(**content))
        case "note":
            listener.note(content["text"])
    return event
