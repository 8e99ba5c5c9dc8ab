"""What cells behind a mask cost, and how work moves when a mask grows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm, run_virtual
from minga.plan import decisions
from minga.plan.balance import Balancer
from minga.plan.work.masks import MaskWatch
from minga.plan.work.recorded import work_of
from minga.plan.work.weights import masked_cost, weights_of
from minga.running.loop import drive
from minga.running.observers.balance import Balance
from minga.space.cuts import cartesian, slabs
from rank_groups import group_of

GRID = mg.Grid((48, 192))
SECONDS = 1e-4
"""That the ranks of these tests take for a cell that is done."""


@mg.kernel
def deposit(solid: Any, *, height: Any) -> None:
    solid[0, 0] = mg.where(mg.index(0, "i8") < height, 1, solid[0, 0])


@mg.kernel
def relax(solid: Any, u: Any, new: Any) -> Any:
    value = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
    new[0, 0] = mg.where(solid[0, 0] == 0, value, 0.0)
    return mg.sum(value * mg.where(solid[0, 0] == 0, 1.0, 0.0))


def model(*, grows: bool = True, initial: Any = 0) -> mg.Model:
    """Every step makes a row of cells solid, from below, until half of them are."""
    solid = mg.Field("solid", GRID, "u1")
    u, new = (mg.Field(name, GRID, boundary=mg.fixed(1.0)) for name in ("u", "new"))
    height, step = mg.Register("height", "i8"), mg.Program("step")
    with step.masked(solid):
        if grows:
            step.let(height, height + mg.where(height < 24, 1, 0))
            step.apply(deposit, solid, height=height)
        step.apply(relax, solid, u, new)
        step.apply(relax, solid, new, u)
    values = {"solid": initial, "u": np.random.default_rng(0).random(GRID.shape)}
    return mg.Model("deposit", GRID, (solid, u, new), step, initial=values, mask="solid")


def test_what_is_left_out_costs_nothing() -> None:
    mask = np.zeros((3, 200), np.uint8)
    mask[0, 60:140] = mask[1] = 2
    cost = masked_cost(mask, 0)
    assert cost.sum(axis=1).tolist() == [200 - 64, 0, 200]
    assert not cost[0, 64:128].any()
    # Rows that begin elsewhere have their pieces where their indices say.
    np.testing.assert_array_equal(masked_cost(mask[:, 50:], 50), cost[:, 50:])
    start = np.zeros(GRID.shape, np.uint8)
    start[:12] = 1
    weights = weights_of(model(initial=start))
    assert weights is not None
    assert weights.along(0).tolist() == [0] * 12 + [192] * 36
    assert weights_of(model()) is None


def test_ranks_say_together_what_cells_cost_now() -> None:
    mask = np.where(np.random.default_rng(1).random((48, 3)) < 0.5, 1, 0).repeat(64, axis=1).astype(np.uint8)
    built = model()

    def look(comm: Comm) -> list[Any]:
        watch = MaskWatch.of(built)
        assert watch is not None
        seen = []
        with mg.Engine(built.layouts_like(cartesian(GRID.box, (2, 2), granule=64)), comm=comm) as engine:
            engine.set(built.field("solid"), mask)

            def ask() -> None:
                parts = comm.bcast(comm.gather(watch.part(engine)))
                seen.append(watch.weights(parts))

            ask()
            ask()
            engine.relayout(built.layouts_like(slabs(GRID.box, 4, weights=[1, 2, 3, 4])))
            watch.forget()
            ask()
        return seen

    for first, second, third in run_virtual(4, look):
        np.testing.assert_array_equal(first.cost, masked_cost(mask, 0))
        assert second is None
        np.testing.assert_array_equal(third.cost, first.cost)
    assert MaskWatch.of(model(grows=False)) is None


@pytest.mark.slow
def test_a_deposit_that_grows_moves_work_and_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    built, steps = model(), 48
    monkeypatch.setattr(decisions.Seen, "now", _Clock().now)

    def run(comm: Comm, balanced: bool) -> Any:
        with mg.Engine(built.layouts("slabs", 2), comm=comm) as engine:
            balancer = Balancer(work_of(built), group_of("2", [1 / SECONDS]), every=3) if balanced else None
            drive(built, engine, steps, [] if balancer is None else [Balance(balancer)])
            rows = [box.hi[0] for box, _ in engine.blocks(built.field("u"))]
            moves = [] if balancer is None else balancer.decisions
            return [engine.gather(built.field(name)) for name in ("solid", "u")], rows, moves

    still, moved = (run_virtual(2, lambda comm, which=which: run(comm, which)) for which in (False, True))
    for before, after in zip(still[0][0], moved[0][0], strict=True):
        assert before.tobytes() == after.tobytes()
    assert still[0][1] == [24]
    # 24 rows are solid; the other 24 are shared out, but for what a move would not pay for.
    assert 32 <= moved[0][1][0] <= 38
    assert moved[0][2]


class _Clock:
    """Times as they would be if a rank worked for what remains of its cells, and for nothing else."""

    def __init__(self) -> None:
        self.busy: dict[int, tuple[int, float]] = {}

    def now(self, step: int, engine: mg.Engine) -> Any:
        solid = next(item for item in engine.storage.fields if item.name == "solid")
        cells = sum(masked_cost(values, box.lo[1]).sum() for box, values in engine.blocks(solid))
        last, busy = self.busy.get(id(engine), (0, 0.0))
        self.busy[id(engine)] = step, busy + (step - last) * cells * SECONDS
        return decisions.Seen(step, self.busy[id(engine)][1])
