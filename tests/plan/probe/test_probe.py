"""Timing a model's own step before a run: on parts of its grid, on all ranks at once, and what is made of the times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minga as mg
from minga.engine.comm import Comm, SerialComm
from minga.engine.model import Model
from minga.plan.cost import work_of
from minga.plan.probe import probe
from minga.plan.probe.pingpong import links_of, rounds_of_pairs
from minga.plan.probe.probe import known_speed, measure_speed, probe_beyond, probe_ranks, probed_sizes, sample_sizes
from minga.plan.probe.rehearsal import Rehearsal, Sample, part_of
from minga.plan.topology import Tree
from minga.plan.work.work import HaloRound, Work
from minga.space.box import Box
from mpi_launch import run_ranks


@mg.kernel
def relax(u: Any, new: Any) -> Any:
    value = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
    new[0, 0] = value
    return {"change": mg.max(mg.abs(value - u[0, 0]))}


@mg.kernel
def explode(u: Any, new: Any) -> Any:
    value = 1e200 * u[0, 0] * u[0, 1]
    new[0, 0] = value
    return {"largest": mg.max(value)}


@mg.kernel
def divide(u: Any, new: Any) -> None:
    new[0, 0] = 1.0 / (u[-1, 0] * u[1, 0] * u[0, -1] * u[0, 1])


def model(kernel: Any, shape: tuple[int, int] = (96, 192), *, until: bool = False, initial: float = 2.0) -> Model:
    """A step of a kernel, or a loop of such steps that ends when it has converged."""
    grid = mg.Grid(shape)
    u = mg.Field("u", grid, slots=2, boundary=mg.fixed(1.0))
    step = mg.Program("step")
    if until:
        change = mg.Register("change", initial=1.0)
        with step.repeat(until=change < 1e-30, limit=10**6):
            found: Any = step.apply(kernel, u, u.next)
            step.let(change, found.change)
            step.rotate(u)
    else:
        step.apply(kernel, u, u.next)
        step.rotate(u)
    return mg.Model(name="m", grid=grid, fields=(u,), step=step, initial={"u": initial}, output=("u",))


def work(shape: tuple[int, ...], granule: int = 64, least: int = 2) -> Work:
    """A step on a grid, as far as parts of it need that."""
    none = (0,) * len(shape)
    exchange = HaloRound((1,) * len(shape), (1,) * len(shape), 8)
    ones = (1,) * (len(shape) - 1)
    return Work(
        "w", "k", Box(none, shape), (False,) * len(shape), (*ones, granule), (least,) * len(shape), 16, (exchange,)
    )


# Parts ---------------------------------------------------------------------------------------------------------------
@given(st.lists(st.integers(1, 700), min_size=1, max_size=3), st.floats(1, 1e8), st.sampled_from([1, 64]))
def test_a_part_lies_in_the_domain_and_could_be_cut_out(shape: list[int], cells: float, granule: int) -> None:
    whole = work(tuple(shape), granule)
    part = part_of(whole, cells)
    assert not part.empty
    assert whole.domain.contains(part)
    ends = {part.lo[-1], part.hi[-1]} - {0, shape[-1]}
    assert all(end % granule == 0 for end in ends)


def test_parts_have_about_the_cells_that_were_asked_for() -> None:
    for shape in ((1000, 1024), (100, 100, 128), (1 << 20,)):
        whole = work(shape)
        for share in (1, 2, 3, 8, 32):
            asked = whole.domain.size / share
            assert part_of(whole, asked).size == pytest.approx(asked, rel=0.2)
    # Rows stay whole while the part is not too thin.
    assert part_of(work((1000, 1024)), 100_000).shape[1] == 1024
    assert part_of(work((1000, 1024)), 4096).shape[0] >= 16
    assert part_of(work((1000, 1024)), 1e9).shape == (1000, 1024)


def test_the_equal_share_and_smaller_parts_are_timed() -> None:
    assert probed_sizes(work((1024, 1024)), 4) == (1 << 18, 1 << 16, 1 << 14)
    assert probed_sizes(work((8, 64)), 100) == (512,)  # no smaller one
    assert probed_sizes(work((1 << 15, 1 << 15)), 1)[0] == 1 << 24


# One part ------------------------------------------------------------------------------------------------------------
def test_a_part_computes_and_packs_what_a_rank_would() -> None:
    case = model(relax)
    whole = work_of(case)
    part = part_of(whole, whole.domain.size / 3)
    with Rehearsal(case, whole, part) as rehearsal:
        rehearsal.prepare()
        assert rehearsal.cells == part.size < case.grid.size
        channels = rehearsal._comm.channels
        (sent,) = {sum(envelope.buffer.nbytes for envelope in channel.sends) for channel in channels}
        assert sent == 8 * 2 * part.shape[1]  # two rows: its own are whole
        sample = rehearsal.sample(0.01)
    assert sample.typical > 0
    assert len(sample.seconds) == len(sample.steps) == len(sample.compute) >= 2


def test_the_whole_grid_is_a_part_too() -> None:
    case = model(relax)
    whole = work_of(case)
    with Rehearsal(case, whole, part_of(whole, 1e9)) as rehearsal:
        rehearsal.prepare()
        assert rehearsal.cells == case.grid.size
        assert rehearsal.sample(0.0).typical > 0


def test_a_loop_that_never_converges_ends() -> None:
    case = model(relax, until=True)
    speed = measure_speed(case, [case.grid.size], seconds=0.02)
    once = measure_speed(model(relax), [case.grid.size], seconds=0.02)
    # Sixteen rounds, as work is planned with.
    assert 4 < float(speed.time(case.grid.size)) / float(once.time(case.grid.size)) < 64


def test_values_that_do_not_stay_finite_begin_again() -> None:
    sample = sample_sizes(model(explode), [4096], seconds=0.02)[0][1]
    assert np.isfinite(sample.typical)
    assert sample.typical > 0


def test_halos_hold_values_of_the_models_own_kind() -> None:
    case = model(divide, (64, 128), initial=1.0)
    whole = work_of(case)
    with Rehearsal(case, whole, part_of(whole, 2048)) as rehearsal:
        rehearsal.prepare()
        rehearsal.sample(0.0)
        for _, values in rehearsal._engine.blocks(case.fields[0]):
            assert np.isfinite(values).all()  # zeros beyond the part would have been divided by


def test_what_kept_a_rank_from_computing_goes_on_in_the_run() -> None:
    undisturbed = Sample((3.0, 1.0, 2.0), (3.0, 1.0, 2.0), (1, 1, 1), 0.98)
    assert undisturbed.typical == 1.0
    halved = Sample((4.0, 2.0, 1.0), (1.1, 1.0, 1.0), (1, 1, 1), 0.5)
    assert halved.throttled
    assert halved.typical == 2.0


def test_functions_that_a_step_calls_are_left_alone() -> None:
    """They may write files, or wait for other ranks, which do another number of steps."""
    called = []
    case = model(relax)
    case.step.call(lambda engine: called.append(engine))
    assert measure_speed(case, [4096], seconds=0.01).cells[0] > 0
    assert not called


# All ranks -----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_all_ranks_get_the_same_group() -> None:
    case = model(relax)

    def run(comm: Comm) -> Any:
        return probe_ranks(case, comm, seconds=0.03, cache=False)

    rank_groups = mg.run_virtual(3, run)
    assert all(group is rank_groups[0] for group in rank_groups)
    group = rank_groups[0]
    assert group.ranks == 3
    assert set(group.speed_of.tolist()) == set(range(len(group.speeds)))
    assert (group.memory > 0).all()
    assert len(group.seats.paths) == 3
    assert len(group.links.levels) == len(group.seats.levels) + 1
    assert len(group.names) == 1
    share = case.grid.size / 3
    assert group.speeds[0].cells[-1] == pytest.approx(share, rel=0.3)
    assert (np.diff(group.speeds[0].cells) > 0).all()


@pytest.mark.slow
def test_speeds_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINGA_CACHE", str(tmp_path / "objects"))
    case = model(relax)
    assert known_speed(case, 1) is None
    first = probe_ranks(case, SerialComm(), seconds=0.02)
    (file,) = (tmp_path / "speeds").iterdir()
    known = known_speed(case, 1)
    assert known is not None
    assert known.seconds.tolist() == first.speeds[0].seconds.tolist()

    def refuse(*_: object) -> None:
        raise AssertionError("measured again")

    with monkeypatch.context() as patch:
        patch.setattr(probe, "_timed", refuse)
        again = probe_ranks(model(relax), SerialComm(), seconds=0.02)
        assert again.speeds[0].seconds.tolist() == first.speeds[0].seconds.tolist()
        for other in (model(explode), model(relax, (96, 128))):
            with pytest.raises(AssertionError, match="again"):
                probe_ranks(other, SerialComm(), seconds=0.02)
        with pytest.raises(AssertionError, match="again"):
            probe_ranks(case, SerialComm(), seconds=0.02, cache=False)
        file.write_text('{"cells": [1], "seconds": [-1]}')
        with pytest.raises(AssertionError, match="again"):
            probe_ranks(case, SerialComm(), seconds=0.02)
    assert probe_ranks(case, SerialComm(), seconds=0.02).ranks == 1
    monkeypatch.setenv("MINGA_CACHE", "off")
    assert probe_ranks(case, SerialComm(), seconds=0.02).ranks == 1


@pytest.mark.parametrize("when", [1, 2, 6])
def test_a_person_who_asks_ends_it_on_all_ranks(when: int) -> None:
    """Whether before the first step or between two sizes; whoever hears of it."""
    case, asked = model(relax, until=True), []

    def stop() -> bool:
        asked.append(None)
        return len(asked) >= when

    def run(comm: Comm) -> None:
        with pytest.raises(KeyboardInterrupt):
            probe_ranks(case, comm, seconds=0.05, cache=False, stop=stop if comm.rank == 1 else None)

    mg.run_virtual(2, run)
    assert len(asked) <= when + 3


def test_nearly_equal_ranks_share_a_speed() -> None:
    times = [1.0, 1.05, 1.02, 2.0, 2.1, 4.0]
    found = [probe._Found((10.0, 100.0), (t / 10, t), 0, "host", None) for t in times]
    speeds, speed_of = probe._grouped(found)
    assert speed_of.tolist() == [0, 0, 0, 1, 1, 2]
    assert [float(speed.time(100.0)) for speed in speeds] == pytest.approx([1.02, 2.05, 4.0])


def test_memory_of_a_node_is_divided_among_its_ranks() -> None:
    found = [probe._Found((1.0,), (1.0,), node, "h", memory) for node, memory in ((0, 1000), (0, 900), (2, 500))]
    assert probe._memory(found).tolist() == [360, 360, 400]


# Messages ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", range(2, 12))
def test_everyone_meets_everyone_once(count: int) -> None:
    rounds = rounds_of_pairs(count, 100)
    pairs = [pair for one in rounds for pair in one]
    assert sorted(pairs) == [(a, b) for a in range(count) for b in range(a + 1, count)]
    for one in rounds:
        assert len({place for pair in one for place in pair}) == 2 * len(one)
    few = rounds_of_pairs(count, 3)
    assert len(few) == min(3, len(rounds))
    assert rounds_of_pairs(1, 3) == []


def test_ranks_without_messages_have_shared_memory_between_them() -> None:
    links = links_of(SerialComm(), Tree.parse("1x1").seats(1))
    assert len(links.levels) == 3
    assert not links.nodes


@pytest.mark.slow
@pytest.mark.mpi
def test_real_ranks_time_their_messages(tmp_path: Path) -> None:
    script = tmp_path / "ranks.py"
    script.write_text(
        "import minga as mg, numpy as np\n"
        "from minga.plan.probe.pingpong import links_of\n"
        "from minga.plan.topology import seats_of\n"
        "comm = mg.MPIComm()\n"
        "seats = seats_of(comm)\n"
        "links = links_of(comm, seats, 0.1)\n"
        "texts = comm.gather(repr(links))\n"
        "if comm.rank == 0:\n"
        "    assert len(set(texts)) == 1, texts\n"
        "    assert len(links.levels) == len(seats.levels) + 1\n"
        "    ends = np.zeros(comm.size - 1, int), np.arange(1, comm.size)\n"
        "    short, long = links.time(seats, *ends, 8), links.time(seats, *ends, 1 << 20)\n"
        "    assert (0 < short).all() and (long >= short).all() and np.isfinite(long).all(), (short, long)\n"
        "    print(len(set(seats.paths[:, 0].tolist())), len(links.nodes))\n"
    )
    job = run_ranks(3, script, env={"MPIR_CVAR_NUM_CLIQUES": "2"}).check()
    assert job.out[0].split()[0] == "2"


@pytest.mark.slow
@pytest.mark.mpi
def test_messages_within_a_node_are_remembered(tmp_path: Path) -> None:
    script = tmp_path / "ranks.py"
    script.write_text(
        "import minga as mg\n"
        "from minga.plan.probe import probe\n"
        "from minga.plan.topology import seats_of\n"
        "comm, times = mg.MPIComm(), []\n"
        "measure = probe.links_of\n"
        "probe.links_of = lambda *args: times.append(1) or measure(*args)\n"
        "found = [repr(probe._links(comm, seats_of(comm), 0.02, cache)) for cache in (True, True, False)]\n"
        "assert found[0] == found[1], found\n"
        "assert len(times) == 2, times\n"
    )
    run_ranks(2, script, env={"MINGA_CACHE": str(tmp_path / "objects")}).check()


def test_where_a_plan_goes_beyond_what_was_measured_speeds_are_measured_there() -> None:
    """A rank that gets all cells is timed with all of them; one that gets none is not."""
    told = model(relax, (384, 384))

    def on(comm: Comm) -> list[list[float]]:
        group = probe_ranks(told, comm, seconds=0.02, cache=False)
        # Ranks of one machine are alike: make them two kinds.
        group = replace(group, speeds=(group.speeds[0], group.speeds[0]), speed_of=np.array([0, 1]))
        planned = np.array([told.grid.size, 0])
        more = probe_beyond(told, comm, group, planned, seconds=0.02)
        assert probe_beyond(told, comm, more, planned) is more
        return [speed.cells.tolist() for speed in (*group.speeds, *more.speeds)]

    first, second = mg.run_virtual(2, on)
    assert first == second
    before, other_before, after, other_after = first
    assert after == [*before, told.grid.size]
    assert other_after == other_before


def test_sizes_that_would_take_very_long_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """All ranks leave out the same ones, if a single one is slow."""
    told = model(relax, (384, 384))
    sizes = probed_sizes(work_of(told), 2)
    assert len(sizes) == 3
    monkeypatch.setattr(probe, "_PATIENCE", 0.0)

    def on(comm: Comm) -> list[list[float]]:
        group = probe_ranks(told, comm, seconds=0.02, cache=False)
        more = probe_beyond(told, comm, group, np.full(2, told.grid.size))
        assert more is group
        return [speed.cells.tolist() for speed in group.speeds]

    first, second = mg.run_virtual(2, on)
    assert first == second
    assert {tuple(cells) for cells in first} == {(float(sizes[-1]),)}
