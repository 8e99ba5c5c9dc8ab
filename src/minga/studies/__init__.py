"""Published measurements, repeated on this machine: the experiments behind the commands ``minga bench ...``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from . import bounanos

__all__ = ["bounanos"]

__getattr__, __dir__ = attach(__name__, __file__)
