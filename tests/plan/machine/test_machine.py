"""Machine files: what may stand in them, what a planner gets of them, and what people are told of mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counting import counted
from minga.errors import CaseError, LayoutError
from minga.plan.machine.machine import SHARED_MEMORY, SHIPPED, read_machine
from minga.plan.machine.machine_file import json_schema, machine_of, tree_settings
from minga.plan.topology import Tree

THREE_LINES = """{"format": "minga machine", "version": 1,
 "nodes": [{"count": 4, "cores": 2, "speed": "1 Gcells/s"}],
 "links": {"inter-node": {"latency": "50 us", "bandwidth": "1 Gb/s"}}}"""


def described(**entries: Any) -> dict[str, Any]:
    """A small machine with some entries of it changed."""
    base = {"format": "minga machine", "version": 1, "nodes": [{"cores": 2, "speed": 1e9}]}
    return {key: value for key, value in {**base, **entries}.items() if value is not None}


def node(**entries: Any) -> dict[str, Any]:
    """A machine of one kind of node."""
    return described(nodes=[{"cores": 4, **entries}])


def test_three_lines_are_a_machine(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text(THREE_LINES)
    group = read_machine(file).rank_group()
    assert group.ranks == 8
    assert group.seats.paths.tolist() == [[n, c] for n in range(4) for c in range(2)]
    assert group.speeds[0].rate(1e6) == pytest.approx(1e9)
    far, near = group.links.time(group.seats, np.array([0, 0]), np.array([2, 1]), 125_000)
    assert far == pytest.approx(50e-6 + 1e-3)
    assert near == pytest.approx(float(SHARED_MEMORY.time(125_000)))
    assert len(group.names) == 4


def test_the_shipped_machine_of_two_ages() -> None:
    machine = read_machine("two-ages")
    group = machine.rank_group()
    assert group.ranks == 2 * 8 + 3 * 2
    assert group.names == ("new-1", "new-2", "old-1", "old-2", "old-3")
    assert [float(speed.rate(1.0)) for speed in group.speeds] == pytest.approx([1e9, 2.5e8])
    assert group.speed_of.tolist() == [0] * 16 + [1] * 6
    assert group.memory[0] == int(0.8 * 32e9 / 8)
    assert group.memory[-1] == int(0.8 * 4e9 / 2)
    # The old nodes have links of their own: 100 Mb/s where one of them takes part.
    slow, fast = group.links.time(group.seats, np.array([0, 0]), np.array([16, 8]), 1_250_000)
    assert slow == pytest.approx(80e-6 + 0.1)
    assert fast == pytest.approx(40e-6 + 0.01)


def test_a_cluster_of_a_quarter_million_cores_is_there_at_once() -> None:
    group, calls = counted(lambda: read_machine("cluster-4096x64").rank_group())
    assert group.ranks == 4096 * 64
    assert calls < group.ranks / 4  # ranks are not looked at one by one, which takes minutes
    assert group.seats.levels == ("node", "chip", "cache", "core")
    assert len(group.speeds) == 1
    assert (np.bincount(group.seats.paths[:, 0]) == 64).all()
    assert len(np.unique(group.seats.paths, axis=0)) == group.ranks


def test_all_shipped_machines_can_be_read() -> None:
    names = [file.stem for file in SHIPPED.glob("*.json")]
    assert {"two-ages", "cluster-4096x64"} <= set(names)
    for name in names:
        assert read_machine(name).rank_group(kernel="any").ranks > 1


def test_threads_take_cores_of_their_own() -> None:
    machine = machine_of(node(topology="2x4", cores=None, count=2, speed=1e9, link={"latency": 0, "bandwidth": 1e9}))
    group = machine.rank_group(threads=3)
    assert group.ranks == 4  # two to a node: the last two cores are too few for a third
    assert group.seats.paths.tolist() == [[0, 0, 0], [0, 0, 3], [1, 0, 0], [1, 0, 3]]
    assert float(group.speeds[0].rate(1e6)) == pytest.approx(3e9)
    assert machine.rank_group(3).seats.paths[:, 0].tolist() == [0, 0, 0]


def test_more_ranks_than_cores_take_turns() -> None:
    group = machine_of(node(speed=1e9, memory="8 GB")).rank_group(8)
    assert group.ranks == 8
    assert float(group.speeds[0].rate(1e6)) == pytest.approx(5e8)
    assert group.memory.sum() == pytest.approx(0.8 * 8e9, rel=1e-6)
    one = machine_of(node(speed=1e9)).rank_group(1, threads=8)
    assert float(one.speeds[0].rate(1e6)) == pytest.approx(4e9)


def test_speeds_are_curves_and_threads_share_the_cells() -> None:
    curve = {"name": "laplace", "cells": [1e6, 1e4], "seconds": [4e-3, 1e-5], "samples": [[4e-3, 5e-3], [1e-5]]}
    machine = machine_of(node(speed=1e8, speeds={"cpu": {"abc": curve, "other": "2 Gcells/s"}}))
    for kernel in ("abc", "laplace", ("unknown", "laplace")):
        speed = machine.rank_group(kernel=kernel, threads=2).speeds[0]
        assert speed.cells.tolist() == [2e4, 2e6]
        assert speed.time(2e6) == pytest.approx(4e-3)
    assert float(machine.rank_group(kernel="other").speeds[0].rate(1.0)) == pytest.approx(2e9)
    assert float(machine.rank_group(kernel="what").speeds[0].rate(1.0)) == pytest.approx(1e8)
    assert machine.nodes[0].speeds["cpu"]["abc"].seconds == ((4e-3, 5e-3), (1e-5,))


def test_memory_bandwidth_stands_in_for_an_unknown_kernel() -> None:
    machine = machine_of(node(bandwidth="20 GB/s", core_bandwidth="8 GB/s"))
    assert float(machine.rank_group(cell_bytes=16).speeds[0].rate(1.0)) == pytest.approx(20e9 / 4 / 16)
    assert float(machine.rank_group(1, cell_bytes=16).speeds[0].rate(1.0)) == pytest.approx(8e9 / 16)
    assert float(machine.rank_group(1, cell_bytes=16, threads=4).speeds[0].rate(1.0)) == pytest.approx(20e9 / 16)
    with pytest.raises(CaseError, match="how fast node 'node0' runs any kernel") as raised:
        machine.rank_group()
    assert raised.value.key == "nodes[0].speeds.cpu"


def test_an_unknown_kernel_names_those_that_are_known() -> None:
    machine = machine_of(node(speeds={"cpu": {"d1": {"name": "laplace", "cells_per_second": 1e9}}}))
    with pytest.raises(CaseError, match="knows laplace") as raised:
        machine.rank_group(kernel=("d9", "laplac"))
    assert raised.value.suggestion == "laplace"
    assert "minga measure --case" in str(raised.value)


def test_links_hold_for_the_levels_inside_that_say_nothing() -> None:
    links = {
        "inter-node": {"latency": 1e-3, "bandwidth": 1e8},
        "inter-chip": {"latency": 2e-6, "bandwidth": 1e9},
        "intra-cache": {"segments": [{"alpha": 1e-7, "beta": 0}, {"least": 100, "alpha": 5e-7, "beta": 1e-10}]},
    }
    group = machine_of(described(nodes=[{"topology": "2x2x2", "speed": 1e9}], links=links)).rank_group()
    alphas = [link.segments[0].alpha for link in group.links.levels]
    assert alphas == [1e-3, 2e-6, 2e-6, 1e-7, 1e-7]
    assert group.links.levels[3].time(200) == pytest.approx(5e-7 + 2e-8)
    inside = machine_of(described(nodes=[{"topology": "2x2", "speed": 1e9}], links={"intra-node": links["inter-chip"]}))
    assert [link.segments[0].alpha for link in inside.rank_group().links.levels[1:]] == [2e-6] * 3


def test_nodes_of_different_depth_share_a_tree() -> None:
    machine = machine_of(
        described(
            nodes=[
                {"topology": "2x2", "speed": 1e9},
                {"cores": 2, "speed": 1e9},
                {"topology": {"levels": ["L3", "core"], "groups": [2, 1]}, "speed": 1e9},
            ],
            links={"inter-node": {"latency": 0, "bandwidth": 1e9}},
        )
    )
    assert machine.levels == ("node", "chip", "L3", "core")
    tree = machine.tree()
    assert tree.paths[:4, :2].tolist() == [[0, 0], [0, 0], [0, 1], [0, 1]]
    assert tree.common(0, 1) == 3  # one cache, as far as anybody knows
    assert tree.common(0, 2) == 1
    assert tree.paths[6:].tolist() == [[2, 0, 0, 0], [2, 0, 0, 1], [2, 0, 1, 0]]


def test_a_hub_is_shared() -> None:
    assert machine_of(described(medium="hub")).rank_group().links.shared
    assert not machine_of(described()).rank_group().links.shared


def test_a_file_is_written_as_it_was_read(tmp_path: Path) -> None:
    machine = read_machine("two-ages")
    machine.write(tmp_path / "copy.json")
    assert json.loads((tmp_path / "copy.json").read_text()) == machine.data
    assert read_machine(tmp_path / "copy.json").data == machine.data
    assert [path.name for path in tmp_path.iterdir()] == ["copy.json"]
    with pytest.raises(CaseError, match="cannot be written"):
        machine.write(tmp_path / "nowhere" / "copy.json")


def test_a_tree_is_written_as_it_was_read() -> None:
    tree = Tree.nested([[[4, 4], [4, 2]]], ("node", "chip", "L3", "core"))
    settings = tree_settings(tree)
    assert settings == {"levels": ["chip", "L3", "core"], "groups": [[4, 4], [4, 2]]}
    again = machine_of(node(cores=None, topology=settings, speed=1e9)).nodes[0].cores
    assert (again.paths == tree.paths).all()


@pytest.mark.parametrize(
    ("content", "key", "words"),
    [
        ({"nodes": []}, "nodes", "at least 1"),
        (described(format="minga case"), "format", "not a machine file"),
        ([1, 2], "format", "found 'list'"),
        (described(version=2), "version", "has version 2"),
        (described(version="1"), "version", "whole number"),
        (described(nodes=None), "nodes", "missing"),
        (described(nods=[]), "nods", "unknown key 'nods'"),
        (node(cors=3), "nodes[0].cors", "unknown key"),
        (node(count=0), "nodes[0].count", "at least 1"),
        (node(count=2.5), "nodes[0].count", "whole number"),
        (node(memory="lots"), "nodes[0].memory", "16 GB"),
        (node(memory=-1), "nodes[0].memory", "16 GB"),
        (node(speed="fast"), "nodes[0].speed", "Gcells/s"),
        (node(topology="2x2"), "nodes[0].cores", "cores and also"),
        (node(cores=None), "nodes[0].cores", "neither cores nor"),
        (node(cores=None, topology="2xx"), "nodes[0].topology", "topology of a node"),
        (node(cores=None, topology=[[2], 2]), "nodes[0].topology", "topology of a node"),
        (node(count=2, hosts=["a"]), "nodes[0].count", "1 hosts"),
        (node(speeds={"cpu": {"k": {"cells": [1.0]}}}), "nodes[0].speeds.cpu.k", "cells and seconds"),
        (node(speeds={"cpu": {"k": {"cells": [1.0], "seconds": [1.0, 2.0]}}}), "nodes[0].speeds.cpu.k", "2 seconds"),
        (node(speeds={"cpu": {"k": {"cells": [-1.0], "seconds": [1.0]}}}), "nodes[0].speeds.cpu.k.cells[0]", "above 0"),
        (node(speeds={"cpu": {"k": {"cels": [1.0]}}}), "nodes[0].speeds.cpu.k.cels", "unknown key"),
        (node(count=2), "links.inter-node", "no link between the nodes"),
        (described(links={"inter-node": {"latency": "1 us"}}), "links.inter-node.bandwidth", "no bandwidth"),
        (described(links={"inter-node": {"latency": "soon", "bandwidth": 1}}), "links.inter-node.latency", "50 us"),
        (described(links={"inter-nod": {"latency": 0, "bandwidth": 1}}), "links.inter-nod", "no link"),
        (described(links={"inter-node": {"segments": []}}), "links.inter-node.segments", "at least 1"),
        (described(medium="ether"), "medium", "switch"),
        (node(cores=10**12), "nodes[0].cores", "at most"),
        (node(hosts=["a", "a"]), "nodes[0].hosts", "two nodes have the name 'a'"),
        (node(count=1 << 20, link={"latency": 0, "bandwidth": 1}), "nodes", "cores, more than"),
    ],
)
def test_mistakes_are_explained(content: Any, key: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    if isinstance(content, dict):
        content = {"format": "minga machine", "version": 1, **content}
    file.write_text(json.dumps(content))
    with pytest.raises(CaseError, match=words) as raised:
        read_machine(file)
    assert raised.value.key == key
    assert str(file) in str(raised.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not valid JSON"),
        ('{"a": NaN}', "NaN is not a number"),
        ("[" * 100_000, "not valid JSON"),
        ('{"a": 1,}', "double quotes"),
    ],
)
def test_what_is_no_json_is_explained(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text(text)
    with pytest.raises(CaseError, match=words):
        read_machine(file)


def test_a_machine_that_is_not_there() -> None:
    with pytest.raises(CaseError, match="neither a file nor one that ships") as raised:
        read_machine("two-agess")
    assert raised.value.suggestion == "two-ages"
    with pytest.raises(CaseError, match="cannot be read"):
        read_machine("nowhere/m.json")


def test_a_group_of_nobody_is_refused() -> None:
    with pytest.raises(LayoutError, match="0 ranks"):
        read_machine("two-ages").rank_group(0)


def test_the_schema_in_the_documentation_is_current() -> None:
    file = Path(__file__).parents[3] / "docs" / "machine.schema.json"
    assert json.loads(file.read_text()) == json.loads(json.dumps(json_schema())), (
        "write it again: python -c 'import json; from minga.plan.machine.machine_file import json_schema; "
        "print(json.dumps(json_schema(), indent=1))' > docs/machine.schema.json"
    )
