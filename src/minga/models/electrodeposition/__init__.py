"""Ions, potential and flow between two electrodes, and the deposit growing on one of them.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from minga.models.electrodeposition.measures import Boxes, DepositHistory, box_counts, deposit_history
    from minga.models.electrodeposition.model import electrodeposition
    from minga.models.electrodeposition.problem import (
        ButlerVolmer,
        Constants,
        Electrode,
        Flux,
        Growth,
        Held,
        Problem,
        Reversible,
        Species,
        Steps,
    )

__all__ = [
    "Boxes",
    "ButlerVolmer",
    "Constants",
    "DepositHistory",
    "Electrode",
    "Flux",
    "Growth",
    "Held",
    "Problem",
    "Reversible",
    "Species",
    "Steps",
    "box_counts",
    "deposit_history",
    "electrodeposition",
]

__getattr__, __dir__ = attach(__name__, __file__)
