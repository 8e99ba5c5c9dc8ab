"""Orders of agents, and what the ranks of a run are told about its watchdog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

__all__ = ["END", "MARK", "OVER", "Order"]

MARK: Final = "MINGA_WATCH"
"""Variable of the environment that holds the token of the start of a run."""
OVER: Final = {"over": True}
"""Message that the run is over: the agent ends, and leaves alone what still exists."""
END: Final = {"end": True}
"""Message that the ranks of a host are to be ended at once."""


@dataclass(frozen=True, slots=True)
class Order:
    """Order of an agent.

    Attributes
    ----------
    token
        Token of the start of the run.
    directory
        Directory of the run.
    limit
        Seconds of silence after which the ranks are ended; None on the machine of the process that started the run,
        which may be stopped for a while, and whose end is noticed.
    name
        Name under which the host is known.
    key
        Key of signs of life.
    beacons
        Addresses and ports to which signs of life are sent, until one of them answers.
    calls
        True if reports go there, too: nothing else leads to the watch.
    """

    token: str
    directory: str
    limit: float | None
    name: str = ""
    key: str = ""
    beacons: tuple[tuple[str, int], ...] = ()
    calls: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the order for JSON."""
        return asdict(self)

    def on(self, name: str) -> Order:
        """Return the order for a host with a name."""
        return replace(self, name=name)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Order:
        """Return an order from JSON."""
        beacons = tuple((str(address), int(port)) for address, port in content["beacons"])
        return cls(**{**content, "beacons": beacons})
