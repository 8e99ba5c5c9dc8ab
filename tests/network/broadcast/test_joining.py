"""Members become a group: the network they share, the way that carries messages, and what is said where none does."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import stat
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from minga.engine.comm import Comm, run_virtual
from minga.errors import CaseError, MingaError, RunError
from minga.network.broadcast import joining
from minga.network.broadcast.interfaces import Interface, interfaces, machine, shared_network
from minga.network.broadcast.joining import GroupOptions, join
from minga.network.broadcast.link import listen
from minga.network.broadcast.rendezvous import CommMeeting, TcpMeeting
from minga.network.broadcast.secret import make_key_file, read_key

from .virtual import NO_MULTICAST

KEY = b"k" * 32


def interface(address: str, name: str = "eth0", wireless: bool = False) -> Interface:
    network = address.rpartition(".")[0]
    return Interface(name, address, "255.255.255.0", f"{network}.255", 1500, name == "lo", wireless)


def place(number: int, *there: Interface) -> dict[str, Any]:
    return {"host": f"h{number}", "machine": f"m{number}", "interfaces": [one.as_dict() for one in there]}


def test_this_machine_has_a_loopback_and_a_name() -> None:
    found = interfaces()
    assert found[-1].loopback
    assert all(ipaddress.ip_address(one.address) in one.network for one in found)
    assert machine() == machine() != ""


def test_the_network_that_all_share_is_found() -> None:
    docker = interface("172.17.0.1", "docker0")
    places = [
        place(0, docker, interface("10.0.0.1"), interface("192.168.1.1", "eth1")),
        place(1, docker, interface("192.168.1.2")),
        place(2, docker, interface("192.168.1.3"), interface("10.0.0.3")),
    ]
    found = shared_network(places, [None] * 3)
    assert [one.address for one in found.interfaces] == ["192.168.1.1", "192.168.1.2", "192.168.1.3"]
    assert found.direct
    assert found.broadcast == "192.168.1.255"
    assert found.mtu == 1500


@pytest.mark.parametrize("wish", ["10.0.0.0/24", "10.0.0.1", "b0"])
def test_a_network_may_be_named(wish: str) -> None:
    places = [place(n, interface(f"192.168.1.{n + 1}"), interface(f"10.0.0.{n + 1}", "b0")) for n in range(2)]
    found = shared_network(places, [wish, None if "/" not in wish else wish])
    assert [one.address for one in found.interfaces] == ["10.0.0.1", "10.0.0.2"]


def test_members_of_one_machine_stay_inside() -> None:
    one = place(0, interface("10.0.0.1"), interface("127.0.0.1", "lo"))
    assert [found.address for found in shared_network([one, one], [None, None]).interfaces] == ["127.0.0.1"] * 2


def test_members_behind_routers_share_no_subnet() -> None:
    found = shared_network([place(0, interface("10.0.0.1")), place(1, interface("10.0.1.1"))], [None, None])
    assert not found.direct
    assert found.broadcast is None


def test_an_interface_that_is_not_there() -> None:
    places = [place(0, interface("10.0.0.1")), place(1, interface("10.0.0.2"))]
    with pytest.raises(CaseError, match=r"member 1 on h1 has no interface '10\.9\.0\.0/16'; it has eth0 10\.0\.0\.2"):
        shared_network(places, [None, "10.9.0.0/16"])
    with pytest.raises(CaseError, match="member 1 on h1 has no interface that others can reach"):
        shared_network([places[0], place(1, interface("127.0.0.1", "lo"))], [None, None])


def joined(wishes: list[GroupOptions], **changes: Any) -> list[tuple[str, dict[str, str]]]:
    """The route that each member took and why it passed over others, or its error's text."""

    def member(comm: Comm) -> Any:
        try:
            found = join(CommMeeting(comm), KEY, wishes[comm.rank])
        except MingaError as error:
            return str(error)
        transport: Any = found.transport
        comm.barrier()
        (transport if found.route == "chain" else transport.sockets).close()
        return found.route, found.rejected_routes

    return run_virtual(len(wishes), member)


