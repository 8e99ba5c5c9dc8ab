"""Matrix products on machines of unequal speed: rows in proportion to BLAS speed, panels of B sent to all in turn.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from minga.models.matmul.plan import Plan, make_plan
    from minga.models.matmul.product import matmul

__all__ = [
    "Plan",
    "make_plan",
    "matmul",
]

__getattr__, __dir__ = attach(__name__, __file__)
