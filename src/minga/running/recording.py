"""Observables that the loop of steps records, for the observer that needs nothing else: a run stays in native code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from minga.engine import command as cmd
from minga.engine.bind import Binder
from minga.engine.call_kernels import call_functions
from minga.engine.compiled_call import CompiledCall, move_words
from minga.engine.engine import Engine, Outcome
from minga.engine.model import Model
from minga.engine.program import Program
from minga.engine.storage import Storage
from minga.running.observer import Observer
from minga.running.observers.series import Series
from minga.running.simulation import Simulation
from minga.space.field import Register

__all__ = ["Recording"]

Observables = Mapping[str, Register | tuple[Register, ...]]

_ROOM: Final = 1 << 17
"""Words of the table of observables."""
_MOST: Final = 4096
"""The most rows of it."""


class Recording:
    """Steps that record the observables after every so many of them in a table, for a `Series`.

    The steps are those of a model whose clock is a number of steps. Nothing else may be due in between.

    Parameters
    ----------
    model, step
        The model, and the Program of one step.
    series
        The observer, which `next_step` leaves out.
    every
        Steps from one row to the next.
    """

    def __init__(self, model: Model, step: Program, series: Series, every: int) -> None:
        self.series, self.every = series, every
        self._observables = model.observables
        columns = sum(len(item) if isinstance(item, tuple) else 1 for item in model.observables.values())
        self._table = np.zeros((max(2, min(_MOST, _ROOM // columns)), columns), np.int64)
        self._steps, self._rows = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self._program = Program("recorded")
        if every == 1:
            self._record_step(step)
        else:
            with self._program.repeat(every):
                self._record_step(step)
        assert model.observe is not None
        self._program.include(model.observe)
        self._program.call(_keeping(model.observables, self._table, self._rows))
        self.possible = True
        """False once observables were not finite, after which reductions would end the loop."""

    @classmethod
    def of(cls, model: Model, engine: Engine, step: Program, observers: Sequence[Observer]) -> Recording | None:
        """Return the recording of a run; None if its observables are to be observed between steps.

        Parameters
        ----------
        model, engine
            The model and the engine that runs it.
        step
            The Program of one step.
        observers
            All observers of the run.
        """
        clock = model.clock
        counted = clock is None or (clock.kind == "constant" and clock.time is None)
        plain = model.diagnostics is None and model.observe is not None and bool(model.observables)
        series = next((one for one in observers if isinstance(one, Series)), None)
        if not counted or not plain or series is None or engine.device is not None:
            return None
        schedule = series.schedule
        if not schedule.strides or schedule.times:
            return None
        return cls(model, step, series, min(schedule.strides))

    def next_step(self, step: int) -> int | None:
        """Return the next step at which the series must be shown the state; None if the table has all rows."""
        others = [stride for stride in self.series.schedule.strides if stride % self.every or not self.possible]
        return min((step - step % stride + stride for stride in others), default=None)

    def room(self, step: int, count: int) -> int:
        """Return how many of `count` steps may follow a step in one go.

        They are several intervals, which are recorded, or end where the next row is due at the latest.
        """
        if step % self.every == 0 and count >= 2 * self.every and self.possible:
            return min(count // self.every, len(self._table)) * self.every
        return min(count, self.every - step % self.every)

    def due(self, count: int) -> bool:
        """Return whether `count` steps, from `room`, are recorded."""
        return count > self.every

    def run(self, engine: Engine, count: int) -> tuple[int, Outcome]:
        """Run steps for which `due` holds; return their number, and the outcome of the last one."""
        self._steps[0] = self._rows[0] = 0
        outcome = engine.run(self._program, count // self.every)
        if outcome.reason != "not finite":
            return count, outcome
        done, rows = int(self._steps[0]), int(self._rows[0])
        if done == (rows + 1) * self.every:  # an observable, which ends no run, is not finite
            self.possible = False
            return done, Outcome(True, "finished")
        return done + 1, outcome

    def hand_over(self, simulation: Simulation, begun: int) -> None:
        """Hand the rows of the latest run over, the one of the present step to the run itself.

        Parameters
        ----------
        simulation
            The run, after the steps.
        begun
            The number of steps before them.
        """
        for number, observables in enumerate(self._observed(), 1):
            step = begun + number * self.every
            if step < simulation.step:
                self.series.recorded(simulation, step, observables)
            else:
                simulation.observed(observables)

    def _observed(self) -> Iterator[Mapping[str, Any]]:
        """Yield the observables of each row of the latest run."""
        words = self._table[: int(self._rows[0])]
        first, columns = 0, dict[str, list[Any]]()
        for name, item in self._observables.items():
            registers = item if isinstance(item, tuple) else (item,)
            values = [_values(words[:, first + k], register) for k, register in enumerate(registers)]
            columns[name] = [list(row) for row in zip(*values, strict=True)] if isinstance(item, tuple) else values[0]
            first += len(registers)
        for row in zip(*columns.values(), strict=True):
            yield dict(zip(columns, row, strict=True))

    def _record_step(self, step: Program) -> None:
        self._program.include(step)
        self._program.call(_counting(self._steps))


def _values(words: np.ndarray, register: Register) -> list[Any]:
    """Return the values of a register from the words that held it."""
    kind = np.dtype(register.dtype)
    values: list[Any] = np.ascontiguousarray(words).view(kind)[:: 8 // kind.itemsize].tolist()
    return values


def _memories(storage: Storage, observables: Observables) -> list[np.ndarray]:
    """Return the words of all registers of observables, those of a tuple side by side if they can be."""
    found = []
    for item in observables.values():
        registers = item if isinstance(item, tuple) else (item,)
        storage.of_all(item) if isinstance(item, tuple) else storage.of(item)
        found += [storage.registers[register.key] for register in registers]
    return found


def _counting(word: np.ndarray) -> CompiledCall:
    """Return a call that adds 1 to a word."""

    def function(engine: Engine) -> None:
        word[0] += 1

    return CompiledCall("count", function, lambda binder: [move_words(binder, [(word, 1)], "count")])


def _keeping(observables: Observables, table: np.ndarray, position: np.ndarray) -> CompiledCall:
    """Return a call that copies observables to the row of a table at a position, which it advances."""

    def function(engine: Engine) -> None:
        row = table[int(position[0])]
        for number, memory in enumerate(_memories(engine.storage, observables)):
            row[number] = memory[0]
        position[0] += 1

    def commands(binder: Binder) -> list[cmd.Command]:
        memories = _memories(binder.storage, observables)
        sources = np.array([binder.address(memory) for memory in memories], np.int64)
        words = [len(memories), binder.control(sources), binder.control(table), binder.control(position)]
        args = binder.control(np.array(words, np.int64))
        return [cmd.Kernel(call_functions().keep_words, args, 1, cmd.Category.CALL, "observables")]

    return CompiledCall("observables", function, commands)
