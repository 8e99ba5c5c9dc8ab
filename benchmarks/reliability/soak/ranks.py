"""One start of the run: virtual ranks that compute the real field.

The loop, plan, balance and checkpoints are minga's own. Only the clock is simulated: an engine says how long its rank
would have worked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.reliability.soak.model import GRID, lattice
from benchmarks.reliability.soak.physics import DEPTH, LATENCY, SECONDS_A_BYTE, Physics, neighbours
from benchmarks.reliability.soak.pile import Machine
from benchmarks.reliability.soak.world import Vigil, World
from minga.engine.comm import Comm, VirtualComm, run_virtual
from minga.engine.engine import Engine
from minga.engine.relayout import Moved
from minga.engine.stop import Ended
from minga.launch.watchdog.loss import LossError
from minga.options import CheckpointSettings
from minga.output.checkpoint.keeper import Checkpointing, Keeper
from minga.plan.balance import Balancer
from minga.plan.cost import work_of
from minga.plan.drop import Drop
from minga.plan.links import Links
from minga.plan.plan import Plan
from minga.plan.planner import make_plan
from minga.plan.ranks import RankGroup
from minga.plan.recut import moved_cells
from minga.plan.slow_hosts import Drops
from minga.plan.speed import Speed
from minga.plan.topology import Tree
from minga.plan.work.work import Work
from minga.running.loop import drive
from minga.running.observer import Observer, Phase
from minga.running.observers.balance import Balance
from minga.running.observers.checkpoints import Checkpoints
from minga.running.observers.ending import Asked
from minga.running.past import Past
from minga.running.schedule import Schedule
from minga.running.session import state_digest
from minga.running.simulation import Simulation
from minga.space.layout import Layout

__all__ = ["Orders", "Outcome", "compute"]

_PROBE_NOISE: Final = 0.02
"""Relative error of the speeds that are measured before a start."""


@dataclass(eq=False)
class Orders:
    """What one start has to do.

    Attributes
    ----------
    steps
        Number of steps of the run.
    epoch
        Number of the start.
    past
        What the command has done before.
    on_drop
        Called with hosts that the ranks want to drop.
    asked
        Whether the ranks were asked to stop.
    first
        Step with which they have begun, None before.
    """

    world: World
    vigil: Vigil
    steps: int
    epoch: int
    past: Past
    on_drop: Callable[[Drop], object]
    asked: bool = False
    first: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a start ended, the digest of its state, and the number of moves of work."""

    ended: Ended
    step: int
    digest: str
    moves: int


@dataclass(eq=False)
class _Account:
    """Simulated seconds of all ranks, which rank 0 keeps."""

    orders: Orders
    physics: Physics
    busy: NDArray[np.float64]
    spent: float = 0.0
    binding: float = 0.0
    _layout: Layout | None = None
    _near: list[tuple[int, int, int]] = field(default_factory=list)

    def step(self, layout: Layout, step: int) -> None:
        """Let a step take its time."""
        world, vigil = self.orders.world, self.orders.vigil
        if layout is not self._layout:
            self._layout, self._near = layout, neighbours(layout, GRID.periodic)
        busy = self.physics.computing(layout)
        longest = float(busy.max())
        seconds = float((busy + self.physics.exchanging(self._near)).max())
        before, could, rate, vigil.phase = world.now, world.could, world.rate, "stepping"
        try:
            world.spend(seconds, "", vigil)
        except LossError:
            world.lost["silence"] += world.could - could
            raise
        vigil.step = step
        self.busy += busy
        self.spent += world.now - before
        updates, own = GRID.size * DEPTH, sum(machine.rate for machine in vigil.team)
        together = updates / own if own else longest
        world.lost["messages"] += (seconds - longest) * rate
        world.lost["imbalance"] += (longest - together) * rate
        world.lost["hosts not taken up"] += together * rate - updates
        world.lost["silence"] += world.could - could - seconds * rate

    def move(self, old: Layout, new: Layout, size: float) -> None:
        """Let a move of work take its time, ``size`` bytes of each cell."""
        sender, receiver, cells = moved_cells(old, new)
        ends = [np.bincount(end, size * cells, new.ranks).astype(float) for end in (sender, receiver)]
        self.orders.world.spend(self.physics.moving(ends[0], ends[1], new), "moves", self.orders.vigil)
        self.binding += 0.02


