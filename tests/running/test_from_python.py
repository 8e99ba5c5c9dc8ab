"""Runs from Python: callbacks, initial values, threads and progress."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray

import minga as mg
from minga.running import defaults
from minga.view import python_progress
from minga.view.progress import Progress, Timed


@pytest.fixture(scope="module")
def diffusion() -> mg.Model:
    grid = mg.Grid((12, 10), periodic=True)
    start = {"u": lambda y, x: np.exp(-((y - 6.0) ** 2) - (x - 5.0) ** 2)}
    return mg.pde({"u": "laplace(u)"}, grid, initial=start, integrator="euler", dt=0.125)


def on_ranks(size: int, run: Callable[[mg.SerialComm], Any]) -> list[Any]:
    return mg.run_virtual(size, run) if size > 1 else [run(mg.SerialComm())]


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_callback_sees_the_frames_of_the_dataset(diffusion: mg.Model, ranks: int) -> None:
    seen: list[mg.Frame] = []

    def run(comm: Any) -> xarray.Dataset:
        return mg.run(diffusion, until=1.0, every=0.25, comm=comm, callback=seen.append)

    found = on_ranks(ranks, run)[0]
    assert [frame.step for frame in seen] == found.step.values.tolist() == [0, 2, 4, 6, 8]
    assert [frame.time for frame in seen] == found.time.values.tolist()
    assert np.array_equal([frame["u"] for frame in seen], found.u.values)
    assert [frame.observables["largest_u"] for frame in seen] == found.largest_u.values.tolist()


@pytest.mark.few(2)
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("last", [0, 3, 6])
def test_stop_iteration_ends_the_run_at_its_step(diffusion: mg.Model, ranks: int, last: int) -> None:
    def look(frame: mg.Frame) -> None:
        if frame.step >= last:
            raise StopIteration("it is flat enough")

    ends = [
        found.attrs["ended"]
        for found in on_ranks(ranks, lambda c: mg.run(diffusion, 8, every=3, comm=c, callback=look))
    ]
    assert ends == [f"it is flat enough, in step {last}"] * ranks
    found = mg.run(diffusion, 8, every=3, callback=look)
    assert found.step.values.tolist() == list(range(0, last + 1, 3))
    assert found.attrs["digest"] == mg.run(diffusion, last).attrs["digest"]


def test_an_observer_that_ends_the_run_leaves_no_frame_out(diffusion: mg.Model) -> None:
    """The last state is kept and shown to all that see the end, also where their intervals are others."""
    ends: list[int] = []
    others = [
        mg.observer(lambda simulation: ends.append(simulation.step), end=True),
        mg.observer(lambda simulation: simulation.end("enough"), steps=5),
    ]
    found = mg.run(diffusion, 20, every=3, observers=others)
    assert found.step.values.tolist() == [0, 3, 5]
    assert found.observed.values.tolist() == [0, 3, 5]
    assert ends == [5]
    assert found.attrs["ended"] == "enough, in step 5"


def test_a_run_that_a_callback_ended_is_finished(diffusion: mg.Model, tmp_path: Path) -> None:
    def look(frame: mg.Frame) -> None:
        if frame.step:
            raise StopIteration

    first = mg.run(diffusion, 8, every=2, out=tmp_path / "run", callback=look)
    assert first.attrs["ended"] == "the callback ended the run, in step 2"
    again = mg.run(diffusion, 8, every=2, out=tmp_path / "run", resume=True)
    assert again.identical(first)


@pytest.mark.parametrize("ranks", [1, 2])
def test_an_error_in_a_callback_ends_all_ranks_and_keeps_the_frames(diffusion: mg.Model, ranks: int) -> None:
    def look(frame: mg.Frame) -> None:
        if frame.step == 4:
            raise ZeroDivisionError("oh")

    def run(comm: Any) -> BaseException:
        with pytest.raises((ZeroDivisionError, mg.RunError)) as caught:
            mg.run(diffusion, 8, every=2, comm=comm, callback=look)
        return caught.value

    first, *others = on_ranks(ranks, run)
    assert isinstance(first, ZeroDivisionError)
    assert first.dataset.step.values.tolist() == [0, 2, 4]  # type: ignore[attr-defined]
    assert all("the callback failed on rank 0: ZeroDivisionError: oh" in str(error) for error in others)


def test_initial_values_of_a_run_replace_those_of_the_model(diffusion: mg.Model) -> None:
    rows = np.arange(120.0).reshape(12, 10)
    by_array = mg.run(diffusion, 2, initial={"u": rows})
    by_function = mg.run(diffusion, 2, initial={"u": lambda y, x: 10.0 * (y - 0.5) + (x - 0.5)})
    assert np.array_equal(by_array.u[0], rows)
    assert by_array.identical(by_function)
    assert not np.array_equal(mg.run(diffusion, 0).u[0], rows)


@pytest.mark.parametrize("disk", [False, True])
def test_a_dataset_gives_its_last_frame(diffusion: mg.Model, tmp_path: Path, disk: bool) -> None:
    first = mg.run(diffusion, 3, every=2, out=tmp_path / "run" if disk else None)
    second = mg.run(diffusion, 4, initial=first)
    assert second.attrs["digest"] == mg.run(diffusion, 7).attrs["digest"]
    assert second.time.values.tolist() == [0.0, 0.5]


def test_cells_stored_as_bits_take_initial_values() -> None:
    first, second = (mg.automaton("B3/S23", (16, 70), init={"soup": 0.4}, storage=kind) for kind in ("bits", "bytes"))
    half = mg.run(first, 5)
    whole = mg.run(second, 9).attrs["digest"]
    for model in (first, second):
        assert mg.run(model, 4, initial=half).attrs["digest"] == whole
    where = {"cell": lambda y, x: (y < 4) & (x > 60)}
    assert mg.run(first, 3, initial=where).attrs["digest"] == mg.run(second, 3, initial=where).attrs["digest"]
    with pytest.raises(mg.CaseError, match="whole numbers from 0 to 1"):
        mg.run(first, 1, initial={"cell": 2})


@pytest.mark.few(2)
@pytest.mark.parametrize("boundary", ["periodic", "fixed", "reflect"])
def test_cells_stored_as_bits_are_read_beyond_the_ends_of_rows(boundary: str) -> None:
    model = mg.automaton("B3/S23", (24, 70), init={"soup": 0.4, "seed": 2}, boundary=boundary, storage="bits")
    half = mg.run(model, 6)
    assert mg.run(model, 6, initial=half).attrs["digest"] == mg.run(model, 12).attrs["digest"]


def wave() -> mg.Model:
    @mg.kernel
    def leap(u: Any, before: Any, new: Any) -> None:
        new[0] = 2 * u[0] - before[0] + 0.25 * (u[-1] - 2 * u[0] + u[1])

    u = mg.Field("u", mg.Grid((16,), periodic=True), slots=3)
    step = mg.Program("step")
    step.apply(leap, u, u.previous, u.next)
    step.rotate(u)
    hill = np.sin(np.arange(16.0))
    return mg.Model("wave", u.grid, (u,), step, initial={"u": hill, "u.previous": hill})


def test_models_that_read_earlier_levels_take_no_single_frame() -> None:
    second = mg.automaton("W30", (70,), init=[1], update="second-order")
    for model in (second, wave()):
        name = model.output[0]
        history = mg.run(model, 6, every=1)
        with pytest.raises(mg.CaseError, match=rf"read {name}\.previous, which a frame does not hold"):
            mg.run(model, 4, initial=history)
        levels = {name: history[name][-1].values, f"{name}.previous": history[name][-2].values}
        assert mg.run(model, 4, initial=levels).attrs["digest"] == mg.run(model, 10).attrs["digest"]


@pytest.mark.parametrize(
    ("initial", "said"),
    [
        (3.0, r"initial=3\.0: expected values by field"),
        ({"v": 1.0}, "no field 'v'"),
        ({"u": np.zeros((3, 3))}, r"\(3, 3\)"),
        (xarray.Dataset({"w": ("time", [1.0])}), "no field 'u'"),
        (xarray.Dataset({"u": (("time", "y"), np.zeros((2, 5)))}), r"shape \(5,\)"),
        (xarray.Dataset({"u": (("time", "y", "x"), np.zeros((0, 12, 10)))}), "no frame"),
        (xarray.DataArray(np.zeros((12, 10)), name="u"), "found the array 'u'"),
    ],
)
def test_initial_values_that_do_not_fit_are_refused(diffusion: mg.Model, initial: object, said: str) -> None:
    with pytest.raises(mg.MingaError, match=said):
        mg.run(diffusion, 1, initial=initial)  # type: ignore[arg-type]


def test_a_callback_must_be_a_function(diffusion: mg.Model) -> None:
    with pytest.raises(mg.CaseError, match="callback=3"):
        mg.run(diffusion, 1, callback=3)  # type: ignore[arg-type]


def test_runs_take_the_free_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks of a node share its cores, and small fields take fewer of them."""
    monkeypatch.setattr(defaults, "available_cores", lambda: tuple((n,) for n in range(8)))
    small, large = (mg.pde("laplace(u)", mg.Grid((n, n)), dt=0.1) for n in (64, 1024))
    serial = mg.SerialComm()
    assert [defaults.default_threads(model, serial) for model in (small, large)] == [1, 8]
    assert mg.run_virtual(3, lambda comm: defaults.default_threads(large, comm)) == [2, 2, 2]


