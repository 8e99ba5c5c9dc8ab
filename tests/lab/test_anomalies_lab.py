"""Faults that are put into real labs are found, by name and on the right machine; labs that are well have none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest

from minga.lab.cluster import Cluster, laboratory
from minga.lab.config import Lab, LabNode
from minga.launch.hosts import Host
from minga.network.measuring.measure import measure_hosts

NAMES = ("purmamarca", "cf1", "prited", "sofia")
FOUR = Lab("anomalies", tuple(LabNode(name, 1.0, None, 100e6) for name in NAMES), rate=100e6)
# An agent whose connections have Nagle's algorithm and whose messages are written in two pieces.
NAGLE = """
import runpy
from minga.network.measuring.transports import tcp
make = tcp.TcpWire.__init__
tcp.TcpWire.__init__ = lambda self, connection, options, patience: make(
    self, connection, tcp.Options(False, options.buffer, True), patience)
runpy.run_module("minga.network.measuring.agent", run_name="__main__", alter_sys=True)
"""


def measured(cluster: Cluster, seconds: float, nagle: str = "") -> list[dict[str, Any]]:
    def launcher(host: Host, command: Sequence[str]) -> list[str]:
        return cluster.command(host.name, [sys.executable, "-c", NAGLE] if host.name == nagle else command)

    hosts = [Host(name, address=address) for name, address in zip(cluster.names, cluster.addresses)]
    section = measure_hosts(hosts, launcher, seconds)
    assert {curve["transport"] for curve in section["machines"]} == {"icmp", "udp", "udpbcast", "tcp", "tcp-nagle"}
    print(section["advice"])
    return section["anomalies"]


@pytest.mark.slow
@pytest.mark.usefixtures("own_labs")
def test_small_buffers_of_one_node_are_its_tcp_configuration(rights: dict[str, Any]) -> None:
    with laboratory(FOUR, rootless=rights["rootless"], quota=False) as cluster:
        cluster.execute("sofia", ["sysctl", "-qw", "net.ipv4.tcp_wmem=4096 4096 4096"], check=True)
        found = measured(cluster, 40.0)
    assert ("TCP configuration", "sofia") in {(one["name"], one["node"]) for one in found}
    (tcp,) = (one for one in found if one["name"] == "TCP configuration")
    assert any("tcp_wmem = 4096 4096 4096" in text for text in tcp["evidence"])
    assert {one["node"] for one in found} == {"sofia"}


@pytest.mark.slow
@pytest.mark.usefixtures("own_labs")
def test_nagle_on_one_node(rights: dict[str, Any]) -> None:
    with laboratory(FOUR, rootless=rights["rootless"], quota=False) as cluster:
        found = measured(cluster, 40.0, nagle="cf1")
    assert [(one["name"], one["node"]) for one in found if one["name"] != "half duplex"] == [
        ("Nagle with delayed ACK", "cf1")
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("own_labs")
def test_nothing_is_wrong_with_a_lab_that_is_well(rights: dict[str, Any]) -> None:
    with laboratory(FOUR, rootless=rights["rootless"], quota=False) as cluster:
        assert measured(cluster, 20.0) == []
