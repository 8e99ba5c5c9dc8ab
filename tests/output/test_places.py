"""Checkpoints of hosts that share no files: copies on partners, and what of them suffices to resume."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm, SerialComm, run_virtual
from minga.engine.state import state_of
from minga.errors import CaseError, DiskFullError, RunError
from minga.output.checkpoint.head import Head, heads_of
from minga.output.checkpoint.keeper import Checkpointing, Keeper
from minga.output.checkpoint.places import Places, places_of, ring
from minga.output.checkpoint.sets import Offer, sets_of
from minga.output.checkpoint.slots import complete
from minga.output.directory import RunDirectory
from minga.running.loop import drive
from minga.running.observers.checkpoints import Checkpoints
from minga.running.run_output import has_checkpoints
from minga.space.cuts import cartesian, slabs
from thinned import thinned

GRID = mg.Grid((12, 70), periodic=(True, False))


# The choice of places -------------------------------------------------------------------------------------------------
def test_a_ring_changes_switches_where_it_can() -> None:
    assert ring([0], {0: ""}) == {}
    assert ring([0, 4], {0: "", 4: ""}) == {0: 4, 4: 0}
    assert ring([0, 1, 2], dict.fromkeys(range(3), "")) == {0: 1, 1: 2, 2: 0}
    switches = {0: "a", 1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}
    found = ring(range(6), switches)
    assert all(switches[leader] != switches[partner] for leader, partner in found.items())
    assert sorted(found.values()) == list(range(6))
    found = ring(range(5), {0: "a", 1: "a", 2: "a", 3: "a", 4: "b"})
    assert sorted(found.values()) == list(range(5))
    assert all(leader != partner for leader, partner in found.items())


def test_who_stores_the_copy_of_whose_part() -> None:
    places = Places((0, 0, 0, 3, 3, 5), frozenset(), {0: "ant", 3: "bee", 5: "cat"}, {0: 3, 3: 5, 5: 0})
    assert [places.copier(rank) for rank in range(6)] == [3, 4, 3, 5, 5, 0]
    assert [sorted(places.kept_at(leader)) for leader in places.leaders] == [[0, 1, 2, 5], [0, 1, 2, 3, 4], [3, 4, 5]]
    assert places.keepers(4) == ("bee", "cat")
    gathered = places.gathered()
    assert (gathered.leaders, sorted(gathered.blind), gathered.copier(0)) == ((0,), [3, 4, 5], None)
    assert places.alone().copier(3) is None


# The choice of a checkpoint -------------------------------------------------------------------------------------------
def offered(hosts: Sequence[int], lost: Sequence[int] = (), key: Any = (1, 30, "x", "a"), copies: bool = True) -> Any:
    """What hosts with one rank each offer after a checkpoint with copies on the next host, without the lost ones."""
    count = len(hosts)
    kept = {number: (f"pc{number}", f"pc{(number + 1) % count}")[: 1 + copies] for number in hosts}
    return [
        Offer(host, key, frozenset(hosts), frozenset({host, (host - 1) % count} if copies else {host}), kept)
        for host in hosts
        if host not in lost
    ]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_any_one_host_may_be_lost_but_not_two_neighbours(count: int) -> None:
    hosts = range(count)
    for lost in hosts:
        (found,) = sets_of(offered(hosts, [lost]))
        assert found.missing == ()
        assert all(lost not in leaders for leaders in found.sources.values())
    for lost in hosts if count > 2 else ():
        (found,) = sets_of(offered(hosts, [lost, (lost + 1) % count]))
        assert found.missing == (lost,)
        assert found.lack == (
            f"a, of step 30, lacks the parts of rank {lost} (kept on pc{lost} and pc{(lost + 1) % count})"
        )


def test_without_copies_no_host_may_be_lost() -> None:
    (found,) = sets_of(offered(range(3), [1, 2], copies=False))
    assert found.missing == (1, 2)
    assert "rank 1 (kept on pc1), rank 2 (kept on pc2)" in found.lack


def test_the_newest_comes_first_and_parts_of_different_ones_do_not_mix() -> None:
    old, new = (1, 30, "x", "a"), (2, 20, "y", "b")  # the run went back, and has begun a new epoch
    twin = (2, 20, "z", "b")
    sets = sets_of([*offered(range(3), [1, 2], key=new), *offered(range(3), key=old), *offered(range(3), [0, 2], twin)])
    assert [each.key for each in sets] == [twin, new, old]
    assert [each.missing for each in sets] == [(2,), (1,), ()]
    assert sets[2].without({(0, 0), (0, 1)}).missing == (0,)


def test_a_checkpoint_is_thin_where_a_copy_is_gone() -> None:
    (whole,) = sets_of(offered(range(3)))
    assert not whole.thin
    (found,) = sets_of(offered(range(3), [1]))
    assert found.thin
    assert not found.missing


# Runs -----------------------------------------------------------------------------------------------------------------
@mg.kernel
def spread(u: Any, new: Any) -> Any:
    new[0, 0] = u[0, 0] + 0.2 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]) + 1e-3 * mg.random()


def model() -> mg.Model:
    """A field of two slots, and chance."""
    u = mg.Field("u", GRID, slots=2, boundary=mg.fixed(0.0))
    step = mg.Program("step")
    step.apply(spread, u, u.next)
    step.rotate(u)
    step.let(mg.STEP, mg.STEP + 1)
    y, x = np.indices(GRID.shape)
    return mg.Model("spread", GRID, (u,), step, initial={u: np.sin(0.2 * x + y)}, seed=3)


def go(
    folders: Sequence[Path],
    steps: int,
    *,
    resumes: bool = False,
    place: str = "partner",
    epoch: int = 1,
    off: bool = False,
    interval: int = 10,
    cut: Callable[[Any, int], Any] = slabs,
    notes: list[str] | None = None,
) -> tuple[int, bytes]:
    """Run on virtual ranks with a folder each, equal ones for ranks of one host; return the first step and the end."""
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)

    def run(comm: Comm) -> tuple[int, bytes]:
        comm.leads_node = folders.index(folders[comm.rank]) == comm.rank  # type: ignore[misc]
        made = model()
        keeper = Keeper(
            folders[comm.rank] / "checkpoints",
            comm,
            Checkpointing(steps=interval, off=off),
            resumes=resumes,
            own=True,
            place=place,
            epoch=epoch,
            note=None if notes is None else notes.append,
        )
        with mg.Engine(cut(GRID.box, comm.size), grid=GRID, comm=comm) as engine:
            result = drive(made, engine, steps, [Checkpoints(keeper)])
            arrays = [engine.gather(slot) for slot in state_of(made).changing.values()]
        return result.resumed.step, b"".join(array.tobytes() for array in arrays if array is not None)

    return run_virtual(len(folders), run)[0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The end of an uninterrupted run of 30 steps."""
    return go([tmp_path_factory.mktemp("whole")], 30, off=True)[1]


