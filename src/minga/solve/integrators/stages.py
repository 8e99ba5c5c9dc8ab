"""Explicit methods as tables of stages.

Sources: C.-W. Shu, S. Osher, J. Comput. Phys. 77 (1988) 439 (SSPRK3). R. J. Spiteri, S. J. Ruuth, SIAM J. Numer. Anal.
40 (2002) 469 (SSPRK43). J. H. Williamson, J. Comput. Phys. 35 (1980) 48 (low storage). P. Bogacki, L. F. Shampine,
Appl. Math. Lett. 2 (1989) 321. J. R. Dormand, P. J. Prince, J. Comput. Appl. Math. 6 (1980) 19.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = [
    "BS3", "BS3_ERROR", "DP5", "DP5_ERROR", "EULER", "HEUN", "RK4", "SSPRK3", "SSPRK43", "WILLIAMSON3", "Stage",
    "Update",
]  # fmt: skip


@dataclass(frozen=True)
class Update:
    """A level that a stage stores: a combination of levels, plus dt times one of stored rates and of the new rate."""

    target: str
    levels: Mapping[str, float]
    rate: float
    rates: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """An evaluation of the rates: of which level, at which fraction of the step, and what is stored."""

    at: str
    time: float
    updates: tuple[Update, ...]
    kept: str = ""


def _now(rate: float, target: str = "next", **rates: float) -> Update:
    """Return an update that begins with the present level."""
    return Update(target, {"now": 1.0}, rate, rates)


EULER: Final = (Stage("now", 0.0, (_now(1.0),)),)
HEUN: Final = (
    Stage("now", 0.0, (_now(1.0, "a"), _now(0.5))),
    Stage("a", 1.0, (Update("next", {"next": 1.0}, 0.5),)),
)
SSPRK3: Final = (
    Stage("now", 0.0, (_now(1.0, "a"),)),
    Stage("a", 1.0, (Update("b", {"now": 0.75, "a": 0.25}, 0.25),)),
    Stage("b", 0.5, (Update("next", {"now": 1 / 3, "b": 2 / 3}, 2 / 3),)),
)
RK4: Final = (
    Stage("now", 0.0, (_now(0.5, "a"), _now(1 / 6))),
    Stage("a", 0.5, (_now(0.5, "b"), Update("next", {"next": 1.0}, 1 / 3))),
    Stage("b", 0.5, (_now(1.0, "a"), Update("next", {"next": 1.0}, 1 / 3))),
    Stage("a", 1.0, (Update("next", {"next": 1.0}, 1 / 6),)),
)
WILLIAMSON3: Final = (
    Stage("now", 0.0, (_now(1 / 3), Update("q", {}, 1.0))),
    Stage(
        "next", 1 / 3, (Update("now", {"next": 1.0, "q": -25 / 48}, 15 / 16), Update("q", {"q": -5 / 9}, 1.0)),
    ),
    Stage("now", 3 / 4, (Update("next", {"now": 1.0, "q": -51 / 80}, 8 / 15),)),
)  # fmt: skip
SSPRK43: Final = (
    Stage("now", 0.0, (_now(0.5, "a"),)),
    Stage("a", 0.5, (Update("next", {"a": 1.0}, 0.5),)),
    Stage("next", 1.0, (Update("a", {"now": 2 / 3, "next": 1 / 3}, 1 / 6),)),
    Stage("a", 0.5, (Update("next", {"a": 1.0}, 0.5),)),
)
BS3: Final = (
    Stage("a", 1 / 2, (_now(3 / 4, "b"),), "k2"),
    Stage("b", 3 / 4, (_now(4 / 9, k1=2 / 9, k2=1 / 3),), "k3"),
)
DP5: Final = (
    Stage("a", 1 / 5, (_now(9 / 40, "b", k1=3 / 40),), "k2"),
    Stage("b", 3 / 10, (_now(32 / 9, "a", k1=44 / 45, k2=-56 / 15),), "k3"),
    Stage("a", 4 / 5, (_now(-212 / 729, "b", k1=19372 / 6561, k2=-25360 / 2187, k3=64448 / 6561),), "k4"),
    Stage(
        "b", 8 / 9,
        (_now(-5103 / 18656, "a", k1=9017 / 3168, k2=-355 / 33, k3=46732 / 5247, k4=49 / 176),), "k5",
    ),
    Stage("a", 1.0, (_now(11 / 84, k1=35 / 384, k3=500 / 1113, k4=125 / 192, k5=-2187 / 6784),), "k6"),
)  # fmt: skip
BS3_ERROR: Final = {"k1": -5 / 72, "k2": 1 / 12, "k3": 1 / 9, "": -1 / 8}
DP5_ERROR: Final = {
    "k1": -71 / 57600, "k3": 71 / 16695, "k4": -71 / 1920, "k5": 17253 / 339200, "k6": -22 / 525, "": 1 / 40,
}  # fmt: skip
