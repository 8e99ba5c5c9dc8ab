"""Ends of axes through which nothing flows, whatever the operators of a rate say of the flux there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from minga.lang.trace import current_trace

__all__ = ["closed_ends"]


@contextmanager
def closed_ends(ends: Mapping[int, str]) -> Iterator[None]:
    """Make the fluxes of all conservative operators that are called within 0 at some ends of axes.

    Parameters
    ----------
    ends
        By the number of the axis "l" for the low end, "h" for the high one, or "lh".
    """
    trace = current_trace("ends of axes")
    before, trace.closed = trace.closed, dict(ends)
    try:
        yield
    finally:
        trace.closed = before
