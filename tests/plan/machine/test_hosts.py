"""Ranks that run, as a machine file describes their hosts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from minga.errors import CaseError
from minga.plan.machine.hosts import group_on
from minga.plan.machine.machine import Machine, read_machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    content: dict[str, Any] = {
        "format": "minga machine",
        "version": 1,
        "nodes": [
            {"name": "new", "hosts": ["n1.lab", "n2.lab"], "count": 2, "topology": "1x2", "speed": "4 Mcells/s",
             "memory": "8 GB"},
            {"name": "old", "hosts": ["o1"], "count": 1, "cores": 1, "speed": "1 Mcells/s", "memory": "1 GB",
             "link": {"latency": "80 us", "bandwidth": "10 Mb/s"}},
        ],
        "links": {"inter-node": {"latency": "40 us", "bandwidth": "1 Gb/s"}},
    }  # fmt: skip
    path = tmp_path / "lab.json"
    path.write_text(json.dumps(content))
    return read_machine(path)


def test_each_rank_is_described_by_its_own_host(machine: Machine) -> None:
    group = group_on(machine, ["o1", "n2", "n2", "n1"])
    rates = [float(group.speeds[s].rate(1e6)) for s in group.speed_of]
    assert rates == pytest.approx([1e6, 4e6, 4e6, 4e6])
    assert group.names == ("o1", "n2", "n1")
    assert group.seats.paths[:, 0].tolist() == [0, 1, 1, 2]
    assert len({tuple(row) for row in group.seats.paths.tolist()}) == 4
    assert group.memory[0] < group.memory[1] < group.memory[3]
    assert set(group.links.nodes) == {0}


def test_ranks_beyond_the_cores_share_them(machine: Machine) -> None:
    group = group_on(machine, ["o1", "o1", "n1"])
    assert float(group.speeds[group.speed_of[0]].rate(1e6)) == pytest.approx(0.5e6)


def test_other_hosts_are_refused(machine: Machine) -> None:
    with pytest.raises(CaseError, match="but ranks run on n3") as caught:
        group_on(machine, ["n1", "n3"])
    assert "run.machine" in str(caught.value)


def test_a_machine_without_hosts_is_filled_in_order() -> None:
    group = group_on(read_machine("two-ages"), ["laptop"] * 10)
    assert group.names[:2] == ("new-1", "new-2")
    assert group.seats.paths[:, 0].tolist() == [0] * 8 + [1] * 2


def test_several_hosts_are_the_nodes_of_a_machine_without_hosts() -> None:
    """Whichever way a launcher deals ranks out; two hosts are never one node."""
    whole = read_machine("two-ages")
    names = [f"pc{number}" for number in range(len(whole.names))]
    group = group_on(whole, [*names, *names])
    assert group.seats.paths[:, 0].tolist() == [*range(len(names))] * 2
    rates = [float(group.speeds[s].rate(1e6)) for s in group.speed_of]
    assert rates[0] > rates[len(names) - 1]
    with pytest.raises(CaseError, match="but ranks run on pc0"):
        group_on(whole, [*names, "one-more"])
