"""Live files of a run: its progress always, the field and the ledger while somebody watches."""

from __future__ import annotations

import time
from typing import Any

from minga.engine.comm import Comm
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.errors import RunError
from minga.output.directory import RunDirectory, write_whole
from minga.output.preview import WatchDetector, take_preview, write_preview
from minga.output.progress import ProgressFile

__all__ = ["LiveRecord"]


class LiveRecord:
    """Files of a run that others read while it continues. Made on every rank; rank 0 writes."""

    def __init__(self, model: Model, steps: int, comm: Comm, directory: RunDirectory) -> None:
        self._model, self._comm, self._directory = model, comm, directory
        cells = model.grid.size if model.growth is None else None
        self._progress = ProgressFile(directory, steps, cells, comm.size)
        self._watch_detector = WatchDetector(directory)
        if comm.rank == 0:
            self._progress.starting()

    def progress(self, step: int, seconds: float, updates: int, steps: int | None = None) -> None:
        """Write on rank 0 that ``step`` steps are done, in ``seconds``; ``steps`` is a better number of all steps."""
        self._progress.running(step, seconds, updates, steps)

    def is_watched(self) -> bool:
        """Return on rank 0 whether somebody wants to see the field now."""
        return self._watch_detector()

    def update_preview(self, step: int, engine: Engine, entry: dict[str, Any], model: Model | None = None) -> None:
        """Write the field as it is now, and the lines of the ledger so far; collective.

        `model` is the present one, if its grid has been replaced since the run began.
        """
        began = time.perf_counter()
        wanted = self._watch_detector.field if self._comm.rank == 0 else ""
        preview = take_preview(model or self._model, engine, step, wanted)
        entries = self._comm.gather(entry)
        if preview is not None and entries is not None:
            write_preview(self._directory, preview)
            try:
                write_whole(self._directory.ledger, {"ranks": entries}, lasting=False)
            except RunError:
                return  # a disk error must not end the run: the ledger is written again at its end
        self._watch_detector.took(time.perf_counter() - began)

    def close(self, step: int, seconds: float) -> None:
        """Finish on rank 0, when the run is over after ``step`` steps, and remove the preview, as frames tell more."""
        self._progress.last(step, seconds)
        self._directory.settle()
