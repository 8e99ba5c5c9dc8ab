"""Runs from Python that end before their last step, or were finished before: what was computed is there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray

import minga as mg
from minga.output.checkpoint.keeper import Checkpointing
from thinned import thinned

GRID = mg.Grid((3,), units="m")
Deed = Callable[[mg.Engine, mg.Field], None]


def nothing(engine: mg.Engine, u: mg.Field) -> None:
    return None


def model(deed: Deed = nothing, at: int = 5, *, start: float = 0.0, seen: Callable[[], None] | None = None) -> mg.Model:
    """Counts steps in its field `u`, from `start` on, and does a deed in step number `at`, from 1."""
    u = mg.Field("u", GRID)

    def count(engine: mg.Engine) -> None:
        engine.set(u, engine.gather(u) + 1.0)
        if int(engine.read(mg.STEP)) + 1 == at:
            deed(engine, u)

    def look(engine: mg.Engine) -> None:
        engine.write(level, float(engine.gather(u)[0]))
        if seen is not None:
            seen()

    step, observe, level = mg.Program("step"), mg.Program("observe"), mg.Register("level")
    step.call(count, reads=(u,), writes=(u,))
    step.let(mg.STEP, mg.STEP + 1)
    observe.call(look, reads=(u,))
    return mg.Model(
        "counting", GRID, (u,), step, initial={"u": start}, observe=observe, observables={"level": level},
        clock=mg.Clock(dt=0.5),
    )  # fmt: skip


def press(engine: mg.Engine, u: mg.Field) -> None:
    """Press Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


def press_twice(engine: mg.Engine, u: mg.Field) -> None:
    press(engine, u)
    press(engine, u)


def explode(engine: mg.Engine, u: mg.Field) -> None:
    engine.set(u, np.inf)


class Odd(Exception):
    """An exception of a person's own."""


def refuse(engine: mg.Engine, u: mg.Field) -> None:
    raise Odd("no more of this")


def levels(dataset: xarray.Dataset) -> list[float]:
    return [float(value) for value in dataset.u.values[:, 0]]


@pytest.mark.parametrize("out", [None, "run"])
def test_ctrl_c_ends_a_run_after_its_step_and_hands_over_the_frames(tmp_path: Path, out: str | None) -> None:
    where = None if out is None else tmp_path / out
    with pytest.raises(KeyboardInterrupt, match="after 5 of 9 steps") as caught:
        mg.run(model(press), 9, every=1, out=where)
    found = caught.value.dataset  # type: ignore[attr-defined]
    assert levels(found) == found.level.values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert found.time.values.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    assert found.attrs["ended"] == "asked at step 5"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if where is not None:
        assert "attribute `dataset`, and in" in caught.value.__notes__[0]
        rest = mg.run(model(), 9, every=1, out=where, resume=True)
        assert rest.attrs["digest"] == mg.run(model(), 9).attrs["digest"]
        assert levels(rest) == [float(step) for step in range(10)]


@pytest.mark.few(2)
@pytest.mark.parametrize("out", [None, "run"])
@pytest.mark.parametrize(
    ("deed", "kind", "frames"),
    [
        (press_twice, KeyboardInterrupt, [0.0, 2.0, 4.0]),
        (refuse, Odd, [0.0, 2.0, 4.0]),
        (explode, mg.RunError, [0.0, 2.0, 4.0, np.inf]),
    ],
)
def test_errors_carry_the_frames(
    tmp_path: Path, deed: Deed, kind: type[BaseException], frames: list[float], out: str | None
) -> None:
    where = None if out is None else tmp_path / out
    with pytest.raises(kind) as caught:
        mg.run(model(deed), 9, every=2, observe=1, out=where)
    found = caught.value.dataset  # type: ignore[attr-defined]
    assert levels(found) == frames
    assert found.level.values.tolist()[:5] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert found.attrs["ended"].startswith("failed: ")
    assert f"{len(frames)} frames" in caught.value.__notes__[0]
    if where is not None:
        assert json.loads((where / "series.json").read_text())["level"][:5] == [0.0, 1.0, 2.0, 3.0, 4.0]
        assert levels(mg.run(model(), 9, every=2, observe=1, out=where, resume=True)) == [0.0, 2.0, 4.0, 6.0, 8.0, 9.0]


def test_an_observer_that_fails_loses_nothing() -> None:
    looks = iter(range(3))

    def fail_later() -> None:
        next(looks)  # StopIteration at the fourth

    with pytest.raises(StopIteration) as caught:
        mg.run(model(seen=fail_later), 9, every=2)
    assert levels(caught.value.dataset) == [0.0, 2.0, 4.0, 6.0]  # type: ignore[attr-defined]