class _Engine(Engine):
    """Engine that says how long its rank would have worked on the simulated machine."""

    def __init__(self, account: _Account, layouts: Mapping[Any, Layout], comm: Comm) -> None:
        super().__init__(layouts, comm=comm, threads=1, halo_depth=1, overlap=False)
        self._account = account

    @property
    def busy(self) -> float:
        return float(self._account.busy[self.comm.rank])

    @property
    def spent(self) -> float:
        return self._account.spent

    @property
    def block_seconds(self) -> dict[int, float]:
        return {}

    def relayout(self, layouts: Mapping[Any, Layout], **more: Any) -> Moved:
        old = self.storage.layout(GRID)
        moved = super().relayout(layouts, **more)
        if self.comm.rank == 0:
            self._account.move(old, layouts[GRID], 8.0 * DEPTH)
        self.comm.barrier()
        self.binding_seconds = self._account.binding
        return moved


class _Time(Observer):
    """Observer that lets simulated time pass for every step."""

    phase = Phase.END
    schedule = Schedule(1)

    def __init__(self, account: _Account) -> None:
        self._account = account

    def wants(self, simulation: Simulation) -> bool:
        """Pass the time of the last step, before all ranks agree on what follows."""
        if simulation.rank == 0:
            orders = self._account.orders
            orders.first = simulation.step - 1 if orders.first is None else orders.first
            self._account.step(simulation.engine.storage.layout(GRID), simulation.step)
        return False


def compute(orders: Orders) -> Outcome:
    """Do one start of the run on the machines that its vigil watches.

    Raises
    ------
    LossError
        If one of them is lost.
    """
    team, world = orders.vigil.team, orders.world
    model = lattice()
    work = work_of(model)
    group = _measured(team, world)
    plan = make_plan(work, group, halo_depth=1, overlap=False)
    account = _Account(orders, Physics(team, world.chance), np.zeros(len(team)))

    def rank(comm: Comm) -> Outcome:
        return _compute(comm, orders, account, (work, group, plan))

    return run_virtual(len(team), rank)[0]


def _measured(team: Sequence[Machine], world: World) -> RankGroup:
    """Return the ranks with the speeds that a probe would measure at present."""
    noise = np.exp(_PROBE_NOISE * world.chance.standard_normal(len(team)))
    speeds = tuple(
        Speed.constant(machine.speed / machine.slow / DEPTH * factor)
        for machine, factor in zip(team, noise.tolist(), strict=True)
    )
    seats = Tree.parse(f"{len(team)}x1").seats(len(team))
    links = Links.uniform(len(seats.levels), [(LATENCY, SECONDS_A_BYTE * DEPTH)] * (seats.above + 1) + [(1e-6, 1e-10)])
    memory = np.full(len(team), 1 << 40)
    return RankGroup(speeds, np.arange(len(team)), memory, seats, links, tuple(machine.name for machine in team))


def _compute(comm: Comm, orders: Orders, account: _Account, planned: tuple[Work, RankGroup, Plan]) -> Outcome:
    machine, world, vigil = orders.vigil.team[comm.rank], orders.world, orders.vigil
    assert isinstance(comm, VirtualComm)
    comm.node, comm.leads_node = comm.rank, True  # each is a host of its own
    work, group, plan = planned
    model = lattice()
    drops = Drops(work, group, 1, False, orders.on_drop, clock=lambda: world.now)
    balancer = Balancer(work, group, drops=drops, clock=lambda: world.now)
    keeper = Keeper(
        machine.folder / "checkpoints",
        comm,
        Checkpointing(seconds=CheckpointSettings().seconds),
        resumes=orders.epoch > 1,
        flush=lambda step: _write_checkpoint(comm, orders, account),
        own=True,
        place="partner",
        clock=lambda: world.now,
        began=world.now - orders.past.seconds,
        losses=orders.past.losses,
        epoch=orders.epoch,
    )
    with _Engine(account, model.layouts_like(plan.layout), comm) as engine:
        watching = [_Time(account), Asked(lambda: orders.asked), Checkpoints(keeper), Balance(balancer)]
        account._layout = None
        result = drive(model, engine, orders.steps, watching)
        digest = state_digest(engine, model, model.fields)
    vigil.phase = "left"
    if result.ended.reason == "steps":
        keeper.discard()
    return Outcome(result.ended, result.steps, digest, len(balancer.decisions))


def _write_checkpoint(comm: Comm, orders: Orders, account: _Account) -> None:
    """Let a checkpoint take its time on rank 0, when all ranks have begun to write it.

    A host may be lost meanwhile: then the checkpoint is never completed.
    """
    if comm.rank == 0:
        orders.vigil.phase = "checkpoint"
        assert account._layout is not None
        orders.world.spend(account.physics.keeping(account._layout), "checkpoints", orders.vigil)
    comm.barrier()
