"""Plain data of a network, the planner's links from it, and what is remarked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from minga.network.measuring.matrix import Medium, Pair, PairMatrix
from minga.network.measuring.overlap import Overlap, Polled
from minga.network.measuring.piecewise import Fit, fit_pieces
from minga.network.measuring.sampling import Sample, message_sizes
from minga.network.measuring.section import (
    break_names,
    drain_time,
    fits_of,
    from_points,
    links_from,
    measured_link,
    remarks,
)

SIZES = message_sizes()
ENVIRONMENT: dict[str, Any] = {
    "interface": {"name": "eth0", "mtu": 1500},
    "settings": {"net.ipv4.tcp_wmem": "4096\t16384\t4194304"},
    "variables": {"OMPI_MCA_btl_tcp_eager_limit": "32768"},
}


def samples(alpha: float, beta: float) -> list[Sample]:
    generator = np.random.default_rng(0)
    return [Sample(size, tuple((alpha + beta * size) * (1 + 0.1 * generator.exponential(size=20)))) for size in SIZES]


def section(kind: str = "switch") -> dict[str, Any]:
    outside, inside = samples(50e-6, 8.5e-8), samples(1e-6, 2e-10)
    points = [Overlap(1_000_000, 0.09, 0.09, 0.18, 0.0, (Polled(1e-3, 0.1, 0.9),), 1e-6).as_dict()]
    return json.loads(
        json.dumps(
            {
                "links": [
                    measured_link(0, "nodes", "tcp", (0, 1), samples(90e-6, 9e-8), fits_of(samples(90e-6, 9e-8), {})),
                    measured_link(0, "nodes", "mpi", (0, 1), outside, fits_of(outside, {})),
                    measured_link(2, "one chip", "mpi", (0, 2), inside, fits_of(inside, {})),
                ],
                "pairs": {"medium": {"kind": kind}},
                "slow_nodes": {"3": [1e-5, 10.0]},
                "overlap": {"points": points},
            }
        )
    )


def test_minima_are_the_wire_and_medians_what_people_get() -> None:
    least, median = fits_of(samples(50e-6, 8.5e-8), {})
    assert least.bandwidth == pytest.approx(1 / 8.5e-8, rel=0.02)
    assert median.bandwidth == pytest.approx(1 / (8.5e-8 * 1.07), rel=0.03)
    assert least.zero < median.zero


@pytest.mark.slow
def test_links_take_mpi_first_and_fill_levels_from_outside() -> None:
    links = links_from(section(), depth=3)
    assert len(links.levels) == 4
    size = np.array([100_000.0])
    times = [float(link.time(size)[0]) for link in links.levels]
    assert times[0] == times[1] == pytest.approx((50e-6 + 8.5e-3) * 1.07, rel=0.05)
    assert times[2] == times[3] < times[0] / 50
    assert float(links.nodes[3].time(size)[0]) == pytest.approx(10 * times[0], rel=0.05)
    assert links.levels[0].overlap == pytest.approx(0.9)
    assert not links.shared
    assert links_from(section("hub"), 1).shared


@pytest.mark.slow
def test_overlap_comes_back_from_json() -> None:
    (one,) = from_points(section()["overlap"]["points"])
    assert one.polled[0].overlap == pytest.approx(0.9)


def test_names_of_breaks() -> None:
    assert break_names("udp", ENVIRONMENT) == {"one frame": 1472}
    assert break_names("tcp", ENVIRONMENT) == {"one frame": 1448, "send buffer": 16384}
    assert break_names("mpi", ENVIRONMENT, "Open MPI 5.0.11")["eager limit"] == 32767
    assert "eager limit" not in break_names("mpi", ENVIRONMENT, "MPICH 5.0.2")


def line(alpha: float, beta: float) -> Fit:
    return fit_pieces([1, 1000, 1_000_000], [alpha + beta * n for n in (1, 1000, 1_000_000)], resamples=5)


def test_polls_must_come_before_the_buffer_is_empty() -> None:
    assert drain_time(ENVIRONMENT, line(1e-5, 8.5e-8)) == pytest.approx(16384 * 8.5e-8, rel=0.01)
    assert drain_time({}, line(1e-5, 8.5e-8)) is None


def test_layers_are_compared() -> None:
    quiet = PairMatrix(("a", "b"), "mpi", ())
    wire, broken = line(1e-4, 8.5e-8), line(4e-2, 8.5e-7)
    assert remarks({"icmp": wire, "tcp": wire, "mpi": wire}, quiet, None) == []
    said = remarks({"icmp": wire, "tcp": broken, "mpi": broken}, quiet, None)
    assert len(said) == 2
    assert all("TCP's buffers or settings" in one for one in said)
    assert "MPI library" in remarks({"tcp": wire, "mpi": broken}, quiet, None)[0]


def test_traffic_that_takes_another_way_is_noticed() -> None:
    quiet = PairMatrix(("a", "b"), "mpi", ())
    crossed = {"interface": "eth0", "sent": 100, "payload": 10**9, "enough": False}
    assert "shared memory" in remarks({}, quiet, crossed)[0]


def test_hubs_and_lame_directions_are_remarked() -> None:
    pairs = (Pair(0, 1, 1e-5, 10_000, 1e-3), Pair(1, 0, 1e-5, 10_000, 5e-3))
    matrix = PairMatrix(("a", "b"), "tcp", pairs, (), Medium("hub", 0.0, "2 streams carried as much as 1.0"))
    said = remarks({}, matrix, None)
    assert "a sends to b" in said[0]
    assert "one shared medium" in said[-1]


def test_every_key_of_the_section_is_documented() -> None:
    from pathlib import Path

    from minga.network.measuring.measure import _empty

    page = (Path(__file__).parents[3] / "docs" / "network.md").read_text()
    known = {0: {"mpi": None}}
    for key in (*_empty(known, [0], 0), "seconds"):
        assert f"`{key}`" in page, key
    assert f"`version` is {_empty(known, [0], 0)['version']}" in page


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("kind", "members", "told"), [("switch", 4, True), ("unknown", 4, False), ("switch", 2, False)]
)
def test_advice_about_broadcasts(kind: str, members: int, told: bool) -> None:
    from minga.network.measuring.stages import Survey, broadcast_advice

    content = section(kind) | {"machines": [{"transport": "udpbcast"}], "library": "Open MPI 5.0.11", "advice": []}
    team: Any = None
    broadcast_advice(Survey(team, range(members), {}, {}, (), 1.0, 0, lambda part, what: None, content))
    if not told:
        assert (content["advice"], "broadcast" in content) == ([], False)
        return
    assert content["broadcast"]["receivers"] == 3
    assert "1000000 bytes to 3 receivers" in content["advice"][0]
    assert "Open MPI 5.0.11 is fastest with --mca coll" in content["advice"][1]
