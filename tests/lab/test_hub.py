"""What the hub decides, in virtual time; and that it forwards frames between real interfaces."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from minga.lab import hub
from minga.lab.hub import Hub

EVERYONE = b"\xff" * 6


def address(port: int) -> bytes:
    return bytes([2, 0, 0, 0, 0, port])


def frame(sender: int, receiver: int | None, length: int = 1514) -> bytes:
    """A frame of a length without its checksum; to all where there is no receiver."""
    to = EVERYONE if receiver is None else address(receiver)
    return (to + address(sender) + b"\x08\x00").ljust(length, b"\0")


def acquainted(**settings: object) -> Hub:
    """A hub of three ports that has heard of all of them, and has nothing under way."""
    box = Hub(3, **settings)  # type: ignore[arg-type]
    for port in range(3):
        box.receive(0.0, port, frame(port, None, 60))
    box.due(10.0)
    return box


def test_frames_to_unknown_nodes_and_to_all_go_to_all_others() -> None:
    box = Hub(3)
    box.receive(0.0, 0, frame(0, 2))
    assert [port for port, _ in box.due(0.0)] == [1, 2]
    box.receive(0.0, 2, frame(2, None))
    assert [port for port, _ in box.due(0.0)] == [0, 1]


def test_frames_to_a_node_that_has_spoken_go_to_it_alone_unchanged() -> None:
    box = acquainted()
    sent = frame(0, 2, 100)
    box.receive(11.0, 0, sent)
    assert box.due(11.0) == [(2, sent)]
    box.receive(12.0, 2, frame(0, 2))  # of a node on its own port: nothing to forward
    assert box.due(12.0) == []


def test_frames_between_switches_take_longer() -> None:
    box = acquainted(shared=False, latency=1e-3, switches=[0, 1, 0], uplink=5e-3)
    box.receive(20.0, 0, frame(0, 2))
    box.receive(20.0, 0, frame(0, 1))
    assert [port for port, _ in box.due(20.0011)] == [2]
    assert box.due(20.0059) == []
    assert [port for port, _ in box.due(20.0061)] == [1]


def test_a_hub_is_busy_for_all_and_once_for_a_frame_to_all() -> None:
    box = acquainted(rates=[10e6], latency=1e-3)
    takes = (1514 + 24) * 8 / 10e6
    box.receive(20.0, 0, frame(0, 1))
    box.receive(20.0, 2, frame(2, None))  # another pair of ports, yet it waits for the medium
    assert box.next_departure() == pytest.approx(20.0 + takes + 1e-3)
    assert box.due(20.0 + 1.5 * takes + 1e-3) == [(1, frame(0, 1))]
    assert box.next_departure() == pytest.approx(20.0 + 2 * takes + 1e-3)
    assert [port for port, _ in box.due(21.0)] == [0, 1]
    assert box.next_departure() is None


def test_a_switch_has_lines_of_their_own_rates_in_both_directions() -> None:
    box = acquainted(rates=[10e6, 10e6, 100e6], shared=False)
    slow, fast = (1538 * 8 / rate for rate in (10e6, 100e6))
    box.receive(20.0, 0, frame(0, 1))
    box.receive(20.0, 2, frame(2, 0))
    assert box.next_departure() == pytest.approx(20.0 + fast + slow)  # of the second: the first one hinders it not
    assert [port for port, _ in box.due(20.0 + 1.5 * slow)] == [0]
    assert [port for port, _ in box.due(20.0 + 2.01 * slow)] == [1]


def test_short_frames_take_as_long_as_the_shortest_that_ethernet_knows() -> None:
    box = Hub(2, rates=[10e6])
    assert box.serialisation(0, b"\0" * 20) == box.serialisation(0, b"\0" * 60) == pytest.approx(84 * 8 / 10e6)


def fates(seed: int, **settings: float) -> tuple[list[tuple[int, bytes]], dict[str, int]]:
    box = acquainted(rates=[100e6], seed=seed, **settings)
    gone, before = [], asdict(box.counts)
    for number in range(4000):
        box.receive(20.0 + number * 1e-4, 0, frame(0, 1)[:-4] + number.to_bytes(4, "big"))
        gone += box.due(20.0 + number * 1e-4)
    gone += box.due(100.0)
    return gone, {name: count - before[name] for name, count in asdict(box.counts).items()}


def test_the_same_seed_gives_the_same_fate_and_another_one_another() -> None:
    trouble = {"loss": 0.05, "duplicate": 0.02, "reorder": 0.02}
    assert fates(7, **trouble) == fates(7, **trouble)
    assert fates(7, **trouble) != fates(8, **trouble)


def test_loss_duplication_and_reordering_come_as_often_as_asked() -> None:
    gone, counts = fates(3, loss=0.05, duplicate=0.1, reorder=0.02)
    assert counts["lost"] == pytest.approx(200, abs=60)
    assert counts["duplicated"] == pytest.approx(0.1 * (4000 - counts["lost"]), abs=80)
    assert counts["reordered"] == pytest.approx(0.02 * (4000 - counts["lost"]), abs=40)
    assert len(gone) == 4000 - counts["lost"] + counts["duplicated"]
    numbers = [int.from_bytes(data[-4:], "big") for _, data in gone]
    assert len(set(numbers)) == 4000 - counts["lost"]
    overtaken = sum(later < earlier for earlier, later in itertools.pairwise(numbers))
    assert overtaken >= counts["reordered"]


def test_a_perfect_hub_keeps_the_order_and_loses_nothing() -> None:
    gone, counts = fates(3)
    assert [int.from_bytes(data[-4:], "big") for _, data in gone] == list(range(4000))
    assert counts["lost"] == counts["duplicated"] == counts["reordered"] == counts["overflowed"] == 0


def test_what_finds_the_queue_full_is_dropped_and_counted() -> None:
    box = acquainted(rates=[10e6])
    for _ in range(6000):
        box.receive(20.0, 0, frame(0, 1))
    assert box.counts.overflowed == 6000 - (8 << 20) // 1514
    assert len(box.due(1000.0)) == (8 << 20) // 1514
    box.receive(1001.0, 0, frame(0, 1))
    assert len(box.due(1002.0)) == 1


def test_a_port_that_is_not_there_is_said(tmp_path: Path) -> None:
    command = [sys.executable, hub.__file__, "--ports", "none-such", "--status", tmp_path / "hub.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "port none-such" in done.stderr
    assert "none-such" in json.loads((tmp_path / "hub.json").read_text())["ended"]
