"""The exact discrete adjoint of a step, and gradients through many steps with checkpoints."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from minga.engine.engine import Engine
from minga.engine.operations import Call, Move, flat
from minga.engine.program import Program
from minga.errors import ProgramError
from minga.solve.adjoint.arguments import check_arguments
from minga.solve.adjoint.checkpoints import first_positions, reversed_steps
from minga.solve.adjoint.loops import Loops, disturbed, loops_of_states, loops_of_values
from minga.solve.adjoint.recording import Recording, record, used_slots
from minga.solve.adjoint.tape import Folder
from minga.space.field import STEP, Field, Register, Slot

__all__ = ["Adjoint", "adjoint"]

MEMORY: Final = 1 << 30
"""Bytes that stored states take at most on each rank, by default."""

_MOST_VALUES: Final = 2
"""Values that reversals need are stored in place of states that take half as many bytes or more."""

Numbers = dict[Register, bool | int | float]
State = tuple[dict[Slot, list[np.ndarray]], Numbers]
Visit = Callable[[Engine, int], None] | Program
Turn = Callable[[Engine], None]
Way = Callable[[Engine, int, Any, Visit | None, Turn, Folder], None]


def adjoint(step: Program, wrt: Sequence[Field], *, name: str = "adjoint") -> Adjoint:
    """Return the exact adjoint of a step: the transpose of its derivative, from the derivatives of its kernels.

    For a number J that depends on the states of a run, the adjoint of a field is the derivative of J by each of its
    values. `Adjoint.run` computes it for the fields `wrt`: their values at the beginning for fields that the step
    changes, and their constant values for those that it only reads.

    Parameters
    ----------
    step
        A step of applied kernels, assignments to registers, rotations, and loops of a fixed number of rounds.
    wrt
        Fields by whose values derivatives are wanted, f4 or f8.
    name
        Beginning of the names of workspace and of further registers; the adjoint of ``u`` is called ``u_adjoint``.

    Returns
    -------
    Adjoint
        The adjoint.

    Raises
    ------
    ProgramError
        If the step has an operation whose adjoint is not supported: a kernel with an order of cells or with strides,
        a call that writes fields, operations under a condition, a loop with an unknown number of rounds, a move between
        grids, a number reduced from the fields that enters them again, a field that lacks axes, or a boundary condition
        that uses what the step changes: another field, or a register such as `mg.TIME` where values are needed.

    Notes
    -----
    Functions without a derivative have those of `mg.derivative`. Numbers given to kernels, registers and the values
    that boundary conditions prescribe count as constants.

    Examples
    --------
    >>> heat = mg.adjoint(step, wrt=[u, k])
    >>> heat.run(engine, 100, seed=misfit)  # misfit(engine, n) adds dJ/du at step n to heat.of[u]
    >>> engine.gather(heat.of[k])
    """
    check_arguments(step, wrt, "adjoint")
    return Adjoint(step, tuple(wrt), record(step, wrt, name))


@dataclass(frozen=True, eq=False)
class Adjoint:
    """Adjoint of a step; `adjoint` makes it.

    Parameters
    ----------
    step
        The step.
    wrt
        Fields by whose values derivatives are taken.
    recording
        The Programs of the adjoint.
    """

    step: Program
    wrt: tuple[Field, ...]
    recording: Recording

    def __repr__(self) -> str:
        wanted = ", ".join(item.name for item in self.wrt)
        also = [item.name for item in self.of if item not in self.wrt]
        through = f", through {', '.join(also)}" if also else ""
        return f"Adjoint of {self.step.name!r} with respect to {wanted}{through}"

    @property
    def of(self) -> Mapping[Field, Field]:
        """The field of the adjoint of each field on which the wanted derivatives depend."""
        return MappingProxyType(self.recording.adjoints)

    def run(
        self,
        engine: Engine,
        steps: int,
        *,
        seed: Visit,
        observe: Visit | None = None,
        checkpoints: int | None = None,
        memory: int = MEMORY,
        between: Turn | None = None,
        disk: Folder = None,
    ) -> None:
        """Compute the adjoints through some steps, from the present state of an engine; collective.

        States are stored, and others computed again from them, so that memory does not grow with the number of steps;
        results do not depend on how many are stored. Afterwards the engine has the state of the beginning again, also
        after an error, and the adjoint fields hold the derivatives.

        Parameters
        ----------
        engine
            The engine, with the initial state.
        steps
            Number of steps.
        seed
            `seed(engine, n)` adds the derivative of J by the state after n steps to the adjoint fields `of[...]`:
            ``for box, values in engine.blocks(adjoint.of[u], write=True): values += ...``. It is called for n = steps,
            ..., 0, and finds the present values of all fields as they were then (not those of other slots). A Program
            in its place is run as often; no Python is then needed between steps.
        observe
            `observe(engine, n)` is called for n = 0, ..., steps on the way forward; or a Program, as for `seed`.
        checkpoints
            The most states that are stored at once; by default as many as `memory` allows.
        memory
            Bytes of each rank for stored states.
        between
            `between(engine)` is called once, after the last call of `observe` and before the first of `seed`.
        disk
            Folder of each rank for states that `memory` does not hold; None, on any rank: steps are computed again
            instead.

        Raises
        ------
        ProgramError
            If the number of steps or of checkpoints is not positive, or a run ends before its last step.
        RunError
            If there is no room for the states.
        """
        if not all(isinstance(n, int) and n >= 1 for n in (steps, 1 if checkpoints is None else checkpoints)):
            raise ProgramError(
                f"adjoint: {steps} steps and {checkpoints} checkpoints", remedy="give positive whole numbers"
            )
        if not isinstance(memory, int | float) or not memory >= 0:
            raise ProgramError(f"adjoint: memory of {memory!r}", remedy="give a number of bytes: 1 << 30")
        begin = self._state(engine)
        turn = between or (lambda engine: None)
        try:
            self._through(engine, steps, seed, observe, turn, checkpoints, memory, disk)
        finally:
            self._restore(engine, begin)

    def _through(
        self, engine: Engine, steps: int, seed: Visit, observe: Visit | None, turn: Turn,
        checkpoints: int | None, memory: int, disk: Folder,
    ) -> None:  # fmt: skip
        """Make all steps forwards and backwards, with copies of what they need as far as there is room for it."""
        ways: list[tuple[Way, Sequence[Slot]]] = [(self._with_all_states, self._read)]
        if self.recording.remembered is not None and self._remembers(engine, seed):
            ways.insert(0, (self._with_values, self.recording.remembered.slots))
        roomy = next((way for way, kept in ways if self._fit(engine, memory, kept) >= steps), None)
        on_disk = _on_all(engine, disk is not None)
        if checkpoints is not None or (roomy is None and not on_disk):
            most = checkpoints or min(steps, max(1, self._fit(engine, memory, self._slots)))
            self._with_checkpoints(engine, steps, most, seed, observe, turn)
        elif roomy is not None:
            roomy(engine, steps, seed, observe, turn, None)
        else:
            ways[0][0](engine, steps, seed, observe, turn, disk)

    def _remembers(self, engine: Engine, seed: Visit) -> bool:
        """Return True if the values that reversals need are stored in place of states: seeds must not see these."""
        found = self.recording.remembered
        if found is None or not isinstance(seed, Program) or _reads(seed) & set(self.recording.changed):
            return False
        values, state = (_bytes(engine, slots) for slots in (found.slots, self._read))
        return _fit(engine, _MOST_VALUES * state, values) >= 1

    def _with_values(
        self, engine: Engine, steps: int, seed: Visit, observe: Visit | None, turn: Turn, disk: Folder
    ) -> None:
        """Store what reversals need while the steps are made, and make all steps in one loop each way."""
        self._there_and_back(engine, self._loops(engine, steps, seed, observe, values=True), seed, observe, turn, disk)

    def _with_all_states(
        self, engine: Engine, steps: int, seed: Visit, observe: Visit | None, turn: Turn, disk: Folder
    ) -> None:
        """Keep of every state what its reversal reads, and make all steps in one loop each way."""
        self._there_and_back(engine, self._loops(engine, steps, seed, observe, values=False), seed, observe, turn, disk)

    def _loops(self, engine: Engine, steps: int, seed: Visit, observe: Visit | None, *, values: bool) -> Loops:
        """Return the loops of a run: those of the last one, if it was the same."""
        kind = steps, values, *engine.storage.layouts.values(), *_content(seed), *_content(observe)
        known = self._known.get(engine)
        if known is not None and known.kind == kind:
            return known
        if known is not None:
            engine.release(known.forwards, known.backwards)
        if values:
            found = loops_of_values(self.recording, engine, self.step, steps)
        else:
            found = loops_of_states(self.recording, engine, self.step, steps, self._read)
        if isinstance(observe, Program):
            found.forwards.include(observe)
        if isinstance(seed, Program):
            found.backwards.include(seed)
        found.kind = kind
        self._known[engine] = found
        return found

    def _there_and_back(
        self, engine: Engine, loops: Loops, seed: Visit, observe: Visit | None, turn: Turn, disk: Folder
    ) -> None:
        """Make all steps forwards and backwards."""
        with loops.lent(engine, disk):
            if observe is None or isinstance(observe, Program):
                if observe is not None:
                    _run(engine, observe)
                _run(engine, loops.forwards, loops.steps)
            else:
                for n in range(loops.steps):
                    observe(engine, n)
                    _run(engine, loops.forwards)
                observe(engine, loops.steps)
            turn(engine)
            self._clear(engine)
            _visit(seed, engine, loops.steps)
            if isinstance(seed, Program):
                _run(engine, loops.backwards, loops.steps)
                return
            for n in reversed(range(loops.steps)):
                _run(engine, loops.backwards)
                seed(engine, n)

    def _with_checkpoints(
        self, engine: Engine, steps: int, most: int, seed: Visit, observe: Visit | None, turn: Turn
    ) -> None:
        """Keep some states, and compute the others again."""
        stored: dict[int, State] = {}
        self._forwards(engine, steps, set(first_positions(steps, most)), stored, observe)
        turn(engine)
        self._clear(engine)
        _visit(seed, engine, steps)
        for task, number in reversed_steps(steps, most):
            if task == "restore":
                self._restore(engine, stored[number])
            elif task == "advance":
                _run(engine, self.step, number)
            elif task == "store":
                stored[number] = self._state(engine)
            elif task == "drop":
                del stored[number]
            else:
                self._reverse(engine, number, seed)

    def _clear(self, engine: Engine) -> None:
        for item in (*self.of.values(), *self.recording.workspace):
            for slot in range(item.slots):
                engine.set(item.slot(slot), 0.0)

    def _forwards(
        self, engine: Engine, steps: int, kept: set[int], stored: dict[int, State], observe: Visit | None
    ) -> None:
        """Run all steps, store some states, and let others see all of them."""
        now = 0
        stops = range(steps + 1) if observe is not None else sorted({*kept, steps})
        for stop in stops:
            if stop > now:
                _run(engine, self.step, stop - now)
                now = stop
            if stop in kept:
                stored[stop] = self._state(engine)
            if observe is not None:
                _visit(observe, engine, stop)

    def _reverse(self, engine: Engine, number: int, seed: Visit) -> None:
        """Reverse a step from the state at its beginning, and seed the adjoint of that state."""
        if not self.recording.taped.operations:
            _run(engine, self.recording.reverse)
        else:
            before = self._state(engine, self._disturbed)
            _run(engine, self.recording.taped)
            _run(engine, self.recording.reverse)
            self._restore(engine, before)
        _visit(seed, engine, number)

    # States --------------------------------------------------------------------------------------------------------
    @functools.cached_property
    def _slots(self) -> list[Slot]:
        """All slots of the state."""
        return [item.slot(k) for item in self.recording.changed for k in range(item.slots)]

    @functools.cached_property
    def _read(self) -> list[Slot]:
        """Slots of the state that a reversal reads, or that seeds may want to see: the present values of fields."""
        found = self.recording
        read = used_slots([*found.taped.operations, *found.reverse.operations])
        return [slot for slot in self._slots if slot in read or slot.index == 0]

    @functools.cached_property
    def _disturbed(self) -> list[Slot]:
        """Slots of the state into which the step that fills the tape stores."""
        return disturbed(self.recording, self._read)

    @functools.cached_property
    def _known(self) -> weakref.WeakKeyDictionary[Engine, Loops]:
        """The loops of the last run of engines."""
        return weakref.WeakKeyDictionary()

    def _numbers(self, engine: Engine) -> Numbers:
        return {register: engine.read(register) for register in (*self.recording.registers, STEP)}

    def _write(self, engine: Engine, numbers: Numbers) -> None:
        for register, value in numbers.items():
            engine.write(register, value)

    def _state(self, engine: Engine, slots: Sequence[Slot] | None = None) -> State:
        chosen = self._slots if slots is None else slots
        return {slot: [v.copy() for _, v in engine.blocks(slot)] for slot in chosen}, self._numbers(engine)

    def _restore(self, engine: Engine, state: State) -> None:
        fields, numbers = state
        for slot, copies in fields.items():
            for (_, values), copy in zip(engine.blocks(slot, write=True), copies, strict=True):
                values[...] = copy
        self._write(engine, numbers)

    def _fit(self, engine: Engine, memory: int, slots: Sequence[Slot]) -> int:
        """Return how many copies of some slots fit in memory on every rank."""
        return _fit(engine, memory, _bytes(engine, slots))


def _bytes(engine: Engine, slots: Sequence[Slot]) -> int:
    """Return the bytes of this rank's values of slots."""
    return sum(values.nbytes for slot in slots for _, values in engine.blocks(slot))


