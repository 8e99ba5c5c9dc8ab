"""The part of a rank in the watchdog: its heart, and the agent of its host where nothing else can start one."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from minga.engine.comm import Comm
from minga.errors import LaunchError
from minga.launch.agents import HostProcess, end_all, start
from minga.launch.hosts import Host
from minga.launch.watchdog.heart import Heart
from minga.launch.watchdog.loss import Loss
from minga.launch.watchdog.order import OVER, Order
from minga.launch.watchdog.pulse import pulse_folder
from minga.launch.watchdog.watch import AGENT, watching
from minga.launch.watchdog.watched import Watched

__all__ = ["heart_of", "with_agent", "within_job"]


def heart_of(offer: Mapping[str, Any] | None, rank: int) -> Heart | None:
    """Return the heart of a rank, given what the watch offers; None if the run is not watched."""
    return None if offer is None else Heart(pulse_folder(offer["token"]), rank)


@contextlib.contextmanager
def with_agent(offer: Mapping[str, Any] | None, comm: Comm, heart: Heart | None) -> Iterator[None]:
    """Run an agent beside the first rank of each host inside the block, if the watch has none there; collective.

    The rank leaves at the end of the block, while its agent can still report that.
    """
    with _agent(offer, comm):
        try:
            yield
        finally:
            if heart is not None:
                heart.leave()


@contextlib.contextmanager
def _agent(offer: Mapping[str, Any] | None, comm: Comm) -> Iterator[None]:
    if offer is None or offer["order"] is None:
        yield
        return
    name = _unique_name(comm)
    if not comm.leads_node or offer["known"] == platform.node():
        yield
        return
    agents: list[HostProcess] = []
    order = Order.from_dict(offer["order"]).on(name)
    with contextlib.suppress(LaunchError, OSError):
        agents.append(start(Host(name), AGENT, None, lambda message: None, ""))
        agents[0].tell(order.as_dict())
    try:
        yield
    finally:
        for agent in agents:
            with contextlib.suppress(OSError, ValueError):
                agent.tell(OVER)
        end_all(agents)


def _unique_name(comm: Comm) -> str:
    """Return the name of this host, with the number of its first rank if several hosts have the same; collective."""
    name = platform.node()
    names = comm.bcast(comm.gather(name if comm.leads_node else None))
    return name if names.count(name) == 1 else f"{name} (rank {comm.node})"


@contextlib.contextmanager
def within_job(
    watched: Watched | None, comm: Comm, tell: Callable[[str], object], lost: Callable[[Loss], object]
) -> Iterator[list[Heart]]:
    """Watch over the ranks of a job from its rank 0 inside the block, and yield the heart of this one; collective.

    Parameters
    ----------
    watched
        What is to be watched, the same on all ranks; None for a job that is not watched.
    comm
        The ranks.
    tell
        Called on rank 0 with messages for people, in a thread.
    lost
        Called on rank 0 with a loss, in a thread; it has to end the job.
    """
    with watching(watched if comm.rank == 0 else None, {}, tell, lost) as watch:
        offer = comm.bcast(None if watch is None else watch.offer)
        heart = heart_of(offer, comm.rank)
        if heart is None:
            yield []
            return
        with with_agent(offer, comm, heart):
            yield [heart]