def test_the_first_way_that_works_is_taken() -> None:
    for route, _ in joined([GroupOptions()] * 3):
        assert route in ("multicast", "chain")  # not every kernel carries multicast on its loopback
    for route, passed_over in joined([GroupOptions(route="chain")] * 3):
        assert (route, passed_over) == ("chain", {})


def test_without_a_wire_a_chain_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "interfaces", lambda: [replace(one, wireless=True) for one in interfaces()])
    for route, passed_over in joined([GroupOptions()] * 2):
        assert route == "chain"
        assert "wireless" in passed_over["multicast"]


@pytest.mark.slow
def test_a_way_that_carries_nothing_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "_say", lambda *_: None)
    for route, passed_over in joined([GroupOptions()] * 2):
        assert route == "chain"
        assert passed_over["multicast"] == "no member heard any other"
    for said in joined([GroupOptions(route="multicast")] * 2):
        assert "multicast does not work here: no member heard any other" in said


@pytest.mark.slow
def test_a_member_that_nobody_hears_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    said = joining._say
    speaking = threading.local()
    monkeypatch.setattr(joining, "_say", lambda *words: None if getattr(speaking, "mute", 0) else said(*words))
    found = [route for route, _ in joined([GroupOptions()] * 3)]
    if found[0] != "multicast":
        pytest.skip(NO_MULTICAST)

    def member(comm: Comm) -> Any:
        speaking.mute = comm.rank == 1
        with pytest.raises(RunError) as caught:
            join(CommMeeting(comm), KEY, GroupOptions(route="multicast"))
        return caught.value.message

    for message in run_virtual(3, member):
        assert "did not hear 1 on" in message
        assert "did not hear 0" not in message


def test_a_datagram_that_is_too_long_for_a_path_is_one_that_nobody_hears() -> None:
    """Such a member must not leave the others waiting for what it heard."""

    class Narrow:
        def send(self, *_: object) -> int:
            raise RunError("a datagram of 1472 bytes is too long for the network")

    narrow: Any = Narrow()
    joining._say(narrow, ("239.255.0.1", 20_480), b"hello")


def test_members_must_ask_for_the_same() -> None:
    for said in joined([GroupOptions(), GroupOptions(rate=1e6)]):
        assert "member 1 on" in said
        assert "use the same options at all members" in said


@pytest.mark.parametrize(
    "wrong", [{"route": "pigeon"}, {"rate": 0.0}, {"rate": float("nan")}, {"on_loss": "cry"}, {"dead_timeout": 0.0}]
)
def test_wishes_that_cannot_be_meant(wrong: dict[str, Any]) -> None:
    with pytest.raises(CaseError) as caught:
        GroupOptions(**wrong)
    assert caught.value.remedy


