"""Where a rank's time went, as plain data for files."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minga.engine.engine import Engine

__all__ = ["ledger_entry"]


def ledger_entry(engine: Engine, output: float) -> dict[str, Any]:
    """This rank's line of the ledger: seconds by category, messages, bytes, and the machine it ran on.

    ``output`` is the seconds that frames took, which happen outside of the engine's Programs.
    """
    ledger = engine.ledger
    return {
        "rank": engine.comm.rank,
        "host": platform.node(),
        "processor": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
        "seconds": {**ledger.seconds, "output": output},
        "messages": ledger.messages,
        "bytes": ledger.bytes,
    }
