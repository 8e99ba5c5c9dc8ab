"""Errors that a step may make, in the units of each field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minga.engine.program import Program
from minga.lang.cell import Reduced
from minga.lang.expr import Node, as_node, cast, extreme, where
from minga.lang.functions import max as largest
from minga.solve.rates import most
from minga.space.field import Field, Register

__all__ = ["PermittedErrors", "sizes"]


class PermittedErrors:
    """The errors that a step may make: a part of the largest value that each field has had.

    The largest values are reductions, so that all ranks hold the same ones, and lie in registers, so that a resumed run
    knows them.

    Parameters
    ----------
    name
        The beginning of the names of the registers.
    fields
        The fields.
    tolerance
        The part of the largest value of a field that an error may be.
    absolute
        An error of each field that is always permitted, in its unit.

    Attributes
    ----------
    largest
        Registers of the largest absolute value that each field has had.
    """

    def __init__(self, name: str, fields: Sequence[Field], tolerance: float, absolute: Sequence[float]) -> None:
        self.tolerance, self.absolute = tolerance, tuple(absolute)
        self.largest = tuple(Register(f"{name}.largest {item.name}") for item in fields)

    def see(self, program: Program, found: Any, word: str) -> None:
        """Record that the fields have the values whose sizes a kernel has returned as `word`."""
        for number, register in enumerate(self.largest):
            program.let(register, extreme("max", (register.node, _of(found, word, number))))

    def share(self, found: Any, errors: str, values: str) -> Node:
        """Return the largest error in units of the permitted one.

        Parameters
        ----------
        found
            What a kernel has returned.
        errors, values
            The words of the sizes of the errors, and of the values, which count like those before.
        """
        shares = []
        for number, (register, floor) in enumerate(zip(self.largest, self.absolute, strict=True)):
            error, value = (_of(found, word, number) for word in (errors, values))
            permitted = self.tolerance * extreme("max", (register.node, value)) + floor
            shares.append(where(error == 0.0, 0.0, error / permitted))
        longest: Node = most(shares)
        return longest

    def fastest(self, found: Any, rates: str) -> Node:
        """Return the largest rate of change in units of the values; fields that have always been zero do not count."""
        found_rates = []
        for number, register in enumerate(self.largest):
            size = register.node
            rate = _of(found, rates, number) / where(size > 0.0, size, 1.0)
            found_rates.append(where(size > 0.0, rate, 0.0))
        quickest: Node = most(found_rates)
        return quickest


def sizes(word: str, values: Sequence[Any]) -> dict[str, Reduced]:
    """Return the reductions of a kernel to the largest absolute value of each field."""
    return {f"{word}_{number}": largest(abs(cast(as_node(value), "f8"))) for number, value in enumerate(values)}


def _of(found: Any, word: str, number: int) -> Node:
    register: Register = getattr(found, f"{word}_{number}")
    return register.node
