"""The errors that minga raises: each states what was expected, what was found, where, and how to fix it.

All of them derive from :class:`MingaError`; any other exception that escapes is a bug in minga.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

__all__ = [
    "CaseError",
    "DiskError",
    "KernelError",
    "LaunchError",
    "LayoutError",
    "MingaError",
    "ProgramError",
    "RunError",
    "Where",
    "listed",
    "suggest",
]


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file that a person can open: ``line`` counts from 1, and is 0 if only the file is known."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class MingaError(Exception):
    """An error that a person can act on.

    ``str(error)`` is the message, then the place, then the remedy, each on its own lines.

    Parameters
    ----------
    message
        What was expected and what was found, in one or a few sentences.
    where
        The place of the mistake: a :class:`Where`, a ``(file, line)`` pair, or text, ``"cell (3, 5) at step 12"``.
    remedy
        An instruction to fix it.
    """

    exit_status: ClassVar[int] = 1
    """Exit status of the command line when this error reaches it."""

    def __init__(
        self, message: str, *, where: Where | tuple[str, int] | str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = Where(*where) if isinstance(where, tuple) else where
        self.remedy = remedy

    def __str__(self) -> str:
        lines = [self.message]
        if self.where is not None:
            lines.append(_labelled("at: ", str(self.where)))
        if self.remedy is not None:
            lines.append(_labelled("fix: ", self.remedy))
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        """Keep all attributes in pickling, since errors are sent between ranks and worker processes."""
        return _restore, (type(self), self.args, self.__dict__)


class KernelError(MingaError):
    """A mistake in a kernel or rule: an undeclared name, a wrong offset, a Python ``if`` on a cell.

    Parameters
    ----------
    message
        The problem.
    where
        The place: a position in a file, or a phrase.
    remedy
        The correction that is proposed.
    """


class CaseError(MingaError):
    """A mistake in a case file or on the command line; the command line ends with status 2 and no traceback.

    Parameters
    ----------
    message, where, remedy
        As for :class:`MingaError`.
    key
        The dotted name of the entry, such as ``"run.steps"``.
    suggestion
        The word that was probably meant.
    """

    exit_status: ClassVar[int] = 2

    def __init__(
        self,
        message: str,
        *,
        key: str | None = None,
        suggestion: str | None = None,
        where: Where | tuple[str, int] | str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.key = key
        self.suggestion = suggestion

    def __str__(self) -> str:
        text = super().__str__()
        if self.key is not None and self.key not in self.message:
            text = f"{self.key}: {text}"
        if self.suggestion is not None:
            text = f"{text}\n" + _labelled("hint: ", f"did you mean {self.suggestion!r}?")
        return text


class LayoutError(MingaError):
    """An invalid grid, box or layout: an empty grid, overlapping blocks, cells without an owner.

    Parameters
    ----------
    message
        The problem.
    where
        The place: a position in a file, or a phrase.
    remedy
        The correction that is proposed.
    """


class ProgramError(MingaError):
    """A mistake in a recorded Program: a value used before it is written, one field written twice at once.

    Parameters
    ----------
    message
        The problem.
    where
        The place: a position in a file, or a phrase.
    remedy
        The correction that is proposed.
    """


class RunError(MingaError):
    """A run that could not continue: a value that is not finite, no convergence, a full disk.

    Parameters
    ----------
    message
        The problem.
    where
        The place: a position in a file, or a phrase.
    remedy
        The correction that is proposed.
    """


class DiskError(RunError):
    """An error of the file system while a run writes."""


class DiskFullError(DiskError):
    """A disk without room for what a run writes."""


class LaunchError(MingaError):
    """A start of MPI that cannot work, such as with the launcher of another MPI library.

    Parameters
    ----------
    message
        The problem.
    where
        The place: a position in a file, or a phrase.
    remedy
        The correction that is proposed.
    """


def shown(value: object, longest: int = 80) -> str:
    """Format a value for a message: arrays by shape and type, other long values by their beginning."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and shape and dtype is not None:
        return f"an array of shape {shape} and {dtype}"
    text = " ".join(repr(value).split())
    return text if len(text) <= longest else f"{text[: longest - 4]} ..."


def listed(names: Sequence[str], longest: int = 6) -> str:
    """Join names for a message; of more than ``longest``, only the first ones are named."""
    return ", ".join(names[:longest]) + (f" and {len(names) - longest} more" if len(names) > longest else "")


def suggest(word: object, options: Iterable[str]) -> str | None:
    """Return the option that was probably meant by ``word``, or None if nothing is close. Case is ignored."""
    if not isinstance(word, str):
        return None
    by_folded = {option.casefold(): option for option in options}
    close = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def _labelled(label: str, text: str) -> str:
    """Return ``text`` after an indented label, with further lines aligned with the first."""
    margin = "  " + label
    return margin + text.replace("\n", "\n" + " " * len(margin))


def _restore(kind: type[MingaError], args: tuple[object, ...], state: dict[str, object]) -> MingaError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error
