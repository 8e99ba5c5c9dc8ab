"""Loops of a run of an adjoint: all steps forwards, which keep what reversals need, and all reversals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.solve.adjoint.recording import Recording, stored_slots
from minga.solve.adjoint.tape import Folder, Tape
from minga.space.field import STEP, Slot

__all__ = ["Loops", "disturbed", "loops_of_states", "loops_of_values"]


@dataclass(slots=True, eq=False)
class Loops:
    """A round of each loop, and the tapes that both use.

    Attributes
    ----------
    steps
        Number of steps, that of the rounds of each loop.
    forwards, backwards
        A round of the loops.
    registers, fields
        Tapes of registers, in memory always, and of fields; the first one is None if the second has both.
    kind
        What tells the run from others.
    """

    steps: int
    forwards: Program
    backwards: Program
    registers: Tape | None
    fields: Tape
    kind: tuple[object, ...] = ()

    @contextmanager
    def lent(self, engine: Engine, disk: Folder) -> Iterator[None]:
        """Provide memory for the tapes; collective."""
        with ExitStack() as context:
            if self.registers is not None:
                context.enter_context(self.registers.lent(engine))
            context.enter_context(self.fields.lent(engine, disk))
            yield


def loops_of_values(recording: Recording, engine: Engine, step: Program, steps: int) -> Loops:
    """Return the loops of steps that store what their reversals need."""
    found = recording.remembered
    assert found is not None
    registers = Tape(engine, (), (*recording.registers, STEP), steps)
    values = Tape(engine, found.slots, (), steps)
    forwards, backwards = Program(f"{step.name}.remembered"), Program(f"{step.name}.reversed")
    forwards.call(registers.keep())
    forwards.include(found.step)
    forwards.call(values.keep(), reads=found.slots)
    backwards.call(registers.restore())
    backwards.call(values.restore(), writes=found.slots)
    backwards.include(Program("registers", recording.registers_again))
    backwards.include(found.reverse)
    backwards.call(registers.restore_again(()))
    return Loops(steps, forwards, backwards, registers, values)


def loops_of_states(recording: Recording, engine: Engine, step: Program, steps: int, read: Sequence[Slot]) -> Loops:
    """Return the loops of steps of whose states `read` is kept."""
    tape = Tape(engine, read, (*recording.registers, STEP), steps)
    forwards, backwards = Program(f"{step.name}.kept"), Program(f"{step.name}.reversed")
    forwards.call(tape.keep(), reads=read)
    forwards.include(step)
    backwards.call(tape.restore(), writes=read)
    backwards.include(recording.taped)
    backwards.include(recording.reverse)
    if recording.taped.operations:
        again = disturbed(recording, read)
        backwards.call(tape.restore_again(again), writes=again)
    return Loops(steps, forwards, backwards, None, tape)


def disturbed(recording: Recording, read: Sequence[Slot]) -> list[Slot]:
    """Return those of some slots of the state into which the step that fills the tape stores."""
    stored = stored_slots(recording.taped.operations)
    return [slot for slot in read if slot in stored]
