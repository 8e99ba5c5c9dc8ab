"""Access of Python to fields: the fields it may read and change, and the lifetime of its writable views.

Between runs Python may read and change every field. A function that a Program calls may read the fields it names, and
change those it names in `writes`: exchanges are placed by these names, so a change of any other field would leave stale
halos. Writable views become read-only when the call ends, or when the next Program is prepared.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from minga.engine.panels import BoundMove
from minga.engine.program import Call
from minga.errors import ProgramError
from minga.space.box import Box
from minga.space.field import Slot

__all__ = ["Access"]


@dataclass(slots=True)
class Access:
    """The access of one engine's users. `moving` holds the moves whose messages travel during the present call."""

    call: Call | None = None
    moving: tuple[BoundMove, ...] = ()
    lent: dict[Slot, list[np.ndarray]] = field(default_factory=dict)
    shown: list[Slot] = field(default_factory=list)
    """Slots of which the present call has read-only views."""

    @contextlib.contextmanager
    def during(self, call: Call, moving: tuple[BoundMove, ...]) -> Iterator[None]:
        """Let Python run from a Program. Raise ProgramError if it writes to a read-only view."""
        self.call, self.moving = call, moving
        self.shown.clear()
        try:
            yield
        except ValueError as error:
            if self.shown and "read-only" in str(error):
                raise self._written() from error
            raise
        finally:
            self.call, self.moving = None, ()
            self.take_back()

    def between_runs(self, wish: str, remedy: str) -> None:
        """Raise ProgramError if Python runs from a Program: `wish` names an action possible only between runs."""
        if self.call is not None:
            raise ProgramError(f"{self.call.label!r}, which a Program calls, {wish}", remedy=remedy)

    def check_read(self, slot: Slot) -> None:
        """Raise ProgramError if Python runs from a Program and the call does not name the slot."""
        if self.call is not None and slot not in self.call.reads and slot not in self.call.writes:
            raise self._unnamed(slot, "looks at", "reads")

    def check_write(self, slot: Slot) -> None:
        """Raise ProgramError if Python runs from a Program and the call does not name the slot in `writes`."""
        if self.call is not None and slot not in self.call.writes:
            raise self._unnamed(slot, "changes", "writes")

    def lend(self, slot: Slot, pieces: Iterable[tuple[Box, np.ndarray]], write: bool) -> list[tuple[Box, np.ndarray]]:
        """Return the views for Python: read-only, or writable for a limited time."""
        given = list(pieces)
        if write:
            self.lent.setdefault(slot, []).extend(view for _, view in given)
        else:
            if self.call is not None:
                self.shown.append(slot)
            for _, view in given:
                view.flags.writeable = False
        return given

    def take_back(self) -> list[Slot]:
        """Make all writable views read-only; return their slots."""
        for view in (view for views in self.lent.values() for view in views):
            view.flags.writeable = False
        slots = list(self.lent)
        self.lent.clear()
        return slots

    def _written(self) -> ProgramError:
        assert self.call is not None
        views = ", ".join(dict.fromkeys(map(repr, self.shown)))
        return ProgramError(
            f"{self.call.label!r}, which a Program calls, changes a view that is read-only, as those of {views} are: "
            f"its reads are {_names(self.call.reads)}, its writes {_names(self.call.writes)}",
            remedy=f"name every field that the function changes: program.call({self.call.label}, writes=[...])",
        )

    def _unnamed(self, slot: Slot, does: str, argument: str) -> ProgramError:
        assert self.call is not None
        names = {"reads": self.call.reads, "writes": self.call.writes}[argument]
        known = f"its {argument} are {_names(names)}" if names else f"it names no {argument}"
        return ProgramError(
            f"{self.call.label!r}, which a Program calls, {does} {slot!r}, and {known}",
            remedy=f"name every field that the function {does}: program.call({self.call.label}, {argument}=(...))",
        )


def _names(slots: Iterable[Slot]) -> str:
    return ", ".join(map(repr, slots)) or "none"
