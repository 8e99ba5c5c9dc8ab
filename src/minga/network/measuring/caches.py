"""How much memory messages are rotated through so that none of them is in a cache."""

from __future__ import annotations

from typing import Final

from minga.plan.machine.resources import available_memory, cache_bytes

__all__ = ["arena_bytes", "last_cache"]

_LEAST, _MOST = 32 << 20, 512 << 20
_PART: Final = 4
"""At most one part in so many of the memory that is free."""


def last_cache() -> int | None:
    """Bytes of the last cache of this process's processor; None where the system does not tell."""
    return max((size for level in (2, 3, 4) if (size := cache_bytes(level)) is not None), default=None)


def arena_bytes() -> int:
    """Twice the last cache, as far as there is memory for it."""
    wanted = max(_LEAST, min(_MOST, 2 * (last_cache() or 0)))
    free = available_memory()
    return wanted if free is None else max(1 << 20, min(wanted, free // _PART))
