"""Registers: numbers that are equal on all ranks."""

from __future__ import annotations

from dataclasses import dataclass

from minga.errors import LayoutError
from minga.lang.expr import Arithmetic, Node
from minga.lang.types import DType


class RegisterKey(str):
    """Name of a register as a scalar of a graph, which carries the register's initial value."""

    initial: bool | int | float = 0

    @classmethod
    def of(cls, register: Register) -> RegisterKey:
        """Return the key of a register."""
        key = cls(register.key)
        key.initial = register.initial
        return key


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Register(Arithmetic):
    """Number that is equal on all ranks: time, dt, a residual. Kernels read it, reductions and `let` write it.

    Parameters
    ----------
    name
        The name, unique in a model.
    dtype
        The type of the value.
    initial
        The value at the start.
    """

    name: str
    dtype: DType = "f8"
    initial: bool | int | float = 0

    @property
    def key(self) -> str:
        """Name of the register as a scalar of a graph."""
        return self.name if self.name.startswith("@") else f"${self.name}"

    @property
    def node(self) -> Node:
        """Node that reads the register."""
        return Node("scalar", self.dtype, data=RegisterKey.of(self))

    def __bool__(self) -> bool:
        raise LayoutError(
            f"register {self.name!r} has no value while a Program is recorded, so Python cannot decide on it",
            remedy="use `with P.when(condition):` or `P.repeat(until=condition)`; after a run, engine.read(register)",
        )

    def __repr__(self) -> str:
        return f"Register({self.name!r}, {self.dtype})"


SEED = Register("@seed", "u8")
"""Seed of mg.random()."""
STEP = Register("@step", "u8")
"""Step number used by mg.random(): a step program ends with P.let(mg.STEP, mg.STEP + 1)."""
TIME = Register("time")
"""Time that boundary conditions see which depend on it: a step program, or an integrator at its stages, sets it."""
