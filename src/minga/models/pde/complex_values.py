"""Complex values in equations, as pairs of real ones."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["FUNCTIONS", "IMAGINARY", "Pair", "difference", "linear", "negative", "part_names", "power", "product",
           "quotient", "sum_of"]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A complex value: its real and its imaginary part, each a number, an array or an expression."""

    re: Any
    im: Any

    @classmethod
    def of(cls, value: Any) -> Pair:
        """Return a value as a pair; a real one has the imaginary part 0."""
        return value if isinstance(value, Pair) else cls(value, 0.0)

    def squared(self) -> Any:
        """Return the square of the absolute value."""
        return self.re * self.re + self.im * self.im


IMAGINARY: Final = Pair(0.0, 1.0)
"""The imaginary unit."""


def part_names(name: str) -> tuple[str, str]:
    """Return the names of the fields that hold the real and the imaginary part of a complex one."""
    return f"{name}_re", f"{name}_im"


def linear(function: Callable[[Any], Any], value: Any) -> Any:
    """Return a linear function of a value, for a pair that of both parts."""
    return Pair(function(value.re), function(value.im)) if isinstance(value, Pair) else function(value)


def sum_of(left: Any, right: Any) -> Any:
    """Return the sum of two values."""
    return _by_parts(operator.add, left, right)


def difference(left: Any, right: Any) -> Any:
    """Return the difference of two values."""
    return _by_parts(operator.sub, left, right)


def negative(value: Any) -> Any:
    """Return a value with the other sign."""
    return linear(operator.neg, value)


def product(left: Any, right: Any) -> Any:
    """Return the product of two values."""
    if isinstance(left, Pair) and isinstance(right, Pair):
        return Pair(
            _less(_times(left.re, right.re), _times(left.im, right.im)),
            _plus(_times(left.re, right.im), _times(left.im, right.re)),
        )
    if isinstance(left, Pair):
        return Pair(_times(left.re, right), _times(left.im, right))
    if isinstance(right, Pair):
        return Pair(_times(left, right.re), _times(left, right.im))
    return left * right


def quotient(left: Any, right: Any) -> Any:
    """Return the quotient of two values."""
    if not isinstance(right, Pair):
        return linear(lambda part: part / right, left)
    above = product(left, Pair(right.re, -right.im))
    below = right.squared()
    return Pair(above.re / below, above.im / below)


def power(base: Pair, exponent: int) -> Any:
    """Return a whole power of a complex value, by the same products for all ranks."""
    if exponent < 0:
        return quotient(1.0, power(base, -exponent))
    found: Any = None
    while exponent:
        if exponent & 1:
            found = base if found is None else product(found, base)
        base, exponent = product(base, base), exponent >> 1
    return 1.0 if found is None else found


def _exponential(value: Any, real: Mapping[str, Callable[..., Any]]) -> Any:
    if not isinstance(value, Pair):
        return real["exp"](value)
    turn = Pair(real["cos"](value.im), real["sin"](value.im))
    return turn if _is_zero(value.re) else product(real["exp"](value.re), turn)


def _absolute(value: Any, real: Mapping[str, Callable[..., Any]]) -> Any:
    return real["hypot"](value.re, value.im) if isinstance(value, Pair) else real["abs"](value)


def _argument(value: Any, real: Mapping[str, Callable[..., Any]]) -> Any:
    value = Pair.of(value)
    return real["atan2"](value.im, value.re)


FUNCTIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Callable[..., Any]]], Any]]] = {
    "abs": _absolute,
    "arg": _argument,
    "conj": lambda value, real: Pair(value.re, -value.im) if isinstance(value, Pair) else value,
    "exp": _exponential,
    "im": lambda value, real: Pair.of(value).im,
    "re": lambda value, real: Pair.of(value).re,
}
"""Functions of a complex value by their names; they receive the real functions that they are made of."""


def _by_parts(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    if not isinstance(left, Pair) and not isinstance(right, Pair):
        return function(left, right)
    left, right = Pair.of(left), Pair.of(right)
    combine = _plus if function is operator.add else _less
    return Pair(combine(left.re, right.re), combine(left.im, right.im))


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | float) and value == 0


def _times(left: Any, right: Any) -> Any:
    """Return a product in which parts that are absent, exact zeros, take no operation."""
    return 0.0 if _is_zero(left) or _is_zero(right) else left * right


def _plus(left: Any, right: Any) -> Any:
    return right if _is_zero(left) else left if _is_zero(right) else left + right


def _less(left: Any, right: Any) -> Any:
    return -right if _is_zero(left) else left if _is_zero(right) else left - right
