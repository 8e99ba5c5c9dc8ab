"""Models that ship with minga, one package each, with a function that makes the model and the parts that it takes.

Each package with cases has a `ModelSpec` in its module `spec`, an entry point of the group ``minga.models``: the class
of its settings and a function that makes its Model. `minga.case` finds models by the name that a case gives. The
packages are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from . import automaton, electrodeposition, matmul, pde, photodiode, waves

__all__ = ["automaton", "electrodeposition", "matmul", "pde", "photodiode", "waves"]

__getattr__, __dir__ = attach(__name__, __file__)
