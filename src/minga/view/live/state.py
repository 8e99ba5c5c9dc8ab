"""State of a run as one JSON object, read from its directory while others write there; missing parts are left out."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from minga.output.directory import RunDirectory
from minga.output.edits import Canvas, append_line
from minga.output.frame_source import time_of
from minga.output.progress import OVER, is_lost, read_progress
from minga.output.series import TIMES
from minga.view.live.picture import Frames, Picture, Pictures
from minga.view.pictures import chosen_frames
from minga.view.scene import has_scene, scene_of

__all__ = ["RunReader"]

_NOTHING: Mapping[str, Any] = {"step": 0, "steps": 0, "seconds": 0.0, "rate": 0.0}

_MOST_POINTS, _MOST_LINES, _MOST_RANKS, _MOST_FRAMES = 600, 16, 64, 400
_REST = 20.0
"""Time between two scenes of a run that continues, as a multiple of the time that the last one took."""


class RunReader:
    """Reader of one run, for any number of simultaneous requests."""

    def __init__(self, directory: RunDirectory) -> None:
        self.directory = directory
        self._lock = threading.Lock()
        self._frames: Frames | None = None
        self._pictures = Pictures(directory)
        self._drawn: dict[str, Picture] = {}
        self._scene: tuple[int, bytes] = (0, b"null")
        """Number of frames, and their scene as JSON."""
        self._next_scene = 0.0
        """Time of the monotonic clock from which the scene is drawn again."""
        self._signed = 0.0

    def state(self, field: str = "", *, look: bool = False) -> dict[str, Any]:
        """Return everything that the page shows except the picture. ``look``: the page is visible, so tell the run."""
        with self._lock:
            progress, result = self._progress(), _read(self.directory.result)
            over = progress["state"] in OVER
            self._frames = frames = Frames.open(self.directory, self._frames)
            names = list(frames.reader.fields) if frames else []
            chosen = field if field in names else _first_output(self._case(), names)
            if over:
                self._unsign()
            elif look:
                self._sign(chosen)
            steps = frames.reader.steps if frames else ()
            shown = chosen_frames(len(steps), _MOST_FRAMES)
            return {
                "name": self._case().get("name", self.directory.path.name),
                "run": str(self.directory.path),
                "about": _about(self._case(), result),
                "progress": progress,
                "over": over,
                "stops": "stop" in self._case(),
                "fields": names,
                "frames": [[index, steps[index]] for index in shown],
                "times": [time_of(frames.reader, index) for index in shown] if frames else [],
                "picture": self._latest(frames, chosen, live=not over) if frames else None,
                "scene": self._scene_frames(frames, over=over) if frames else 0,
                "series": _series(_read(self.directory.series)),
                "ledger": _ledger(_read(self.directory.ledger)),
                "result": result,
                "report": self.directory.report.is_file(),
                "paint": None if over else self._canvas(),
            }

    def paint(self, content: bytes) -> str | None:
        """Write a wish to set cells for the run; return what is wrong with it, or None."""
        canvas = None if self.over else Canvas.read(self.directory.painting)
        if canvas is None:
            return "this run cannot be painted: run.paint = true allows it"
        try:
            edit = canvas.edit(json.loads(content), step=0)
            append_line(self.directory.painting, edit.line)
        except (ValueError, RecursionError) as error:
            return f"not painted: {error}"
        except OSError as error:
            return f"the run's directory cannot be written: {error.strerror}"
        return None

    def _canvas(self) -> dict[str, Any] | None:
        """Return the size of what pages may paint and the states of its fields."""
        canvas = Canvas.read(self.directory.painting)
        return canvas.line if canvas is not None and len(canvas.shape) == 2 else None

    def picture(self, key: str) -> bytes | None:
        """Return the PNG file named in a state; None if it is no longer available."""
        with self._lock:
            drawn = self._drawn.get(key)
            return drawn.content if drawn else None

    def frame(self, field: str, index: int) -> Picture | None:
        """Return the picture of a stored frame; None if there is no such frame."""
        with self._lock:
            self._frames = frames = Frames.open(self.directory, self._frames)
            if frames is None or field not in frames.reader.fields or not 0 <= index < len(frames.reader.steps):
                return None
            return self._pictures.of_frame(frames, field, index)

    def scene(self) -> bytes:
        """Return the numbers of the scene in three dimensions as JSON; null where there is none."""
        with self._lock:
            self._frames = frames = Frames.open(self.directory, self._frames)
            if frames and self._scene_frames(frames, over=self.over) != self._scene[0]:
                started = time.monotonic()
                found = scene_of(frames.reader)
                text = json.dumps(found.data if found else None, separators=(",", ":")).encode()
                self._scene = len(frames.reader.steps), text
                self._next_scene = time.monotonic() + _REST * (time.monotonic() - started)
            return self._scene[1]

    def _scene_frames(self, frames: Frames, *, over: bool) -> int:
        """Return the number of frames whose scene pages ask for; it changes too seldom to slow the run down."""
        if not has_scene(frames.reader):
            return 0
        return len(frames.reader.steps) if over or time.monotonic() >= self._next_scene else self._scene[0]

    @property
    def over(self) -> bool:
        """True if nothing more will happen in this run."""
        if over := self._progress()["state"] in OVER:
            self._unsign()
        return over

    def _latest(self, frames: Frames, field: str, live: bool) -> dict[str, Any]:
        key, preview = self._pictures.latest(frames, field, live)
        if key not in self._drawn:
            last = len(frames.reader.steps) - 1
            drawn = (
                self._pictures.of_preview(frames, preview)
                if preview is not None
                else self._pictures.of_frame(frames, field, last)
            )
            self._drawn = dict([*self._drawn.items(), (key, drawn)][-8:])  # a few, for pages that lag behind
        drawn = self._drawn[key]
        return {
            "key": key,
            "field": drawn.field,
            "step": drawn.step,
            "live": preview is not None,
            "aspect": drawn.aspect,
            "states": drawn.states,
            "legend": drawn.legend,
        }

    def _progress(self) -> dict[str, Any]:
        """Return the contents of ``progress.json``, corrected if the process that wrote it is gone."""
        known = read_progress(self.directory)
        if known is None and not self.directory.case.is_file():
            return {**_NOTHING, "state": "failed", "reason": "the directory of the run is gone"}
        if known is None:
            known = {**_NOTHING, "state": "starting"}
            if "steps" in (result := _read(self.directory.result)):
                known |= {"state": "finished", "step": result["steps"], "steps": result["steps"]}
        elif is_lost(self.directory, known):
            known |= (
                {"state": "finished"}
                if self.directory.result.is_file()
                else {"state": "lost", "reason": "the process of the run is gone"}
            )
        if "updated" in known:
            known["age"] = max(0.0, time.time() - known["updated"])
        return known

    def _case(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self.directory.case.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}

    def _sign(self, field: str) -> None:
        """Tell the run that somebody watches it; if its directory is not writable, stored frames are shown."""
        if time.monotonic() - self._signed < 1.0:
            return
        self._signed = time.monotonic()
        try:
            self.directory.watching.write_text(field + "\n", encoding="utf-8")
        except OSError:
            return

    def _unsign(self) -> None:
        """Remove the last sign: the run removes it at its end, but may have ended while it was written."""
        if self._signed:
            self._signed = 0.0
            with contextlib.suppress(OSError):
                self.directory.watching.unlink()


def _read(path: Path) -> dict[str, Any]:
    """Return a JSON object from a file; empty if there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda word: None)  # JSON has no NaN
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _objects(found: object) -> list[Mapping[str, Any]]:
    return [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list) else []


