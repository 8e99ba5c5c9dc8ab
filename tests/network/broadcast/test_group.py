"""A group as programs use it: over a communicator, without MPI, with any root, and when something goes wrong."""

from __future__ import annotations

import select
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.engine.comm import Comm, run_virtual
from minga.errors import CaseError, MingaError, ProgramError, RunError
from minga.network.broadcast import Group, MembersLost, make_key_file
from minga.network.broadcast.link import listen
from mpi_launch import run_ranks

ROUTES = ["auto", "chain"]


@pytest.mark.parametrize("route", ROUTES)
def test_arrays_and_bytes_from_any_root(route: str) -> None:
    panels = [np.arange(30_000.0).reshape(100, 300) + root for root in range(3)]

    def member(comm: Comm) -> str:
        with Group.of(comm, route=route) as group:
            assert (group.rank, group.size) == (comm.rank, 3)
            for root in (0, 2, 1):
                mine = group.rank == root
                fresh = group.bcast(panels[root] if mine else None, root)
                np.testing.assert_array_equal(fresh, panels[root])
                place = np.zeros((100, 300))
                got = group.bcast(panels[root] if mine else place, root, wait="local")
                assert mine or got is place
                np.testing.assert_array_equal(got, panels[root])
                assert bytes(group.bcast(b"text" if mine else None, root)) == b"text"
                assert bytes(group.bcast(b"" if mine else None, root)) == b""
            said = group.statistics
            assert (said.messages, said.bytes) == (12, 3 * (2 * 240_000 + 4))
            assert said.seconds > 0
            assert group.route in repr(group)
            assert "12 messages" in repr(group)
        assert "closed" in repr(group)
        group.close()
        return group.route

    assert len(set(run_virtual(3, member))) == 1


@pytest.mark.parametrize("route", ROUTES)
def test_a_local_broadcast_leaves_its_array_free(route: str) -> None:
    def member(comm: Comm) -> None:
        with Group.of(comm, route=route) as group:
            data = np.full(200_000, 7.0)
            if group.rank == 0:
                group.bcast(data, wait="local")
                data[...] = 0  # the others get what it was
                group.bcast([1, 2], wait="local")  # an array, as when all are waited for
                group.bcast(b"end")
            else:
                np.testing.assert_array_equal(group.bcast(), np.full(200_000, 7.0))
                np.testing.assert_array_equal(group.bcast(), [1, 2])
                group.bcast()

    run_virtual(3, member)


@pytest.mark.parametrize("route", ROUTES)
def test_a_place_that_cannot_be_written_is_refused_at_once(route: str) -> None:
    """And the message is still there for who asks again."""

    def member(comm: Comm) -> None:
        with Group.of(comm, route=route) as group:
            data = np.arange(3000.0)
            if group.rank == 0:
                group.bcast(data)
                return
            place = np.zeros(3000)
            place.flags.writeable = False
            with pytest.raises(RunError, match="memory that is writable"):
                group.bcast(place)
            np.testing.assert_array_equal(group.bcast(), data)

    run_virtual(2, member)


@pytest.mark.parametrize("route", ROUTES)
def test_members_that_compute_still_answer(route: str) -> None:
    """The root returns while another member is in no call of the group, until long after the others would miss it."""
    sent = threading.Event()

    def member(comm: Comm) -> None:
        with Group.of(comm, route=route, dead_timeout=1.0) as group:
            data = np.arange(50_000)
            if group.rank == 0:
                group.bcast(data)
                sent.set()
            elif group.rank == 1:
                assert sent.wait(30)  # without having asked for it
                np.testing.assert_array_equal(group.bcast(), data)
            else:
                np.testing.assert_array_equal(group.bcast(), data)
            group.bcast(b"" if group.rank == 0 else None)

    run_virtual(3, member)


