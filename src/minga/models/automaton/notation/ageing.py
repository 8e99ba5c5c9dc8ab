"""Cells that die slowly: after state 1, the only live one, they count up to the last state and then vanish."""

from __future__ import annotations

from typing import Final

from minga.lang.expr import Node, const, where

__all__ = ["aged", "ageing_colours"]

_EMPTY: Final = "#f7f5ef"
_ALIVE: Final = "#1f3b57"
_DYING: Final = (0xC8, 0x38, 0x1E), (0xF2, 0xDC, 0xA8)


def aged(cell: Node, lives: Node, states: int) -> Node:
    """Return the next state; `lives` says for cells in states 0 and 1 whether they are alive next.

    With two states that is all. With more states, a live cell that does not survive goes to state 2, state k to k + 1,
    and the last state to 0.
    """
    if states == 2:
        return lives
    older = where((cell == 0) | (cell == states - 1), const(0, "u1"), cell + 1)
    return where((cell <= 1) & lives, const(1, "u1"), older)


def ageing_colours(states: int) -> tuple[str, ...]:
    """Return colours of such cells: dark when alive, then fading from red to pale; an empty tuple for two states."""
    if states == 2:
        return ()
    last = max(1, states - 3)
    fading = [[round(a + (b - a) * age / last) for a, b in zip(*_DYING)] for age in range(states - 2)]
    return (_EMPTY, _ALIVE, *(f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in fading))
