"""Time limits of jobs: what people write, and what Slurm reads."""

from __future__ import annotations

import math
import re
from typing import Final

from minga.engine.stop import duration
from minga.errors import CaseError

__all__ = ["limit_of", "margin_of", "slurm_time"]

_CLOCK: Final = re.compile(r"(?:(\d{1,4})-)?(\d{1,4}):(\d{2}):(\d{2})")
"""Slurm's form, days-hours:minutes:seconds."""
_SHORTEST: Final = 60
_LEAST_MARGIN, _MOST_MARGIN = 120, 600


def limit_of(text: str, key: str = "--time") -> int:
    """Return the seconds of a time limit such as ``"2h"``, ``"90 min"``, ``"02:00:00"`` or ``"1-12:00:00"``.

    A number alone is refused: it means minutes to Slurm, and seconds elsewhere in minga.

    Raises
    ------
    CaseError
        If it is none, or less than a minute.
    """
    if found := _CLOCK.fullmatch(text.strip()):
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        given = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    else:
        try:
            given = math.ceil(duration(text, key)) if not text.strip().isdecimal() else 0
        except CaseError:
            given = 0
        if not given:
            raise CaseError(
                f"found {text!r}", key=key, remedy='write "90 min", "2h", "1 d", or "02:00:00" as for Slurm'
            )
    if given < _SHORTEST:
        raise CaseError(f"{text!r} is less than a minute, which Slurm does not measure", key=key)
    return given


def margin_of(text: str | None, limit: int) -> int:
    """Return the seconds before a time limit at which a run is asked to stop.

    By default 5 % of the limit, at least two minutes and at most ten, but no more than half of the limit.

    Raises
    ------
    CaseError
        If ``text`` is no time, or no shorter than the limit.
    """
    if text is None:
        return min(limit // 2, max(_LEAST_MARGIN, min(_MOST_MARGIN, limit // 20)))
    given = math.ceil(duration(text, "--margin"))
    if given >= limit:
        raise CaseError(
            f"{text} before the limit of {slurm_time(limit)} nothing has been computed",
            key="--margin",
            remedy="choose a shorter margin, or a longer --time",
        )
    return given


def slurm_time(seconds: int) -> str:
    """Return seconds in Slurm's form: ``"02:00:00"``, ``"1-12:00:00"``."""
    minutes, rest = divmod(seconds, 60)
    days, minutes = divmod(minutes, 24 * 60)
    clock = f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}"
    return f"{days}-{clock}" if days else clock
