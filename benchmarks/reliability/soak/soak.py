"""A run of a whole day on simulated machines that slow down, disappear, return and lose packets all the time."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.reliability.soak.model import GRID, lattice
from benchmarks.reliability.soak.physics import DEPTH
from benchmarks.reliability.soak.pile import Machine, machines, script
from benchmarks.reliability.soak.ranks import Orders, compute
from benchmarks.reliability.soak.world import Vigil, World
from minga.cli.start import Start
from minga.cli.taking_part import TakingPart
from minga.engine.comm import SerialComm
from minga.engine.engine import Engine
from minga.errors import RunError
from minga.launch.hosts import Host
from minga.launch.watchdog.carry_on import Again, Clock, carry_on
from minga.launch.watchdog.comeback import PAUSE, Comeback
from minga.launch.watchdog.dropped import Dropping
from minga.output.directory import RunDirectory
from minga.output.progress import ProgressFile
from minga.plan.drop import RESTART_SECONDS, Drop
from minga.running.loop import drive
from minga.running.past import Past
from minga.running.session import state_digest
from minga.space.layout import Layout

__all__ = ["soaked"]

HOURS: Final = 24.0
STEPS: Final = 38_000
"""Steps that take a little more than a day."""
_START: Final = RESTART_SECONDS
"""Seconds from the decision to start ranks to their first step: what minga assumes, twice what four nodes took in a lab
in which they shared two cores."""
_SILENT: Final = 3.0
"""Seconds more where a host does not answer, which is asked before each start."""
_PERSON: Final = 600.0
"""Seconds until a person resumes a run that was given up."""
_PIECE: Final = 0.3
"""Seconds of the piece of work by which slow hosts are timed."""


def soaked(steps: int, folder: Path, seed: int = 18) -> dict[str, Any]:
    """Return what came of a run of so many steps in an empty folder, which holds the disks of all machines."""
    soak = _Soak.begin(steps, folder, seed)
    given_up = 0
    while True:
        try:
            soak.run()
            break
        except RunError as error:
            given_up += 1
            soak.tell(f"given up: {error}")
            soak.world.wait(_PERSON, "given up")
    return soak.found(given_up, _undisturbed(steps))


def _undisturbed(steps: int) -> str:
    """Return the digest of the same run on one rank, to which nothing happens."""
    model = lattice()
    with Engine({GRID: Layout.single(GRID.box, 1)}, comm=SerialComm(), threads=1) as engine:
        drive(model, engine, steps)
        return state_digest(engine, model, model.fields)


@dataclass(eq=False)
class _Soak:
    """The run over all its starts."""

    world: World
    directory: RunDirectory
    steps: int
    progress: ProgressFile
    takers: TakingPart
    starts: Counter[str] = field(default_factory=Counter)
    """Starts by their reasons."""
    moves: int = 0
    dropped: int = 0
    digest: str = ""
    computed: int = 0
    """Steps that were done, those that had to be repeated included."""

    @classmethod
    def begin(cls, steps: int, folder: Path, seed: int) -> _Soak:
        """Return the run before its first start."""
        pile = machines(folder)
        hours = 1.5 * HOURS * steps / STEPS
        world = World(pile, script(hours, random.Random(seed)), np.random.default_rng(seed))
        directory = RunDirectory(pile[0].folder)
        progress = ProgressFile(directory, steps, GRID.size, len(pile))
        return cls(world, directory, steps, progress, TakingPart("ssh", directory, may_change=True))

    def tell(self, text: str) -> None:
        """Say what happens, with the simulated time."""
        hours, seconds = divmod(self.world.now, 3600)
        sys.stderr.write(f"{hours:02.0f}:{seconds // 60:02.0f}:{seconds % 60:02.0f} {text.removeprefix('minga: ')}\n")

    def run(self) -> None:
        """Do the run as ``minga run --hosts`` does it with ``run.on_loss = "continue"``."""
        clock = Clock(lambda: self.world.now, self.world.wait)
        carry_on(self._start, self.directory, self.tell, continues=True, leaves_out=True, clock=clock)

    def _start(self, again: Again | None) -> int:
        world, barred = self.world, again.barred if again else {}
        wanted = [machine for machine in world.machines if machine.name not in barred]
        asked = [machine for machine in wanted if machine.name not in self.takers.slow] or wanted
        world.wait(_START + _SILENT * any(not machine.present for machine in asked), "starts")
        team = [machine for machine in asked if machine.present]
        share = 1 / len(world.machines)
        absent = {Host(machine.name, slots=1): share for machine in world.machines if machine not in team}
        start = Start(len(team), absent=absent)
        self.takers.started(start)
        self.starts["all"] += 1
        vigil = Vigil(team, world.now)
        comeback = self.takers.comeback(start, barred)
        dropping = self.takers.dropping([Host(machine.name, slots=1) for machine in team])
        past = Past(world.now, again.losses if again else 0)
        orders = Orders(
            world, vigil, self.steps, self.starts["all"], past, lambda drop: self._drop(drop, orders, dropping)
        )
        if comeback is not None:
            comeback = replace(comeback, ask=lambda host, _, timed: self._answer(host, timed), now=lambda: world.now)
            comeback.begin()
        vigil.every_second = _Polls(self, orders, comeback, world.now)
        try:
            outcome = compute(orders)
        finally:
            self.computed += vigil.step - orders.first if orders.first is not None else 0
            self._note_progress(vigil.step)
        self.moves += outcome.moves
        self.digest = outcome.digest
        ended = {"ended": {"reason": outcome.ended.reason}}
        self.directory.result.write_text(json.dumps(ended))
        self.takers.check_changed(comeback, dropping)
        return 0

    def _drop(self, drop: Drop, orders: Orders, dropping: Dropping | None) -> None:
        if dropping is not None and dropping.hear(drop):
            self.dropped += 1
            orders.asked = True

    def _answer(self, host: Host, timed: bool) -> float | None:
        machine = self._machine(host.name)
        if not machine.present:
            return None
        return _PIECE * machine.slow if timed else 0.0

    def _machine(self, name: str) -> Machine:
        return next(machine for machine in self.world.machines if machine.name == name)

    def _note_progress(self, step: int) -> None:
        self.progress.last(step, self.world.now)

    def found(self, given_up: int, expected: str) -> dict[str, Any]:
        """Return the results."""
        world = self.world
        updates = self.steps * GRID.size * DEPTH
        repeated = self.computed - self.steps
        lost = {**world.lost, "repeated steps": repeated * GRID.size * DEPTH}
        return {
            "simulated_hours": round(world.now / 3600, 2), "steps": self.steps,
            "events": sum(world.happened.values()), "losses": world.losses, "warnings": world.warnings,
            "by_event": dict(sorted(world.happened.items())), "starts": self.starts["all"], "given_up": given_up,
            "moves": self.moves, "dropped": self.dropped, "repeated_steps": repeated,
            "lost_share": {what: round(part / world.could, 4) for what, part in sorted(lost.items())},
            "efficiency": round(updates / world.could, 4), "digest": self.digest, "undisturbed": expected,
        }  # fmt: skip


@dataclass(eq=False)
class _Polls:
    """What the process that started the run does while ranks work: it asks for missing hosts."""

    soak: _Soak
    orders: Orders
    comeback: Comeback | None
    last: float

    def __call__(self, now: float) -> None:
        if now - self.last < PAUSE or self.comeback is None or self.orders.asked:
            return
        self.last = now
        self.soak._note_progress(self.orders.vigil.step)
        back = self.comeback.returned()
        if back:
            self.comeback.back = back
            self.orders.asked = True
