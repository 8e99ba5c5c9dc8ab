"""Functions that Programs call, together with native code that does the same without Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from minga.engine import command as cmd
from minga.engine.call_kernels import call_functions

if TYPE_CHECKING:
    from minga.engine.bind import Binder
    from minga.engine.engine import Engine

__all__ = ["CompiledCall", "move_words"]


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
    """

    label: str
    function: Callable[[Engine], None]
    commands: Callable[[Binder], Sequence[cmd.Command]]

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
