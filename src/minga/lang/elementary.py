"""Further elementary functions of a cell's value: inverse and hyperbolic ones, powers, the error function, rounding.

As in `minga.lang.math` every operation rounds once and none is fused, so that the bits are the same on every CPU and
GPU. All are computed in f8; results for f4 arguments are rounded once at the end. Tests hold the error bounds that the
docstrings state. The polynomials are our own: minimax in the weighted error that each comment states, by Remez exchange
in 60 decimal digits, coefficients then rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from minga.lang.expr import (
    Node,
    as_node,
    author_error,
    bitcast,
    cast,
    const,
    extreme,
    power,
    square_root,
    where,
)
from minga.lang.math import F8, cos, exp, expm1, log, log1p, logarithm_specials, polynomial, sin, split_logarithm
from minga.lang.types import is_float

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "clip", "cosh", "erf", "floor", "heaviside",
    "hypot", "log2", "log10", "pow", "round", "sign", "sinh", "tan", "trunc",
]  # fmt: skip

_hex = float.fromhex
_ZERO, _HALF, _ONE, _TWO = (const(value, "f8") for value in (0.0, 0.5, 1.0, 2.0))
_SIGN: Final = 1 << 63
_LN2: Final = _hex("0x1.62e42fefa39efp-1")
_PI: Final = (_hex("0x1.921fb54442d18p+1"), _hex("0x1.1a62633145c07p-53"))
"""pi as a sum of two numbers; parts of it are exact multiples of these by powers of two."""
_TAN_EIGHTH: Final = 0.41421356237309503
# (atan(x) - x) / x**3 in z = x**2 on |x| <= tan(pi/8), weight z: 2^-58.7.
_ATAN: Final = tuple(map(_hex, (
    "-0x1.555555555553dp-2", "0x1.9999999995863p-3", "-0x1.24924922ad99dp-3", "0x1.c71c70e631ee6p-4",
    "-0x1.745cf8e024999p-4", "0x1.3b11194ebfc6fp-4", "-0x1.10ebb981f2d27p-4", "0x1.df0f4bf71fd88p-5",
    "-0x1.9cd26cf6e26c5p-5", "0x1.37d3fe1f748e0p-5", "-0x1.2564d63a2e2a4p-6",
)))  # fmt: skip
# (asin(x) - x) / x**3 in z = x**2 on |x| <= 1/2, weight z: 2^-59.6.
_ASIN: Final = tuple(map(_hex, (
    "0x1.5555555555578p-3", "0x1.333333332df06p-4", "0x1.6db6db722bfb9p-5", "0x1.f1c71a8b6e04ep-6",
    "0x1.6e8bdfeaff5a4p-6", "0x1.1c49ddbbff681p-6", "0x1.ca214a1dc623ep-7", "0x1.7577620c7600cp-7",
    "0x1.618b96f28396ep-7", "0x1.e14f4ee09b81bp-9", "0x1.65055d4f864e7p-6", "-0x1.59faeddc9331ep-6",
    "0x1.0be5b01b1b2eap-5",
)))  # fmt: skip
# erf(x) / x - 1 in z = x**2 on |x| <= 1: 2^-56.2.
_ERF: Final = tuple(map(_hex, (
    "0x1.06eba8214db69p-3", "-0x1.812746b0379e7p-2", "0x1.ce2f21a042bdep-4", "-0x1.b82ce312889c2p-6",
    "0x1.565bcd0e6517fp-8", "-0x1.c02db3feefcf9p-11", "0x1.f9a326c2ce6b9p-14", "-0x1.f4d256290c65bp-17",
    "0x1.b9e6517cbf1afp-20", "-0x1.5f6d9bf81dc31p-23", "0x1.fc43e43e9084bp-27", "-0x1.4e631eeee3ce5p-30",
    "0x1.7f15c287b97fap-34", "-0x1.29ddcebf93982p-38",
)))  # fmt: skip
# exp(x**2) erfc(x) in t = (x - 3) / (x + 3) on 1 <= x <= 6, relative: 2^-52.7.
_ERFC: Final = tuple(map(_hex, (
    "0x1.6e9827d229d2dp-3", "-0x1.4e102b9cf8515p-2", "0x1.f6ff204105a1ap-3", "-0x1.336ffbef0887bp-3",
    "0x1.258b13b00dad3p-4", "-0x1.8fa58eb645da3p-6", "0x1.17c8390b2ed02p-8", "0x1.73102099893fcp-11",
    "-0x1.39085fbf93987p-11", "0x1.7b9e00d8423a3p-15", "0x1.0cb2bf64472dcp-14", "-0x1.aeefca13118dap-17",
    "-0x1.0cab372be64d0p-17", "0x1.0d5a784014c6ap-19", "0x1.536d393f8cc92p-20",
)))  # fmt: skip


# Trigonometry and its inverses ---------------------------------------------------------------------------------------
def tan(value: object) -> Node:
    """Return the tangent of an angle in radians; below 3 ulp for |x| <= 2**20. Integers become f8.

    Parameters
    ----------
    value
        An angle in radians.

    Returns
    -------
    Node
        The tangent.
    """
    return _in_f8("tan", lambda x: where(x == _ZERO, x, sin(x) / cos(x)), value)


def atan(value: object) -> Node:
    """Return the inverse tangent, from -pi/2 to pi/2; below 2 ulp. Integers become f8.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The angle in radians.
    """
    return _in_f8("atan", _atan, value)


def atan2(y: object, x: object) -> Node:
    """Return the angle of the point (x, y), from -pi to pi; below 3 ulp.

    Signed zeros and infinities follow IEEE 754: ``atan2(0, -1)`` is pi, ``atan2(-0.0, -1)`` is -pi.

    Parameters
    ----------
    y, x
        Coordinates of the point.

    Returns
    -------
    Node
        The angle in radians.
    """
    return _in_f8("atan2", _atan2, y, x)


def asin(value: object) -> Node:
    """Return the inverse sine, from -pi/2 to pi/2; below 2 ulp. NaN beyond [-1, 1]. Integers become f8.

    Parameters
    ----------
    value
        A number from -1 to 1.

    Returns
    -------
    Node
        The angle in radians.
    """
    return _in_f8("asin", _asin, value)


def acos(value: object) -> Node:
    """Return the inverse cosine, from 0 to pi; below 3 ulp. NaN beyond [-1, 1]. Integers become f8.

    Parameters
    ----------
    value
        A number from -1 to 1.

    Returns
    -------
    Node
        The angle in radians.
    """
    return _in_f8("acos", _acos, value)


def _atan(x: Node) -> Node:
    size = abs(x)
    steep = size > _ONE
    # atan(s) = pi/2 - atan(1/s); and for t up to 1, atan(t) = pi/4 + atan((t - 1) / (t + 1)).
    small, large = where(steep, _ONE, size), where(steep, size, _ONE)
    middle = small > large * const(_TAN_EIGHTH, "f8")
    above = where(middle, small - large, small)
    below = where(middle, small + large, large)
    # An infinite argument gives 1 / inf.
    t = above / below
    z = t * t
    rest = z * t * polynomial(z, _ATAN)
    quarter, quarter_rest = (const(part / 4, "f8") for part in _PI)
    # t + rest + pi/4 in one order of sums: the largest first, its rounding error kept.
    total = quarter + t
    near = total + (((quarter - total) + t) + (rest + quarter_rest))
    angle = where(middle, near, t + rest)
    error = where(middle, _ZERO, (t - (t + rest)) + rest)
    half, half_rest = (const(part / 2, "f8") for part in _PI)
    turned = half - (angle - (half_rest - error))
    return _with_sign(where(steep, turned, angle), x)


def _atan2(y: Node, x: Node) -> Node:
    size_y, size_x = abs(y), abs(x)
    infinite = (size_y == const(math.inf, "f8")) & (size_x == const(math.inf, "f8"))
    both = (size_y == _ZERO) & (size_x == _ZERO)
    # The quotient is taken of the smaller by the larger, so that it neither overflows nor loses its sign.
    steep = size_y > size_x
    small, large = where(steep, size_x, size_y), where(steep, size_y, size_x)
    ratio = where(infinite, _ONE, where(both, _ZERO, small / where(both, _ONE, large)))
    angle = _atan(ratio)
    half, half_rest, whole, whole_rest = (const(part, "f8") for part in (*(p / 2 for p in _PI), *_PI))
    angle = where(steep, half - (angle - half_rest), angle)
    left = (bitcast(x, "u8") & const(_SIGN, "u8")) != const(0, "u8")
    angle = where(left, whole - (angle - whole_rest), angle)
    return where((x != x) | (y != y), x + y, _with_sign(angle, y))


def _asin_parts(size: Node) -> tuple[Node, Node, Node]:
    """Return whether the size is above 1/2, the argument of the series, and what the series adds to it."""
    large = size > _HALF
    z = where(large, (_ONE - size) * _HALF, size * size)
    s = where(large, square_root(z), size)
    return large, s, s * z * polynomial(z, _ASIN)


def _asin(x: Node) -> Node:
    size = abs(x)
    large, s, rest = _asin_parts(size)
    half, half_rest = (const(part / 2, "f8") for part in _PI)
    turned = half - (_TWO * (s + rest) - half_rest)
    return _with_sign(where(large, turned, s + rest), x)


def _acos(x: Node) -> Node:
    size = abs(x)
    large, s, rest = _asin_parts(size)
    angle = s + rest
    half, half_rest, whole, whole_rest = (const(part, "f8") for part in (*(p / 2 for p in _PI), *_PI))
    signed = _with_sign(s, x)
    near = half - (signed - (half_rest - _with_sign(rest, x)))
    far = where(x < _ZERO, whole - (_TWO * angle - whole_rest), _TWO * angle)
    return where(large, far, near)


# Hyperbolic functions and their inverses -----------------------------------------------------------------------------
def sinh(value: object) -> Node:
    """Return the hyperbolic sine; below 4 ulp. Integers become f8.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The hyperbolic sine.
    """

    def of(x: Node) -> Node:
        size = abs(x)
        t = expm1(where(size > const(22.0, "f8"), const(22.0, "f8"), size))
        small = _HALF * (t + t / (t + _ONE))
        half = exp(_HALF * size)
        large = (_HALF * half) * half
        return _with_sign(where(size > const(22.0, "f8"), large, where(size == _ZERO, size, small)), x)

    return _in_f8("sinh", of, value)


def cosh(value: object) -> Node:
    """Return the hyperbolic cosine; below 4 ulp. Integers become f8.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The hyperbolic cosine.
    """

    def of(x: Node) -> Node:
        half = exp(_HALF * abs(x))
        power_ = half * half
        return where(abs(x) > const(22.0, "f8"), (_HALF * half) * half, _HALF * power_ + _HALF / power_)

    return _in_f8("cosh", of, value)


def asinh(value: object) -> Node:
    """Return the inverse hyperbolic sine; below 4 ulp. Integers become f8.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The inverse hyperbolic sine.
    """

    def of(x: Node) -> Node:
        size = abs(x)
        huge = size > const(2.0**28, "f8")
        kept = where(huge, _ONE, size)
        square = kept * kept
        near = log1p(kept + square / (_ONE + square_root(_ONE + square)))
        far = log(where(huge, size, _ONE)) + const(_LN2, "f8")
        return _with_sign(where(huge, far, near), x)

    return _in_f8("asinh", of, value)


def acosh(value: object) -> Node:
    """Return the inverse hyperbolic cosine; below 4 ulp. NaN below 1. Integers become f8.

    Parameters
    ----------
    value
        A number from 1 on.

    Returns
    -------
    Node
        The inverse hyperbolic cosine.
    """

    def of(x: Node) -> Node:
        huge = x > const(2.0**28, "f8")
        t = where(huge, _ONE, x) - _ONE
        near = log1p(t + square_root(_TWO * t + t * t))
        return where(huge, log(where(huge, x, _ONE)) + const(_LN2, "f8"), near)

    return _in_f8("acosh", of, value)


def atanh(value: object) -> Node:
    """Return the inverse hyperbolic tangent; below 4 ulp. Infinite at 1, NaN beyond. Integers become f8.

    Parameters
    ----------
    value
        A number from -1 to 1.

    Returns
    -------
    Node
        The inverse hyperbolic tangent.
    """

    def of(x: Node) -> Node:
        size = abs(x)
        return _with_sign(_HALF * log1p((size + size) / (_ONE - size)), x)

    return _in_f8("atanh", of, value)


# Powers and logarithms -----------------------------------------------------------------------------------------------
def pow(base: object, exponent: object) -> Node:
    """Return a power with any exponent.

    A constant whole exponent is a fixed tree of multiplications, and 0.5 is the square root; other powers are
    ``exp(y log x)`` with the logarithm in two parts, below 4 ulp. A negative base has powers with whole exponents
    only, NaN otherwise; 0 to a negative power is infinite; x**0 and 1**y are 1, as in IEEE 754.

    Parameters
    ----------
    base
        A number.
    exponent
        A number, or a cell's value.

    Returns
    -------
    Node
        The power.
    """
    if isinstance(exponent, int | float | np.integer | np.floating) and not isinstance(exponent, bool):
        size = abs(float(exponent))
        if size.is_integer() and (size <= 64 or isinstance(exponent, int | np.integer)):
            return power(base, int(exponent))
        if exponent == 0.5:
            return square_root(base)
    if isinstance(exponent, bool) or (not isinstance(exponent, int | float) and as_node(exponent).dtype == "bool"):
        return power(base, exponent)
    return _in_f8("pow", _pow, base, exponent)


def log2(value: object) -> Node:
    """Return the logarithm to base 2; exact for powers of two, else below 3 ulp. Integers become f8.

    Parameters
    ----------
    value
        A positive number.

    Returns
    -------
    Node
        The logarithm.
    """

    def of(x: Node) -> Node:
        high, low, exponent = _log_in_parts(x)
        inverse, rest = const(_hex("0x1.71547652b82fep+0"), "f8"), const(_hex("0x1.777d0ffda0d24p-56"), "f8")
        product, error = exact_product(high, inverse)
        mantissa = product + (error + (high * rest + low * inverse))
        return logarithm_specials(x, x, exponent + mantissa, F8)

    return _in_f8("log2", of, value)


def log10(value: object) -> Node:
    """Return the logarithm to base 10; below 3 ulp. Integers become f8.

    Parameters
    ----------
    value
        A positive number.

    Returns
    -------
    Node
        The logarithm.
    """
    inverse = (_hex("0x1.bcb7b1526e50ep-2"), _hex("0x1.95355baaafad3p-57"))

    def of(x: Node) -> Node:
        high, low = _log_sum(x)
        product, error = exact_product(high, const(inverse[0], "f8"))
        result = product + (error + (high * const(inverse[1], "f8") + low * const(inverse[0], "f8")))
        return logarithm_specials(x, x, result, F8)

    return _in_f8("log10", of, value)


# (2 atanh(s) - 2 s) / s**3 in z = s**2 on 0 <= z <= 0.02945, weight z: 2^-59.7.
_LOG: Final = tuple(map(_hex, (
    "0x1.5555555555555p-1", "0x1.999999999998ep-2", "0x1.24924924939bbp-2", "0x1.c71c71c4be63cp-3",
    "0x1.745d187864128p-3", "0x1.3b1353b57e7d7p-3", "0x1.1122988f15866p-3", "0x1.ddf189dbba4abp-4",
    "0x1.ecf32f9652f77p-4",
)))  # fmt: skip


def _log_in_parts(x: Node) -> tuple[Node, Node, Node]:
    """Return log(m) as a sum of two numbers, the second below an ulp of the first, and k, with x = 2**k m."""
    tiny = x < const(2.0**-1022, "f8")
    scaled = where(tiny, x * const(2.0**54, "f8"), x)
    exponent, m = split_logarithm(scaled, F8)
    exponent = where(tiny, exponent - const(54.0, "f8"), exponent)
    t = m - _ONE  # exact
    below = _TWO + t
    below_rest = (_TWO - below) + t
    s = t / below
    product, error = exact_product(s, below)
    s_rest = (((t - product) - error) - s * below_rest) / below
    z = s * s
    cubic = z * s * polynomial(z, _LOG)
    high = _TWO * s
    total = high + cubic
    return total, ((high - total) + cubic) + _TWO * s_rest, exponent


def _log_sum(x: Node) -> tuple[Node, Node]:
    """Return log(x) of a positive finite number as a sum of two numbers."""
    high, low, exponent = _log_in_parts(x)
    large = exponent * const(F8.ln2[0], "f8")  # exact: the constant has 12 zero bits
    total = large + high
    size = abs(large) > abs(high)
    error = where(size, (large - total) + high, (high - total) + large)
    rest = error + (low + exponent * const(F8.ln2[1], "f8"))
    result = total + rest
    return result, (total - result) + rest


def _pow(x: Node, y: Node) -> Node:
    size = abs(x)
    inside = (size > _ZERO) & (size < const(math.inf, "f8"))
    high, low = _log_sum(where(inside, size, _ONE))
    bounded = where(abs(y) > const(2.0**70, "f8"), _with_sign(const(2.0**70, "f8"), y), y)
    product, error = exact_product(high, bounded)
    rest = error + low * bounded
    total = product + rest
    left = (product - total) + rest
    finite = abs(total) < const(800.0, "f8")
    # exp(total + left) = exp(total) (1 + left), where left is far below an ulp of total.
    base = exp(total)
    correction = where(finite, left, _ZERO)
    result = where(base < const(math.inf, "f8"), base + base * correction, base)
    infinite = const(math.inf, "f8")
    grows = (size > _ONE) == (y > _ZERO)
    result = where(inside, result, where(grows, infinite, _ZERO))
    whole = _floor(y) == y
    odd = whole & (abs(y) < const(2.0**53, "f8")) & (_floor(y * _HALF) * _TWO != y)
    negative = (bitcast(x, "u8") & const(_SIGN, "u8")) != const(0, "u8")
    result = where(negative & odd, -result, result)
    undefined = (x < _ZERO) & ~whole & (size < infinite)
    result = where(undefined, const(math.nan, "f8"), result)
    result = where((x != x) | (y != y), x + y, result)
    return where((y == _ZERO) | (x == _ONE), _ONE, result)


# Other functions -----------------------------------------------------------------------------------------------------
def erf(value: object) -> Node:
    """Return the error function; below 2 ulp. Integers become f8.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The error function, from -1 to 1.
    """

    def of(x: Node) -> Node:
        size = abs(x)
        z = where(size < _ONE, size * size, _ONE)
        small = size + size * polynomial(z, _ERF)
        kept = where(size > const(6.0, "f8"), const(6.0, "f8"), where(size < _ONE, _ONE, size))
        t = (kept - const(3.0, "f8")) / (kept + const(3.0, "f8"))
        large = _ONE - exp(-(kept * kept)) * polynomial(t, _ERFC)
        result = where(size < _ONE, small, large)
        return where(x != x, x, _with_sign(result, x))

    return _in_f8("erf", of, value)


def hypot(x: object, y: object) -> Node:
    """Return sqrt(x**2 + y**2) without overflow; below 2 ulp.

    Parameters
    ----------
    x, y
        The two sides.

    Returns
    -------
    Node
        The length of the diagonal.
    """

    def of(a: Node, b: Node) -> Node:
        first, second = abs(a), abs(b)
        swap = second > first
        large, small = where(swap, second, first), where(swap, first, second)
        infinite = (first == const(math.inf, "f8")) | (second == const(math.inf, "f8"))
        scale = bitcast(bitcast(large, "u8") & const(0x7FF << 52, "u8"), "f8")  # a power of two
        scale = where((scale == _ZERO) | infinite, _ONE, scale)
        up = scale < const(2.0**-1000, "f8")
        factor = where(up, const(2.0**1000, "f8"), _ONE)
        u, v = (large * factor) / (scale * factor), (small * factor) / (scale * factor)
        result = square_root(u * u + v * v) * scale
        result = where((a != a) | (b != b), a + b, result)
        return where(infinite, const(math.inf, "f8"), result)

    return _in_f8("hypot", of, x, y)


def floor(value: object) -> Node:
    """Return the largest whole number that is not above the value, in its type.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The whole number, in the type of the value.
    """
    return _rounded(value, _floor)


def ceil(value: object) -> Node:
    """Return the smallest whole number that is not below the value, in its type.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The whole number, in the type of the value.
    """
    return _rounded(value, lambda x: -_floor(-x))


def trunc(value: object) -> Node:
    """Return the whole number next to the value towards zero, in its type.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The whole number, in the type of the value.
    """
    return _rounded(value, lambda x: _with_sign(_floor(abs(x)), x))


def round(value: object) -> Node:
    """Return the nearest whole number, of two equally near ones the even one, in its type.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The whole number, in the type of the value.
    """
    return _rounded(value, _nearest)


def sign(value: object) -> Node:
    """Return -1, 0 or 1 by the sign of the value, in its type; NaN stays NaN.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        -1, 0 or 1.
    """
    x = as_node(value)
    if x.dtype == "bool":
        raise author_error("mg.sign of a bool", 'convert it with mg.cast(x, "i4")')
    one, zero = const(1, x.dtype), const(0, x.dtype)
    if not is_float(x.dtype) and not x.dtype.startswith("i"):
        return where(x > zero, one, zero)
    result = where(x > zero, one, where(x < zero, -one, zero))
    if not is_float(x.dtype):
        return result
    result = where(x != x, x, result)
    return Node(result.op, result.dtype, result.args, result.data, result.weak, ("whole", x))


def heaviside(value: object, at_zero: object = 0.5) -> Node:
    """Return 0 below zero, 1 above, and `at_zero` at 0; NaN stays NaN. Integers become f8.

    Parameters
    ----------
    value
        A number.
    at_zero
        Result where the value is 0.

    Returns
    -------
    Node
        0, 1 or `at_zero`.
    """

    def of(x: Node, middle: Node) -> Node:
        return where(x > _ZERO, _ONE, where(x < _ZERO, _ZERO, where(x == _ZERO, middle, x)))

    return _in_f8("heaviside", of, value, at_zero)


def clip(value: object, low: object, high: object) -> Node:
    """Return the value within low and high; NaN stays NaN.

    Parameters
    ----------
    value
        A number.
    low, high
        The smallest and the largest result.

    Returns
    -------
    Node
        The value, or the bound that it passes.
    """
    return extreme("min", (extreme("max", (value, low)), high))


# Helpers -------------------------------------------------------------------------------------------------------------
def _in_f8(name: str, function: Callable[..., Node], *values: object) -> Node:
    """Return a function of float arguments, computed in f8 and returned in their common type."""
    nodes = [as_node(value) for value in values]
    strong = [node.dtype for node in nodes if not node.weak]
    kinds = strong or [node.dtype for node in nodes]
    single = all(kind == "f4" for kind in kinds)
    arguments = [cast(node, "f8") for node in nodes]
    result = function(*arguments)
    result = cast(result, "f4") if single else result
    weak = all(node.weak for node in nodes)
    return Node(result.op, result.dtype, result.args, result.data, weak, (name, *arguments))


def _rounded(value: object, function: Callable[[Node], Node]) -> Node:
    """Return a rounded float; whole numbers are what they are."""
    x = as_node(value)
    if not is_float(x.dtype):
        return x
    result = cast(function(cast(x, "f8")), x.dtype)
    return Node(result.op, result.dtype, result.args, result.data, x.weak, ("whole", x))


def _nearest(x: Node) -> Node:
    """Return the nearest whole number, ties to even; a sum with 2**52 rounds there."""
    size, big = abs(x), const(2.0**52, "f8")
    return _with_sign(where(size < big, (size + big) - big, size), x)


def _floor(x: Node) -> Node:
    near = _nearest(x)
    lower = where(near > x, near - _ONE, near)
    return where(lower == _ZERO, _with_sign(lower, x), lower)


def _with_sign(size: Node, of: Node) -> Node:
    """Return a number of this size, which is not negative, with the sign of another."""
    sign_bit = bitcast(of, "u8") & const(_SIGN, "u8")
    return bitcast(bitcast(size, "u8") | sign_bit, "f8")


def exact_product(a: Node, b: Node) -> tuple[Node, Node]:
    """Return a product and its rounding error exactly, by Dekker's splitting (Numerische Mathematik 18, 1971)."""
    result = a * b
    a_high, b_high = _high_half(a), _high_half(b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - result) + a_high * b_low + a_low * b_high) + a_low * b_low
    return result, error


def _high_half(x: Node) -> Node:
    """Return the upper 26 bits of a number."""
    return bitcast(bitcast(x, "u8") & const(0xFFFFFFFFF8000000, "u8"), "f8")
