"""``happened.jsonl``: what has happened to the hosts and ranks of a run, a line each time it was started again."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

from minga.output.directory import RunDirectory

__all__ = ["happened", "note_happening"]


def note_happening(directory: RunDirectory, step: int, text: str) -> None:
    """Add a line: at about which step something happened, and what. A disk error does not end the run."""
    with contextlib.suppress(OSError), directory.happened.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"time": time.time(), "step": step, "text": text}) + "\n")


def happened(directory: RunDirectory) -> list[dict[str, Any]]:
    """Return all lines, which have ``time`` in seconds since 1970, ``step`` and ``text``; without damaged ones."""
    found = []
    try:
        lines = directory.happened.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            content = json.loads(line)
            found.append({"time": float(content["time"]), "step": int(content["step"]), "text": str(content["text"])})
    return found
