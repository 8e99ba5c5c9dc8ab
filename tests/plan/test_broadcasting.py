"""Times of broadcasts against measurements on an emulated hub and switch, and the routes they lead to."""

from __future__ import annotations

import math

import pytest

from minga.engine.routes import GROUP, Routes
from minga.plan.broadcasting import (
    PIECE,
    best_route,
    best_segment,
    broadcast_times,
    mpi_advice,
    router,
)
from minga.plan.links import Link, Segment
from minga.plugins import names

HUB = Link((Segment(0, 1.2e-3, 1 / 1.14e6),))
"""10 Mb/s, where all share one medium."""
SWITCH = Link((Segment(0, 1.1e-5, 1 / 11.7e6),))
"""100 Mb/s."""
FAST = Link((Segment(0, 3e-5, 1 / 117e6),))
"""1 Gb/s."""
NAMES = {"multicast", "flat", "binomial", "scatter-allgather", "chain"}


def near(seconds: float, measured: float, part: float) -> bool:
    return abs(seconds - measured) <= part * measured


@pytest.mark.parametrize(("receivers", "tcp", "udp"), [(1, 0.877, 0.899), (2, 1.749, 0.905), (3, 2.651, 0.915)])
def test_a_hub_carries_one_message_at_a_time(receivers: int, tcp: float, udp: float) -> None:
    """1e6 bytes by MPICH, and by datagrams to all, measured through a hub of 10 Mb/s."""
    times = broadcast_times(1_000_000, receivers, HUB, "hub")
    assert set(times) == NAMES
    for name in NAMES - {"multicast"}:
        assert times[name] >= receivers * 1e6 / 1.14e6
    assert near(times["flat"], tcp, 0.02)
    assert near(times["binomial"], tcp, 0.02)
    assert near(times["multicast"], udp, 0.04)


def test_a_switch_favours_the_chain_as_measured() -> None:
    """1e6 bytes to three receivers at 100 Mb/s: Open MPI pipelined 99 ms, MPICH 205 ms, datagrams to all 114 ms; the
    engine's own chain 100 ms, a group 97 ms, and a message to each 257 ms."""
    times = broadcast_times(1_000_000, 3, SWITCH, "switch")
    assert near(times["chain"], 0.099, 0.15)
    assert near(times["binomial"], 0.205, 0.2)
    assert near(times["scatter-allgather"], 0.145, 0.15)
    assert near(times["flat"], 0.257, 0.02)
    assert near(times["multicast"], 0.097, 0.12)
    assert 15_000 < best_segment(1_000_000, 3, SWITCH) < 20_000


def test_one_receiver_takes_one_message_in_all_ways_point_to_point() -> None:
    times = broadcast_times(50_000, 1, SWITCH, "switch")
    one = float(SWITCH.time(50_000))
    assert times["flat"] == times["binomial"] == one
    assert near(times["chain"], one, 1e-9)
    assert set(broadcast_times(10, 0, SWITCH, "hub").values()) == {0.0}


def test_the_best_segment_is_that_of_the_formula_on_a_straight_line() -> None:
    for nbytes, receivers in ((10**6, 3), (10**7, 7), (10**8, 15)):
        alpha, beta = SWITCH.segments[0].alpha, SWITCH.segments[0].beta
        formula = math.sqrt(nbytes * (alpha + PIECE) / ((receivers - 1) * beta))
        best = best_segment(nbytes, receivers, SWITCH)

        def seconds(size: float, n: int = nbytes, p: int = receivers) -> float:
            return (math.ceil(n / size) + p - 1) * (float(SWITCH.time(min(size, n))) + PIECE)

        assert seconds(best) <= seconds(formula)
        assert formula / 2 <= best <= 2 * formula
    assert best_segment(100, 9, SWITCH) == 100
    assert best_segment(10**6, 1, SWITCH) == 10**6
    assert best_segment(10**6, 3, HUB, "hub") > 10**5  # pieces win nothing where all share the medium