def test_a_chain_looks_at_its_clock_more_often_than_silence_may_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or members that wait for nothing would give no sign of life in time."""
    real, waits = select.poll, list[float]()

    class Watched:
        def __init__(self) -> None:
            self.real = real()

        def register(self, *words: int) -> None:
            self.real.register(*words)

        def poll(self, milliseconds: float) -> list[tuple[int, int]]:
            waits.append(milliseconds)
            return self.real.poll(milliseconds)

    monkeypatch.setattr(select, "poll", Watched)

    def member(comm: Comm) -> None:
        with Group.of(comm, route="chain", dead_timeout=0.8) as group:
            for _ in range(20):
                group.bcast(b"x" if group.rank == 0 else None)

    run_virtual(2, member)
    assert waits
    assert max(waits) <= 800 / 4


def test_a_group_of_one() -> None:
    def member(comm: Comm) -> None:
        with Group.of(comm) as group:
            np.testing.assert_array_equal(group.bcast(np.arange(3)), np.arange(3))
            assert group.bcast(b"x", wait="local") == b"x"

    run_virtual(1, member)


@pytest.mark.parametrize("route", ROUTES)
def test_threads_may_share_a_group(route: str) -> None:
    def member(comm: Comm) -> None:
        with Group.of(comm, route=route) as group:
            got: list[bytes] = []

            def ask() -> None:
                got.append(bytes(group.bcast(b"x" * 5000 if group.rank == 0 else None)))

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert got == [b"x" * 5000] * 4

    run_virtual(2, member)


def test_what_a_call_cannot_mean() -> None:
    def member(comm: Comm) -> None:
        with Group.of(comm) as group:
            for wrong in ({"root": 2}, {"root": -1}, {"wait": "some"}, {"root": comm.rank}):
                with pytest.raises(ProgramError):
                    group.bcast(None, **wrong)  # type: ignore[arg-type]
            comm.barrier()
            with pytest.raises(MingaError):
                group.bcast(object() if comm.rank == 0 else None, **({} if comm.rank == 0 else {"wait": "never"}))
        with pytest.raises(ProgramError, match="closed"):
            group.bcast(b"x", comm.rank)

    run_virtual(2, member)


def in_threads(size: int, member: Callable[[int], Any]) -> list[Any]:
    results: list[Any] = [None] * size

    def run(rank: int) -> None:
        try:
            results[rank] = member(rank)
        except MingaError as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def free_place() -> str:
    with listen("127.0.0.1") as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


def test_programs_without_mpi(tmp_path: Path) -> None:
    make_key_file(tmp_path / "key")
    place = free_place()

    def member(rank: int) -> bytes:
        with Group.join(rank, 3, place, tmp_path / "key", patience=30) as group:
            return bytes(group.bcast(b"hello" if rank == 0 else None))

    assert in_threads(3, member) == [b"hello"] * 3


RANKS = """
import numpy as np
from mpi4py import MPI
from minga.network.broadcast import Group
for route in ("auto", "chain"):
    with Group.of(MPI.COMM_WORLD, route=route) as group:
        for root in range(group.size):
            mine = np.arange(20_000, dtype=">f4") * (root + 1)
            got = group.bcast(mine if group.rank == root else None, root)
            assert (got == mine).all()
print(group.rank)
"""


@pytest.mark.mpi
def test_ranks_of_mpi(tmp_path: Path) -> None:
    (tmp_path / "ranks.py").write_text(RANKS)
    job = run_ranks(3, tmp_path / "ranks.py")
    job.check()
    assert job.out == ["0\n", "1\n", "2\n"]


def test_who_did_not_come_is_named() -> None:
    first, second = in_threads(2, lambda rank: Group.join(2 * rank, 4, PLACE, b"k" * 32, patience=0.6))
    assert "3 did not respond" in str(first)
    assert isinstance(second, MingaError)


PLACE = free_place()


@pytest.mark.parametrize(
    ("rank", "size", "first"),
    [(3, 3, "a:1"), (-1, 3, "a:1"), (0, 256, "a:1"), (0, 2, "a"), (0, 2, "a:0"), (0, 2, ":9")],
)
def test_what_joining_cannot_mean(rank: int, size: int, first: str) -> None:
    with pytest.raises(CaseError):
        Group.join(rank, size, first, b"k" * 32)


@pytest.mark.parametrize("route", ROUTES)
def test_a_member_that_vanishes_is_named(route: str) -> None:
    def member(comm: Comm) -> Any:
        group = Group.of(comm, route=route, dead_timeout=0.5)
        comm.barrier()
        if comm.rank == 2:
            vanish(group)
            return None
        try:
            for _ in range(2):
                group.bcast(np.zeros(100_000) if comm.rank == 0 else None)
        except MingaError as error:
            return error
        finally:
            group.close()
        return None

    first, second, _ = run_virtual(3, member)
    assert isinstance(first, MembersLost)
    assert first.members == (2,)
    assert "2 on" in first.message
    assert isinstance(second, MingaError)


@pytest.mark.parametrize("route", ROUTES)
def test_a_group_may_go_on_without_a_member(route: str) -> None:
    def member(comm: Comm) -> Any:
        group = Group.of(comm, route=route, dead_timeout=0.5, on_loss="exclude")
        comm.barrier()
        if comm.rank == 1:
            vanish(group)
            return None
        data = np.arange(40_000)
        for _ in range(2):
            np.testing.assert_array_equal(group.bcast(data if comm.rank == 0 else None), data)
        lost = group.lost if comm.rank == 0 else (1,)
        group.close()
        return lost

    assert run_virtual(3, member) == [(1,), None, (1,)]


def vanish(group: Group) -> None:
    """Stop as a killed program does: nobody moves its sockets any more."""
    group._stop.set()
    group._keeper.join(10)
    group._end.detach()
    transport: Any = group._transport
    if group.route == "chain":
        transport.ring.close()
    else:
        transport.sockets.close()


@pytest.mark.parametrize("route", ROUTES)
def test_a_root_that_vanishes_before_it_begins_is_named(route: str) -> None:
    def member(comm: Comm) -> Any:
        group = Group.of(comm, route=route, dead_timeout=0.5)
        comm.barrier()
        if comm.rank == 0:
            vanish(group)
            return None
        try:
            group.bcast()
        except MembersLost as error:
            return error.members
        finally:
            group.close()
        return None

    assert run_virtual(3, member) == [None, (0,), (0,)]


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
def test_a_root_that_is_only_late_is_waited_for(route: str) -> None:
    """Three times as long as silence may last: its thread answers for it."""

    def member(comm: Comm) -> bytes:
        with Group.of(comm, route=route, dead_timeout=0.4) as group:
            if group.rank == 0:
                threading.Event().wait(1.2)
            return bytes(group.bcast(b"late" if group.rank == 0 else None))

    assert run_virtual(2, member) == [b"late"] * 2
