"""The ways in which a kernel can be compiled. All have the same bits; which is fastest depends on the processor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to compile a kernel.

    vector    bytes of the vectors that rows are computed in; 0 for what is usually best on the processor
    prefetch  which boxes have their data fetched ahead: those that exceed the L2 cache ("large"), all or none. This
              concerns kernels with locals, of three axes, or of two that read fields into which they store; in others,
              prefetching goes only with stores that bypass the caches
    stream    True if the stores of boxes that exceed all caches bypass them, where the kernel permits it
    rows      number of neighbouring rows that small kernels compute together; 0 for what is usually best
    """

    vector: int = 0
    prefetch: Literal["large", "all", "none"] = "large"
    stream: bool = True
    rows: int = 0


WIDTHS: Final = 16, 32, 64
"""Bytes of vectors that processors have."""
ROWS: Final = 1, 4, 8
"""Numbers of rows that are computed together."""
PREFETCHING: Final = "large", "all", "none"
USUAL: Final = Alternative()
"""The alternative that is usually best."""
