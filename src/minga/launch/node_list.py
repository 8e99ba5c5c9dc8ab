"""Lists of nodes as Slurm writes them: ``node[1-3,07-10]``, ``rack[1-2]n[01-03]``, ``login,node[1-2]``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Final

__all__ = ["expand"]

_MOST: Final = 1 << 17
"""Maximum number of names in a list: a range such as [1-999999999] is a mistake."""
_PART: Final = re.compile(r"([^\[\],]*)\[([^\[\]]*)\]|([^\[\],]+)")
_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?")


def expand(text: str) -> list[str]:
    """Return the names in a list of nodes; several brackets vary like digits, the last one fastest.

    Raises
    ------
    ValueError
        If brackets or ranges are invalid, or the list has more than 131072 names; the message says why.
    """
    return [name for item in _items(text) for name in _names(item)]


def _items(text: str) -> Iterator[str]:
    """Yield the parts of a list between the commas outside brackets."""
    depth, begin = 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]


def _names(item: str) -> list[str]:
    choices: list[list[str]] = []
    end = 0
    for match in _PART.finditer(item):
        if match.start() != end:
            break
        end = match.end()
        choices.append([match[3]] if match[3] is not None else [match[1] + number for number in _numbers(match[2])])
    if end != len(item) or not choices:
        raise ValueError(f"{item!r} is no list of nodes such as node[1-3,07-10]")
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > _MOST:
        raise ValueError(f"{item!r} stands for {count} names, more than {_MOST}")
    return ["".join(parts) for parts in itertools.product(*choices)]


def _numbers(text: str) -> list[str]:
    """Return the numbers of a bracket, with as many digits as the first number of each range has."""
    found: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        low, high = (match[1], match[2] or match[1]) if match else ("1", "0")
        if int(low) > int(high):
            raise ValueError(f"[{text}] is no list of numbers such as [1-3,07-10]")
        if int(high) - int(low) >= _MOST:
            raise ValueError(f"[{text}] stands for more than {_MOST} numbers")
        found += [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]
    return found