# Meeting without MPI --------------------------------------------------------------------------------------------------
def meet(size: int, keys: list[bytes], patience: float = 20.0) -> list[Any]:
    """What each of ``size`` members hears in two exchanges over TCP, or its error."""
    with listen("127.0.0.1") as free:
        port = free.getsockname()[1]
    results: list[Any] = [None] * size

    def member(rank: int) -> None:
        try:
            with contextlib.closing(TcpMeeting(rank, size, ("127.0.0.1", port), keys[rank], patience)) as meeting:
                said = meeting.exchange({"rank": rank})
                results[rank] = [said, meeting.exchange("x" * 700_000 if rank == 1 else rank)]
        except RunError as error:
            results[rank] = error

    threads = [threading.Thread(target=member, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def test_members_meet_at_the_first_one() -> None:
    everybody = [{"rank": 0}, {"rank": 1}, {"rank": 2}]
    assert meet(3, [KEY] * 3) == [[everybody, [0, "x" * 700_000, 2]]] * 3


@pytest.mark.slow
def test_a_member_with_another_key_does_not_come_in() -> None:
    first, second, third = meet(3, [KEY, KEY, b"x" * 32], patience=1.0)
    assert "2 did not respond" in str(first)
    assert isinstance(second, RunError)
    assert "key" in str(third)


def test_strangers_do_not_keep_members_from_meeting(monkeypatch: pytest.MonkeyPatch) -> None:
    """They connect and say nothing; of many the first ones are turned away, and nothing of them stays."""
    ready = listen("127.0.0.1")
    place = ready.getsockname()
    monkeypatch.setattr("minga.network.broadcast.rendezvous.listen", lambda *_: ready)
    strangers = [socket.create_connection(place) for _ in range(60)]
    remembered: list[int] = []

    def first() -> None:
        with contextlib.closing(TcpMeeting(0, 2, place, KEY, 20.0)) as meeting:
            meeting.exchange("one")
            remembered.append(len(meeting._heard))

    thread = threading.Thread(target=first)
    thread.start()
    with contextlib.closing(TcpMeeting(1, 2, place, KEY, 20.0)) as meeting:
        assert meeting.exchange("other") == ["one", "other"]
    thread.join(30)
    assert remembered == [1]
    for stranger in strangers:
        stranger.close()


def test_a_key_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "key"
    key = make_key_file(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_key(path) == read_key(str(path)) == read_key(key) == key
    with path.open("rb") as pipe:
        assert read_key(pipe) == key
    with pytest.raises(RunError, match="File exists"):
        make_key_file(path)
    path.chmod(0o640)
    with pytest.raises(CaseError, match="can be read by others"):
        read_key(path)


@pytest.mark.parametrize("text", [b"", b"abc\n", b"zz" * 32 + b"\n", b"\xff" * 64])
def test_what_is_no_key(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "key"
    path.touch(0o600)
    path.write_bytes(text)
    with pytest.raises(CaseError, match="contains no key"):
        read_key(path)
    with pytest.raises(CaseError, match="32 bytes"):
        read_key(b"short")
    with pytest.raises(CaseError, match="No such file"):
        read_key(tmp_path / "absent")


def interface_6(address: str, name: str = "eth0") -> Interface:
    return Interface(name, address, "64", None, 1500, name == "lo", wireless=False)


def test_ipv6_is_used_where_not_all_have_ipv4() -> None:
    both = place(0, interface("10.0.0.1"), interface_6("fd00::1"))
    found = shared_network([both, place(1, interface("10.0.0.2"), interface_6("fd00::2"))], [None, None])
    assert [one.address for one in found.interfaces] == ["10.0.0.1", "10.0.0.2"]
    found = shared_network([both, place(1, interface_6("fd00::2"))], [None, None])
    assert [one.address for one in found.interfaces] == ["fd00::1", "fd00::2"]
    assert (found.version, found.direct, found.broadcast) == (6, True, None)
    found = shared_network([both, place(1, interface_6("fd01::2"))], [None, None])
    assert [one.address for one in found.interfaces] == ["fd00::1", "fd01::2"]
    assert not found.direct
    found = shared_network([both, both | {"machine": "m1"}], ["fd00::/16", "fd00::1"])
    assert not found.direct
    with pytest.raises(CaseError, match="member 1 on h1 has no interface"):
        shared_network([both, place(1, interface("10.0.0.2"))], [None, "fd00::/64"])
    with pytest.raises(CaseError, match="no interface that others can reach"):
        shared_network([place(0, interface("10.0.0.1")), place(1, interface_6("fd00::2"))], [None, None])


def test_a_group_over_ipv6() -> None:
    if not any(one.address == "::1" for one in interfaces()):
        pytest.skip("this machine has no IPv6")
    with contextlib.closing(listen("::1")) as probe:
        port = probe.getsockname()[1]

    def member(rank: int, said: list[Any]) -> None:
        meeting = TcpMeeting(rank, 2, ("::1", port), KEY, 20.0)
        joined = join(meeting, KEY, GroupOptions(address="::1", route="chain"))
        meeting.close()
        chain = joined.transport
        said[rank] = joined.route, chain.broadcast(b"six") if not rank else chain.receive(0)
        chain.linger(5.0)
        assert not isinstance(chain, joining.Driver)
        chain.close()

    said: list[Any] = [None, None]
    threads = [threading.Thread(target=member, args=(rank, said)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one[0] for one in said] == ["chain", "chain"]
    assert said[1][1] == b"six"
