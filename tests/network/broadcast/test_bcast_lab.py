"""Broadcasts on emulated wires: a shared medium is crossed once however many receive, and nobody is forgotten."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from minga.errors import RunError
from minga.lab.cluster import Cluster, lab_rights, laboratory
from minga.lab.config import Lab, LabNode
from minga.network.broadcast.cli.bcast import BroadcastRequest, bcast

CEILING = 1436 / 1538
"""Payload of a full datagram of the protocol, of a full frame of Ethernet with all that is around it."""


@pytest.fixture(autouse=True)
def own_labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINGA_LAB_STATE", str(tmp_path / "labs"))
    if os.geteuid():
        pytest.skip("needs root: network namespaces")
    lab_rights()


@contextmanager
def lab(wiring: Literal["hub", "switch"], rate: float, receivers: int, **settings: Any) -> Iterator[Cluster]:
    nodes = tuple(LabNode(f"n{number}", 1.0, None, rate) for number in range(receivers + 1))
    with laboratory(Lab("bcast", nodes, wiring, rate, seed=7, **settings), quota=False) as cluster:
        yield cluster


def send(cluster: Cluster, folder: Path, size: int, **wishes: Any) -> dict[str, Any]:
    """Send a file of so many bytes from the first node to all others, and look at what they have."""
    file = folder / "file"
    file.write_bytes(os.urandom(size))
    result = bcast(BroadcastRequest(file, f"{folder}/{{host}}", lab=cluster.name, force=True, **wishes))
    for name in result["received"]:
        assert (folder / name).read_bytes() == file.read_bytes()
    assert not list(folder.glob(".minga-*"))
    return result


def test_a_shared_medium_is_crossed_once(tmp_path: Path) -> None:
    size = 100_000
    with lab("hub", 10e6, 3) as cluster:
        before = cluster.counters()
        result = send(cluster, tmp_path, size, rate="10Mb/s")
        after = cluster.counters()
    assert result["route"] == "multicast"
    assert result["received"] == ["n1", "n2", "n3"]
    sent = after[0].sent_bytes - before[0].sent_bytes
    assert size < sent < 1.5 * size
    for node in (1, 2, 3):
        assert after[node].received_bytes - before[node].received_bytes > size


@pytest.mark.slow
def test_time_does_not_depend_on_the_number_of_receivers(tmp_path: Path) -> None:
    """Tinetti, Appendix C, Fig. C.18: 1e6 bytes, hub of 10 Mb/s; the best of three, as the machine does other work."""
    rate, size = 10e6, 1_000_000
    seconds = {}
    for receivers in (1, 3, 7, 13):
        with lab("hub", rate, receivers) as cluster:
            seconds[receivers] = min(send(cluster, tmp_path, size, rate="10Mb/s")["seconds"] for _ in range(3))
    assert max(seconds.values()) <= 1.1 * seconds[1], seconds
    assert size / max(seconds.values()) >= 0.9 * CEILING * rate / 8, seconds


@pytest.mark.slow
@pytest.mark.parametrize("route", ["multicast", "broadcast", "chain"])
def test_all_routes_carry_a_file_over_a_switch(tmp_path: Path, route: str) -> None:
    with lab("switch", 100e6, 3) as cluster:
        result = send(cluster, tmp_path, 3_000_000, route=route)
    assert result["route"] == route
    assert result["seconds"] < 3 * 3_000_000 * 8 / 100e6 + 1.0  # one after the other would take longer


@pytest.mark.slow
@pytest.mark.parametrize("route", ["multicast", "chain"])
def test_losses_are_repaired(tmp_path: Path, route: str) -> None:
    with lab("hub", 10e6, 3, loss=0.01, duplicate=0.01, reorder=0.01) as cluster:
        result = send(cluster, tmp_path, 500_000, route=route)
    assert result["route"] == route


@contextmanager
def killed(
    cluster: Cluster, node: int, after: int, *, how: signal.Signals = signal.SIGKILL, again: float | None = None
) -> Iterator[list[float]]:
    """Kill or stop all that runs on a node as soon as it has received so many bytes; let it go on after a while.

    The list will contain when that happened.
    """
    over = threading.Event()
    when: list[float] = []

    def watch() -> None:
        before = cluster.counters()[node].received_bytes
        while cluster.counters()[node].received_bytes < before + after and not over.is_set():
            time.sleep(0.01)
        for process in cluster.processes()[node]:
            os.kill(process, how)
        when.append(time.monotonic())
        if again is not None:
            over.wait(again)
            for process in cluster.processes()[node]:
                os.kill(process, signal.SIGCONT)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield when
    finally:
        over.set()
        watcher.join()


@pytest.mark.slow
@pytest.mark.parametrize("route", ["multicast", "chain"])
def test_a_killed_receiver_is_named_and_nobody_keeps_half_a_file(tmp_path: Path, route: str) -> None:
    with lab("hub", 10e6, 3) as cluster, killed(cluster, 2, 300_000), pytest.raises(RunError) as caught:
        send(cluster, tmp_path, 4_000_000, route=route, dead_timeout=1.0)
    assert "host n2: the agent was killed by signal 9" in caught.value.message
    assert "no host has the file" in caught.value.message
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["file"]


@pytest.mark.slow
@pytest.mark.parametrize("route", ["multicast", "chain"])
def test_the_others_get_the_file_without_a_killed_receiver(tmp_path: Path, route: str) -> None:
    with lab("hub", 10e6, 3) as cluster, killed(cluster, 2, 300_000), pytest.raises(RunError) as caught:
        send(cluster, tmp_path, 3_000_000, route=route, dead_timeout=1.0, on_loss="exclude")
    assert "host n2" in caught.value.message
    assert "n1, n3 have the whole file" in caught.value.message
    assert (tmp_path / "n1").read_bytes() == (tmp_path / "n3").read_bytes() == (tmp_path / "file").read_bytes()
    assert not (tmp_path / "n2").exists()


@pytest.mark.slow
@pytest.mark.parametrize("route", ["multicast", "chain"])
@pytest.mark.parametrize("node", [0, 2])
def test_a_dead_member_is_decided_upon_within_two_seconds(tmp_path: Path, route: str, node: int) -> None:
    """A stopped process answers nothing and closes nothing, like a host without power; the default timeout is used."""
    with lab("hub", 10e6, 3) as cluster, killed(cluster, node, 3000, how=signal.SIGSTOP) as when:
        with pytest.raises(RunError, match=rf"host n{node}: silent for") as caught:
            send(cluster, tmp_path, 8_000_000, route=route)
        assert time.monotonic() - when[0] < 2.0 + 5.0  # the decision, and the end of all agents
    silent = float(caught.value.message.partition("silent for ")[2].split()[0])
    print(f"{route}, n{node}: decided after {silent} s")
    assert 1.9 < silent < 3.0


@pytest.mark.slow
@pytest.mark.parametrize("route", ["multicast", "chain"])
@pytest.mark.parametrize("node", [0, 2])
def test_a_short_stall_is_no_death(tmp_path: Path, route: str, node: int) -> None:
    with lab("hub", 10e6, 3) as cluster, killed(cluster, node, 3000, how=signal.SIGSTOP, again=1.4):
        result = send(cluster, tmp_path, 3_000_000, route=route)
    assert result["received"] == ["n1", "n2", "n3"]


@pytest.mark.slow
@pytest.mark.parametrize("route", ["multicast", "chain"])
def test_a_broken_transfer_goes_on(tmp_path: Path, route: str) -> None:
    with lab("hub", 10e6, 3) as cluster:
        with killed(cluster, 2, 5_500_000), pytest.raises(RunError):
            send(cluster, tmp_path, 8_000_000, route=route)
        assert len(list(tmp_path.glob(".minga-*.partial"))) == 3
        before = cluster.counters()[0].sent_bytes
        result = bcast(BroadcastRequest(tmp_path / "file", f"{tmp_path}/{{host}}", lab=cluster.name, force=True))
        sent = cluster.counters()[0].sent_bytes - before
    assert 2_000_000 < result["sent_bytes"] < 6_000_000
    assert sent < 1.3 * result["sent_bytes"]
    assert (tmp_path / "n2").read_bytes() == (tmp_path / "file").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("route", ["auto", "chain"])
def test_a_network_of_ipv6_alone(tmp_path: Path, route: str) -> None:
    with lab("switch", 100e6, 2) as cluster:
        for number in range(3):
            on = "sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0"
            add = f"ip address add fd77::{number + 1}/64 dev eth0 nodad"
            done = cluster.execute(number, ["sh", "-c", f"{on}; {add}"], capture_output=True, text=True)
            assert not done.returncode, done.stderr
        before = cluster.counters()[0].sent_bytes
        result = send(cluster, tmp_path, 1_000_000, network="fd77::/64", route=route)
        sent = cluster.counters()[0].sent_bytes - before
    assert result["route"] == ("multicast" if route == "auto" else "chain")
    assert 1_000_000 < sent < 1_200_000


@pytest.mark.slow
@pytest.mark.parametrize("rate", [None, "10Mb/s"])
def test_compression_on_a_slow_wire(tmp_path: Path, rate: str | None) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"".join(b"cell %d of %d\n" % (number * 7919 % 10_007, number) for number in range(300_000)))
    with lab("hub", 10e6, 2) as cluster:
        result = bcast(BroadcastRequest(file, f"{tmp_path}/{{host}}", lab=cluster.name, rate=rate))
    assert (tmp_path / "n1").read_bytes() == (tmp_path / "n2").read_bytes() == file.read_bytes()
    size = result["sent_bytes"]
    print(
        f"{size} bytes as {result['packed_bytes']} in {result['seconds']:.3g} s instead of {size * 8e-7 / 0.93:.3g} s"
    )
    measured = 0 if rate else 1 << 20  # the first pieces, which go as they are
    assert result["packed_bytes"] < measured + 0.5 * (size - measured)