def test_a_protocol_that_changes_moves_the_best_segment() -> None:
    """Long messages are dear to begin: pieces stay below that size."""
    link = Link((Segment(0, 1e-5, 1e-8), Segment(32768, 2e-3, 1e-8)))
    assert 4096 <= best_segment(10**7, 7, link) < 32768


def test_routes() -> None:
    hub = best_route(10**6, 3, HUB, "hub")
    assert (hub.algorithm, hub.route) == ("multicast", "group")
    assert "on a medium that all share multicast takes" in hub.reason
    assert "the tuned chain" in hub.reason
    assert best_route(10**6, 3, HUB, "hub", group=False).route == "pairwise"  # nothing else helps
    switch = best_route(10**6, 3, SWITCH, "switch")
    assert switch.algorithm == "chain"
    assert switch.route == f"chain:{best_segment(10**6, 3, SWITCH)}"
    assert "on a switch the tuned chain takes" in switch.reason
    assert best_route(10**7, 3, FAST, "switch").algorithm == "chain"  # at 1 Gb/s datagrams cost the machines too much
    assert best_route(8, 1, FAST, "switch").route == "pairwise"
    assert best_route(8, 15, FAST, "switch").route == "collective"
    assert best_route(8, 15, FAST, "switch", mpi=False).route != "collective"
    assert best_route(10**6, 300, HUB, "hub").route != "group"  # more than a group has room for
    assert best_route(10**6, 3, SWITCH, "unknown").reason.startswith("as far as is known")


def test_a_mixed_network_lies_between_a_hub_and_a_switch() -> None:
    for name in NAMES - {"multicast"}:
        hub, mixed, switch = (broadcast_times(10**7, 15, FAST, kind)[name] for kind in ("hub", "mixed", "switch"))
        assert hub >= mixed >= switch
        assert hub > switch or name == "flat"


def test_a_rate_of_datagrams_counts() -> None:
    slow = broadcast_times(10**6, 3, SWITCH, "switch", rate=1.25e6)["multicast"]
    assert near(slow, 10**6 / (0.932 * 1.25e6), 0.01)


def test_small_messages_go_by_mpi_where_that_was_measured_to_be_faster() -> None:
    """Four nodes of a lab: MPI is faster to 4 KiB on a switch of 100 Mb/s and to 64 KiB at 1 Gb/s, not on a hub."""
    for link, medium, last, first in ((HUB, "hub", 8, 1024), (SWITCH, "switch", 4096, 16384)):
        choose = router(link, medium, group=True)
        assert {choose(nbytes, 3) for nbytes in (1, 8, last)} == {"collective"}
        assert {choose(nbytes, 3) for nbytes in (first, 65536)} == {"group"}
    assert router(FAST, "switch", group=True)(65536, 3) != "group"


def test_what_an_engine_is_told_is_a_route() -> None:
    choose = router(HUB, "hub", group=True)
    for nbytes in (1, 10**4, 10**7):
        for receivers in (1, 3, 40):
            word = choose(nbytes, receivers)
            assert word.partition(":")[0] in names(GROUP)
            Routes(word, group=_Nobody())


class _Nobody:
    def bcast(self, data: object, root: int = 0, *, wait: str = "all") -> None:
        raise AssertionError

    def close(self) -> None:
        raise AssertionError


def test_advice_for_mpi_libraries() -> None:
    assert "bcast_algorithm 3" in str(mpi_advice("Open MPI v5.0.11", 10**6, 3))
    assert "segmentsize 16384" in str(mpi_advice("openmpi", 10**6, 3))
    assert mpi_advice("MPICH 5.0.2", 10**6, 3) == "MPIR_CVAR_BCAST_INTRA_ALGORITHM=scatter_ring_allgather"
    assert mpi_advice("MPICH 5.0.2", 10**6, 31) is None  # it does so by itself
    assert mpi_advice("Open MPI", 1000, 3) is None
    assert mpi_advice("Intel MPI", 10**6, 3) is None
