"""Lines of entries in a JSON file, for error messages."""

from __future__ import annotations

import json
import re
from typing import Final

__all__ = ["line_of_key"]

_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"[\s,:]*")


def line_of_key(text: str, key: str) -> int:
    """Return the line of the entry that a key such as ``nodes[1].link.latency`` names, from 1; 0 if there is none.

    Of a key that is only partly in the file, it is the line of the part that is.
    """
    at, line = _after(text, 0), 0
    for word in re.findall(r"[^.\[\]]+", key):
        found = _entry(text, at, word)
        if found is None:
            break
        line = text.count("\n", 0, found) + 1
        at = found
    return line


def _entry(text: str, at: int, word: str) -> int | None:
    """Return where an entry of the object or list at ``at`` begins: the value, by its name or number."""
    bracket = text[at : at + 1]
    if bracket not in ("{", "["):
        return None
    at, number = _after(text, at + 1), 0
    try:
        while text[at : at + 1] not in ("}", "]", ""):
            name = str(number)
            if bracket == "{":
                name, at = _DECODER.raw_decode(text, at)
                at = _after(text, at)
            if name == word:
                return at
            at = _after(text, _DECODER.raw_decode(text, at)[1])
            number += 1
    except (ValueError, RecursionError):
        return None
    return None


def _after(text: str, at: int) -> int:
    """Return the next position that is not between two entries."""
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
