"""Numbers of TR-BDF2, a method of order 2 whose two stages are equally implicit.

    u1 = u0 + h (IMPLICIT f0 + IMPLICIT f1),   at t + INNER h
    u2 = u0 + h (OUTER f0 + OUTER f1 + IMPLICIT f2),   at t + h

Source: M. E. Hosea, L. F. Shampine, Appl. Numer. Math. 20 (1996) 21.
"""

from __future__ import annotations

import math
from typing import Final

__all__ = ["ERROR", "IMPLICIT", "INNER", "OUTER"]

INNER: Final = 2.0 - math.sqrt(2.0)
"""Time of the inner point, as a part of the step."""
IMPLICIT: Final = 0.5 * INNER
"""Weight of a stage's own rate."""
OUTER: Final = 0.25 * math.sqrt(2.0)
"""Weight of the rates at the beginning and at the inner point in the second stage."""
ERROR: Final = ((1.0 - OUTER) / 3.0 - OUTER, (3.0 * OUTER + 1.0) / 3.0 - OUTER, IMPLICIT / 3.0 - IMPLICIT)
"""Weights of h f at the beginning, the inner point and the end in the estimate of the error."""
