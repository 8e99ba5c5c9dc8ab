"""Lab files: what they mean, and what is said about wrong ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from minga.errors import CaseError
from minga.lab.config import Lab, labs, read_lab
from minga.lab.cores import assign_cores

SHIPPED = ["cetad", "four", "milano-2-1", "speedy-gonzalez", "three-ages"]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "My lab.toml"
    path.write_text(text)
    return path


def test_a_file_says_what_each_node_is(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        wiring = "hub"
        rate = "10 Mb/s"
        latency = "0.5 ms"
        loss = 0.01
        seed = 7
        period = "10 ms"
        scale = 0.5
        [[nodes]]
        name = "pc"
        share = 2.0
        memory = "512 MB"
        count = 2
        [[nodes]]
        name = "old"
        """,
    )
    lab = read_lab(path)
    assert (lab.name, lab.wiring, lab.seed) == ("my-lab", "hub", 7)
    assert (lab.rate, lab.latency, lab.loss, lab.period) == (10e6, 0.5e-3, 0.01, 10e-3)
    assert [node.name for node in lab.nodes] == ["pc-1", "pc-2", "old"]
    assert [node.memory for node in lab.nodes] == [512_000_000, 512_000_000, None]
    assert lab.shares(8) == (1.0, 1.0, 0.5)
    assert lab.in_user_space


def test_rates_hold_for_all_nodes_unless_they_have_their_own(tmp_path: Path) -> None:
    lab = read_lab(
        written(tmp_path, 'rate = "100 Mb/s"\n[[nodes]]\nname = "a"\n[[nodes]]\nname = "b"\nrate = "1 MB/s"')
    )
    assert lab.rates == (100e6, 8e6)
    assert replace(lab, rate=10e6).rates == (10e6, 8e6)
    assert not lab.in_user_space


def test_nodes_may_have_several_switches(tmp_path: Path) -> None:
    nodes = '[[nodes]]\nname = "pc"\ncount = 2\nswitch = "a"\n[[nodes]]\nname = "old"\nswitch = "b"'
    lab = read_lab(written(tmp_path, f'uplink = "2 ms"\n{nodes}'))
    assert (lab.switches, lab.uplink) == ((0, 0, 1), 2e-3)
    assert lab.in_user_space
    assert Lab.from_dict(json.loads(json.dumps(lab.as_dict()))) == lab


def test_shares_shrink_together_where_there_are_too_few_cores() -> None:
    lab = read_lab("four")
    assert lab.shares(2) == (0.6, 0.3, 0.3, 0.15)
    one = lab.shares(1)
    assert sum(one) == pytest.approx(0.9)
    assert [share / one[3] for share in one] == pytest.approx([4, 2, 2, 1])


@pytest.mark.parametrize(
    ("shares", "cores", "expected"),
    [
        ((0.8, 0.4, 0.4, 0.2), 2, ((0,), (1,), (1,), (0,))),
        ((0.25, 1.0, 0.25), 2, ((1,), (0,), (1,))),
        ((1.5, 0.2, 0.75), 3, ((0, 1), (0,), (2,))),
        ((0.6, 0.6, 0.6), 2, ((), (), ())),  # no two of them fit on one core
        ((3.0,), 2, ((),)),
    ],
)
def test_nodes_keep_to_cores_where_they_fit(
    shares: tuple[float, ...], cores: int, expected: tuple[tuple[int, ...], ...]
) -> None:
    assert assign_cores(shares, cores) == expected


def test_the_shipped_labs_are_those_of_the_papers() -> None:
    assert list(labs()) == SHIPPED
    read = {name: read_lab(name) for name in SHIPPED}
    assert all(lab.name == name for name, lab in read.items())
    speedy = read["speedy-gonzalez"]
    assert (len(speedy.nodes), speedy.rate) == (16, 100e6)
    by_clock = sorted((node.share * 1200 for node in speedy.nodes), reverse=True)
    assert by_clock == pytest.approx([1200] * 4 + [950] * 6 + [900] * 2 + [733] * 4, rel=0.01)
    assert (read["cetad"].wiring, read["cetad"].rate) == ("hub", 10e6)
    assert [node.share * 25 for node in read["milano-2-1"].nodes] == pytest.approx([20, 5, 5])


