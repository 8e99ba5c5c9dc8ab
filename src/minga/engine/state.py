"""The state of a running model between two steps, from which the run can resume elsewhere.

All of it lies in the engine's fields and registers (DESIGN section 8): the only other state of a driver is the number
of steps completed. Fields that no Program of the model writes hold their initial values; slots that the next step
overwrites completely before they are read need not be kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.active import touched
from minga.engine.engine import Engine
from minga.engine.live import dead_slots
from minga.engine.model import Model
from minga.engine.program import Apply, Call, Move, Operation, Program, Refresh, Rotate, flat
from minga.engine.stop import WATCHED
from minga.lang.types import as_dtype
from minga.space.field import SEED, STEP, Field, Slot

__all__ = ["BEGINNING", "Beginning", "Position", "State", "state_of", "write_registers"]

_ROOM = 1 << 28
"""Limit on the bytes of a rank's state that is kept as a copy in memory."""
_SHARE = 0.05
"""Fraction of the time of steps that keeping the state before them may take."""


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a run: `step` steps completed in `seconds` (counted as in `minga.running.loop.Result`)."""

    step: int
    seconds: float


BEGINNING = Position(0, 0.0)


@dataclass(frozen=True)
class State:
    """The slots that make up the state of a model between two steps, by names that are the same in every process.

    fields    all fields of its Programs by name; a second field of the same name becomes `NAME#2`
    changing  slots that steps change and later steps (or frames) read
    constant  slots that nothing changes, which hold the initial values
    """

    fields: Mapping[str, Field]
    changing: Mapping[str, Slot]
    constant: Mapping[str, Slot]

    def registers(self, engine: Engine) -> dict[str, tuple[str, int]]:
        """Return the type and the 8 bytes, as an unsigned number, of every register that is carried from step to step.

        The engine's own registers, which differ with the layout, and registers of Programs whose names differ between
        processes are left out: they are written before they are read.
        """
        memory = engine.storage.registers
        own = {SEED.key, STEP.key}
        return {
            name: (str(engine.storage.dtypes[name]), int(memory[name].view("u8")[0]))
            for name in sorted(memory)
            if name in own or not name.startswith(("@", f"${WATCHED}"))
        }


class Beginning:
    """The state before some steps, kept in memory on every rank, so that they can be abandoned midway. Collective."""

    def __init__(self, engine: Engine, state: State) -> None:
        self._engine, self._state = engine, state
        self._copies: dict[tuple[str, int], NDArray[Any]] = {}
        self._registers: dict[str, tuple[str, int]] = {}
        self._seconds = 0.0
        size = sum(values.nbytes for slot in state.changing.values() for _, values in engine.blocks(slot))
        words = np.array([size, engine.device is not None], np.int64)
        engine.comm.allreduce(words, "max")
        self._size, self._far = int(words[0]), bool(words[1])

    @property
    def possible(self) -> bool:
        """Availability of enough memory for the copy, the same on all ranks."""
        return not self._far and self._size <= _ROOM

    def costly(self, seconds: float) -> bool:
        """Return True if keeping the state takes a large share of this rank's time before steps of so many seconds."""
        return self._seconds > _SHARE * seconds

    def keep(self) -> None:
        """Copy the current state."""
        began = time.perf_counter()
        for name, slot in self._state.changing.items():
            for number, (_, values) in enumerate(self._engine.blocks(slot)):
                copy = self._copies.get((name, number))
                if copy is None or copy.shape != values.shape:
                    self._copies[name, number] = values.copy()
                else:
                    np.copyto(copy, values)
        self._registers = self._state.registers(self._engine)
        self._seconds = time.perf_counter() - began

    def restore(self) -> None:
        """Restore fields and registers to the state kept last."""
        engine = self._engine
        for name, slot in self._state.changing.items():
            for number, (_, values) in enumerate(engine.blocks(slot, write=True)):
                np.copyto(values, self._copies[name, number])
        write_registers(engine, self._registers)


def write_registers(engine: Engine, values: Mapping[str, tuple[str, int]]) -> None:
    """Set registers to the bytes returned by `State.registers`."""
    for name, (dtype, bits) in values.items():
        engine.storage.register(name, as_dtype(dtype))
        engine.storage.registers[name].view("u8")[0] = bits


def state_of(model: Model, watching: Program | None = None) -> State:
    """Return the state of a model driven by its step, or by a Program `watching` for its end that includes the step."""
    programs = [p for p in (watching or model.step, model.observe) if p is not None]
    fields = _named([*model.fields, *_fields(programs)])
    written = {item for program in programs for item in touched(program.operations, frozenset()).fields}
    dead = {slot for slot in dead_slots(model) if slot.index}  # observers may read slot 0
    changing: dict[str, Slot] = {}
    constant: dict[str, Slot] = {}
    for name, item in fields.items():
        for index in range(item.slots):
            slot = item.slot(index)
            if item not in written:
                constant[f"{name}/{index}"] = slot
            elif slot not in dead:
                changing[f"{name}/{index}"] = slot
    return State(fields, changing, constant)


def _named(items: Sequence[Field]) -> dict[str, Field]:
    found: dict[str, Field] = {}
    for item in dict.fromkeys(items):
        name, number = item.name, 1
        while name in found:
            number += 1
            name = f"{item.name}#{number}"
        found[name] = item
    return found


def _fields(programs: Sequence[Program]) -> Iterator[Field]:
    """Yield all fields that Programs name, in the order of their operations."""
    for program in programs:
        for slot in _slots(program.operations):
            yield slot.field


def _slots(operations: Sequence[Operation]) -> Iterator[Slot]:
    for operation in flat(operations):
        match operation:
            case Apply():
                yield from (operand for operand in operation.operands if isinstance(operand, Slot))
            case Rotate():
                yield from (item.now for item in operation.fields)
            case Move():
                yield from (operation.source, operation.target)
            case Call():
                yield from (*operation.reads, *operation.writes)
            case Refresh():
                yield operation.slot
            case _:
                pass
