"""Machine files with switches above the nodes, or with a network of nodes, and the lines of mistakes in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.errors import CaseError
from minga.plan.links import HOP
from minga.plan.machine.hosts import group_on
from minga.plan.machine.json_lines import line_of_key
from minga.plan.machine.machine import read_machine
from minga.plan.machine.machine_file import machine_of

MACHINE: dict[str, Any] = {
    "format": "minga machine",
    "version": 1,
    "nodes": [
        {"name": "new", "count": 4, "topology": "2x2", "speed": 1e9},
        {"name": "old", "count": 2, "cores": 2, "speed": 1e8},
    ],
    "links": {
        "inter-rack": {"latency": "50 us", "bandwidth": "1 Gb/s"},
        "inter-node": {"latency": "10 us", "bandwidth": "10 Gb/s"},
    },
    "switches": {
        "levels": ["rack", "switch"],
        "groups": [[2, ["new-3"]], [["new-4"], ["old-[1-2]"]]],
        "uplinks": {"rack": "10 Gb/s"},
    },
}
PLAIN = {**MACHINE, "links": {"inter-node": MACHINE["links"]["inter-node"]}}


def with_switches(**changed: Any) -> dict[str, Any]:
    return {**MACHINE, "switches": {**MACHINE["switches"], **changed}}


def test_switches_are_levels_of_the_machine() -> None:
    machine = machine_of(MACHINE)
    assert machine.levels == ("rack", "switch", "node", "chip", "core")
    group = machine.rank_group()
    at_node = np.unique(group.seats.paths[:, :3], axis=0).tolist()
    assert at_node == [[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 0, 3], [1, 1, 4], [1, 1, 5]]
    assert group.node(19) == "old-2"
    latencies = [link.segments[0].alpha for link in group.links.levels]
    # A level without a link has that of the level inside it.
    assert latencies == pytest.approx([50e-6, 10e-6, 10e-6, 1e-6, 1e-6, 1e-6])
    assert group.links.between(group.seats) is group.links.levels[2]
    assert group.links.uplinks == pytest.approx((8e-10, 0.0))


def test_ranks_on_some_hosts_keep_their_switches() -> None:
    group = group_on(machine_of(MACHINE), ["old-1", "old-1", "new-2", "old-2.cluster"])
    assert group.seats.levels == ("rack", "switch", "node", "chip", "core")
    assert group.seats.paths[:, :3].tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1], [1, 1, 2]]
    assert group.names == ("old-1", "new-2", "old-2.cluster")
    assert group.seats.common(0, np.array([2, 3])).tolist() == [0, 2]


def test_the_switches_of_slurm_are_found_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "topology.conf").write_text(
        "SwitchName=leaf1 Nodes=new-[1-2]\nSwitchName=leaf2 Nodes=new-[3-4]\nSwitchName=leaf3 Nodes=old-[1-2]\n"
        "SwitchName=spine1 Switches=leaf[1-2]\nSwitchName=top Switches=spine1,leaf3\n"
    )
    file = tmp_path / "machine.json"
    file.write_text(json.dumps({**PLAIN, "switches": "topology.conf"}))
    machine = read_machine(file)
    assert machine.levels == ("switch2", "switch", "node", "chip", "core")  # all nodes are below "top"
    tree = machine.tree()
    assert tree.common(0, np.array([4, 8, 16])).tolist() == [2, 1, 0]
    assert tree.common(16, 18) == 2
    file.write_text(json.dumps({**PLAIN, "nodes": [{"name": "other", "cores": 1}], "switches": "topology.conf"}))
    with pytest.raises(CaseError, match="names no switch of other"):
        read_machine(file)


def test_nodes_of_a_network_are_numbered_in_order() -> None:
    data = {**PLAIN, "network": {"torus": [3, 2], "hop": "200 ns"}}
    del data["switches"]
    group = machine_of(data).rank_group()
    assert group.links.hop == pytest.approx(200e-9)
    first = [int(np.flatnonzero(group.seats.nodes == node)[0]) for node in range(6)]
    assert group.seats.hops(np.zeros(6, np.int64), np.array(first)).tolist() == [0, 1, 1, 2, 1, 2]
    some = group_on(machine_of(data), ["new-4", "new-1"])
    assert some.seats.hops(np.array([0]), np.array([1])).tolist() == [2]
    plain = machine_of({key: value for key, value in PLAIN.items() if key != "switches"})
    assert plain.rank_group().links.hop == HOP
    assert plain.levels == ("node", "chip", "core")


@pytest.mark.parametrize(
    ("data", "words", "key"),
    [
        (with_switches(groups=[[2, ["nw-3"]], [["new-4"], ["old-[1-2]"]]]), "no node 'nw-3'", "switches.groups[0][1]"),
        (with_switches(groups=[[4], [[2]]]), "expected a number", "switches.groups[1][0]"),
        (with_switches(groups=[[4, ["new-1"]], [2]]), "'new-1' is below two", "switches.groups[0][1]"),
        (with_switches(groups=[[4], [3]]), "more nodes than the machine", "switches.groups[1][0]"),
        (with_switches(groups=[[4], [1]]), "no switch leads to old-2", "switches.groups"),
        (with_switches(groups=[[4], 2]), "expected a list of groups, 1 deep", "switches.groups[1]"),
        (with_switches(groups=[["x[", 2], [2]]), "expected a number", "switches.groups[0][0]"),
        (with_switches(groups=[[["x["]], [2]]), "not a list of names", "switches.groups[0][0]"),
        (with_switches(levels=["rack", "chip"]), "'chip' cannot be", "switches.levels[1]"),
        (with_switches(levels=["rack", "rack"]), "'rack' cannot be", "switches.levels[1]"),
        (with_switches(uplinks={"rak": 1e9}), "no level 'rak'", "switches.uplinks.rak"),
        (with_switches(uplinks={"rack": "fast"}), "rate", "switches.uplinks.rack"),
        ({**PLAIN, "switches": "none.conf"}, "cannot be read", "switches"),
        ({**MACHINE, "network": {"torus": [6]}}, "both switches and a network", "network"),
        ({**PLAIN, "switches": None, "network": {"torus": [2, 2]}}, "has 4 nodes, and the machine 6", "network.torus"),
        ({**PLAIN, "switches": None, "network": {"torus": [6], "mesh": [6]}}, "one of torus, mesh", "network"),
        ({**PLAIN, "switches": None, "network": {"distances": [[0, 1]]}}, "row 0", "network.distances"),
        ({**PLAIN, "switches": None, "network": {"torus": []}}, "a torus of", "network.torus"),
    ],
)
def test_mistakes_are_named_with_their_entries(data: dict[str, Any], words: str, key: str) -> None:
    with pytest.raises(CaseError, match=words) as caught:
        machine_of(data)
    assert caught.value.key == key


def test_mistakes_have_lines(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    text = json.dumps(with_switches(groups=[[2, ["nw-3"]], [["new-4"], ["old-[1-2]"]]]), indent=1)
    file.write_text(text)
    with pytest.raises(CaseError) as caught:
        read_machine(file)
    before = text[: text.index("nw-3")]
    assert str(caught.value.where) == f"{file}:{before.count(chr(10))}"  # the list that holds it begins a line before


@pytest.mark.parametrize(
    ("key", "line"),
    [("a", 2), ("b[1].c", 5), ("b[1].c.d", 5), ("b[0]", 4), ("b[7]", 3), ("z", 0), ("b[1].e", 6), ("f", 7), ("", 0)],
)
def test_lines_of_entries(key: str, line: int) -> None:
    text = '{\n "a": "]}{[",\n "b": [\n  {"c": 1, "x": [2, {}]},\n  {"x": {"c": [5]}, "c": 2,\n   "e": 3}],\n "f": 1}'
    assert line_of_key(text, key) == line


@pytest.mark.parametrize("text", ["", "[", '{"a"', "{]", '{"a": nul}'])
def test_broken_files_have_no_lines(text: str) -> None:
    assert line_of_key(text, "b.c") == 0