def test_who_handles_ctrl_c_alone_goes_on_doing_so() -> None:
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        assert levels(mg.run(model(press), 6)) == [0.0, 6.0]
    finally:
        signal.signal(signal.SIGINT, before)
    assert pressed == [signal.SIGINT]


def terminate(engine: mg.Engine, u: mg.Field) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_sigterm_ends_a_run_after_its_step_and_then_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    delivered: list[object] = []
    monkeypatch.setattr(signal, "raise_signal", lambda number: delivered.append((number, signal.getsignal(number))))
    with pytest.raises(KeyboardInterrupt):
        mg.run(model(terminate), 9, every=1, out=tmp_path / "run")
    assert delivered == [(signal.SIGTERM, signal.SIG_DFL)]
    assert "after 5 of 9 steps" in capsys.readouterr().err
    monkeypatch.undo()
    rest = mg.run(model(refuse, 5), 9, every=1, out=tmp_path / "run", resume=True)  # step 5 is not done again
    assert levels(rest) == [float(step) for step in range(10)]


def test_who_handles_sigterm_alone_goes_on_doing_so(tmp_path: Path) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        assert levels(mg.run(model(terminate), 6, out=tmp_path / "run")) == [0.0, 6.0]
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]


def test_other_threads_can_run_models() -> None:
    found: list[xarray.Dataset] = []
    (thread := threading.Thread(target=lambda: found.append(mg.run(model(), 3)))).start()
    thread.join()
    assert levels(found[0]) == [0.0, 3.0]


def again(where: Path, **changes: object) -> xarray.Dataset:
    words = {"steps": 4, "every": 2} | changes
    return mg.run(words.pop("model", model()), out=where, resume=True, **words)  # type: ignore[arg-type]


def test_a_finished_run_returns_what_was_kept(tmp_path: Path) -> None:
    """So that a script of several runs goes on when it is started again."""
    first = again(tmp_path / "run")
    state = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    second = again(tmp_path / "run")
    assert second.attrs == first.attrs
    assert second.identical(first)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")} == state


def test_a_run_that_ended_by_a_condition_is_finished(tmp_path: Path) -> None:
    stop = mg.Stop(when="level >= 3")
    first = again(tmp_path / "run", stop=stop, observe=1)
    assert first.attrs["steps"] == 3
    assert again(tmp_path / "run", stop=stop, observe=1).attrs == first.attrs
    with pytest.raises(mg.CaseError, match="the stop of the model"):
        again(tmp_path / "run", stop=mg.Stop(when="level >= 4"), observe=1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": model(start=1.0)}, "initial values"),
        ({"every": 1}, "every"),
        ({"observe": 1}, "observe"),
        ({"steps": 3}, "4 steps are done, more than 3"),
        ({"steps": 6}, "no checkpoint of its last step"),
    ],
)
def test_what_a_finished_run_did_not_do_is_refused(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    again(tmp_path / "run")
    with pytest.raises(mg.CaseError, match=said):
        again(tmp_path / "run", **changes)


def test_a_run_that_goes_on_begins_with_the_same_values(tmp_path: Path) -> None:
    again(tmp_path / "run", checkpoint=Checkpointing(steps=2, at_end=True))
    with pytest.raises(mg.CaseError, match="initial values"):
        again(tmp_path / "run", model=model(start=1.0), steps=6)
    assert levels(again(tmp_path / "run", steps=6)) == [0.0, 2.0, 4.0, 6.0]


LONG_STEP = """
import sys
import minga as mg

grid = mg.Grid((64, 64))
u = mg.Field("u", grid, slots=2, boundary=mg.fixed(0.0))


@mg.kernel
def relax(u, new):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


step = mg.Program("step")
with step.repeat(10**9):
    step.apply(relax, u, u.next)
    step.rotate(u)
model = mg.Model("long", grid, (u,), step, {u: 1.0})
comm = mg.MPIComm() if sys.argv[1] == "mpi" else mg.SerialComm()
if comm.rank == 0:
    print("started", flush=True)
mg.run(model, 3, comm=comm, out="run")
"""


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", thinned([1, 2], 1))
def test_sigterm_ends_a_step_that_does_not_end(in_tmp_path: Path, ranks: int) -> None:
    """Also while ranks are timed, and while one of them waits for a message in native code."""
    Path("long.py").write_text(LONG_STEP)
    python = [sys.executable, "long.py", "mpi" if ranks > 1 else "alone"]
    launcher = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(ranks)] if ranks > 1 else []
    with subprocess.Popen([*launcher, *python], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "started"
            time.sleep(2.0)
            process.terminate()
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode != 0
    assert "Traceback" not in said
