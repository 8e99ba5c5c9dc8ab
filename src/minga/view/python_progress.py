"""Display of the progress of runs from Python: a bar on a terminal, an updating cell output in a notebook."""

from __future__ import annotations

import html
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Final, TextIO

from minga.view.progress import Listener, Progress, progress_display, ranks_text, time_text

__all__ = ["has_display", "in_notebook", "python_display"]

DELAY: Final = 0.5
"""Seconds of computing before anything is shown: shorter runs stay silent."""


def has_display(stream: TextIO | None = None) -> bool:
    """Return whether somebody can see progress: standard error is a terminal, or this process serves a notebook."""
    return in_notebook() or _is_terminal(stream or sys.stderr)


@contextmanager
def python_display(name: str, stream: TextIO | None = None) -> Iterator[Listener]:
    """Yield a listener that shows progress in the notebook or on the terminal, from :data:`DELAY` seconds on.

    Parameters
    ----------
    name
        Name of the model.
    stream
        The terminal; standard error by default.
    """
    with ExitStack() as stack:
        yield _Late(name, stream or sys.stderr, stack)


class _Late:
    """Listener that opens its display when a run turns out to take longer than a moment."""

    def __init__(self, name: str, stream: TextIO, stack: ExitStack) -> None:
        self._name, self._stream, self._stack = name, stream, stack
        self._display: Listener | None = None

    def progress(self, progress: Progress) -> None:
        if self._display is None and progress.seconds >= DELAY:
            self._display = self._stack.enter_context(self._opened(progress.steps))
        if self._display is not None:
            self._display.progress(progress)

    def note(self, text: str) -> None:
        if self._display is None:
            self._stream.write(text + "\n")
        else:
            self._display.note(text)

    def _opened(self, steps: int) -> AbstractContextManager[Listener]:
        return _notebook(self._name) if in_notebook() else progress_display(self._name, steps, self._stream)


@contextmanager
def _notebook(name: str) -> Iterator[Listener]:
    """Yield a listener that updates one output of a notebook's cell; the last state stays."""
    from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

    handle: Any = None

    class Output:
        def progress(self, progress: Progress) -> None:
            nonlocal handle
            if handle is None:
                handle = display(mime_bundle(name, progress), raw=True, display_id=True)
            else:
                handle.update(mime_bundle(name, progress), raw=True)

        def note(self, text: str) -> None:
            sys.stderr.write(text + "\n")

    yield Output()


def mime_bundle(name: str, progress: Progress) -> dict[str, str]:
    """Return progress as a notebook shows it, by the type of the text."""
    done = progress.share >= 1.0
    left = progress.remaining
    said = f", in {time_text(progress.seconds)}" if done else "" if left is None else f", {time_text(left)} left"
    ranks = "" if progress.ranks == 1 else f" on {ranks_text(progress.ranks)}"
    text = f"{name}: {progress.place}, {progress.speed}{ranks}{said}"
    bar = f'<progress value="{progress.share:.4f}" max="1" style="width: 16em; vertical-align: middle"></progress>'
    return {"text/plain": text, "text/html": f"<div>{bar} {html.escape(text)}</div>"}


def in_notebook() -> bool:
    """Return whether IPython is loaded and runs the cells of a notebook, whose outputs can be updated."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()
