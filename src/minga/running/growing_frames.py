"""Frames of a run on an unbounded plane: kept as cells that are not 0, and written on one window when the run is over.

Only then is it known how large the frames are; all of them have the size of the smallest window that holds every frame.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from minga.engine.begin import start
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.errors import RunError
from minga.plan.machine.resources import total_memory
from minga.running.growing import Growing, put_sparse, slot_unit
from minga.running.observers.frames import Recorder
from minga.space.box import Box
from minga.space.field import Slot

__all__ = ["GrowingFrames"]

SHARE: Final = 0.4
"""Share of the memory that frames may take."""


class GrowingFrames:
    """Recorder of frames of a plane, made and used alike on all ranks.

    Parameters
    ----------
    growing
        The window of the run.
    recorder
        Returns what writes frames of the model on the last window.
    held
        Whether all frames are held in memory, and not only one at a time.
    """

    def __init__(self, growing: Growing, recorder: Callable[[Model], Recorder], *, held: bool) -> None:
        self._growing, self._make, self._held = growing, recorder, held
        self._written: dict[str, Any] | None = None

    def take(self, step: int, engine: Engine) -> None:
        """Keep the cells after ``step`` steps; collective."""
        self._growing.frames[step] = self._growing.values(_shown(self._growing.model))

    def drain(self, *, lasting: bool = False) -> None:
        """Do nothing, as checkpoints hold the frames so far."""

    def truncate(self, step: int) -> tuple[int, ...]:
        """Forget the frames after ``step`` steps when a checkpoint is resumed; none is damaged."""
        self._growing.kept_until = step
        return ()

    @property
    def gone(self) -> bool:
        """False, as no files are resumed."""
        return False

    def abandon(self) -> None:
        """Do nothing after an error, as frames are written together."""

    def close(self) -> None:
        """Write all frames on one window; collective."""
        if not self._growing.frames:
            return
        model = self._growing.growth.moved(self._window())
        recorder = self._make(model)
        comm = self._growing.engine.comm
        with Engine(model.layouts("bisection", comm.size), comm=comm) as engine:
            start(model, engine)
            for step, values in sorted(self._growing.frames.items()):
                put_sparse(model, engine, _shown(model), values)
                recorder.take(step, engine)
            recorder.close()
        self._written = recorder.written

    @property
    def written(self) -> dict[str, Any] | None:
        """Counters of the written frames."""
        return self._written

    def _window(self) -> Box:
        """Return the smallest window that holds all frames; raise RunError if they do not fit in memory."""
        model, whole = self._growing.model, None
        for values in self._growing.frames.values():
            for name, slot in _shown(model).items():
                found, unit = values[name].points, slot_unit(model, slot)
                if len(found):
                    low, high = found.min(axis=0) * unit, (found.max(axis=0) + 1) * unit
                    box = Box(tuple(map(int, low)), tuple(map(int, high)))
                    whole = box if whole is None else whole.hull(box)
        window = self._growing.growth.window if whole is None else self._growing.growth.tight(whole)
        several, memory = len(self._growing.frames) if self._held else 1, total_memory()
        if memory is not None and window.size * several > SHARE * memory:
            spans = " x ".join(map(str, window.shape))
            raise RunError(
                f"{several} frame{'s' * (several > 1)} of {spans} cells do not fit in memory",
                remedy="keep fewer (every=), write them into a directory (out=), or end the run earlier",
            )
        return window


def _shown(model: Model) -> dict[str, Slot]:
    """Return the present slots of the output fields, by name."""
    found = [item for name in model.output for item in _stored(model, name)]
    return {item.name: item.now for item in found}


def _stored(model: Model, name: str) -> tuple[Any, ...]:
    return model.packed[name].planes if name in model.packed else (model.field(name),)
