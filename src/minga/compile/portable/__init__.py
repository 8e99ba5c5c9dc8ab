"""Elementary functions of arrays and numbers, with the same bits on every processor.

NumPy's and the C library's differ in their last bits between processors. Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from minga.compile.portable.functions import asinh, cbrt, cos, erf, exp, expm1, log, log1p, power, sin, tan, tanh

__all__ = ["asinh", "cbrt", "cos", "erf", "exp", "expm1", "log", "log1p", "power", "sin", "tan", "tanh"]

__getattr__, __dir__ = attach(__name__, __file__)
