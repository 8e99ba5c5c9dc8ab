"""Display of a run's progress: a bar on a terminal, one line a minute elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

__all__ = [
    "Listener", "LogLines", "Progress", "Timed", "extent_text", "progress_display", "rate_text", "speed_text",
    "time_text",
]  # fmt: skip

_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Timed:
    """Time of a model, of the time at which its run ends; `unit` is written after both."""

    now: float
    end: float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run: ``step`` of ``steps`` after ``seconds``, with ``cells`` in the grid and ``ranks`` at work.

    ``cells`` is None on an unbounded plane.
    """

    step: int
    steps: int
    seconds: float
    cells: int | None
    ranks: int
    updates: int | None = None
    """Number of times that all cells were updated; None: once for each step."""
    timed: Timed | None = None
    """Time of the model, if the run ends at a time; None if it ends after a number of steps."""
    word: str = "step"
    """Name of what is counted: "step", or "shot" of a survey."""
    left: float | None = None
    """Seconds until the end, where steps differ in length; None: as many for each."""

    @property
    def share(self) -> float:
        """Part of the run that is done, 0 to 1."""
        if self.timed is not None:
            return min(1.0, self.timed.now / self.timed.end)
        return self.step / max(1, self.steps)

    @property
    def place(self) -> str:
        """Text of how far the run is: "step 3 of 10", or "time 1.5 of 5 s"."""
        if self.timed is not None:
            return f"time {self.timed.now:.4g} of {self.timed.end:g}{self.timed.unit}, step {self.step}"
        return f"{self.word} {self.step} of {self.steps}"

    @property
    def rate(self) -> float:
        """Cell updates per second so far, or steps per second on an unbounded plane."""
        updates = self.step if self.updates is None else self.updates
        return updates * (self.cells or 1) / self.seconds if self.seconds > 0 else 0.0

    @property
    def speed(self) -> str:
        """Text of the rate."""
        return rate_text(self.rate) if self.cells is not None else f"{self.rate:.3g} steps/s"

    @property
    def remaining(self) -> float | None:
        """Seconds until the end at the rate so far; None before the first step."""
        if self.left is not None:
            return self.left
        if self.timed is not None:
            return self.seconds * (1 / self.share - 1) if self.share > 0 else None
        return self.seconds / self.step * (self.steps - self.step) if self.step else None


class Listener(Protocol):
    """Receiver of progress and notes."""

    def progress(self, progress: Progress) -> None:
        """Receive the progress after some steps."""

    def note(self, text: str) -> None:
        """Receive a message for the user."""


def rate_text(rate: float) -> str:
    """Format cell updates per second with a unit prefix: ``1.23 Gcells/s``."""
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= limit:
            return f"{rate / limit:.3g} {prefix}cells/s"
    return f"{rate:.3g} cells/s"


def extent_text(result: Mapping[str, Any]) -> str:
    """Return the size of the grid of a run, given its result as data: ``512 x 512 cells``."""
    shape = " x ".join(map(str, result["shape"]))
    return f"unbounded plane, last window {shape} cells" if "window" in result else f"{shape} cells"


def speed_text(result: Mapping[str, Any]) -> str:
    """Return the speed of a run, given its result as data: cell updates, on an unbounded plane steps, per second."""
    if result["cells_per_second"] is not None:
        return rate_text(result["cells_per_second"])
    return f"{result['steps'] / max(result['seconds'], 1e-9):.3g} steps/s"


def time_text(seconds: float) -> str:
    """Format a duration: ``0.85 s``, ``42 s``, ``3:07``, ``1:02:03``."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class LogLines:
    """Listener that writes one line a minute, for logs and batch jobs."""

    def __init__(self, name: str, stream: TextIO, interval: float = _MINUTE) -> None:
        self._name, self._stream, self._interval = name, stream, interval
        self._next = time.monotonic() + interval

    def progress(self, progress: Progress) -> None:
        """Write a line if a minute has passed since the last one."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._interval
        left = progress.remaining
        remaining = "" if left is None else f", {time_text(left)} left"
        self._write(
            f"{self._name}: {progress.place} ({100 * progress.share:.0f} %), {progress.speed} on "
            f"{ranks_text(progress.ranks)}{remaining}"
        )

    def note(self, text: str) -> None:
        """Write a note."""
        self._write(text)

    def _write(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


def ranks_text(ranks: int) -> str:
    """Format a number of ranks: ``1 rank``, ``2 ranks``."""
    return f"{ranks} rank" if ranks == 1 else f"{ranks} ranks"


@contextmanager
def progress_display(name: str, steps: int, stream: TextIO | None = None) -> Iterator[Listener]:
    """Yield a listener that shows progress on ``stream`` (default standard error).

    It is a bar if the stream is a terminal, and lines otherwise.
    """
    stream = stream or sys.stderr
    if not stream.isatty():
        yield LogLines(name, stream)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    console = Console(file=stream)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[place]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[ranks]}"),
    )
    with RichProgress(*columns, console=console) as bar:
        task = bar.add_task(name, total=max(1, steps), place="", rate="", ranks="")

        class Bar:
            def progress(self, progress: Progress) -> None:
                total = max(1, progress.steps)
                bar.update(
                    task,
                    completed=progress.step if progress.timed is None else round(progress.share * total),
                    total=total,
                    place=progress.place,
                    rate=progress.speed,
                    ranks=ranks_text(progress.ranks),
                )

            def note(self, text: str) -> None:
                console.print(text, highlight=False, markup=False)

        yield Bar()