def files(folder: Path) -> list[int]:
    return [int(path.stem[-6:]) for path in sorted((folder / "checkpoints/b").glob("*.bin"))]


def columns(box: Any, ranks: int) -> Any:
    return cartesian(box, (1, ranks))


@pytest.mark.slow
def test_a_run_without_a_host_writes_copies_again_at_once(tmp_path: Path, whole: bytes) -> None:
    hosts = [tmp_path / name for name in ("ant", "bee", "cat", "dog")]
    go(hosts, 28)
    left = hosts[:1] + hosts[2:]
    notes: list[str] = []
    assert go(left, 24, resumes=True, epoch=2, notes=notes, interval=1000)[0] == 20
    assert not notes
    steps = {head.step for host in left for head in heads_of(host / "checkpoints")[0]}
    assert max(steps) > 20  # though the next one is due after 1000 steps
    assert go(left[:2], 30, resumes=True, epoch=3)[1] == whole  # another host is lost


@pytest.mark.slow
@pytest.mark.parametrize("lost", thinned([0, 1, 2], 0))
def test_a_run_goes_on_without_any_one_host(tmp_path: Path, whole: bytes, lost: int) -> None:
    hosts = [tmp_path / name for name in ("ant", "bee", "bee", "cat")]
    go(hosts, 28)
    assert [files(tmp_path / name) for name in ("ant", "bee", "cat")] == [[0, 3], [0, 1, 2], [1, 2, 3]]
    left = [folder for folder in dict.fromkeys(hosts) if folder != list(dict.fromkeys(hosts))[lost]]
    shutil.rmtree(list(dict.fromkeys(hosts))[lost])
    assert go(left, 30, resumes=True, cut=columns) == (20, whole)


