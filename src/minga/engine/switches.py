"""Environment variables that switch something off."""

from __future__ import annotations

import os

__all__ = ["is_off"]


def is_off(variable: str) -> bool:
    """Return True if an environment variable switches something off."""
    return os.environ.get(variable, "").lower() in ("off", "0", "no", "false")
