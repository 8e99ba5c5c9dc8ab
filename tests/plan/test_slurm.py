"""The switches of Slurm: lists of names, topology.conf, and the variables of a job."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minga.errors import LayoutError
from minga.plan.slurm import names_in, padded, read_switches, switch_levels, switches_here
from minga.plan.topology import Tree, tree_of_places

THREE_LEVELS = """
# two spines, of which one has a single leaf
SwitchName=leaf1 Nodes=node[1-2] LinkSpeed=100
switchname=leaf2 \\
    nodes=node3,gpu[07-08]
SwitchName=leaf3 Nodes=node4   # a comment
SwitchName=spine1 Switches=leaf[1-2]
SwitchName=spine2 Switches=leaf3
SwitchName=core Switches=spine[1-2]
"""


def test_lists_of_names_are_those_of_scontrol() -> None:
    """As `scontrol show hostnames` of Slurm 22.05 writes them."""
    assert names_in("node[1-3,07-10]") == ["node1", "node2", "node3", "node07", "node08", "node09", "node10"]
    assert names_in("rack[1-2]n[01-03]") == [f"rack{rack}n0{node}" for rack in (1, 2) for node in (1, 2, 3)]
    assert names_in("login,n[1-2]-ib") == ["login", "n1-ib", "n2-ib"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n[1",
        "n1]",
        "n[1-",
        "n[]",
        "n[a]",
        "n[3-1]",
        "n[2-1]",
        "n[1-99999999]",
        "n[1-999999999]",
        "n[1-999][1-999]",
        "n[1-99999,1-99999]",
        "a b",
        "a,,b",
        "n[[1]]",
        "n[1]]",
    ],
)
def test_what_is_no_list_of_names_is_explained(text: str) -> None:
    with pytest.raises(LayoutError, match=r"not a list|not a range|more than"):
        names_in(text)


@given(st.text(alphabet="n1-9,[]a 0", max_size=30))
def test_any_text_is_a_list_of_names_or_explained(text: str) -> None:
    try:
        found = names_in(text)
    except LayoutError:
        return
    assert found
    assert all(found)


def test_a_file_says_which_switches_lead_to_each_node(tmp_path: Path) -> None:
    file = tmp_path / "topology.conf"
    file.write_text(THREE_LEVELS)
    found = read_switches(file)
    assert found["node1"] == found["node2"] == ("core", "spine1", "leaf1")
    assert found["gpu07"] == ("core", "spine1", "leaf2")
    assert found["node4"] == ("core", "spine2", "leaf3")
    tree = Tree.parse(str(file))
    # The only core switch distinguishes nothing; the relations between nodes have names.
    assert tree.levels == ("switch2", "switch", "node", "rank")
    assert tree.relations[:3] == ("inter-switch2", "inter-switch", "inter-node")
    names = list(found)
    common = {name: int(tree.common(names.index("node1"), names.index(name))) for name in names}
    assert (common["node2"], common["gpu07"], common["node4"]) == (2, 1, 0)


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2", "described twice", 2),
        ("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n2", "below switch 'a' and below switch 'b'", 2),
        ("SwitchName=a Nodes=n1\n\nSwitchName=s Switches=a,b", "no switch 'b'", 3),
        ("SwitchName=a Nodes=n1\nSwitchName=b Switches=c\nSwitchName=c Switches=b,a", "below itself", 3),
        ("SwitchName=a Nodes=n[", "not a list of names", 1),
        ("Nodes=n1", "does not describe a switch", 1),
        ("# nothing", "no nodes", 0),
    ],
)
def test_mistakes_in_a_file_have_lines(tmp_path: Path, text: str, words: str, line: int) -> None:
    file = tmp_path / "topology.conf"
    file.write_text(text)
    with pytest.raises(LayoutError, match=words) as caught:
        read_switches(file)
    assert str(caught.value.where) == (f"{file}:{line}" if line else str(file))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match="cannot be read"):
        Tree.parse(str(tmp_path / "topology.conf"))


def test_the_variables_of_a_job_count_on_the_host_that_they_name() -> None:
    known = {"SLURM_TOPOLOGY_ADDR": "spine.leaf1.node1", "SLURM_TOPOLOGY_ADDR_PATTERN": "switch.switch.node"}
    assert switches_here(known, "node1.cluster") == ("spine", "leaf1")
    assert switches_here(known, "node2") is None  # a launcher has passed them on
    assert switches_here({}, "node1") is None
    flat = {"SLURM_TOPOLOGY_ADDR": "node1", "SLURM_TOPOLOGY_ADDR_PATTERN": "node"}
    assert switches_here(flat, "node1") == ()
    assert switches_here({**flat, "SLURM_TOPOLOGY_ADDR_PATTERN": "switch.node"}, "node1") is None


def test_switches_are_levels_above_the_nodes_of_ranks() -> None:
    """Two ranks on each of three nodes, of which two share a leaf; nodes are numbered through the machine."""
    places = [(rank - rank % 2, {}) for rank in range(6)]
    chains = [("spine", "leaf1")] * 4 + [("spine", "leaf2")] * 2
    tree = tree_of_places(places, chains)
    assert tree.levels == ("switch", "node", "rank")
    assert (tree.above, tree.nodes.tolist()) == (1, [0, 0, 1, 1, 2, 2])
    assert tree.apart(tree.common(0, tree.order)).tolist() == [False, False, True, True, True, True]
    assert tree_of_places(places, [("spine",)] * 6).levels == ("node", "rank")
    assert tree_of_places(places).levels == ("node", "rank")
    assert padded([("a", "b"), ("c",), ()]) == [("a", "b"), ("c", "c"), ("", "")]
    assert switch_levels(3) == ("switch3", "switch2", "switch")
