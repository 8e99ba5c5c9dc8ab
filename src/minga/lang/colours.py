"""Colours of states, as rules and cases give them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from minga.errors import shown

__all__ = ["as_colours"]

_HEXADECIMAL: Final = re.compile(r"#[0-9a-fA-F]{6}")
_MOST: Final = 256


def as_colours(colours: Sequence[str], states: int | None = None) -> tuple[str, ...]:
    """Check colours such as "#1f3b57", the first of which is for state 0, and return them in lower case.

    Parameters
    ----------
    colours
        The colours, each written "#rrggbb".
    states
        Number of states that need a colour; None if it is not known.

    Raises
    ------
    ValueError
        If a colour is written in another way, or the number of colours does not fit.
    """
    codes = tuple(colours)
    if isinstance(colours, str) or not all(isinstance(word, str) and _HEXADECIMAL.fullmatch(word) for word in codes):
        wrong = next((word for word in codes if not (isinstance(word, str) and _HEXADECIMAL.fullmatch(word))), colours)
        raise ValueError(
            f'found {shown(colours if isinstance(colours, str) else wrong)}; a colour is written "#rrggbb"'
        )
    if codes and states is not None and len(codes) != states:
        raise ValueError(f"{len(codes)} colours for {states} states")
    if len(codes) > _MOST:
        raise ValueError(f"{len(codes)} colours; {_MOST} is the most")
    return tuple(word.lower() for word in codes)
