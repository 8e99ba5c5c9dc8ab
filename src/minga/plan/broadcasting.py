"""The fastest broadcast from one rank to all others: times of the known algorithms, and the choice for a network.

With ``t(n) = alpha + beta n`` for a message, P receivers and k = ceil(n / s) pieces of s bytes:

    flat               P t(n)                                    a message to each receiver
    binomial           ceil(log2(P + 1)) t(n)                    every rank that has the data passes it on
    scatter-allgather  (log2(P + 1) + P) alpha + 2 P/(P + 1) n beta
    chain              (k + P - 1) (t(s) + h), best at s = sqrt(n (alpha + h) / ((P - 1) beta))
    multicast          n beta_u + 2 alpha + o + P o              one transmission for all, and an answer from each

(Thakur, Rabenseifner and Gropp, IJHPCA 19, 2005; Patarasuk, Faraj and Yuan, IPDPS 2006, for the chain.) A shared medium
carries one message at a time: there, point-to-point algorithms take at least P n beta, and multicast takes n beta_u.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from minga.plan.links import Link
from minga.plan.plan import duration

__all__ = ["Route", "best_route", "best_segment", "broadcast_times", "mpi_advice", "router"]

MARGIN: Final = 0.1
"""Relative gain that an algorithm needs to be preferred to one with fewer requirements."""
PAYLOAD: Final = 0.932
"""Share of the bits on an Ethernet wire that are data: 1400 bytes of a frame of 1502, with the headers and tag of a
datagram included."""
STREAM_PAYLOAD: Final = 0.9415
"""The same share for a TCP stream: 1448 bytes of 1538."""
HOST: Final = 2.2e-8
"""Seconds per byte that hosts need for datagrams in any case: 22 ms for 1e6 bytes to three receivers through an
unlimited link, on two busy Zen 3 cores."""
ANSWER: Final = 1.4e-4
"""Seconds in which a host begins a message, and in which the root processes one receiver's answer: 8 bytes take 0.43 ms
to one receiver and 0.71 ms to three, through a link without delay."""
PIECE: Final = 5e-5
"""Seconds in which a rank receives a piece of a chain and passes it on (h): 0.13 ms were measured where four ranks and
others shared two cores."""
LEAST_PIECE: Final = 4096
"""Bytes below which pieces of a chain are not worth their handling."""
_SHORT: Final = 12288
_FEW: Final = 8
"""Message size and number of ranks below which MPI libraries use the binomial algorithm (MPICH 5: BCAST_SHORT_MSG_SIZE
and BCAST_MIN_PROCS); otherwise they scatter and allgather."""
_MOST_RECEIVERS: Final = 255

Medium = Literal["switch", "hub", "mixed", "unknown"]


@dataclass(frozen=True, slots=True)
class Route:
    """The chosen way of a broadcast.

    Attributes
    ----------
    algorithm
        Name of the algorithm in :func:`broadcast_times`.
    route
        Name of the route for an engine's ``route=``.
    seconds
        Predicted time.
    reason
        The reason in words, with the alternatives.
    """

    algorithm: str
    route: str
    seconds: float
    reason: str


def broadcast_times(
    nbytes: int, receivers: int, link: Link, medium: str, *, rate: float | None = None
) -> dict[str, float]:
    """Return the seconds until all receivers have ``nbytes``, by algorithm; see the module's docstring.

    Parameters
    ----------
    nbytes
        Size of the message in bytes.
    receivers
        Number of receivers.
    link
        The link between any two of the ranks.
    medium
        "switch", "hub", "mixed" (some disjoint pairs that communicate at the same time interfere) or "unknown", which
        counts as a switch.
    rate
        Bytes per second at which datagrams are sent, including headers; by default, the rate of the link's long
        messages.
    """
    if receivers < 1:
        return dict.fromkeys(("multicast", "flat", "binomial", "scatter-allgather", "chain"), 0.0)
    n, ranks = nbytes, receivers + 1
    alpha, beta = _line(link, n)
    rounds = math.ceil(math.log2(ranks))
    queue = receivers * n * beta / _lanes(medium, ranks)
    whole = _message(link, n)
    spread = (math.log2(ranks) + receivers) * alpha + 2 * receivers / ranks * n * beta
    # On a shared medium, half of the data is scattered per level, before all pieces go to all ranks.
    scattered = (1 + math.log2(ranks) / (2 * receivers)) * queue
    piece = best_segment(n, receivers, link, medium)
    return {
        "multicast": _multicast(n, receivers, alpha, beta, rate),
        "flat": receivers * whole,
        "binomial": max(rounds * whole, rounds * alpha + queue),
        "scatter-allgather": max(spread, (math.log2(ranks) + receivers) * alpha + scattered),
        "chain": _chain(n, receivers, piece, link, medium),
    }


def best_segment(nbytes: int, receivers: int, link: Link, medium: str = "switch") -> int:
    """Return the size of pieces, in bytes, with which a chain is fastest.

    It is given by the formula for a straight line, or is a power of two if that is better for a piecewise linear link.
    """
    if receivers < 2 or nbytes <= LEAST_PIECE:
        return max(nbytes, 1)
    alpha, beta = _line(link, nbytes)
    formula = math.sqrt(nbytes * (alpha + PIECE) / ((receivers - 1) * beta)) if beta > 0 else nbytes
    sizes = [formula, nbytes, *(1 << k for k in range(LEAST_PIECE.bit_length() - 1, nbytes.bit_length()))]
    known = sorted({min(nbytes, max(LEAST_PIECE, int(size))) for size in sizes})
    return min(known, key=lambda size: (_chain(nbytes, receivers, size, link, medium), -size))


def best_route(
    nbytes: int,
    receivers: int,
    link: Link,
    medium: str,
    *,
    rate: float | None = None,
    group: bool = True,
    mpi: bool = True,
) -> Route:
    """Choose the route with the fewest requirements among those within a tenth of the fastest.

    A message to each receiver has fewer requirements than MPI's broadcast, which has fewer than a chain; a multicast
    group has the most.

    Parameters
    ----------
    nbytes, receivers, link, medium, rate
        As for :func:`broadcast_times`.
    group, mpi
        True if there is a multicast group, or MPI's broadcast, respectively.

    Returns
    -------
    Route
        The route, its predicted seconds and the reason.
    """
    times = broadcast_times(nbytes, receivers, link, medium, rate=rate)
    piece = best_segment(nbytes, receivers, link, medium)
    library = _by_library(nbytes, receivers)
    known = [("flat", "pairwise"), (library, "collective"), ("chain", f"chain:{piece}"), ("multicast", "group")]
    offered = [
        (name, word)
        for name, word in known
        if not (word == "group" and (not group or receivers > _MOST_RECEIVERS)) and (mpi or word != "collective")
    ]
    fastest = min(times[name] for name, _ in offered)
    name, word = next(pair for pair in offered if times[pair[0]] <= (1 + MARGIN) * fastest)
    others = {_WORDS[other]: times[other] for other, _ in offered if other != name}
    told = ", ".join(f"{other} {duration(seconds)}" for other, seconds in others.items())
    reason = f"{_place(medium)}{_WORDS[name]} takes {duration(times[name])} for {nbytes} bytes to {receivers} receivers"
    if times[name] > fastest:
        reason += ", and needs less than alternatives that are hardly faster"
    return Route(name, word, times[name], f"{reason} ({told})" if told else reason)


def router(
    link: Link, medium: str, *, rate: float | None = None, group: bool = False, mpi: bool = True
) -> Callable[[int, int], str]:
    """Return a function for an engine's ``route=``: the best route by bytes and number of receivers.

    Parameters
    ----------
    link
        The link between two machines.
    medium
        ``"switch"``, ``"hub"``, ``"mixed"`` (some of disjoint pairs that talk at once disturb each other) or
        ``"unknown"``, which counts as a switch.
    rate
        Bytes per second at which datagrams leave, headers included; None: as the link's long messages show.
    group
        Whether a broadcast group is available.
    mpi
        Whether MPI's broadcast is available.

    Returns
    -------
    function
        A function of bytes and the number of receivers that returns the name of a route.
    """

    def choose(nbytes: int, receivers: int) -> str:
        return best_route(nbytes, receivers, link, medium, rate=rate, group=group, mpi=mpi).route

    return choose


def mpi_advice(library: str, nbytes: int, receivers: int) -> str | None:
    """Return the setting with which an MPI library's own broadcast of long messages is fastest on a switch.

    Return None if the library's own choice is the fastest, or the library is not known. Measured at 100 Mb/s for 1e6
    bytes to three receivers: Open MPI 5.0.11 took 99 instead of 299 ms, MPICH 5.0.2 145 instead of 205 ms.

    Parameters
    ----------
    library
        The name of the library, such as "Open MPI".
    nbytes
        Bytes of the message.
    receivers
        The number of receivers.

    Returns
    -------
    str or None
        The setting.
    """
    if receivers < 2 or nbytes < 4 * _SHORT:
        return None
    name = library.lower().replace(" ", "")
    if "openmpi" in name:
        return (
            "--mca coll tuned,libnbc,basic,self,inter --mca coll_tuned_use_dynamic_rules 1 "
            "--mca coll_tuned_bcast_algorithm 3 --mca coll_tuned_bcast_algorithm_segmentsize 16384"
        )
    if "mpich" in name:
        return "MPIR_CVAR_BCAST_INTRA_ALGORITHM=scatter_ring_allgather" if receivers + 1 < _FEW else None
    return None


_WORDS: Final = {
    "multicast": "multicast",
    "flat": "a message to each",
    "binomial": "MPI's broadcast",
    "scatter-allgather": "MPI's broadcast",
    "chain": "the tuned chain",
}


def _place(medium: str) -> str:
    known = {
        "switch": "on a switch ",
        "hub": "on a medium that all share ",
        "mixed": "where some pairs share a path ",
    }
    return known.get(medium, "as far as is known ")


def _message(link: Link, size: float) -> float:
    return float(link.time(size))


def _line(link: Link, size: float) -> tuple[float, float]:
    """Return alpha and beta for messages of a given size; alpha is never negative."""
    chosen = [segment for segment in link.segments if segment.least <= size] or [link.segments[0]]
    beta = max(chosen[-1].beta, 0.0)
    return max(float(link.time(0)), _message(link, size) - beta * size, 0.0), beta


def _lanes(medium: str, ranks: int) -> float:
    """Return the number of streams of disjoint pairs that the network carries at once."""
    pairs = max(1.0, ranks / 2)
    return {"hub": 1.0, "mixed": math.sqrt(pairs)}.get(medium, math.inf)


def _chain(nbytes: int, receivers: int, piece: int, link: Link, medium: str) -> float:
    count = max(1, math.ceil(nbytes / max(piece, 1)))
    handling = PIECE if receivers > 1 else 0.0
    passing = (count + receivers - 1) * (_message(link, min(piece, nbytes)) + handling)
    alpha, beta = _line(link, min(piece, nbytes))
    return max(passing, receivers * alpha + receivers * nbytes * beta / _lanes(medium, receivers + 1))


def _multicast(nbytes: int, receivers: int, alpha: float, beta: float, rate: float | None) -> float:
    byte = 1 / (PAYLOAD * rate) if rate else beta * STREAM_PAYLOAD / PAYLOAD
    return nbytes * max(byte, HOST) + 2 * alpha + (1 + receivers) * ANSWER


def _by_library(nbytes: int, receivers: int) -> str:
    return "binomial" if nbytes < _SHORT or receivers + 1 < _FEW else "scatter-allgather"
