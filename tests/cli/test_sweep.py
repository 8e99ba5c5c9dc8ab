"""Runs for all combinations of parameters."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import minga as mg
from command_line import SMALL
from minga.cli import sweep

RATE = 2.0
"""A global name that functions use."""


def grown(D: float, seed: int) -> mg.Model:
    """Cells that grow by a factor of 1 + D / 2 in each step, from a value that depends on the seed."""
    factor = scaled(D)
    return mg.pde("k * u", mg.Grid((3, 2)), parameters={"k": factor}, initial=float(seed), integrator="euler", dt=0.25)


def scaled(D: float) -> float:
    return RATE * D


def expected(D: float, seed: int, steps: int) -> float:
    return seed * (1 + 0.25 * RATE * D) ** steps


GRID: dict[str, Any] = {"D": [0.5, 1.0, 2.0], "seed": range(1, 3)}


def backwards(D: float) -> mg.Model:
    return mg.pde("D * laplace(u)", mg.Grid((8,)), parameters={"D": D}, initial=1.0, integrator="euler", dt=0.1)


def test_what_a_model_warns_of_is_said_with_its_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    mg.sweep(backwards, {"D": [1.0, -1.0]}, steps=1, workers=1)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("minga: D=-1.0: ")
    assert "something diffuses backwards" in line


@pytest.mark.slow
def test_each_run_has_its_parameters() -> None:
    history = mg.sweep(grown, GRID, steps=4, every=2, workers=1)
    assert history.u.dims == ("D", "seed", "time", "y", "x")
    assert history.u.shape == (3, 2, 3, 3, 2)
    for D in GRID["D"]:
        for seed in GRID["seed"]:
            one = history.sel(D=D, seed=seed)
            assert one.u[:, 0, 0].values.tolist() == [expected(D, seed, steps) for steps in (0, 2, 4)]
            alone = mg.run(grown(D, seed), steps=4, every=2)
            assert one.digest.item() == alone.digest
            assert np.array_equal(one.u, alone.u)
    assert history.time.values.tolist() == [0.0, 0.5, 1.0]
    assert set(history.steps.values.flat) == {4}
    assert history.attrs["model"] == "pde"
    assert not {"digest", "steps", "ended", "largest_u", "command"} & set(history.attrs)


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing() -> None:
    """Also functions that no other process can import arrive there, and so do values that they capture."""
    base = 3.0

    def make(rate: float) -> mg.Model:
        here.add(rate)
        return mg.pde("-u", mg.Grid((4,)), initial=lambda x: base * x + scaled(rate), integrator="euler", dt=0.5)

    here: set[float] = set()
    alone = mg.sweep(make, {"rate": [1.0, 2.0, 3.0]}, steps=2, workers=1)
    assert here == {1.0, 2.0, 3.0}
    here.clear()
    several = mg.sweep(make, {"rate": [1.0, 2.0, 3.0]}, steps=2, workers=2)
    assert not here
    assert several.identical(alone)


@pytest.mark.slow
def test_kernels_of_a_script_arrive() -> None:
    @mg.kernel
    def raised(u: Any, new: Any, *, by: Any) -> None:
        new[0] = u[0] + RATE * by

    def make(by: float) -> mg.Model:
        u = mg.Field("u", mg.Grid((3,)), slots=2)
        step = mg.Program("step")
        step.apply(raised, u, u.next, by=by)
        step.rotate(u)
        return mg.Model("raised", u.grid, (u,), step)

    make(1.0)  # the kernel is now traced in this process
    history = mg.sweep(make, {"by": [1, 2]}, steps=3, workers=2)
    assert history.u[:, -1, 0].values.tolist() == [6.0, 12.0]


def make_or_fail(number: int) -> mg.Model:
    if number == 1:
        raise ValueError("not this one")
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return grown(1e200 if number == 3 else 1.0, 1)


@pytest.mark.slow
def test_a_failure_names_its_parameters_and_leaves_the_others() -> None:
    """A function that fails, a process that dies, and values that are not finite."""
    with pytest.raises(mg.RunError) as caught:
        mg.sweep(make_or_fail, {"number": range(5)}, steps=4, every=1, workers=2)
    text = str(caught.value)
    assert text.startswith("3 of 5 runs failed; number=1: ValueError: not this one; number=2: its process ended by ")
    assert "number=3: field 'u' is not finite" in text
    kept = caught.value.dataset  # type: ignore[attr-defined]
    ended = kept.ended.values.tolist()
    assert [text.startswith("failed: ") for text in ended] == [False, True, True, True, False]
    for number in (0, 4):
        assert kept.u[number, :, 0, 0].values.tolist() == [expected(1.0, 1, steps) for steps in range(5)]
    assert np.isnan(kept.u[1:3]).all()
    assert kept.u[3, 0, 0, 0] == 1.0
    assert kept.digest.values[1] == ""


def test_all_failed() -> None:
    with pytest.raises(mg.RunError, match=r"all 2 runs failed; D=1, seed=0: ZeroDivisionError"):
        mg.sweep(lambda D, seed: 1 / seed, {"D": [1, 2], "seed": [0]}, steps=1, workers=1)  # type: ignore[arg-type, return-value]


def test_a_case_and_its_settings(in_tmp_path: Path) -> None:
    Path("case.toml").write_text(
        'model = "automaton"\ngrid = {shape = [16, 16]}\n[automaton]\nrule = "B3/S23"\ninit = {soup = 0.4, seed = 1}\n'
        "[run]\nsteps = 6\n[output]\nevery = 3\n"
    )
    history = mg.sweep("case.toml", {"automaton.rule": ["B3/S23", "B36/S23"], "automaton.init.seed": [1, 2]}, workers=1)
    assert history.cell.dims == ("rule", "seed", "time", "y", "x")
    assert history.time.values.tolist() == [0, 3, 6]
    alone = mg.run(mg.read_case("case.toml", ["automaton.init.seed=2"]).model, steps=6, every=3)
    assert np.array_equal(history.cell.sel(rule="B3/S23", seed=2), alone.cell)
    assert len(set(history.digest.values.flat)) == 4
    longer = mg.sweep("case.toml", {"automaton.rule": ["B3/S23"]}, steps=9, workers=1)
    assert longer.time.values.tolist() == [0, 3, 6, 9]


@pytest.mark.slow
def test_runs_of_different_lengths() -> None:
    """What the shorter ones lack is NaN."""
    history = mg.sweep(grown, GRID, steps=20, every=1, workers=1, stop="largest_u > 10")
    assert len(set(history.steps.values.flat)) > 1
    for one in (history.isel(D=d, seed=s) for d in range(3) for s in range(2)):
        assert int(np.isfinite(one.u[:, 0, 0]).sum()) == one.steps + 1


@pytest.mark.slow
def test_a_run_of_a_sweep_has_a_picture() -> None:
    history = mg.sweep(grown, GRID, steps=2, workers=1)
    assert history.isel(D=0, seed=0).mg.show().caption == "u, step 2, t = 0.5"
    with pytest.raises(mg.CaseError, match=r"history\.isel\(D=0, seed=0\)"):
        history.mg.show()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mg.sweep(grown(1, 1), {"D": [1]}), "expected a function that makes models, found the model 'pde'"),
        (lambda: mg.sweep(3, {"D": [1]}), "expected a function that makes models, or the name of a case, found 3"),
        (lambda: mg.sweep(grown, {}), "expected values by name"),
        (lambda: mg.sweep(grown, {"D": 3}), "parameter 'D': expected several values, found 3"),
        (lambda: mg.sweep(grown, {"D": "abc"}), "parameter 'D': expected several values"),
        (lambda: mg.sweep(grown, {"D": []}), "expected numbers or texts, found none"),
        (lambda: mg.sweep(grown, {"D": [[1]]}), r"expected numbers or texts, found \[1\]"),
        (lambda: mg.sweep(grown, {"D": [1, 1]}), "a value occurs twice"),
        (lambda: mg.sweep(grown, GRID, workers=0), "workers=0: expected a whole number"),
        (lambda: mg.sweep(grown, GRID, out="runs"), "out='runs': a sweep has many runs"),
        (
            lambda: mg.sweep(
                lambda n: mg.automaton("B3/S23", (n, n), init=np.zeros((n, n), "u1")),
                {"n": [16, 17]},
                steps=1,
                workers=1,
            ),
            "the runs with n=16 and n=17 have different grids or fields",
        ),
        (lambda: mg.sweep(lambda D: 3, {"D": [1]}, 1, workers=1), "all 1 runs failed; D=1: expected a model, found 3"),
        (lambda: mg.sweep(grown, GRID, untill=1.0, workers=1), r"no setting 'untill'\n(.*\n)*.*did you mean 'until'"),
        (
            lambda: mg.sweep(lambda x: grown(x, 0), {"x": [1]}, 1, workers=1),
            "the dimension 'x' would have the name of a variable or an axis",
        ),
        (lambda: mg.sweep(lambda time: grown(time, 0), {"time": [1]}, 1, workers=1), "the dimension 'time' would"),
        (lambda: mg.sweep(lambda u: grown(u, 0), {"u": [1]}, 1, workers=1), "the dimension 'u' would"),
        (lambda: mg.sweep("no-such-case", {"a": [1]}, 1, workers=1), "there is no case 'no-such-case'"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises(mg.MingaError, match=message):
        call()


def test_what_cannot_be_sent() -> None:
    with open(os.devnull) as file, pytest.raises(mg.CaseError, match=r"cannot be sent to other processes: "):
        mg.sweep(lambda D: file.read(), {"D": [1, 2]}, steps=1, workers=2)  # type: ignore[arg-type, return-value]


def test_a_run_without_samples_has_none_of_another_one() -> None:
    """Samples at receivers have a dimension of their own, which a run that died does not fill."""
    time = xarray.DataArray([0.0, 0.1], dims="receiver_time")
    samples = xarray.Dataset(
        {"samples": (("receiver_time", "receiver"), np.ones((2, 1)))}, coords={"receiver_time": time, "receiver": [0]}
    )
    tasks = [sweep._Task("case", {"n": number}, {}) for number in range(3)]
    longer = samples.reindex(receiver_time=[0.0, 0.1, 0.2], fill_value=2.0)
    answers = [sweep._Answer(samples), sweep._Answer(None, "it died"), sweep._Answer(longer)]
    found = sweep._combined(tasks, answers, {"n": [0, 1, 2]})
    assert found.samples.dims[:1] == ("n",)
    assert np.isnan(found.samples.sel(n=1)).all()
    assert found.samples.sel(n=2).values[:, 0].tolist() == [1.0, 1.0, 2.0]
    assert np.isnan(found.samples.sel(n=0).values[2])


def test_a_case_for_several_ranks(in_tmp_path: Path) -> None:
    """What a case says about ranks, the watchdog and files beside it does not stop a sweep."""
    Path("cases").mkdir()
    Path("cases/topology.conf").write_text("SwitchName=s Nodes=a,b\n")
    text = SMALL.replace("ranks = 1\n", 'watch = "9 s"\non_loss = "continue"\ntopology = "topology.conf"\n')
    Path("cases/small.toml").write_text(text)
    history = mg.sweep("cases/small.toml", {"automaton.rule": ["B3/S23"]}, steps=2, workers=1)
    assert history.steps.values.tolist() == [2]
    Path("cases/small.toml").write_text(text + "\n[observers.finite]\n")
    with pytest.raises(mg.CaseError, match="does not run the observers of a case"):
        mg.sweep("cases/small.toml", {"automaton.rule": ["B3/S23"]}, steps=2, workers=1)


def test_a_key_whose_last_word_is_an_observable_names_its_dimension(in_tmp_path: Path) -> None:
    """The voltage of a cell is an example: it is both given and observed."""
    Path("grown.py").write_text(
        "import minga as mg\n\n\n"
        "def model(largest_u: float = 1.0):\n"
        '    return mg.pde("0", mg.Grid((4,)), initial=largest_u, integrator="euler", dt=0.1)\n'
    )
    history = mg.sweep("grown.py", {"parameters.largest_u": [1.0, 2.0]}, steps=1, every=1, workers=1)
    assert history.u.dims[0] == "parameters.largest_u"
    assert history.largest_u.isel(observed=-1).values.tolist() == history["parameters.largest_u"].values.tolist()
