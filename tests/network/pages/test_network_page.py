"""The page of a network, and the curves of its machines: what was measured stands there, and nothing else is loaded."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from minga.errors import CaseError, MingaError
from minga.network.measuring.curves import Curve
from minga.network.measuring.encodings import ENCODINGS
from minga.network.measuring.sampling import Sample
from minga.network.measuring.section import fits_of, measured_link
from minga.network.pages.curves_plot import panels
from minga.network.pages.machine_plot import draw_machine
from minga.network.pages.network_page import network_page, write_network_page

NAMES = ["ana", "berta", "<script>alert(1)</script>"]
LADDER = (0, 8, 1000, 60_000, 1_000_000)


def samples(alpha: float) -> list[Sample]:
    return [Sample(n, tuple((alpha + 8.5e-8 * n) * (1 + k / 100) for k in range(3))) for n in LADDER]


@pytest.fixture(scope="module")
def section() -> dict[str, Any]:
    tcp = measured_link(0, "nodes", "tcp", (0, 1), samples(5e-5), fits_of(samples(5e-5), {}))
    inside = measured_link(1, "one node", "mpi", (0, 1), samples(1e-6), fits_of(samples(1e-6), {}))
    curves = [
        Curve(number, NAMES[number], 0, NAMES[0], transport, encoding, tuple(samples(5e-5)[1:])).as_dict()
        for number in (1, 2)
        for transport, encoding in (("tcp", "none"), ("tcp", "xdr"))
    ]
    cost = {encoding: {"encode": 1e-11, "decode": 2e-10} for encoding in ENCODINGS}
    around = {
        "interface": {"name": "eth0", "mtu": 1500},
        "settings": {"net.ipv4.tcp_wmem": "4096 4096 4096"},
        "load": 1,
    }
    return {
        "version": 2,
        "library": "MPICH 5.0.2",
        "members": [{"number": n, "host": name, "mpi": None, "order": "little", "memory": 32_000_000}
                    for n, name in enumerate(NAMES)],
        "links": [tcp],
        "libraries": [{**inside, "library": "Open MPI 5.0.11", "crossed": None}],
        "unavailable": {"icmp to berta": "does not answer"},
        "pairs": {
            "names": NAMES,
            "pairs": [{"sender": 0, "receiver": 1, "latency": 5e-5, "size": 100_000, "seconds": 1e-2}],
            "medium": {"kind": "switch", "evidence": "4 streams carried as much as 3.9"},
        },
        "settings": {"1": around},
        "machines": curves,
        "anomalies": [{"name": "TCP configuration", "node": "berta", "evidence": ["slow & sad"], "cure": "sysctl -w"}],
        "overhead": [{"transport": "tcp", "points": [{"bytes": 1, "send": 1e-5, "receive": 2e-6, "cpu_send": 1e-9,
                                                      "cpu_receive": 1e-9}]}],
        "trains": [{"transport": "tcp", "points": [], "loggp": {"latency": 5e-5, "overhead": 4e-6, "gap": 9e-6,
                                                                "byte": 8e-8}},
                   {"transport": "mpi", "points": [], "loggp": None}],
        "cache": [{"transport": "tcp", "members": [0, 1], "points": [{"bytes": 1000, "warm": 1e-5, "cold": 2e-5}]}],
        "encodings": {"hosts": [{"member": 1, "per_byte": cost}]},
        "one_way": {"points": [{"bytes": 60_000, "there": 5e-3, "back": 4e-3, "doubt": 1e-5}], "clocks": "the clocks"},
        "overlap": {"points": [{"bytes": 60_000, "pure": 5e-3, "overlap": 0.1, "polled": [{"overlap": 0.9}]}]},
        "advice": ["TCP configuration of berta: slow & sad. Sysctl", "one shared medium"],
        "seconds": 60.0,
    }  # fmt: skip


class Reader(HTMLParser):
    """The words of a page and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for key, value in attrs if key in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.words += [data.strip()] if data.strip() else []


@pytest.mark.slow
def test_everything_measured_is_on_the_page(section: dict[str, Any]) -> None:
    page = Reader(network_page("a lab", section, {"minga": "0.1", "time": "2026"}))
    text = " | ".join(page.words)
    for words in ("a lab", "switch", "TCP configuration", "slow & sad", "Cure: sysctl -w", "one shared medium",
                  "4 streams carried", "icmp to berta", "does not answer", "LogGP", "2.00", "0.2", "the clocks",
                  "90%", "4096 4096 4096"):  # fmt: skip
        assert words.lower() in text.lower(), words
    assert text.count("slow & sad") == 1  # advice does not say it again
    assert "script" not in page.tags  # the name of a host is no markup
    assert "alert(1)" in text
    assert len(page.loads) == 2
    assert all(address.startswith("data:image/svg+xml;base64,") for address in page.loads)


def test_a_page_of_one_machine(section: dict[str, Any]) -> None:
    bare = {key: type(value)() if isinstance(value, list | dict) else value for key, value in section.items()}
    text = network_page("alone", {**bare, "members": section["members"][:1], "pairs": {}})
    assert "None found" in text
    assert "<img" not in text


@pytest.mark.slow
def test_panels_by_transport_and_encoding_with_a_curve_a_machine(section: dict[str, Any], tmp_path: Path) -> None:
    found = panels(section)
    assert list(found) == ["TCP", "TCP, XDR at both ends", "MPI, one node"]
    assert list(found["TCP"]) == NAMES[1:]
    assert list(found["MPI, one node"]) == ["Open MPI 5.0.11"]
    assert found["TCP"]["berta"][60_000] == pytest.approx((5e-5 + 8.5e-8 * 60_000) * 1.01)
    written = draw_machine(machine(section), tmp_path / "network.svg")
    assert [path.name for path in written] == ["network.svg", "network-machines.svg"]
    comments = set(re.findall(r"<!-- (.*?) -->", written[1].read_text()))
    assert {"TCP, XDR at both ends", "MB/s", "berta", "time one way (s)", "message (bytes)"} <= comments
    assert "between ana and each machine" in comments


def machine(section: dict[str, Any] | None) -> Any:
    measured = {"minga": "0.1"} if section is None else {"network": section, "minga": "0.1"}
    return SimpleNamespace(name="lab", nodes=(), measured=measured)


def test_the_page_is_a_file_or_nothing_is(section: dict[str, Any], tmp_path: Path) -> None:
    bare = machine({**section, "machines": [], "libraries": [], "links": []})  # nothing to draw
    assert write_network_page(bare, tmp_path / "network.html").read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(MingaError):
        write_network_page(bare, tmp_path / "nowhere" / "n.html")
    with pytest.raises(CaseError, match="was not measured"):
        write_network_page(machine(None), tmp_path / "none.html")
    assert [path.name for path in tmp_path.iterdir()] == ["network.html"]
