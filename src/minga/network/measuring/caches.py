"""Amount of memory through which messages are rotated, so that none of them is in a cache."""

from __future__ import annotations

from typing import Final

from minga.plan.machine.resources import available_memory, cache_bytes

__all__ = ["arena_bytes", "last_cache"]

_LEAST, _MOST = 32 << 20, 512 << 20
_PART: Final = 4
"""Divisor of the free memory that gives the upper limit."""


def last_cache() -> int | None:
    """Return the bytes of the last-level cache of this process's processor; None if the system does not tell."""
    return max((size for level in (2, 3, 4) if (size := cache_bytes(level)) is not None), default=None)


def arena_bytes() -> int:
    """Return the bytes to rotate through: twice the last-level cache, as far as there is memory for it."""
    wanted = max(_LEAST, min(_MOST, 2 * (last_cache() or 0)))
    free = available_memory()
    return wanted if free is None else max(1 << 20, min(wanted, free // _PART))