def test_a_lab_survives_json() -> None:
    lab = read_lab("three-ages")
    assert Lab.from_dict(json.loads(json.dumps(lab.as_dict()))) == lab


NODE = '[[nodes]]\nname = "a"\n'


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[[nodes]]\nname = "a"\nshar = 1', 3, "did you mean 'share'"),
        ("wirring = 'hub'\n" + NODE, 1, "did you mean 'wiring'"),
        ("wiring = 'bus'\n" + NODE, 1, "'switch' or 'hub'"),
        ("rate = 5\n" + NODE, 1, '"100 Mb/s"'),
        ("rate = '100 parsecs'\n" + NODE, 1, '"100 Mb/s"'),
        ("rate = '0 Mb/s'\n" + NODE, 1, '"100 Mb/s"'),
        ("rate = '1e40 Gb/s'\n" + NODE, 1, "at most"),
        ("latency = '1e9 s'\n" + NODE, 1, '"60 s"'),
        ("socket_buffer = '100 GB'\n" + NODE, 1, "at most"),
        (NODE + "memory = '1e30 GB'", 3, "at most"),
        ("scale = inf\n" + NODE, 1, "'auto'"),
        (NODE + "[[nodes]]\nname = 'A b'", 4, "another name"),
        (NODE + '[[nodes]]\nname = "b"\nshare = -1', 5, "above 0"),
        (NODE + "share = 'half'", 3, "a number"),
        (NODE + "share = nan", 3, "nodes[0].share"),
        (NODE + "memory = '3 fish'", 3, '"512 MB"'),
        (NODE + "memory = '1 kB'", 3, "1 MiB"),
        (NODE + "count = 0", 3, "at least 1"),
        (NODE + NODE, 4, "two nodes have the name 'a'"),
        (NODE + "count = 2\n[[nodes]]\nname = 'a-2'", 5, "two nodes have the name 'a-2'"),
        ("[[nodes]]\nname = 'Sofía'", 2, "lower-case letters"),
        ("[[nodes]]\nname = 'localhost'", 2, "localhost"),
        ("loss = 1.5\n" + NODE, 1, "at most 1"),
        ("latency = '-1 ms'\n" + NODE, 1, "latency"),
        ("period = '1 us'\n" + NODE, 1, "1 ms"),
        ("scale = 'full'\n" + NODE, 1, "auto"),
        ("wiring = 'hub'\n" + NODE + "rate = '1 Mb/s'", 4, "one rate for all"),
        ("uplink = '1 ms'\n" + NODE, 1, "there is one switch"),
        ("wiring = 'hub'\nuplink = '1 ms'\n" + NODE + "[[nodes]]\nname = 'b'\nswitch = 'c'", 2, 'wiring = "switch"'),
        (NODE + "count = 200\n[[nodes]]\nname = 'b'\ncount = 51", 1, "at most 250"),
        ("nodes = 3", 1, "expected a list"),
        ("nodes = []", 1, "at least 1"),
        ("rate = '1 Mb/s'", 0, "'nodes' is missing"),
        ("rate = '1 Mb/s'\nrate = '2 Mb/s'", 2, "not valid TOML"),
    ],
)
def test_a_wrong_file_is_explained(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(CaseError) as caught:
        read_lab(path)
    assert said in str(caught.value)
    assert str(caught.value.where) == (f"{path}:{line}" if line else str(path))


def test_a_lab_that_is_not_there_is_asked_for() -> None:
    with pytest.raises(CaseError, match="did you mean 'three-ages'"):
        read_lab("three-agse")


def test_a_directory_is_not_proposed(tmp_path: Path) -> None:
    (tmp_path / "lab.toml").mkdir()
    with pytest.raises(CaseError) as caught:
        read_lab(tmp_path / "lab.toml")
    assert caught.value.suggestion is None


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "lab.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CaseError, match="cannot be read"):
        read_lab(path)
