"""Machines as trees: given in words, read from Linux, found by ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minga as mg
from minga.engine.comm import Comm, SerialComm
from minga.engine.traffic import Traffic
from minga.errors import LayoutError
from minga.plan.topology import Tree, read_tree, seats_of, traffic_by_level


def test_numbers_are_levels_from_the_outside() -> None:
    tree = Tree.parse("3x2x2")
    assert tree.levels == ("node", "chip", "core")
    assert len(tree) == 12
    assert tree.paths[:5].tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0]]
    assert Tree.parse("8").levels == ("core",)
    assert Tree.parse(" 2x4 ").levels == ("node", "core")


def test_lists_are_groups_and_their_numbers_cores() -> None:
    tree = Tree.parse("[[2, 2], [4]]")
    assert tree.levels == ("node", "chip", "core")
    assert tree.paths.tolist() == [
        [0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1], [1, 0, 2], [1, 0, 3],
    ]  # fmt: skip
    assert Tree.nested([4, 4, 5]).levels == ("node", "core")
    assert len(Tree.nested([4, 4, 5])) == 13


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a topology"),
        ("2 nodes", "not a topology"),
        ("0x4", "not a topology"),
        ("2x2x2x2x2", "not a topology"),
        ("99999x99999", "cores, more than"),
        ("[[2, 2], 4]", "levels deep"),
        ("[[[[[1]]]]]", "levels deep"),
        ("[" * 900 + "1" + "]" * 900, "levels deep"),
        ("[]", "lists and numbers"),
        ("[2, -1]", "lists and numbers"),
        ("[2, true]", "lists and numbers"),
        ('[2, "x"]', "lists and numbers"),
        ("[2, 2", "not a valid JSON list"),
        ("[" * 100_000, "not a valid JSON list"),
        ("[9999999999]", "1 to"),
        ("rack=2 core=4", "none of them is the node"),
        ("node=2 node=2", "two levels 'node'"),
        ("node=2 core", "'core' is not a level"),
        ("rack node: [[[4]]]", "2 levels are named"),
        ("torus 4x4x4x4", "a torus of"),
        ("ring 4x4", "one number"),
        ("ring 9999999", "a torus of"),
        ("torus 4 core=999999999", "cores, more than"),
    ],
)
def test_what_is_no_machine_is_explained(text: str, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        Tree.parse(text)


@given(st.text(alphabet='0123456789x[], ."-{}e=nodcrtusmhig:', max_size=40))
def test_any_text_is_a_machine_or_explained(text: str) -> None:
    try:
        tree = Tree.parse(text)
    except LayoutError:
        return
    assert tree.paths.shape == (len(tree), len(tree.levels))
    assert len(tree) > 0


def test_relations_have_the_names_of_the_paper() -> None:
    tree = Tree.parse("2x2x2")
    assert tree.relations == ("inter-node", "inter-chip", "intra-chip", "same core")
    names = [tree.relations[int(tree.common(0, other))] for other in (4, 2, 1, 0)]
    assert names == list(tree.relations)
    assert Tree.parse("2x2").relations == ("inter-node", "intra-node", "same core")
    assert Tree.parse("4").relations == ("inter-core", "same core")
    assert tree.common(np.array([0, 0]), np.array([7, 1])).tolist() == [0, 2]


def test_levels_above_the_node_have_names() -> None:
    """Nodes are numbered through the machine, and parts of it keep the numbers."""
    tree = Tree.parse("rack=2 switch=2 node=2 core=2")
    assert tree.relations == ("inter-rack", "inter-switch", "inter-node", "intra-node", "same core")
    assert (tree.above, tree.nodes.tolist()) == (2, [n for n in range(8) for _ in range(2)])
    common = tree.common(0, np.array([0, 1, 2, 4, 8]))
    assert [tree.relations[c] for c in common] == [*tree.relations[::-1]]
    assert tree.apart(common).tolist() == [False, False, True, True, True]
    assert tree.part(np.array([15, 4])).nodes.tolist() == [7, 2]
    assert tree.groups(0).tolist() == [0] * 8 + [1] * 8
    assert tree.groups(1).tolist() == [n for n in range(4) for _ in range(4)]
    named = Tree.parse("rack, node, core: [[2, 2], [4]]")
    assert named.levels == ("rack", "node", "core")
    assert named.paths.tolist() == [
        [0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 2, 0], [1, 2, 1], [1, 2, 2], [1, 2, 3],
    ]  # fmt: skip
    assert Tree.parse("group=2 rack=2 switch=2 node=2 chip=2 NUMA=1 core=2").levels[3] == "node"
    assert Tree.parse("rack=2 node=3").levels == ("rack", "node", "core")


def test_networks_have_distances() -> None:
    tree = Tree.parse("torus 4x2 chip=1 core=2")
    assert (tree.levels, len(tree)) == (("node", "chip", "core"), 16)
    assert tree.hops(np.zeros(8, np.int64), np.arange(0, 16, 2)).tolist() == [0, 1, 1, 2, 2, 3, 1, 2]
    assert Tree.parse("ring 5").hops(np.array([0, 0, 4]), np.array([2, 3, 1])).tolist() == [2, 2, 2]
    assert Tree.parse("mesh 5").hops(np.array([0, 1]), np.array([4, 3])).tolist() == [4, 2]
    assert Tree.parse("3x2").hops(np.array([0, 0]), np.array([1, 5])).tolist() == [0, 1]
    halved, by_axis = tree.halves(), tree.axes()
    assert halved.levels == ("half0", "half1", "half2", *tree.levels)
    assert by_axis.levels == ("axis0", "axis1", *tree.levels)
    assert halved.nodes.tolist() == by_axis.nodes.tolist() == tree.nodes.tolist()
    assert halved.network is by_axis.network is None


def test_ranks_fill_nodes_in_order_and_share_cores_evenly() -> None:
    tree = Tree.parse("4x2")
    assert tree.seats(3).paths.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert tree.seats(16).paths[:4].tolist() == [[0, 0], [0, 0], [0, 1], [0, 1]]


def test_traffic_is_summed_by_level() -> None:
    seats = Tree.parse("2x1x2").seats(4)
    sent = [{1: Traffic(1, 10, 1), 2: Traffic(2, 20, 3)}, {}, {0: Traffic(5, 50, 5)}, {}]
    assert traffic_by_level(sent, seats) == {
        "inter-node": Traffic(7, 70, 8),
        "inter-chip": Traffic(),
        "intra-chip": Traffic(1, 10, 1),
        "same core": Traffic(),
    }


# Reading Linux -----------------
def system(folder: Path, **shared: str) -> Path:
    """Files as Linux shows them: by kind of group, its members, groups separated by ';'."""
    files = {
        "chip": "cpu/cpu{}/topology/package_cpus_list",
        "core": "cpu/cpu{}/topology/core_cpus_list",
        "L2": "cpu/cpu{}/cache/index2/shared_cpu_list",
        "L3": "cpu/cpu{}/cache/index3/shared_cpu_list",
        "NUMA": "cpu/cpu{}/node{}/cpulist",
    }
    for kind, groups in shared.items():
        for number, group in enumerate(groups.split(";")):
            for cpu in members(group):
                file = folder / files[kind].format(cpu, number)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(group + "\n")
                if kind in ("L2", "L3"):
                    (file.parent / "level").write_text(kind[1] + "\n")
                    (file.parent / "type").write_text("Unified\n")
    return folder


def members(group: str) -> list[int]:
    ends = [[int(end) for end in part.split("-")] for part in group.split(",")]
    return [cpu for part in ends for cpu in range(part[0], part[-1] + 1)]


def test_a_server_with_two_chips_and_hardware_threads(tmp_path: Path) -> None:
    """2 chips of 4 cores of 2 threads, numbered as Linux does, each chip with 2 third-level caches."""
    system(
        tmp_path,
        chip="0-3,8-11;4-7,12-15",
        NUMA="0-3,8-11;4-7,12-15",
        L3="0-1,8-9;2-3,10-11;4-5,12-13;6-7,14-15",
        L2="0,8;1,9;2,10;3,11;4,12;5,13;6,14;7,15",
        core="0,8;1,9;2,10;3,11;4,12;5,13;6,14;7,15",
    )
    tree = read_tree(range(16), tmp_path)
    assert tree.levels == ("node", "chip", "L3", "core")  # a second-level cache is a core here
    assert len(tree) == 8
    assert np.unique(tree.paths[:, :3], axis=0).tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]]
    assert read_tree([0, 1, 8, 9], tmp_path).levels == ("node", "core")  # as far as this process may use it


def test_memory_nodes_inside_a_chip_and_outside_of_caches_are_ordered_by_size(tmp_path: Path) -> None:
    system(tmp_path, chip="0-7", NUMA="0-3;4-7", L3="0-1;2-3;4-5;6-7", core="0;1;2;3;4;5;6;7")
    assert read_tree(range(8), tmp_path).levels == ("node", "NUMA", "L3", "core")
    other = system(tmp_path / "other", chip="0-7", NUMA="0-1;2-3;4-5;6-7", L3="0-3;4-7", core="0;1;2;3;4;5;6;7")
    assert read_tree(range(8), other).levels == ("node", "L3", "NUMA", "core")


def test_a_system_that_tells_nothing_has_cores(tmp_path: Path) -> None:
    tree = read_tree([3, 5], tmp_path)
    assert tree.levels == ("node", "rank")
    assert len(tree) == 2


def test_the_real_machine_is_read() -> None:
    assert len(read_tree()) >= 1
    assert read_tree().levels[0] == "node"


def test_ranks_find_where_they_sit() -> None:
    def seats(comm: Comm) -> list[object]:
        found = seats_of(comm)
        return [found.levels, found.paths.tolist()]

    alone = seats(SerialComm())
    assert alone[0][0] == "node"
    together = mg.run_virtual(3, seats)
    assert together == [together[0]] * 3
    assert len(together[0][1]) == 3
