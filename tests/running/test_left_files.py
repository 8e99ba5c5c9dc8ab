"""Files of a run from Python: the plan, and the progress that a live page shows, as a run of the command line has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import minga as mg

GRID = mg.Grid((6, 128))


@mg.kernel
def lowered(u: Any, new: Any) -> None:
    new[0, 0] = mg.sqrt(u[0, 0] - 1.0)


def falling(start: float) -> mg.Model:
    """All cells fall, and are not numbers below 1."""
    u = mg.Field("u", GRID, slots=2)
    step = mg.Program("step")
    step.apply(lowered, u, u.next)
    step.rotate(u)
    return mg.Model("falling", GRID, (u,), step, {u: start})


class Asking(mg.Observer):
    schedule = mg.Schedule(steps=1)

    def ends(self, simulation: mg.Simulation) -> str | None:
        return "asked" if simulation.step == 2 else None


def progress(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "progress.json").read_text())
    return found


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_run_leaves_its_plan_and_progress(tmp_path: Path, ranks: int) -> None:
    out = tmp_path / "run"
    mg.run_virtual(ranks, lambda comm: mg.run(falling(30.0), 3, out=out, comm=comm).attrs)
    found = progress(out)
    assert (found["state"], found["step"], found["steps"], found["ranks"]) == ("finished", 3, 3, ranks)
    assert sum(rank["cells"] for rank in json.loads((out / "plan.json").read_text())["ranks"]) == GRID.size


def test_an_interrupted_run_is_stopped_until_it_is_resumed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        mg.run(falling(30.0), 3, out=out, observers=[Asking()])
    assert (progress(out)["state"], progress(out)["step"]) == ("stopped", 2)
    mg.run(falling(30.0), 3, out=out, resume=True)
    assert (progress(out)["state"], progress(out)["step"]) == ("finished", 3)


def test_a_failed_run_says_why(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(mg.RunError, match="not finite"):
        mg.run(falling(30.0), 40, out=out, every=1)
    assert progress(out)["state"] == "failed"
    assert progress(out)["reason"].startswith("field 'u' is not finite at cell (0, 0) after step")


def test_nothing_is_left_of_a_run_that_never_began(tmp_path: Path) -> None:
    with pytest.raises(mg.RunError, match="initial values"):
        mg.run(falling(float("nan")), 3, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
