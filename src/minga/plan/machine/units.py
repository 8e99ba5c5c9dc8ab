"""Quantities as people write them: ``"50 us"``, ``"100 Mb/s"``, ``"16 GiB"``, ``"1.2 Gcells/s"``; numbers are in SI."""

from __future__ import annotations

import math
import re
from typing import Final, Literal

__all__ = ["Kind", "quantity"]

Kind = Literal["time", "rate", "memory", "speed"]

_PREFIXES: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}
_SECONDS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_WRITTEN: Final = r"\s*([0-9.]+(?:[eE][-+]?\d+)?)\s*([A-Za-zµμ/]*)\s*"
_EXAMPLES: Final = {
    "time": 'seconds, or a time such as "50 us"',
    "rate": 'bytes per second, or a rate such as "100 Mb/s" (bits) or "11 MB/s" (bytes)',
    "memory": 'bytes, or an amount such as "16 GB"',
    "speed": 'cells per second, or a speed such as "1.2 Gcells/s"',
}


def quantity(value: object, kind: Kind) -> float:
    """Parse a positive quantity to seconds, bytes per second, bytes, or cells per second.

    Parameters
    ----------
    value
        A number in these units, or text with a unit. ``kb/s`` and ``kbit/s`` are bits, ``kB/s`` bytes; ``k`` is 1000,
        ``Ki`` 1024. A time may be 0.
    kind
        The kind of quantity.

    Raises
    ------
    ValueError
        If the quantity is invalid; the message says what was expected.
    """
    number = _number(value, kind)
    if number is None or not math.isfinite(number) or number < 0 or (number == 0 and kind != "time"):
        raise ValueError(_EXAMPLES[kind])
    return number


def _number(value: object, kind: Kind) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    found = re.fullmatch(_WRITTEN, value) if isinstance(value, str) else None
    if found is None:
        return None
    try:
        number = float(found[1])
    except ValueError:
        return None
    unit = found[2]
    if kind == "time":
        return number * _SECONDS[unit] if unit in _SECONDS else None
    if kind == "speed":
        prefix = re.fullmatch(r"([kMGT]?)cells/s", unit)
        return number * _PREFIXES[prefix[1]] if prefix else None
    if kind == "memory":
        prefix = re.fullmatch(r"([kMGT]|[KMG]i|)B", unit)
        return number * _PREFIXES[prefix[1]] if prefix else None
    prefix = re.fullmatch(r"([kKMmGgT]|[KMG]i|)(B|b|bit|bits)(?:/s|ps)", unit)
    if prefix is None:
        return None
    scale = _PREFIXES[prefix[1]] if prefix[1] in _PREFIXES else _PREFIXES[{"K": "k", "m": "M", "g": "G"}[prefix[1]]]
    return number * scale / (1 if prefix[2] == "B" else 8)
