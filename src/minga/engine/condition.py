"""Conditions given as text, "population < 10 and step > 100", converted to expressions of registers."""

from __future__ import annotations

import ast
import itertools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from minga.errors import CaseError, suggest
from minga.expression import parse_expression
from minga.lang.expr import Arithmetic, Node, as_node, cast
from minga.space.field import Register

__all__ = ["check_condition", "condition"]

KEY: Final = "stop.when"
LONGEST: Final = 1000
FORMS: Final = 'write comparisons of observables and numbers: "population < 10 and (step > 100 or histogram[2] == 0)"'

_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_OPERATIONS: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip

Observables = Mapping[str, Register | tuple[Register, ...]]


def condition(text: str, known: Observables, key: str = KEY) -> Node:
    """Return the bool expression that a condition denotes. Raise CaseError for invalid text or unknown names.

    A condition may compare (also in chains) numbers, observables and their entries (`histogram[2]`), compute with
    + - * /, and combine comparisons by and, or, not and parentheses.
    """
    return _Reader(text, known, key).truth(_parsed(text, key))


def check_condition(text: str, key: str = KEY) -> None:
    """Raise CaseError if a text is not syntactically a condition."""
    _parsed(text, key)


def _parsed(text: str, key: str) -> ast.expr:
    if len(text) > LONGEST:
        raise CaseError(f"a condition of {len(text)} characters", key=key, remedy=FORMS)
    try:
        return parse_expression(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CaseError(f"{text!r} is not a condition", key=key, remedy=FORMS) from error


@dataclass(frozen=True, slots=True)
class _Reader:
    """Converts the syntax tree of a condition to nodes; nothing in it is ever executed."""

    text: str
    known: Observables
    key: str

    def truth(self, tree: ast.expr) -> Node:
        """Return a tree as a bool expression."""
        match tree:
            case ast.BoolOp(op, values):
                combine: Callable[[Any, Any], Any] = operator.and_ if isinstance(op, ast.And) else operator.or_
                return as_node(reduce(combine, map(self.truth, values)))
            case ast.UnaryOp(ast.Not(), operand):
                return ~self.truth(operand)
            case ast.Compare(left, ops, comparators):
                values = [self.number(item) for item in (left, *comparators)]
                pairs = zip(ops, itertools.pairwise(values), strict=True)
                return as_node(reduce(operator.and_, [self._compare(op, *pair) for op, pair in pairs]))
        value = self.number(tree)
        if isinstance(value, Arithmetic) and as_node(value).dtype == "bool":
            return as_node(value)
        raise self._error(f"{self._text(tree)!r} is neither true nor false", "compare it with something")

    def number(self, tree: ast.expr) -> Any:
        """Return a tree as a number, a register or an expression of them."""
        match tree:
            case ast.Constant(value) if isinstance(value, int | float) and not isinstance(value, bool):
                if isinstance(value, int) and abs(value) >= 2**63:
                    raise self._error(f"{self._text(tree)} is too large a number", FORMS)
                return value
            case ast.UnaryOp(ast.USub(), operand):
                return -self.number(operand)
            case ast.BinOp(left, op, right) if type(op) in _OPERATIONS:
                # As floats: integer expressions could otherwise grow without bound.
                sides = (cast(as_node(self.number(left)), "f8"), cast(as_node(self.number(right)), "f8"))
                return _OPERATIONS[type(op)](*sides)
            case ast.Name(name):
                register = self._named(name)
                if isinstance(register, Register):
                    return register
                raise self._error(f"{name!r} is a list of {len(register)} numbers", f"choose one: {name}[0]")
            case ast.Subscript(ast.Name(name), ast.Constant(index)) if isinstance(index, int):
                registers = self._named(name)
                if isinstance(registers, Register) or not 0 <= index < len(registers):
                    raise self._error(f"there is no {name}[{index}]", FORMS)
                return registers[index]
        raise self._error(f"{self._text(tree)!r} cannot be part of a condition", FORMS)

    def _compare(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        if type(op) not in _COMPARISONS:
            raise self._error(f"{self.text!r} compares in an unknown way", "use <, <=, >, >=, == or !=")
        return _COMPARISONS[type(op)](as_node(left), as_node(right))

    def _named(self, name: str) -> Register | tuple[Register, ...]:
        if name not in self.known:
            raise CaseError(
                f"{self.text!r} names {name!r}, which is not observed",
                key=self.key,
                suggestion=suggest(name, self.known),
                remedy=f"there are {', '.join(self.known)}",
            )
        return self.known[name]

    def _text(self, tree: ast.expr) -> str:
        return ast.get_source_segment(self.text.strip(), tree) or self.text

    def _error(self, message: str, remedy: str) -> CaseError:
        return CaseError(message, key=self.key, remedy=remedy)
