"""The shot that both programs compute: a section of the size of Marmousi, with layers that damp."""

from __future__ import annotations

from typing import Final

SHAPE: Final = (234, 460)
"""Cells along z and x."""
LAYER: Final = 20
"""Cells of the layers at each face."""
SPACING: Final = 20.0
DT: Final = 2e-3
STEPS: Final = 1500
RECEIVERS: Final = 115
FREQUENCY: Final = 6.0
ORDERS: Final = (4, 8)
TOP: Final = 1500.0
"""Velocity in the first row, m/s."""
GRADIENT: Final = 8.0
"""Increase of the velocity from row to row, m/s."""
