"""Complex numbers in kernels: pairs of expressions with the operations of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minga.lang import functions as mg

__all__ = ["Complex"]


@dataclass(frozen=True, slots=True)
class Complex:
    """A complex number; operands may be real numbers, and expressions of them.

    Attributes
    ----------
    re, im
        Real and imaginary part.
    """

    re: Any
    im: Any

    def __add__(self, other: Any) -> Complex:
        return Complex(self.re + other.re, self.im + other.im) if _both(other) else Complex(self.re + other, self.im)

    __radd__ = __add__

    def __neg__(self) -> Complex:
        return Complex(-self.re, -self.im)

    def __sub__(self, other: Any) -> Complex:
        return Complex(self.re - other.re, self.im - other.im) if _both(other) else Complex(self.re - other, self.im)

    def __rsub__(self, other: Any) -> Complex:
        return Complex(other - self.re, -self.im)

    def __mul__(self, other: Any) -> Complex:
        if not _both(other):
            return Complex(self.re * other, self.im * other)
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    __rmul__ = __mul__

    def __rtruediv__(self, other: Any) -> Complex:
        # Both parts are scaled first, so that no square leaves the range of floating-point numbers.
        largest = mg.max(mg.abs(self.re), mg.abs(self.im))
        re, im = self.re / largest, self.im / largest
        size = (re * re + im * im) * largest
        return Complex(other * re / size, -other * im / size)

    @property
    def square(self) -> Any:
        """Square of the absolute value."""
        return self.re * self.re + self.im * self.im


def _both(other: Any) -> bool:
    return isinstance(other, Complex)
