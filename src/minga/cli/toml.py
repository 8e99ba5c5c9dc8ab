"""TOML functions missing from the standard library: writing tables, and finding the line of a key."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath

__all__ = ["dump", "line_of", "parse_value"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"\s*\[\[?\s*(?P<name>[^\]]+?)\s*\]\]?\s*(#.*)?$")
_WORD = r"""(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)"""
_ASSIGNMENT = re.compile(rf"\s*(?P<key>{_WORD}(?:\s*\.\s*{_WORD})*)\s*=")


def parse_value(text: str) -> object:
    """Parse a value from the command line: as TOML if it is valid TOML, otherwise as a string, so ``B3/S23`` works."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if set(parsed) == {"value"} else text


def dump(table: Mapping[str, object]) -> str:
    """Return a table as TOML text, plain entries before sub-tables; entries that are None are left out."""
    return "\n".join(_lines(table, ())) + "\n"


def line_of(text: str, key: str) -> int:
    """Return the line, counted from 1, that sets a dotted key, else the line of its table, else 0."""
    wanted = _parts(re.sub(r"\[\d+\]", "", key))
    entries = _entries(key)
    seen: Counter[tuple[str, ...]] = Counter()
    best, found = 0, 0
    table: tuple[str, ...] = ()
    closing = ""
    for number, line in enumerate(text.splitlines(), 1):
        if closing:  # inside a multi-line string nothing is a key
            closing = "" if closing in line else closing
            continue
        if header := _HEADER.match(line):
            table = _parts(header["name"])
            if line.lstrip().startswith("[["):
                seen[table] += 1
            if any(seen[table[: len(at)]] > 0 and seen[table[: len(at)]] - 1 != entry for at, entry in entries.items()):
                table = ("",)  # another entry of the list than the key names
            here = table
        elif assignment := _ASSIGNMENT.match(line):
            here = table + _parts(assignment["key"])
            rest = line[assignment.end() :]
            closing = next((quote for quote in ('"""', "'''") if rest.count(quote) == 1), "")
        else:
            continue
        if here == wanted[: len(here)] and len(here) > best:
            best, found = len(here), number
    return found


def _entries(key: str) -> dict[tuple[str, ...], int]:
    """Return the indices of list entries in a key by the path of the list: {("photodiode", "layers"): 2}."""
    found = {}
    for match in re.finditer(r"\[(\d+)\]", key):
        found[_parts(re.sub(r"\[\d+\]", "", key[: match.start()]))] = int(match[1])
    return found


def _parts(key: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(r"""\s*(?:"[^"]*"|'[^']*'|[^.]+)""", key))


def _lines(table: Mapping[str, object], path: tuple[str, ...]) -> list[str]:
    entries = {key: value for key, value in table.items() if value is not None}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in entries.items() if not isinstance(value, Mapping)]
    for key, value in entries.items():
        if isinstance(value, Mapping):
            inner = (*path, key)
            lines += ["", "[" + ".".join(map(_key, inner)) + "]", *_lines(value, inner)]
    return lines


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else ("nan" if math.isnan(value) else f"{value:+}")
        case str() | PurePath():
            return _string(str(value))
        case Mapping():
            inner = ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None)
            return "{ " + inner + " }" if inner else "{}"
        case Sequence():
            return "[" + ", ".join(map(_value, value)) + "]"
    raise TypeError(f"{value!r} has no form in TOML")


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
