"""Entries of the tables of a case, addressed by dotted keys."""

from __future__ import annotations

import re
from typing import Any

from minga.errors import CaseError, suggest
from minga.schema import dotted

__all__ = ["put_entry"]


def put_entry(table: dict[str, Any], key: str, value: object, origin: str) -> str:
    """Set an entry of a table, and return its key in the form that errors use.

    Parameters
    ----------
    table
        The table, which is changed.
    key
        Dotted key. An entry of a list is addressed by its number, ``layers[2].n``, or by its name if it has one,
        ``layers.Charge.n``.
    value
        The value.
    origin
        Where the value comes from, for errors.

    Raises
    ------
    CaseError
        If the key leads through something that is not a table, or to no entry of a list.
    """
    words = [word for part in key.split(".") for word in re.sub(r"\[(\d+)\]", r".\1", part).split(".")]
    place: Any = table
    said: list[str | int] = []
    for number, word in enumerate(words):
        if not isinstance(place, dict | list):
            raise CaseError(f"{key}: {words[number - 1]!r} is not a table", key=key, where=origin)
        entry: Any = word if isinstance(place, dict) else _entry(place, word, key, origin)
        said.append(entry)
        if number == len(words) - 1:
            place[entry] = value
        else:
            place = place.setdefault(entry, {}) if isinstance(place, dict) else place[entry]
    return dotted(*said)


def _entry(entries: list[Any], word: str, key: str, origin: str) -> int:
    """Return the index of the list entry that ``word`` addresses by number or by name."""
    names = [str(entry.get("name", "")) if isinstance(entry, dict) else "" for entry in entries]
    if word in names:
        return names.index(word)
    if word.isdecimal() and int(word) < len(entries):
        return int(word)
    named = [name for name in names if name]
    raise CaseError(
        f"{key}: there is no entry {word!r} in a list of {len(entries)}",
        key=key,
        where=origin,
        suggestion=suggest(word, named),
        remedy=f"its entries are called {', '.join(named)}" if named else "entries are counted from 0",
    )
