"""Networks of real labs are recognised: their wiring, their speed, and that messages cross the links."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from minga.lab.cluster import Cluster, laboratory
from minga.lab.config import Lab, LabNode
from minga.launch.hosts import Host
from minga.network.measuring.exchanges import measure_matrix
from minga.network.measuring.host_team import HostTeam, agents
from minga.network.measuring.measure import measure_hosts

PAYLOAD = 1448 / 1538
"""Of a full frame of Ethernet with all that is around it."""


def lab(wiring: Literal["switch", "hub"], rate: float, count: int) -> Lab:
    nodes = tuple(LabNode(f"n{number}", 1.0, None, rate) for number in range(count))
    return Lab("network", nodes, wiring, rate)


def hosts_of(cluster: Cluster) -> list[Host]:
    return [Host(name, address=address) for name, address in zip(cluster.names, cluster.addresses)]


@contextmanager
def team_in(chosen: Lab, rights: dict[str, Any]) -> Iterator[tuple[HostTeam, dict[tuple[int, int], str | None]]]:
    with laboratory(chosen, rootless=rights["rootless"], quota=False) as cluster:
        addresses: dict[tuple[int, int], str | None] = {
            (i, j): address for i in range(len(cluster.names)) for j, address in enumerate(cluster.addresses)
        }
        with agents(hosts_of(cluster), lambda host, command: cluster.command(host.name, command)) as team:
            yield team, addresses


@pytest.mark.slow
@pytest.mark.usefixtures("own_labs")
@pytest.mark.parametrize(("wiring", "rate"), [pytest.param("switch", 20e6, marks=pytest.mark.slow), ("hub", 10e6)])
def test_a_switch_and_a_hub_are_told_apart(
    wiring: Literal["switch", "hub"], rate: float, rights: dict[str, Any]
) -> None:
    with team_in(lab(wiring, rate, 4), rights) as (team, addresses):
        matrix = measure_matrix(team, range(4), addresses, "tcp", 0.5)
    assert matrix.medium.kind == wiring, matrix.medium
    found = [pair.bandwidth for pair in matrix.pairs]
    assert sorted(found)[len(found) // 2] == pytest.approx(PAYLOAD * rate / 8, rel=0.12)


@pytest.mark.slow
@pytest.mark.usefixtures("own_labs")
def test_a_slow_link_and_all_layers_of_a_lab(rights: dict[str, Any], tmp_path: Path) -> None:
    nodes = tuple(LabNode(name, 1.0, None, rate) for name, rate in (("a", 100e6), ("b", 100e6), ("c", 10e6)))
    with laboratory(Lab("uneven", nodes, rate=100e6), rootless=rights["rootless"], quota=False) as cluster:

        def launcher(host: Host, command: Any) -> list[str]:
            return cluster.command(host.name, command)

        found = measure_hosts(hosts_of(cluster), launcher, 20.0)
    assert found["pairs"]["medium"]["kind"] == "switch"
    assert set(found["slow_nodes"]) == {"2"}
    assert found["slow_nodes"]["2"][1] == pytest.approx(10, rel=0.3)
    assert found["crossed"]["enough"]
    assert found["crossed"]["interface"] == "eth0"
    assert [entry["transport"] for entry in found["links"]] == ["icmp", "udp", "tcp"]