@pytest.mark.slow
def test_a_host_without_room_for_the_description_leaves_the_checkpoint_before(
    tmp_path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parts of a host without a description do not count, so the checkpoint must not count either."""
    hosts, notes = [tmp_path / "ant", tmp_path / "bee"], list[str]()

    def full(folder: Path, head: Head, kept: Collection[int]) -> None:
        if "bee" in folder.parts and head.step > 10:
            raise DiskFullError("no room")
        complete(folder, head, kept)

    with monkeypatch.context() as patch:
        patch.setattr("minga.output.checkpoint.keeper.complete", full)
        go(hosts, 38, place="local", notes=notes)
    assert [note for note in notes if "was not written" in note and "that of step 10 stays" in note] == notes
    assert len(notes) == 2
    assert go(hosts, 30, place="local", resumes=True) == (10, whole)


def test_checkpoints_in_a_place_that_is_gone_are_not_given_up(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.fields.mkdir()
    directory.checkpoints.symlink_to(tmp_path / "not-mounted")
    with pytest.raises(RunError, match="not-mounted, which is not there"):
        has_checkpoints(SerialComm(), directory)
    assert directory.fields.exists()


def test_two_neighbours_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = [tmp_path / name for name in ("ant", "bee", "cat")]
    monkeypatch.setattr("minga.output.checkpoint.places.platform.node", lambda: threading.current_thread().name[-1])
    go(hosts, 28)
    for name in ("bee", "cat"):
        shutil.rmtree(tmp_path / name)
    monkeypatch.undo()
    with pytest.raises(RunError) as caught:
        go([tmp_path / "ant", tmp_path / "dog"], 30, resumes=True)
    assert "b, of step 20, lacks the parts of rank 1 (kept on 1 and 2)" in str(caught.value)
    assert "a, of step 10, lacks the parts of rank 1 (kept on 1 and 2)" in str(caught.value)
    assert "resume it with the hosts that have the missing parts" in str(caught.value)


def test_damaged_parts_are_read_from_their_copies(tmp_path: Path, whole: bytes) -> None:
    hosts = [tmp_path / name for name in ("ant", "bee", "cat")]
    go(hosts, 28)
    part = tmp_path / "bee/checkpoints/b/blocks-000001.bin"
    content = bytearray(part.read_bytes())
    content[9] ^= 1
    part.write_bytes(content)
    os.truncate(tmp_path / "ant/checkpoints/b/blocks-000000.bin", 100)
    notes: list[str] = []
    assert go(hosts, 30, resumes=True, cut=columns, notes=notes) == (20, whole)
    assert any("b/blocks-000001.bin has changed at byte 0" in note and "step 20 is used" in note for note in notes)
    assert any("b/blocks-000000.bin cannot be read" in note for note in notes)


def test_a_checkpoint_that_not_all_hosts_completed_does_not_count(tmp_path: Path, whole: bytes) -> None:
    hosts = [tmp_path / name for name in ("ant", "bee", "cat")]
    go(hosts, 28)
    for name in ("bee", "cat"):  # killed before they could say that it counts
        (tmp_path / name / "checkpoints/b/checkpoint.json").unlink()
    assert go(hosts, 30, resumes=True) == (10, whole)


@pytest.mark.parametrize("place", ["gathered", "local"])
def test_other_places(tmp_path: Path, whole: bytes, place: str) -> None:
    hosts = [tmp_path / name for name in ("ant", "bee")]
    go(hosts, 28, place=place)
    assert [files(folder) for folder in hosts] == ([[0], []] if place == "gathered" else [[0], [1]])
    assert go(hosts, 30, resumes=True, cut=columns, epoch=2) == (20, whole)


def test_what_an_earlier_epoch_has_left_is_not_newer(tmp_path: Path, whole: bytes) -> None:
    """A host that comes back has a checkpoint of more steps, whose other parts were given up."""
    hosts = [tmp_path / name for name in ("ant", "bee")]
    go(hosts, 28)
    shutil.copytree(tmp_path / "bee", tmp_path / "late")
    go([tmp_path / "ant", tmp_path / "new"], 15, resumes=False, epoch=2)
    notes: list[str] = []
    three = [tmp_path / "ant", tmp_path / "new", tmp_path / "late"]
    assert go(three, 30, resumes=True, epoch=3, notes=notes) == (10, whole)
    assert notes == []


def test_checkpoints_in_another_directory(tmp_path: Path) -> None:
    fast = tmp_path / "fast"

    def run(steps: int, at_end: bool) -> Any:
        checkpoint = {"every": 10, "directory": str(fast), "at_end": at_end}
        return mg.run(model(), steps=steps, out=tmp_path / "run", checkpoint=checkpoint, resume=True)

    run(15, at_end=True)
    (kept,) = fast.iterdir()
    assert kept.name == (tmp_path / "run/id").read_text().strip()
    assert sorted(path.name for path in kept.iterdir()) == ["a", "b"]
    assert run(20, at_end=False).attrs["digest"] == mg.run(model(), steps=20).attrs["digest"]
    assert list(fast.iterdir()) == []
    assert not os.path.lexists(tmp_path / "run/checkpoints")
    with pytest.raises(CaseError, match="another place on each host"):
        mg.run(model(), steps=1, out=tmp_path / "other", checkpoint={"directory": "fast"})


def test_checkpoints_are_removed_from_a_host_when_rank_0_has_removed_the_link_to_them(tmp_path: Path) -> None:
    """A run in a directory that all hosts share has one link, which leads to another folder on each host."""
    link, here = tmp_path / "run/checkpoints", tmp_path / "scratch/run"
    for folder in (here, link.parent):
        folder.mkdir(parents=True)
    link.symlink_to(here)
    keeper = Keeper(link, SerialComm(), Checkpointing(steps=10), own=True)
    with mg.Engine(slabs(GRID.box, 1), grid=GRID, comm=SerialComm()) as engine:
        drive(model(), engine, 15, [Checkpoints(keeper)])
    assert any(here.iterdir())
    link.unlink()
    keeper.discard()
    assert not here.exists()


def test_hosts_with_one_folder_keep_one_copy(tmp_path: Path) -> None:
    def found(comm: Comm) -> Places:
        comm.leads_node = True  # type: ignore[misc]
        return places_of(comm, tmp_path / "checkpoints", own=True)

    places = run_virtual(3, found)[2]
    assert places.homes == (0, 0, 0)
    assert places.partners == {}
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_a_folder_of_another_run_is_not_used(tmp_path: Path) -> None:
    def found(comm: Comm) -> Places:
        comm.leads_node = True  # type: ignore[misc]
        return places_of(comm, tmp_path / f"host{comm.rank % 2}", own=False)

    places = run_virtual(4, found)[0]
    assert (places.leaders, sorted(places.blind)) == ((0,), [1, 3])


def test_a_copy_that_finds_no_room_is_reported(tmp_path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = [tmp_path / name for name in ("ant", "bee")]
    write = os.write

    def refuse(descriptor: int, content: Any) -> int:
        if "bee" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(28, "No space left on device")
        return write(descriptor, content)

    notes: list[str] = []
    monkeypatch.setattr("minga.output.checkpoint.copies.os", Refusing(refuse))
    go(hosts, 28, notes=notes)
    monkeypatch.undo()
    assert len(notes) == 2
    assert "step 20 has no second copy of all parts" in notes[1]
    assert "bee/checkpoints/b/blocks-000000.bin: No space left on device" in notes[1]
    assert go(hosts, 30, resumes=True) == (20, whole)


class Refusing:
    """The module ``os`` with another function that writes."""

    def __init__(self, write: Callable[[int, Any], int]) -> None:
        self.write = write

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)