def _first_output(case: Mapping[str, Any], names: Sequence[str]) -> str:
    wanted = case.get("output", {}).get("fields") or names
    return next((name for name in wanted if name in names), names[0] if names else "")


def _about(case: Mapping[str, Any], result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a few facts of a case, as labels and values."""
    run = case.get("run", {})
    shape = result.get("shape") or case.get("grid", {}).get("shape") or []
    settings = case.get(str(case.get("model")), {})
    facts = [
        ("model", case.get("model")),
        ("rule", settings.get("rule") if isinstance(settings, Mapping) else None),
        ("grid", " × ".join(map(str, shape))),
        ("ranks", run.get("ranks")),
        ("threads", run.get("threads")),
        ("layout", run.get("layout")),
    ]
    return [(word, str(value)) for word, value in facts if value not in (None, "")]


def _series(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return curves over steps, thinned to the number of points that a page can show.

    The form is ``{"step": [...], "curves": [[name, [[label, [...]], ...]], ...]}``. An observable of several numbers,
    such as a histogram, has a line for each.
    """
    steps = found.get("step")
    if not isinstance(steps, list) or not steps:
        return {"step": [], "curves": []}
    chosen = chosen_frames(len(steps), _MOST_POINTS)
    curves: list[tuple[str, list[tuple[str, list[Any]]]]] = []
    for name, values in found.items():
        if name in ("step", TIMES) or not isinstance(values, list) or len(values) != len(steps):
            continue
        kept = [values[index] for index in chosen]
        if isinstance(kept[0], list):
            width = len(kept[0])
            if width <= _MOST_LINES and all(isinstance(row, list) and len(row) == width for row in kept):
                curves.append((name, [(str(k), [row[k] for row in kept]) for k in range(width)]))
        else:
            curves.append((name, [("", kept)]))
    return {"step": [steps[index] for index in chosen], "curves": curves}


def _ledger(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return seconds by category, messages and bytes of the ranks.

    For very many ranks, the entries of some are returned, and the sums of all.
    """
    entries = _objects(found.get("ranks"))
    shown = [entries[index] for index in chosen_frames(len(entries), _MOST_RANKS)]
    return {
        "count": len(entries),
        "levels": _objects(found.get("levels")),
        "messages": sum(int(entry.get("messages", 0)) for entry in entries),
        "bytes": sum(int(entry.get("bytes", 0)) for entry in entries),
        "ranks": [
            {key: entry.get(key) for key in ("rank", "host", "processor", "seconds", "messages", "bytes")}
            for entry in shown
        ],
    }
