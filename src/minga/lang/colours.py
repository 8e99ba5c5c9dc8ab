"""The colours in which states are drawn, as a rule or a case says them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from minga.errors import shown

__all__ = ["as_colours"]

_HEXADECIMAL: Final = re.compile(r"#[0-9a-fA-F]{6}")
_MOST: Final = 256


def as_colours(colours: Sequence[str], states: int | None = None) -> tuple[str, ...]:
    """Colours such as "#1f3b57", the first for state 0. ValueError for other words, and where states have none."""
    words = tuple(colours)
    if isinstance(colours, str) or not all(isinstance(word, str) and _HEXADECIMAL.fullmatch(word) for word in words):
        wrong = next((word for word in words if not (isinstance(word, str) and _HEXADECIMAL.fullmatch(word))), colours)
        raise ValueError(
            f'found {shown(colours if isinstance(colours, str) else wrong)}; a colour is written "#rrggbb"'
        )
    if words and states is not None and len(words) != states:
        raise ValueError(f"{len(words)} colours for {states} states")
    if len(words) > _MOST:
        raise ValueError(f"{len(words)} colours; {_MOST} is the most")
    return tuple(word.lower() for word in words)
