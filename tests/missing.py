"""Reasons for skipping tests."""

from __future__ import annotations

from minga.errors import MingaError

__all__ = ["missing"]


def missing(error: MingaError) -> str:
    """Return in one line what a test lacks by an error, and the remedy."""
    return "; ".join(text for text in (error.message, error.remedy) if text is not None)
