"""What is wrong with networks that are made up, by name, machine, evidence and cure; and nothing where nothing is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from minga.network.measuring.anomalies import Anomaly, find_anomalies
from minga.network.measuring.curves import SIZES, Curve, best_machine, curves_wanted
from minga.network.measuring.encodings import Encoding
from minga.network.measuring.matrix import Medium, Pair, PairMatrix, Round
from minga.network.measuring.sampling import Sample

NAMES = ("purmamarca", "cf1", "prited", "sofia")
WIRE = 8.5e-8
"""Seconds a byte at 100 Mb/s."""
LAYERS: dict[tuple[str, Encoding], float] = {
    ("icmp", "none"): 30e-6,
    ("udp", "none"): 40e-6,
    ("tcp", "none"): 50e-6,
    ("tcp", "translated"): 55e-6,
    ("tcp", "xdr"): 60e-6,
    ("tcp", "pickled"): 90e-6,
}
Change = Callable[[str, str, str, int, float], float]
QUIET = PairMatrix(NAMES, "tcp", (), (), Medium("switch", 1.0, "made up"))


def healthy(name: str, transport: str, encoding: str, size: int, seconds: float) -> float:
    return seconds


def curves_of(change: Change = healthy, names: tuple[str, ...] = NAMES, most: int = 1_000_000) -> list[Curve]:
    """All machines are alike, except for what ``change`` does to a time."""
    found = []
    for number, name in enumerate(names[1:], start=1):
        for (transport, encoding), latency in LAYERS.items():
            samples = []
            for size in SIZES:
                if size > (65507 if transport in ("icmp", "udp") else most):
                    break
                seconds = change(name, transport, encoding, size, latency + WIRE * size)
                samples.append(Sample(size, tuple(seconds * (1 + 0.01 * k) for k in range(12))))
            found.append(Curve(number, name, 0, names[0], transport, encoding, tuple(samples)))
    return found


def of(
    change: Change = healthy,
    known: Mapping[int, Any] | None = None,
    around: Mapping[int, Any] | None = None,
    matrix: PairMatrix = QUIET,
    **details: Any,
) -> list[Anomaly]:
    return find_anomalies(curves_of(change, **details), known or {}, around or {}, matrix)


def test_nothing_is_wrong_with_a_network_that_is_well() -> None:
    assert of() == []
    assert of(names=NAMES[:2]) == []
    settings = {"settings": {"net.ipv4.tcp_wmem": "4096 16384 4194304", "net.ipv4.tcp_rmem": "4096 131072 6291456"}}
    assert of(around={n: {**settings, "interface": {"name": "eth0", "duplex": "full"}} for n in range(4)}) == []


def slow_tcp(name: str, transport: str, encoding: str, size: int, seconds: float) -> float:
    return seconds * (4 if name == "sofia" and transport == "tcp" and size > 1000 else 1)


def test_tcp_that_is_bad_where_icmp_is_well() -> None:
    """As `sofia` and `prited` in the thesis: slow by TCP above 1000 bytes, with good cables."""
    (found,) = of(slow_tcp)
    assert (found.name, found.node) == ("TCP configuration", "sofia")
    assert "60000 bytes" in found.evidence[0] or "1000000 bytes" in found.evidence[0]
    assert "cable is fine" in found.cure
    both = of(lambda name, *rest: slow_tcp("sofia" if name == "prited" else name, *rest))
    assert [one.node for one in both] == ["prited", "sofia"]


def test_small_buffers_are_named_as_the_reason_and_alone() -> None:
    around = {3: {"settings": {"net.ipv4.tcp_wmem": "4096 4096 4096"}}}
    (found,) = of(slow_tcp, around=around)
    assert (found.name, found.node) == ("TCP configuration", "sofia")
    assert "tcp_wmem = 4096 4096 4096" in found.evidence[1]
    assert "sysctl -w net.ipv4.tcp_wmem" in found.cure
    (alone,) = of(around=around)
    assert (alone.name, alone.node) == ("small buffers", "sofia")


def test_the_machine_that_all_talk_to_is_blamed_where_all_are_bad() -> None:
    (found,) = of(lambda name, *rest: slow_tcp("sofia", *rest))
    assert (found.name, found.node) == ("TCP configuration", "purmamarca")
    two = of(lambda name, *rest: slow_tcp("sofia", *rest), names=("one", "two"))
    assert [one.node for one in two] == ["two or one"]
    around = {1: {"settings": {"net.ipv4.tcp_rmem": "4096 8192 8192"}}}
    told = of(lambda name, *rest: slow_tcp("sofia", *rest), names=("one", "two"), around=around)
    assert [one.node for one in told] == ["two"]


def test_a_few_slow_messages_are_other_programs() -> None:
    curves = []
    for curve in curves_of():
        samples = curve.samples
        if (curve.name, curve.transport) == ("sofia", "tcp"):
            samples = tuple(
                Sample(s.size, tuple(t * (1 if k < 3 else 2) for k, t in enumerate(s.seconds))) for s in samples
            )
        curves.append(Curve(*(getattr(curve, key) for key in Curve.__slots__[:6]), samples))
    assert find_anomalies(curves, {}, {}, QUIET) == []


@pytest.mark.parametrize("step", [0.04, 0.02, 0.2])
def test_steps_of_delayed_acknowledgements(step: float) -> None:
    def change(name: str, transport: str, encoding: str, size: int, seconds: float) -> float:
        return seconds + (step if name == "cf1" and transport == "tcp" and size > 8 else 0)

    (found,) = of(change)
    assert (found.name, found.node) == ("Nagle with delayed ACK", "cf1")
    assert f"{step * 1e3:.3g} ms longer" in found.evidence[0]
    assert "TCP_NODELAY" in found.cure


def test_slow_messages_on_a_slow_network_are_no_steps() -> None:
    assert of(lambda name, transport, encoding, size, seconds: 10 * seconds + 40e-6) == []


@pytest.mark.parametrize("encoding", ["xdr", "pickled"])
def test_memory_that_is_too_small_for_a_second_copy(encoding: str) -> None:
    def change(name: str, transport: str, how: str, size: int, seconds: float) -> float:
        return seconds * (8 if name == "cf1" and how == encoding and size == 10_000_000 else 1)

    (found,) = of(change, known={1: {"memory": 32_000_000}}, most=10_000_000)
    assert (found.name, found.node) == ("memory-bound receiver", "cf1")
    assert "10000000 bytes" in found.evidence[0]
    assert found.evidence[1] == "the machine has 32 MB"
    assert "in place" in found.cure
    # Where messages in place collapse too, it is something else.
    worse = of(lambda name, t, how, size, s: s * (8 if (name, size) == ("cf1", 10_000_000) and t == "tcp" else 1),
               most=10_000_000)  # fmt: skip
    assert "memory-bound receiver" not in {one.name for one in worse}


def test_a_slow_link_is_slow_on_all_layers() -> None:
    found = of(lambda name, transport, encoding, size, seconds: seconds * (10 if name == "prited" else 1))
    assert [(one.name, one.node) for one in found] == [("slow link", "prited")]


def interface(name: str, address: str, speed: int | None, **more: Any) -> dict[str, Any]:
    return {"name": name, "address": address, "mask": "255.255.255.0", "speed": speed, "loopback": False, **more}


def test_a_faster_network_that_is_not_used() -> None:
    slow, fast = interface("eth0", "10.0.0.3", 100_000_000), interface("eth1", "10.0.1.3", 1_000_000_000)
    hub = [interface("eth0", "10.0.0.1", 100_000_000), interface("eth1", "10.0.1.1", 1_000_000_000)]
    known = {0: {"interfaces": hub}, 3: {"interfaces": [slow, fast]}}
    (found,) = of(known=known, around={3: {"interface": slow}})
    assert (found.name, found.node) == ("wrong interface", "sofia")
    assert "eth1 (wired, 1000 Mb/s)" in found.evidence[0]
    assert "address=10.0.1.3" in found.cure
    assert of(known={0: {"interfaces": hub[:1]}, 3: known[3]}, around={3: {"interface": slow}}) == []  # joins nobody
    air = interface("wlan0", "10.0.2.3", None, wireless=True)
    known[0]["interfaces"].append(interface("eth2", "10.0.1.9", None))
    (found,) = of(known=known, around={3: {"interface": air}})
    assert "wlan0 (wireless)" in found.evidence[0]


def test_messages_faster_than_the_interface() -> None:
    (found,) = of(around={1: {"interface": interface("eth0", "10.0.0.2", 10_000_000)}})
    assert (found.name, found.node) == ("wrong interface", "cf1")
    assert "more than eth0 (wired, 10 Mb/s) can" in found.evidence[0]


def test_half_duplex_by_the_driver_and_by_measurement() -> None:
    around = {2: {"interface": interface("eth0", "10.0.0.2", None, duplex="half")}}
    (told,) = of(around=around, known={2: {"host": "10-0-0-2.example"}})  # it has the name by which it was listed
    assert (told.name, told.node) == ("half duplex", "prited")
    met = [((0, 3), (1, 2)), ((0, 2), (3, 1)), ((0, 1), (2, 3))]
    rounds = tuple(Round(pairs, tuple(0.5e7 if 3 in pair else 1e7 for pair in pairs), (1e7, 1e7)) for pairs in met)
    (seen,) = of(matrix=PairMatrix(NAMES, "tcp", (), rounds, Medium("switch", 0.8, "made up")))
    assert (seen.name, seen.node) == ("half duplex", "sofia")
    assert "50 %" in seen.evidence[0]
    assert of(matrix=PairMatrix(NAMES, "tcp", (), rounds, Medium("hub", 0.0, "made up"))) == []
    small = {3: {"settings": {"net.ipv4.tcp_wmem": "4096 4096 4096"}}}
    (why,) = of(matrix=PairMatrix(NAMES, "tcp", (), rounds, Medium("switch", 0.8, "made up")), around=small)
    assert (why.name, why.node, len(why.evidence)) == ("TCP configuration", "sofia", 2)


def test_an_anomaly_in_words_and_as_json() -> None:
    (found,) = of(slow_tcp)
    assert str(found).startswith("TCP configuration of sofia: ")
    assert set(found.as_dict()) == {"name", "node", "evidence", "cure"}


def test_the_machine_to_compare_with_is_the_best_one() -> None:
    speeds = {(0, 1): 1e6, (0, 2): 1e6, (1, 2): 1e7}
    pairs = [Pair(i, j, (3 - j) * 1e-5, 100_000, (3 - j) * 1e-5 + 100_000 / speed) for (i, j), speed in speeds.items()]
    assert best_machine(PairMatrix(NAMES[:3], "tcp", tuple(pairs))) in (1, 2)
    assert best_machine(PairMatrix(NAMES, "tcp", ())) == 0


def test_encodings_ride_on_tcp_or_on_mpi() -> None:
    assert curves_wanted(("icmp", "tcp")) == [
        ("icmp", "none"),
        ("tcp", "none"),
        ("tcp-nagle", "none"),
        ("tcp", "translated"),
        ("tcp", "xdr"),
        ("tcp", "pickled"),
    ]
    assert ("udpbcast", "none") in curves_wanted(("udp",))
    assert ("mpi", "xdr") in curves_wanted(("mpi",))
    assert curves_wanted(("icmp",)) == [("icmp", "none")]