def _fit(engine: Engine, memory: int, size: int) -> int:
    """Return how many times a number of bytes of each rank fit in memory on every rank."""
    most = np.array([memory // max(size, 1)], np.int64)
    engine.comm.allreduce(most, "min")
    return int(most[0])


def _on_all(engine: Engine, condition: bool) -> bool:
    """Return True if a condition holds on all ranks."""
    found = np.array([condition], np.int64)
    engine.comm.allreduce(found, "min")
    return bool(found[0])


def _content(visit: Visit | None) -> tuple[object, ...]:
    """Return what tells a Program, as it is now, from others; functions are not part of loops."""
    return (visit, len(visit.operations)) if isinstance(visit, Program) else (visit is None,)


def _reads(program: Program) -> set[Field]:
    """Return the fields that the operations of a Program may read."""
    everything = list(flat(program.operations))
    found = {slot.field for slot in used_slots(everything)}
    found |= {slot.field for each in everything if isinstance(each, Call) for slot in (*each.reads, *each.writes)}
    return found | {each.source.field for each in everything if isinstance(each, Move)}


def _visit(visit: Visit, engine: Engine, number: int) -> None:
    """Call a function of the engine and a number of steps, or run a Program."""
    if isinstance(visit, Program):
        engine.run(visit)
    else:
        visit(engine, number)


def _run(engine: Engine, program: Program, times: int = 1) -> None:
    """Run a Program; raise ProgramError if it ends early, so that no step is counted that was not done."""
    outcome = engine.run(program, times)
    if not outcome.ok:
        raise ProgramError(
            f"adjoint: a run of {program.name!r} ended early: {outcome.reason}",
            remedy="choose a shorter step, or examine the values",
        )
