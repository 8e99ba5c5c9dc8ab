"""Parameters of the paper's parallel systems: communication, message costs and balancing.

The paper gives the sizes of messages, the communication partners, and the balancing of each system, but no overheads.
Those given here are estimates of the order of magnitude of such systems on Gigabit Ethernet; they are assumptions, not
measurements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from minga.studies.bounanos.balancers import Balance

__all__ = ["MINGA", "SYSTEMS", "Link", "System"]


@dataclass(frozen=True, slots=True)
class Link:
    """Link between any two nodes: latency in s, rate in bytes/s, and CPU time in s at either end of a message."""

    latency: float = 50e-6
    rate: float = 125e6
    overhead: float = 10e-6

    def seconds(self, size: float) -> float:
        """Return the time from the end of sending to arrival, s."""
        return self.latency + size / self.rate


@dataclass(frozen=True, slots=True)
class System:
    """Parallel system in which the segments of a run cooperate.

    Attributes
    ----------
    name
        Common name.
    organisation
        "distributed": segments send their boundaries to their neighbours. "centralised": segments send them to a parent
        on node 0, which tests for convergence and sends the neighbours' boundaries to each.
    size
        Bytes of a boundary in a message.
    reduction
        Reduction of the convergence test: "blocking" (no segment continues before all have the result) or
        "asynchronous".
    crowd
        CPU time in s per iteration on a node for every segment beyond its first: switching, polling.
    home
        Whether all segments start on node 0 and migrate from there.
    balance
        Measures against unequal loads, or None.
    link
        Network, with this system's overhead per message.
    """

    name: str
    organisation: Literal["distributed", "centralised"] = "distributed"
    size: int = 624
    reduction: Literal["blocking", "asynchronous"] = "asynchronous"
    crowd: float = 0.0
    home: bool = False
    balance: Balance | None = None
    link: Link = Link()


SYSTEMS: Final[Mapping[str, System]] = {
    system.name: system
    for system in (
        System("Charm++", size=632, crowd=10e-6, link=Link(overhead=15e-6)),
        System("Charm++ rc", size=632, crowd=10e-6, balance=Balance(5.0, "refine"), link=Link(overhead=15e-6)),
        System(
            "MOSIX", "centralised", size=1312, reduction="blocking", crowd=60e-6, home=True,
            balance=Balance(2.0, "queues", move=50e-3), link=Link(overhead=60e-6),
        ),
        System("LAM", reduction="blocking", crowd=80e-6),
        System("MPICH", reduction="blocking", crowd=10e-6, link=Link(overhead=15e-6)),
        System("AMPI", reduction="blocking", crowd=150e-6, balance=Balance(5.0, "refine"), link=Link(overhead=25e-6)),
    )
}  # fmt: skip
"""Systems of Figs. 15 to 24, by name."""

MINGA: Final = System("minga", balance=Balance(1.0, "refine", recut=True, move=5e-3))
"""System proposed at the paper's end: rows change segments and segments change nodes at run time, by measured costs."""
