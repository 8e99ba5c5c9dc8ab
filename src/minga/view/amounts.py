"""Numbers, durations and amounts of bytes as people read them on a page."""

from __future__ import annotations

from minga.view.progress import time_text

__all__ = ["amount", "bytes_text", "grouped", "quantity", "seconds_text"]

_UNITS = {1e-6: "\u00b5s", 1e-3: "ms"}


def quantity(value: float) -> str:
    """Format a number in few characters: ``0.25``, ``1500``, ``20k``, ``3M``, ``1e-7``."""
    size = abs(value)
    for limit, prefix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if limit <= size < 1e12:
            return f"{value / (1e3 if prefix == 'k' else limit):.4g}{prefix}"
    if size and (size < 1e-3 or size >= 1e12):
        return f"{value:.2g}".replace("e-0", "e-").replace("e+", "e")
    return f"{value:.4g}"


def amount(value: float, unit: str) -> str:
    """Format a number with its unit, which takes the prefix: ``33.6 GHz``, ``20 kA/m2``; a unit of 1 is not written."""
    text = quantity(value)
    number, prefix = (text[:-1], text[-1]) if text[-1] in "kMG" else (text, "")
    return text if unit == "1" else f"{number} {prefix}{unit}"


def grouped(value: float) -> str:
    """Format a whole number with thin gaps between thousands."""
    return f"{round(value):,}".replace(",", "\u202f")


def seconds_text(seconds: float) -> str:
    """Format a duration of any size: ``97 µs``, ``1.2 ms``, ``0.85 s``, ``3:07``."""
    for limit, unit in ((1e-3, 1e-6), (0.1, 1e-3)):
        if 0 < seconds < limit:
            amount = seconds / unit
            return f"{amount:.2g} {_UNITS[unit]}" if amount < 10 else f"{amount:.0f} {_UNITS[unit]}"
    return time_text(seconds) if seconds else "0"


def bytes_text(count: float) -> str:
    """Format an amount of bytes with a unit prefix: ``1.13 MB``."""
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= limit:
            return f"{count / limit:.3g} {prefix}B"
    return f"{count:.3g} B"