@pytest.mark.slow
def test_progress_shows_only_where_people_see_it(
    diffusion: mg.Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bar itself is tested in tests/view."""
    monkeypatch.setattr(python_progress, "DELAY", 0.0)
    mg.run(diffusion, 4)
    assert capsys.readouterr().err == ""
    outputs = notebook(monkeypatch)
    mg.run(diffusion, 4, progress=False)
    assert outputs == []
    mg.run(diffusion, until=0.5)
    assert outputs[-1]["text/plain"].startswith("pde: time 0.5 of 0.5, step 4, ")
    assert 'value="1.0000"' in outputs[-1]["text/html"]


def test_ranks_agree_on_progress(diffusion: mg.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_progress, "DELAY", 0.0)
    outputs = notebook(monkeypatch)
    mg.run_virtual(2, lambda comm: mg.run(diffusion, 4, comm=comm))
    assert "step 4 of 4, " in outputs[-1]["text/plain"]
    assert " on 2 ranks, in " in outputs[-1]["text/plain"]


def test_a_short_run_shows_nothing(diffusion: mg.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_progress, "DELAY", 3600.0)
    outputs = notebook(monkeypatch)
    mg.run(diffusion, 4)
    assert outputs == []


def test_progress_in_html_is_escaped() -> None:
    bundle = python_progress.mime_bundle("a<b", Progress(1, 4, 2.0, 100, 1, timed=Timed(1.0, 4.0, " s")))
    assert bundle["text/plain"] == "a<b: time 1 of 4 s, step 1, 50 cells/s, 6 s left"
    assert 'value="0.2500"' in bundle["text/html"]
    assert "a&lt;b: time 1 of 4 s" in bundle["text/html"]


def notebook(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Let this process look like the kernel of a notebook, and return the list of what it shows."""
    outputs: list[dict[str, str]] = []

    def display(bundle: dict[str, str], *, raw: bool, display_id: bool) -> SimpleNamespace:
        assert raw
        assert display_id
        outputs.append(bundle)
        return SimpleNamespace(update=lambda bundle, raw: outputs.append(bundle))

    shell = SimpleNamespace(kernel=object())
    module = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    return outputs
