"""Edits of a run: wishes of pages, which are recorded when they are done, and edits of a record, which are repeated.

An edit takes place between two steps, after everybody has seen the state of the first: frames, observables and
checkpoints of step n do not know the edits after n steps, which a resumed run therefore repeats from the record.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from minga.engine.comm import Comm
from minga.engine.diagnostics import Finding
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.errors import CaseError
from minga.options import RunOptions
from minga.output.directory import RunDirectory
from minga.output.edits import Canvas, Edit, Wishes, append_line, read_edits, recorded_edits, write_edits
from minga.running.simulation import Simulation
from minga.space.bit_words import WORD

__all__ = ["Painting"]

_NEVER: Final = 1 << 62


class Painting:
    """Edits of a run, the same on all ranks; rank 0 reads and writes files.

    Parameters
    ----------
    model
        The model.
    comm
        The ranks.
    given
        A file of edits that are repeated unless the run has a record, which begins with them; None: there are none.
    record
        The run's own record, which a resumed run repeats; None: it has none.
    painting
        The file of the wishes of pages; None: they may not paint.
    note
        Function that shows a message to a person, called on rank 0; None writes it to the standard error output.
    """

    def __init__(
        self,
        model: Model,
        comm: Comm,
        given: Path | None,
        record: Path | None = None,
        painting: Path | None = None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        canvas = Canvas(model.grid.shape, model.paintable)
        self._record, self._note = record, note or _say
        self._lost, self._refused = 0, ""
        self._wishes: Wishes | None = None
        self._asked: list[Edit] = []
        answer: list[Edit] | CaseError = []
        if comm.rank == 0:
            try:
                answer = self._known(given, canvas)
                self._wishes = None if painting is None else Wishes(painting, canvas)
            except CaseError as error:
                answer = error
            except OSError as error:
                answer = CaseError(
                    f"the cells of this run cannot be painted: {error}", key="run.paint", remedy="leave it out"
                )
        found = comm.bcast(answer)
        if isinstance(found, CaseError):
            raise found
        self._edits: list[Edit] = found
        self._done = 0
        self._begun = False

    @classmethod
    def of(
        cls,
        model: Model,
        comm: Comm,
        options: RunOptions,
        directory: RunDirectory | None = None,
        note: Callable[[str], None] | None = None,
    ) -> Painting | None:
        """Return the edits of a run; None if there can be none; collective.

        Raises
        ------
        CaseError
            If the model or other settings do not allow edits, or the file of edits is wrong.
        """
        given = None if options.run.edits is None else Path(options.run.edits)
        painting = directory.painting if directory is not None and options.run.paint else None
        record = None
        if directory is not None and (painting is not None or _was_painted(directory, model, comm)):
            record = directory.edits
        if record is None and given is None:
            return None
        _check(model, options, "run.edits" if record is None else "run.paint")
        return cls(model, comm, given, record, painting, note)

    def waiting(self, simulation: Simulation) -> bool:
        """Return True on rank 0 if there are new wishes, False on other ranks."""
        if self._wishes is not None and simulation.rank == 0:
            self._asked += self._wishes.new(simulation.step)
        return bool(self._asked)

    def room(self, step: int) -> int:
        """Return the number of steps up to the next edit that is known, which is not 0 once `apply` was called."""
        return next((edit.step for edit in self._edits[self._done :]), _NEVER) - step

    def apply(self, simulation: Simulation, asked: bool) -> None:
        """Make the edits after the present step, those that rank 0 was asked for if there are any; collective."""
        if not self._begun:  # edits before a checkpoint are in its state
            self._begun = True
            self._done = sum(edit.step < simulation.step for edit in self._edits)
        if asked:
            comm = simulation.engine.comm
            wishes, self._lost = comm.bcast(self._kept(simulation.step) if comm.rank == 0 else None)
            known = [edit for edit in self._edits[self._done :] if edit.step == simulation.step]
            rest = self._edits[self._done + len(known) :]
            self._edits = [*self._edits[: self._done], *known, *wishes, *rest]
        due = [edit for edit in self._edits[self._done :] if edit.step == simulation.step]
        for edit in due:
            _set(simulation.engine, simulation.model, edit)
        if due:
            self._done += len(due)
            simulation.stepper.changed()

    def findings(self) -> tuple[Finding, ...]:
        """Return findings about edits: the cells that were set, and those that could not be."""
        found = []
        if self._done:
            cells = sum(len(edit.states) for edit in self._edits[: self._done])
            which = "edits.jsonl repeats them" if self._record is not None else "as run.edits says"
            facts = {"edits": self._done, "edited_cells": cells}
            found.append(Finding(f"{cells} cells were set between steps: {which}", facts))
        if self._lost:
            text = f"{self._lost} cells were painted and not set, as edits.jsonl could not be written"
            found.append(Finding(text, {"unrecorded_cells": self._lost}))
        return tuple(found)

    def _known(self, given: Path | None, canvas: Canvas) -> list[Edit]:
        """Return the edits that are known at the start, on rank 0."""
        if self._record is not None and self._record.is_file():
            return recorded_edits(self._record, canvas)
        edits = [] if given is None else read_edits(given, canvas)
        if self._record is not None and edits:
            write_edits(self._record, edits)
        return edits

    def _kept(self, step: int) -> tuple[list[Edit], int]:
        """Record the edits that were asked for; return those and the number of cells that were lost so far; rank 0."""
        asked, self._asked = self._asked, []
        kept, lost, reason = [], self._lost, ""
        for edit in (Edit(step, edit.field, edit.points, edit.states) for edit in asked):
            try:
                if self._record is not None:
                    append_line(self._record, edit.line, lasting=True)
                    kept.append(edit)
            except OSError as error:
                lost += len(edit.states)
                reason = f"cells were not set after step {step}: edits.jsonl cannot be written: {error.strerror}"
        if reason:
            self._note(f"minga: {reason}")
        if self._wishes is not None and reason != self._refused:
            self._wishes.refuse(reason)
        self._refused = reason
        return kept, lost


def _was_painted(directory: RunDirectory, model: Model, comm: Comm) -> bool:
    """Return True if a run that resumes has a record of edits; collective."""
    return bool(model.paintable) and bool(comm.bcast(comm.rank == 0 and directory.edits.is_file()))


def _check(model: Model, options: RunOptions, key: str) -> None:
    """Raise CaseError for models and settings with which cells cannot be set between steps."""
    reasons = {
        "the fields of this model do not hold a few numbered states": not model.paintable,
        "its grid grows with the pattern": model.growth is not None,
        "it computes on a GPU, and edits are for CPUs": options.run.device != "cpu",
        "stop.period looks for a state that returns, and edits change states": options.stop.period is not None,
    }
    for reason, found in reasons.items():
        if found:
            raise CaseError(f"cells of this run cannot be set between steps: {reason}", key=key, remedy="leave it out")


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def _set(engine: Engine, model: Model, edit: Edit) -> None:
    """Set the cells of an edit that this rank owns."""
    points, states = _last(edit)
    packed = model.packed.get(edit.field)
    if packed is None:
        for box, values in engine.blocks(model.field(edit.field), write=True):
            mine = _within(points, box.lo, box.hi)
            values[tuple((points[mine] - box.lo).T)] = states[mine]
        return
    words, bits = points.copy(), np.uint64(1) << (points[:, -1] % WORD).astype(np.uint64)
    words[:, -1] //= WORD
    for number, plane in enumerate(packed.planes):
        for box, values in engine.blocks(plane, write=True):
            mine = _within(words, box.lo, box.hi)
            at = tuple((words[mine] - box.lo).T)
            np.bitwise_and.at(values, at, ~bits[mine])
            np.bitwise_or.at(values, at, np.where(states[mine] >> number & 1, bits[mine], np.uint64(0)))


def _last(edit: Edit) -> tuple[np.ndarray, np.ndarray]:
    """Return each cell of an edit once, with its last state."""
    points, first = np.unique(edit.points[::-1], axis=0, return_index=True)
    return points, edit.states[::-1][first]


def _within(points: np.ndarray, low: tuple[int, ...], high: tuple[int, ...]) -> np.ndarray:
    return np.asarray(((points >= low) & (points < high)).all(axis=1))
