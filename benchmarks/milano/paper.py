"""What the paper printed, and its words: speed-up S = T1 / Tp, efficiency E = S / p, wasted 1 - E."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

PROCESSES: Final = (1, 2, 4, 6, 8, 10, 12, 14)
TIMES: Final[Mapping[str, Mapping[str, tuple[float, ...]]]] = {
    "40x100x40": {
        "blocking": (345.73, 174.00, 103.40, 88.35, 91.94, 96.44, 104.00, 114.40),
        "overlapped": (345.73, 176.52, 96.40, 74.20, 59.59, 53.53, 47.50, 46.66),
    },
    "40x200x40": {
        "blocking": (606.55, 304.60, 161.80, 123.90, 112.70, 110.40, 114.30, 120.20),
        "overlapped": (606.55, 308.20, 152.40, 101.80, 78.77, 65.20, 59.61, 57.87),
    },
    "40x400x40": {
        "blocking": (974.65, 498.20, 253.00, 178.20, 149.00, 135.60, 130.20, 129.00),
        "overlapped": (974.65, 502.30, 247.50, 164.10, 122.90, 106.10, 91.51, 82.02),
    },
}
"""Table 7: minutes."""

RATIO: Final = 1.0
"""Time to send a plane's values over the time to compute them, one process.

From Table 7: 100 planes of 40 x 40 in T1 = 345.73 min, and with blocking messages 7.3 min more for each process that
joins, for one message up and one down; so a message takes 3.65 min in all, and a plane 3.46 min.
"""


def derived(processes: Sequence[int], ways: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Speed-up, efficiency and wasted share (Tables 8 and 9, Fig. 3), of each way."""
    found = {}
    for way, seconds in ways.items():
        up = [seconds[0] / one for one in seconds]
        efficiency = [s / p for s, p in zip(up, processes, strict=True)]
        found[way] = {"speed_up": up, "efficiency": efficiency, "wasted": [1.0 - e for e in efficiency]}
    return found


def shape(processes: Sequence[int], ways: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Where each way is fastest, and how much overlap gains with the most processes."""
    peaks = {way: processes[min(range(len(s)), key=s.__getitem__)] for way, s in ways.items()}
    return {
        "fastest_with": peaks,
        "blocking_peaks": peaks["blocking"] < processes[-1],
        "overlapped_rises": all(b <= 1.02 * a for a, b in itertools.pairwise(ways["overlapped"])),
        "gain_with_most": 1.0 - ways["overlapped"][-1] / ways["blocking"][-1],
    }  # fmt: skip
