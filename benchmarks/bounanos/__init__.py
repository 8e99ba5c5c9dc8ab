"""Organisations of the pointwise scheme on a cluster in a box, beside what the emulator says of them."""

WINDOWS = 5
"""Into which a run is parted where rows change segments."""
