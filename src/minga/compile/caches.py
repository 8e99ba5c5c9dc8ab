"""The sizes of this processor's caches, as far as the system tells them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

CACHES: Final = Path("/sys/devices/system/cpu/cpu0/cache")
UNKNOWN: Final = 512 << 10
"""Bytes of an L2 cache whose size is unknown: few processors since 2017 have less."""
_UNITS: Final = {"K": 10, "M": 20, "G": 30}


@functools.cache
def second_cache(directory: Path = CACHES) -> int:
    """Return the bytes of a core's L2 cache.

    Virtual machines report it correctly, in contrast to the L3 cache, which they share with others.

    Parameters
    ----------
    directory
        Description of the caches of a core, as Linux has it in /sys.
    """
    return next(_sizes(directory, level=2), UNKNOWN)


@functools.cache
def third_cache(directory: Path = CACHES) -> int:
    """Return the bytes of the L3 cache that the system tells; 0 if it tells none.

    Other machines on the same processor may use most of it: whether something is fast in it must be measured.

    Parameters
    ----------
    directory
        Description of the caches of a core, as Linux has it in /sys.
    """
    return next(_sizes(directory, level=3), 0)


def _sizes(directory: Path, level: int) -> Iterator[int]:
    for cache in sorted(directory.glob("index*")):
        with contextlib.suppress(OSError, ValueError, KeyError):
            size = (cache / "size").read_text().strip()
            if int((cache / "level").read_text()) == level and size:
                number, unit = (size[:-1], size[-1]) if size[-1] in _UNITS else (size, "")
                yield int(number) << (_UNITS[unit] if unit else 0)
