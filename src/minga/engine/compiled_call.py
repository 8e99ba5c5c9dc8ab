"""Functions that Programs call, together with native code that does the same without Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from minga.engine import command as cmd
from minga.engine.call_kernels import call_functions
from minga.engine.skew import Touch

if TYPE_CHECKING:
    from minga.engine.bind import Binder
    from minga.engine.engine import Engine

__all__ = ["BandedCall", "CompiledCall", "move_words"]


@dataclass(frozen=True, slots=True, eq=False)
class BandedCall:
    """Native code that can be restricted to cells, as a kernel can, so that it takes part in blocks of rounds.

    Parameters
    ----------
    touch
        The cells for which it does something, and what it accesses.
    function
        Address of the native code.
    args
        Its arguments: the lowest cells along axes 0 and 1 and the ends of the cells come first.
    """

    touch: Touch
    function: int
    args: np.ndarray

    def kernel(self, binder: Binder, label: str) -> cmd.Kernel:
        """Return the command that calls the code for all of its cells.

        Parameters
        ----------
        binder
            The binder.
        label
            Name of the call in reports.
        """
        return cmd.Kernel(self.function, binder.control(self.args), 1, cmd.Category.CALL, label)


@dataclass(frozen=True, slots=True, eq=False)
class CompiledCall:
    """A function of the engine, for `Program.call`, and the commands that replace it on the processor.

    Both may be executed in turns: what they count is stored in memory that both use.

    Parameters
    ----------
    label
        Name of the call in reports.
    function
        The function.
    commands
        Returns commands with the same effect. Memory that they use must live as long as this object, or be kept by the
        binder.
    banded
        `banded(binder, number)` returns what does the same `number` calls later, but for `moved`, without changing
        registers; None: nothing does.
    moved
        `moved(binder, number)` returns the commands that count a number of banded calls.
    """

    label: str
    function: Callable[[Engine], None]
    commands: Callable[[Binder], Sequence[cmd.Command]]
    banded: Callable[[Binder, int], Sequence[BandedCall]] | None = None
    moved: Callable[[Binder, int], Sequence[cmd.Command]] | None = None

    @property
    def __name__(self) -> str:
        """The label."""
        return self.label

    def __call__(self, engine: Engine) -> None:
        """Call the function."""
        self.function(engine)


def move_words(binder: Binder, moves: Sequence[tuple[np.ndarray, int]], label: str) -> cmd.Kernel:
    """Return the command that adds a number to each of some words, given as arrays of one."""
    args = np.array([len(moves), *(number for word, by in moves for number in (word.ctypes.data, by))], np.int64)
    return cmd.Kernel(call_functions().move_words, binder.control(args), 1, cmd.Category.CALL, label)
