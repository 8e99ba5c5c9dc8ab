"""Runs on an unbounded plane: the window around what is alive is measured before it can be too small, and replaced.

Between two measurements nothing can cross the margin of zeros that the first one found, so the results are those of the
unbounded plane. Windows depend on the state alone, and not on ranks, threads or the lengths of runs of steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from minga.engine.begin import start
from minga.engine.engine import Engine
from minga.engine.growth import Growth
from minga.engine.model import Model
from minga.engine.sparse import SparseValues, gather_sparse
from minga.engine.state import write_registers
from minga.errors import CaseError
from minga.lang.types import itemsize
from minga.options import RunOptions
from minga.output.digest import mix64
from minga.plan.machine.resources import total_memory
from minga.running.simulation import Simulation
from minga.space.bit_words import WORD, unpack
from minga.space.box import Box
from minga.space.field import Slot

__all__ = ["Growing", "check_options", "plane_digest", "put_sparse", "slot_unit", "sparse_cells"]

FEWEST: Final = 32
"""Steps that a window must leave room for; a tighter one is replaced."""
SHARE: Final = 0.4
"""Share of a node's memory that windows may take; while they are replaced there are two."""


class Growing:
    """The window of a run on an unbounded plane, alike on all ranks.

    Parameters
    ----------
    model
        The model on its first window.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.engine: Engine
        self._open: Callable[[Model], Engine]
        self.frames: dict[int, dict[str, SparseValues]] = {}
        """Frames so far, by step: values of the present slots of the output fields."""
        self.kept_until: float = math.inf
        """Step of a checkpoint after which its frames are forgotten."""
        self._due = 0
        """Step before which the window must be measured."""
        self._first: Engine

    @property
    def growth(self) -> Growth:
        """The present window."""
        assert self.model.growth is not None
        return self.model.growth

    def begin(self, engine: Engine, open_engine: Callable[[Model], Engine]) -> None:
        """Begin on an engine of the first window, which checkpoints need; `open_engine` makes those of later ones."""
        self.engine, self._first, self._open = engine, engine, open_engine

    def close(self) -> None:
        """Close the engines of the first and of the present window."""
        for engine in {id(one): one for one in (self._first, self.engine)}.values():
            engine.close()

    def values(self, slots: Mapping[str, Slot]) -> dict[str, SparseValues]:
        """Return the values of slots that are not 0, with indices on the plane, on all ranks; collective."""
        found = {}
        for name, slot in slots.items():
            found[name] = gather_sparse(self.engine, slot).shifted(_corner(self.model, slot))
        return found

    def room(self, simulation: Simulation) -> int:
        """Return how many steps the window has room for, having replaced it if it is tight; collective.

        0 if no window with more room fits in memory; the run then has ended.
        """
        if simulation.step >= self._due:
            alive = self._alive(simulation)
            if alive is not None and self._steps(alive) < FEWEST:
                window = self.growth.roomy(alive)
                if self._bytes(window) > self._memory():
                    spans = " x ".join(map(str, alive.shape))
                    simulation.end(
                        f"the cells span {spans} cells of the plane, and a larger grid does not fit in memory"
                    )
                    return 0
                state = simulation.stepper.state
                registers = state.registers(simulation.engine)
                self.replace(simulation, window, self.values(state.changing), registers)
            self._due = simulation.step + (FEWEST if alive is None else self._steps(alive))
        return self._due - simulation.step

    def _bytes(self, window: Box) -> float:
        """Return the bytes of a rank's part of a window."""
        fields = sum(field.slots * field.points.size * itemsize(field.dtype) for field in self.model.fields)
        return fields / self.model.grid.size * window.size / self.engine.comm.size

    def _memory(self) -> float:
        """Return the bytes that a window may take of each rank's memory, the same on all ranks; collective."""
        comm = self.engine.comm
        nodes = comm.bcast(comm.gather(comm.node))
        known = total_memory()
        words = np.array([np.iinfo(np.int64).max if known is None else int(SHARE * known) // nodes.count(comm.node)])
        comm.allreduce(words, "min")
        return float(words[0])

    def _steps(self, alive: Box) -> int:
        """Return the number of steps in which nothing from a box can cross the margin of the window."""
        window, axes = self.growth.window, self.growth.axes
        margins = [alive.lo[axis] - window.lo[axis] for axis in axes]
        margins += [window.hi[axis] - alive.hi[axis] for axis in axes]
        return min(margins) // self.growth.reach

    def _alive(self, simulation: Simulation) -> Box | None:
        """Return the smallest box of cells of the plane that holds all values other than 0; None if there are none."""
        ndim = self.model.grid.ndim
        ends = np.full(2 * ndim, np.iinfo(np.int64).min)
        for slot in simulation.stepper.state.changing.values():
            unit = np.array(slot_unit(self.model, slot))
            for box, values in simulation.engine.blocks(slot):
                for axis in range(ndim):
                    found = np.flatnonzero(values.any(axis=tuple(a for a in range(ndim) if a != axis)))
                    if found.size:
                        low, high = (int(found[0]) + box.lo[axis]), (int(found[-1]) + 1 + box.lo[axis])
                        ends[axis] = max(ends[axis], -low * unit[axis])
                        ends[ndim + axis] = max(ends[ndim + axis], high * unit[axis])
        simulation.engine.comm.allreduce(ends, "max")
        if ends[0] == np.iinfo(np.int64).min:
            return None
        alive = Box(tuple(-int(end) for end in ends[:ndim]), tuple(int(end) for end in ends[ndim:]))
        return alive.shift(self.growth.window.lo)

    def replace(
        self,
        simulation: Simulation,
        window: Box,
        values: Mapping[str, SparseValues],
        registers: Mapping[str, tuple[str, int]],
    ) -> None:
        """Go on with a state on another window; collective."""
        stepper = simulation.stepper
        if self.engine is not self._first:
            self.engine.close()
        self.model = simulation.model = self.growth.moved(window)
        self.engine = simulation.engine = self._open(self.model)
        start(self.model, self.engine)
        stepper.move(self.model, self.engine)
        put_sparse(self.model, self.engine, stepper.state.changing, values)
        write_registers(self.engine, registers)
        if self.model.observe is not None:
            self.engine.prepare(self.model.observe, looped=False)
        self._due = simulation.step


def check_options(options: RunOptions) -> None:
    """Raise CaseError for settings that a run on an unbounded plane cannot have."""
    if options.run.device != "cpu":
        raise CaseError("an unbounded plane runs on CPUs only", key="run.device", remedy='write device = "cpu"')
    if options.output.region is not None:
        raise CaseError(
            "a part of the cells of an unbounded plane, whose frames are as large as its pattern",
            key="output.region",
            remedy="leave it out, and select cells of the result by their coordinates: .sel(x=slice(-50, 50))",
        )


def slot_unit(model: Model, slot: Slot) -> tuple[int, ...]:
    """Return the number of cells along each axis that one value of a slot holds."""
    ndim = model.grid.ndim
    return (1,) * ndim if slot.field.grid == model.grid else (*(1,) * (ndim - 1), WORD)


def put_sparse(model: Model, engine: Engine, slots: Mapping[str, Slot], values: Mapping[str, SparseValues]) -> None:
    """Set slots to such values; collective."""
    for name, slot in slots.items():
        engine.set(slot, values[name].shifted([-low for low in _corner(model, slot)]).within)


def _corner(model: Model, slot: Slot) -> list[int]:
    """Return the index on the plane of the first value of a slot."""
    assert model.growth is not None
    return [low // unit for low, unit in zip(model.growth.window.lo, slot_unit(model, slot), strict=True)]


def plane_digest(model: Model, engine: Engine) -> str:
    """Return the digest of the cells of a plane that are not 0, which does not depend on the window; collective.

    A cell contributes ``mix(... mix(mix(y) + x) ... + state + number of the field)`` modulo 2**64, with ``mix`` as in
    `minga.output.digest`.
    """
    total = 0
    with np.errstate(over="ignore"):
        for number, name in enumerate(model.output):
            cells = sparse_cells(model, engine, name)
            mixed = np.zeros(len(cells.values), np.uint64)
            for axis in range(cells.points.shape[1]):
                mixed = mix64(mixed + cells.points[:, axis].astype(np.uint64))
            total += int(mix64(mixed + cells.values.astype(np.uint64) + np.uint64(number)).sum(dtype=np.uint64))
    return f"{total & (2**64 - 1):016x}"


def sparse_cells(model: Model, engine: Engine, name: str) -> SparseValues:
    """Return the cells of an output field that are not 0, with indices on the plane, on all ranks; collective."""
    packed = model.packed.get(name)
    if packed is None:
        slot = model.field(name).now
        return gather_sparse(engine, slot).shifted(_corner(model, slot))
    points, values = [], []
    for number, plane in enumerate(packed.planes):
        words = gather_sparse(engine, plane.now).shifted(_corner(model, plane.now))
        bits = unpack(words.values[:, None], WORD)
        word, bit = np.nonzero(bits)
        places = words.points[word]
        places[:, -1] = places[:, -1] * WORD + bit
        points.append(places)
        values.append(np.full(len(places), 1 << number, np.uint8))
    found, inverse = np.unique(np.concatenate(points), axis=0, return_inverse=True)
    states = np.zeros(len(found), np.uint8)
    np.add.at(states, inverse.ravel(), np.concatenate(values))
    return SparseValues(found, states)
