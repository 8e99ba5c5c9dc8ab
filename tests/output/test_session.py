"""Runs from Python: what comes back, and that nothing of it depends on who computed it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError, MingaError
from minga.options import OutputSettings, RunOptions
from minga.output.checkpoint.keeper import Checkpointing
from minga.output.digest import digest_of_arrays
from minga.output.snapshots.selection import selections_of
from minga.output.snapshots.whole import WholeFrames
from minga.output.store import FrameReader
from minga.output.variables import CONSERVED, VELOCITY
from minga.running.observers.progress import Progress
from minga.running.run import run
from minga.running.session import execute
from thinned import thinned


def life(shape: tuple[int, ...] = (23, 70)) -> mg.Model:
    return mg.automaton("B3/S23", shape, init={"soup": 0.4, "seed": 3})


@mg.kernel
def spread(u, flux, new):  # type: ignore[no-untyped-def]
    new[0, 0] = 0.2 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] + u[0, 0]) + 1e-3 * (flux[0, 1] - flux[0, 0])


@mg.kernel
def total(u):  # type: ignore[no-untyped-def]
    return {"total": mg.sum(u[0, 0]), "largest": mg.max(u[0, 0])}


def heat() -> mg.Model:
    """Floats, a staggered field, one that every rank holds whole, and an exact sum."""
    grid = mg.Grid((17, 130))
    u = mg.Field("u", grid, slots=2, boundary=mg.fixed(1.0), unit="K")
    flux = mg.Field("flux", grid, centre="x")
    profile = mg.Field("profile", grid, axes=("y",))
    step = mg.Program("step")
    step.apply(spread, u, flux, u.next)
    step.rotate(u)
    observe = mg.Program("observe")
    seen = observe.apply(total, u)
    random = np.random.default_rng(5)
    return mg.Model(
        name="heat",
        grid=grid,
        fields=(u, flux, profile),
        step=step,
        initial={"u": random.random((17, 130)), "flux": random.random((17, 131)), "profile": np.arange(17.0)},
        output=("u", "flux", "profile"),
        observe=observe,
        observables=vars(seen),
        velocity=("flux",),
        conserved=("total",),
    )


def test_ten_lines_of_python_return_xarray() -> None:
    frames = run(life(), steps=10, every=4)
    assert frames.cell.dims == ("time", "y", "x")
    assert frames.time.values.tolist() == [0, 4, 8, 10]
    assert frames.x.values[:2].tolist() == [0.5, 1.5]
    assert frames.attrs["population"] == frames.cell[-1].sum()
    assert frames.attrs["digest"] == digest_of_arrays([frames.cell[-1].values])
    assert frames.cell.attrs["units"] == "1"
    assert mg.run is run


def test_fields_can_be_chosen() -> None:
    frames = run(heat(), steps=3, fields=["flux"])
    assert {name for name, variable in frames.data_vars.items() if "time" in variable.dims} == {"flux"}
    assert frames.flux.dims == ("time", "y", "x_face")
    assert frames.time.values.tolist() == [0, 3]


SESSIONS = list(
    itertools.product(
        [life, heat],
        [2, 3, 7],
        [
            RunOptions.of(steps=12, every=5),
            RunOptions.of(steps=12, every=5, layout="slabs:1", overlap=False),
            RunOptions.of(steps=12, every=5, layout="blocks:2", halo_depth=3),
            RunOptions.of(steps=12, every=5, layout="single"),
        ],
    )
)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("make", "ranks", "settings"),
    thinned(SESSIONS, *SESSIONS[::3]),
    ids=lambda value: str(value.run.layout) if isinstance(value, RunOptions) else None,
)
def test_nothing_depends_on_the_ranks(make, ranks: int, settings: RunOptions) -> None:  # type: ignore[no-untyped-def]
    def outcome(comm) -> tuple[str, dict[str, object], list[tuple[int, dict[str, np.ndarray]]]]:  # type: ignore[no-untyped-def]
        model, frames = make(), []
        fields = tuple(f for f in model.fields if f.name in model.output)

        def keep(step: int, time: float, arrays: dict[str, np.ndarray]) -> None:
            frames.append((step, {name: a.copy() for name, a in arrays.items()}))

        recorder = WholeFrames(model, selections_of(fields, OutputSettings()), keep)
        result = execute(model, comm, settings, fields, recorder=recorder)
        return result.digest, result.observables, frames

    alone = outcome(mg.SerialComm())
    several = mg.run_virtual(ranks, outcome)
    assert {digest for digest, _, _ in several} == {alone[0]}
    assert all(observables == alone[1] for _, observables, _ in several)
    assert [step for step, _ in several[0][2]] == [0, 5, 10, 12]
    for (_, expected), (_, found) in zip(alone[2], several[0][2], strict=True):
        for name, array in expected.items():
            assert array.tobytes() == found[name].tobytes()
    assert all(frames == [] for _, _, frames in several[1:])


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_run_goes_on_where_it_was_interrupted(tmp_path: Path, ranks: int) -> None:
    asked: dict[str, Any] = {"steps": 90, "every": 25, "observe": 10, "out": tmp_path / "heat", "resume": True}
    expected = run(heat(), **{**asked, "out": None, "resume": False})
    cut = run(heat(), **asked, checkpoint=Checkpointing(steps=20, time_limit=1.0))
    assert cut.attrs["ended"].startswith("time limit")
    assert 0 < cut.attrs["steps"] < 90
    assert cut.u.time.values.tolist()[0] == 0
    for wrong, words in (
        ({"every": 30}, "every: it was 25, now it is 30"),
        ({"steps": 0}, "steps are done, more than 0"),
        ({"resume": False}, "holds a run already; nothing is overwritten"),
    ):
        with pytest.raises(CaseError, match=words):
            run(heat(), **{**asked, **wrong})
    if ranks == 1:
        found = run(heat(), **asked)
    else:
        found, *others = mg.run_virtual(ranks, lambda comm: run(heat(), **asked, comm=comm))
        assert all(other.attrs == expected.attrs for other in others)
    assert found.drop_attrs().identical(expected.drop_attrs())
    assert found.attrs == {**expected.attrs}
    assert not (tmp_path / "heat" / "checkpoints").exists()
    kept = FrameReader.open(tmp_path / "heat" / "fields.zarr").group.attrs
    assert (kept[VELOCITY], kept[CONSERVED]) == ("flux", "total")
    if ranks > 1:
        found, *others = mg.run_virtual(ranks, lambda comm: run(heat(), **asked, comm=comm))
        assert all(other.attrs == expected.attrs for other in others)
    assert run(heat(), **asked).identical(found)  # also on another number of ranks


def test_a_run_is_kept_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("of somebody")
    for wrong, words in (
        ({"resume": True}, "resume=True: in which directory"),
        ({"checkpoint": 5}, "checkpoint=5: in which directory"),
        ({"checkpoint": 0, "out": tmp_path / "run"}, "checkpoint=0: expected a whole number"),
        ({"resume": True, "out": tmp_path}, "holds files already"),
        ({"out": tmp_path / ("x" * 300)}, "cannot write"),
        ({"layout": "slaps", "out": tmp_path / "new" / "run"}, "slaps"),
    ):
        with pytest.raises(MingaError, match=words):
            run(life(), 3, **wrong)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_all_ranks_stop_at_the_same_step() -> None:
    def steps(comm) -> tuple[int, str, int]:  # type: ignore[no-untyped-def]
        model, frames = life(), []
        looks = iter(range(1000))

        def stop() -> bool:
            return comm.rank == 1 and next(looks) >= 2

        recorder = WholeFrames(model, selections_of(model.fields, OutputSettings()), lambda s, t, a: frames.append(s))
        outcome = execute(model, comm, RunOptions.of(steps=100_000_000), model.fields, recorder=recorder, asked=stop)
        return outcome.steps, outcome.ended.reason, frames[-1] if frames else outcome.steps

    found = mg.run_virtual(3, steps)
    assert len({done for done, _, _ in found}) == 1
    done, reason, last = found[0]
    assert reason == "asked"
    assert 3 <= done < 100_000_000
    assert last == done


def test_the_ledger_has_every_rank() -> None:
    model = life()
    first, *others = mg.run_virtual(3, lambda comm: execute(life(), comm, RunOptions.of(steps=5), model.fields))
    entries = first.ledger["ranks"]
    assert [entry["rank"] for entry in entries] == [0, 1, 2]
    assert entries[0]["seconds"]["compute"] > 0
    assert entries[0]["seconds"]["output"] >= 0
    assert all(outcome.ledger == {} for outcome in others)


def test_progress_is_told_on_rank_0() -> None:
    told: list[tuple[int, int]] = []
    progress = Progress(lambda s, t, n: told.append((s.step, n)))
    model = life()
    execute(model, mg.SerialComm(), RunOptions.of(steps=50, every=10), model.fields, [progress])
    assert told[-1] == (50, 50)
    assert [s for s, _ in told] == sorted(s for s, _ in told)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"steps": 2.5}, "steps=2.5: expected a whole number of at least 0"),
        ({"steps": -1}, "steps=-1"),
        ({"steps": True}, "steps=True"),
        ({"steps": 3, "every": 0}, "every=0: expected a whole number of at least 1"),
        ({"steps": 3, "every": -3}, "every=-3"),
        ({"steps": 3, "every": 2.5}, "every=2.5"),
        ({"steps": 3, "threads": 0}, "threads=0"),
        ({"steps": 3, "halo_depth": 0}, "halo_depth=0"),
        ({"steps": 3, "halo_depth": "deep"}, "halo_depth='deep': expected a whole number"),
        ({"steps": 3, "overlap": "yes"}, "overlap='yes': expected True or False"),
        ({"steps": 3, "balance": 0}, "balance=0: expected a whole number of at least 1"),
        ({"steps": 3, "balance": "often"}, "balance='often'"),
        ({"steps": 3, "fields": ["cel"]}, "did you mean 'cell'"),
        ({"steps": 3, "fields": []}, "fields=[]: expected at least 1 entry"),
    ],
    ids=str,
)
def test_arguments_are_checked(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(mg.CaseError) as caught:
        run(life((5, 6)), **arguments)  # type: ignore[arg-type]
    assert words in str(caught.value)
    assert "fix:" in str(caught.value)


def test_a_field_twice_is_found_before_the_run() -> None:
    with pytest.raises(mg.RunError, match="at: model 'automaton'"):
        run(life((5, 6)), steps=10**9, fields=["cell", "cell"])
    assert run(life((5, 6)), steps=np.int64(1), fields="cell").cell.dims == ("time", "y", "x")


def test_what_is_no_model_or_stop_is_said() -> None:
    model = mg.automaton("B3/S23", (8, 8), init={"soup": 0.5})
    with pytest.raises(mg.CaseError, match="expected a model, found 'B3/S23'"):
        mg.run("B3/S23", 3)  # type: ignore[arg-type]
    with pytest.raises(mg.CaseError, match=r"expected mg\.Stop"):
        mg.run(model, 3, stop=3)  # type: ignore[arg-type]
