"""Numbers that Milano, Mocskos and Marshall printed, and the arithmetic of their parallel runs.

Speed-up S = T1 / Tp, efficiency E = S / p, wasted fraction 1 - E.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = [
    "CALLS",
    "DIFFERENCES",
    "EFFICIENCIES",
    "LIBRARIES",
    "PROCESSES",
    "RATIO",
    "SPEED_UPS",
    "SWEEPS",
    "TIMES",
    "derived",
    "shape",
]

DIFFERENCES: Final[Mapping[str, Mapping[int, tuple[float, float, float]]]] = {
    "A": {32: (0.004, 0.130, 0.462), 96: (0.000, 0.005, 0.094), 128: (0.000, 0.002, 0.017)},
    "potential": {32: (0.564, 8.930, 32.646), 96: (0.032, 0.077, 0.796), 128: (0.000, 0.000, 0.005)},
    "|psi|": {32: (1.026, 6.581, 74.188), 96: (0.702, 1.654, 3.586), 128: (0.230, 0.494, 1.428)},
    "|v|": {32: (0.841, 10.740, 35.823), 96: (1.808, 3.526, 5.111), 128: (1.104, 1.348, 2.421)},
}
"""Table 1, %: by field, planes along y, and 2, 4, 8 processes."""

Steps = tuple[int, ...]
SWEEPS: Final[Mapping[int, Mapping[int, tuple[Steps, Steps, float]]]] = {
    50: {
        2: ((2548, 1719, 892, 810, 655), (2553, 1722, 899, 826, 669), 0.68),
        4: ((2562, 1730, 901, 802, 596), (2595, 1755, 913, 825, 612), 1.65),
        8: ((2588, 1749, 903, 813, 614), (2669, 1812, 950, 855, 641), 3.90),
    },
    100: {
        2: ((2587, 2027, 563, 428, 414), (2587, 2028, 564, 428, 414), 0.03),
        4: ((2585, 2023, 560, 427, 416), (2586, 2026, 562, 428, 420), 0.18),
        8: ((2567, 2005, 557, 279, 104), (2580, 2020, 560, 286, 104), 0.69),
    },
    200: {
        2: ((2977, 2458, 1151, 766, 807), (2980, 2460, 1149, 765, 806), 0.01),
        4: ((2977, 2461, 1148, 753, 509), (2981, 2461, 1148, 755, 516), 0.17),
        8: ((2992, 2470, 1124, 695, 501), (3011, 2489, 1131, 716, 510), 0.96),
    },
}
"""Tables 2 to 4, by planes along y and processes: sweeps of five time steps in lexicographic order and boundary-first,
and how many more the latter are, %."""

CALLS: Final[Mapping[int, tuple[float, float, float, float]]] = {
    21: (0.200, 3.800, 1.300, 0.005),
    42: (2.200, 5.500, 3.000, 0.006),
    84: (5.200, 21.000, 7.300, 0.008),
    168: (13.000, 35.000, 0.011, 0.004),
    336: (39.400, 48.200, 0.030, 0.025),
    672: (74.000, 86.300, 0.090, 0.025),
    1344: (122.000, 145.000, 0.080, 0.025),
}
"""Table 5, ms in Send, Recv, Isend and Irecv, by the size of the message in kB; 1344 kB is printed as 1.31 MB."""

LIBRARIES: Final[Mapping[str, tuple[float, float]]] = {
    "Scali": (84.15, 56.70),
    "MPICH": (83.80, 50.30),
    "LAM-MPI": (84.97, 52.05),
}
"""Table 6, minutes of five processes, with blocking and with overlapped messages."""

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
"""Table 7, minutes."""

SPEED_UPS: Final[Mapping[str, Mapping[str, tuple[float, ...]]]] = {
    "40x100x40": {
        "blocking": (1.00, 1.99, 3.34, 3.91, 3.76, 3.58, 3.32, 3.02),
        "overlapped": (1.00, 1.96, 3.59, 4.66, 5.80, 6.46, 7.28, 7.41),
    },
    "40x200x40": {
        "blocking": (1.00, 1.99, 3.75, 4.90, 5.38, 5.49, 5.31, 5.05),
        "overlapped": (1.00, 1.97, 3.98, 5.96, 7.70, 9.30, 10.18, 10.48),
    },
    "40x400x40": {
        "blocking": (1.00, 1.96, 3.85, 5.47, 6.54, 7.19, 7.49, 7.56),
        "overlapped": (1.00, 1.94, 3.94, 5.94, 7.93, 9.19, 10.65, 11.88),
    },
}
"""Table 8."""

EFFICIENCIES: Final[Mapping[str, Mapping[str, tuple[float, ...]]]] = {
    "40x100x40": {
        "blocking": (1.00, 0.99, 0.84, 0.65, 0.47, 0.36, 0.28, 0.22),
        "overlapped": (1.00, 0.98, 0.90, 0.78, 0.73, 0.65, 0.61, 0.53),
    },
    "40x200x40": {
        "blocking": (1.00, 1.00, 0.94, 0.82, 0.67, 0.55, 0.44, 0.36),
        "overlapped": (1.00, 0.98, 0.99, 0.99, 0.96, 0.92, 0.85, 0.75),
    },
    "40x400x40": {
        "blocking": (1.00, 0.98, 0.96, 0.91, 0.82, 0.72, 0.62, 0.54),
        "overlapped": (1.00, 0.97, 0.98, 0.99, 0.99, 0.93, 0.89, 0.85),
    },
}
"""Table 9."""

RATIO: Final = 1.0
"""Time to send a plane's values over the time to compute them, one process.

From Table 7: 100 planes of 40 x 40 in T1 = 345.73 min, and with blocking messages 7.3 min more for each process that
joins, for one message up and one down; so a message takes 3.65 min in all, and a plane 3.46 min.
"""


def derived(processes: Sequence[int], ways: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return speed-up, efficiency and wasted fraction (Tables 8 and 9, Fig. 3) of each way of exchanging messages."""
    found = {}
    for way, seconds in ways.items():
        up = [seconds[0] / one for one in seconds]
        efficiency = [s / p for s, p in zip(up, processes, strict=True)]
        found[way] = {"speed_up": up, "efficiency": efficiency, "wasted": [1.0 - e for e in efficiency]}
    return found


def shape(processes: Sequence[int], ways: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return the number of processes with which each way is fastest, and what overlap gains with the most processes."""
    peaks = {way: processes[min(range(len(s)), key=s.__getitem__)] for way, s in ways.items()}
    return {
        "fastest_with": peaks,
        "blocking_peaks": peaks["blocking"] < processes[-1],
        "overlapped_rises": all(b <= 1.02 * a for a, b in itertools.pairwise(ways["overlapped"])),
        "gain_with_most": 1.0 - ways["overlapped"][-1] / ways["blocking"][-1],
    }
