"""The parallel systems of the paper as numbers: how they exchange, what a message costs, how they balance.

The paper gives sizes of messages, who talks to whom, and how each system balances. It gives no overheads: those here
are ours, of the order that such systems had on Gigabit Ethernet; they are arguments, not measurements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from minga.studies.bounanos.balancers import Balance

__all__ = ["MINGA", "SYSTEMS", "Link", "System"]


@dataclass(frozen=True, slots=True)
class Link:
    """Between any two nodes: seconds a message is under way, bytes a second, and seconds of CPU at either end."""

    latency: float = 50e-6
    rate: float = 125e6
    overhead: float = 10e-6

    def seconds(self, size: float) -> float:
        """From the end of sending to arrival."""
        return self.latency + size / self.rate


@dataclass(frozen=True, slots=True)
class System:
    """How segments of a run work together.

    name          as people say it
    organisation  "distributed": segments send their boundaries to their neighbours; "centralised": to a parent on node
                  0, which tests for convergence and sends everybody the neighbours' boundaries
    size          bytes of a boundary in a message
    reduction     of the convergence test: "blocking" (nobody goes on before all have heard), or "asynchronous"
    crowd         seconds of CPU that an iteration costs a node for every segment beyond its first: switching, polling
    home          all segments begin on node 0 and migrate from there
    balance       what is done about unequal loads; None: nothing
    link          the network, with this system's overhead for a message
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
"""The systems of Figs. 15 to 24."""

MINGA: Final = System("minga", balance=Balance(1.0, "refine", recut=True, move=5e-3))
"""What the paper's end asks for: rows change segments and segments change nodes, by measured costs, while it runs."""
