"""Ions, potential and flow between two electrodes, and the deposit growing on one of them.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
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
    "ButlerVolmer",
    "Constants",
    "Electrode",
    "Flux",
    "Growth",
    "Held",
    "Problem",
    "Reversible",
    "Species",
    "Steps",
    "electrodeposition",
]

__getattr__, __dir__ = attach(__name__, __file__)
