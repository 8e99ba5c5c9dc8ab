"""Elementary functions of a cell's value, spelled out in additions, multiplications, divisions and bit operations.

Every operation rounds once and none is fused, so the results have the same bits on every CPU and GPU. Errors stay below
2 ulp, also for denormal arguments and results; infinities, NaN and signed zeros follow IEEE 754 (as in NumPy).
The code is straight-line: it uses selects instead of branches, and shifts of the bits of a float instead of conversions
between integers and floats or library calls, so that LLVM vectorises all of it on every machine.

Sources: argument reductions after W. J. Cody and W. Waite, Software Manual for the Elementary Functions (1980), and
FDLIBM (Sun Microsystems, 1993). The polynomials are our own: minimax in the weighted error that each comment states,
computed by Remez exchange in 160-bit arithmetic, with the coefficients then rounded to their format. Bounds given as
`2^-n` are those of the rounded polynomials.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from minga.lang.expr import Node, as_node, bitcast, cast, const, where
from minga.lang.types import DType, is_float, itemsize

_hex = float.fromhex


@dataclass(frozen=True, slots=True)
class _Format:
    """A float format: its layout and the constants that the functions need in its precision."""

    dtype: DType
    word: DType
    """Unsigned integer type of the same width."""
    mantissa: int
    """Stored bits of the mantissa."""
    bias: int
    """Bias of the exponent."""
    ln2: tuple[float, float]
    """ln 2 as a high part, whose products with exponents are exact, and the rest."""
    exp: tuple[float, ...]
    """(exp(r) - 1 - r) / r**2 on |r| <= 0.3466, weight |r|."""
    log: tuple[float, ...]
    """(2 atanh(s) - 2 s) / s**3 in z = s**2 on 0 <= z <= 0.02945, weight z."""
    tanh: tuple[tuple[float, ...], tuple[float, ...]]
    """(tanh(x) - x) / x**3 in z = x**2 on |x| <= 0.55 as a quotient of two polynomials, weight z."""
    cbrt: tuple[float, ...]
    """Cube root of m on sqrt(1/2) <= m <= sqrt(2), relative error: the start of an iteration."""
    exp_range: tuple[float, float]
    """Range of arguments of exp beyond which the result is 0 or infinity."""
    expm1_low: float
    """Argument at and below which exp(x) - 1 is -1 to all digits."""
    tanh_one: float
    """Argument at and above which tanh is 1 to all digits."""

    def const(self, value: float) -> Node:
        """Return a constant of the format."""
        return const(value, self.dtype)

    def bits(self, value: int) -> Node:
        """Return a constant of the unsigned integer type of the same width."""
        return const(value, self.word)

    @property
    def width(self) -> int:
        """Width of the format, in bits."""
        return 8 * itemsize(self.dtype)

    @property
    def magic(self) -> Node:
        """1.5 * 2**mantissa: added to a small number, it leaves the nearest integer in the lowest bits of the sum."""
        return self.const(1.5 * 2.0**self.mantissa)


F8: Final = _Format(
    "f8", "u8", 52, 1023,
    ln2=(_hex("0x1.62e42fefa3000p-1"), _hex("0x1.3de6af278ece6p-42")),
    # 2^-60.6
    exp=tuple(map(_hex, (
        "0x1.0000000000000p-1", "0x1.5555555555559p-3", "0x1.555555555555ap-5", "0x1.111111110f6afp-7",
        "0x1.6c16c16c14465p-10", "0x1.a01a01afe4b65p-13", "0x1.a01a01b0b10a6p-16", "0x1.71ddf854e553ap-19",
        "0x1.27e4c5ad0324dp-22", "0x1.af5ebc8715819p-26", "0x1.1f95515df4ec2p-29",
    ))),
    # 2^-58.8
    log=tuple(map(_hex, (
        "0x1.5555555555593p-1", "0x1.999999997fca0p-2", "0x1.2492494201c91p-2", "0x1.c71c51faeacd6p-3",
        "0x1.7466420d57593p-3", "0x1.39a16522945b4p-3", "0x1.2f08ecfa0d29bp-3",
    ))),
    # 2^-59.8
    tanh=(
        tuple(map(_hex, ("-0x1.5555555555555p-2", "-0x1.4fe0f143a3080p-6", "-0x1.a1db2bae7f860p-13"))),
        tuple(map(_hex, (
            "0x1.0000000000000p+0", "0x1.d893c6d648266p-2", "0x1.7da3ead1abdfap-6", "0x1.b14af3354bfd4p-13",
        ))),
    ),
    # 2^-22.5
    cbrt=tuple(map(_hex, (
        "0x1.97eaf45d4f0a3p-2", "0x1.32720c72a1318p+0", "-0x1.2fdf48d57ef3bp+0", "0x1.f12f79a803bf0p-1",
        "-0x1.079989b1230a2p-1", "0x1.3efa052056462p-3", "-0x1.4deed97eb2719p-6",
    ))),
    exp_range=(-746.0, 710.0), expm1_low=-64.0, tanh_one=22.0,
)  # fmt: skip
F4: Final = _Format(
    "f4", "u4", 23, 127,
    ln2=(_hex("0x1.62e4p-1"), _hex("0x1.7f7d1cp-20")),
    # 2^-28.7
    exp=tuple(map(_hex, (
        "0x1.000000p-1", "0x1.555556p-3", "0x1.5554aep-5", "0x1.111090p-7", "0x1.6d7482p-10", "0x1.a1a156p-13",
    ))),
    # 2^-30.0
    log=tuple(map(_hex, ("0x1.55557ap-1", "0x1.995eacp-2", "0x1.31e478p-2"))),
    # 2^-28.0
    tanh=(tuple(map(_hex, ("-0x1.55554ep-2", "-0x1.96c996p-10"))), tuple(map(_hex, ("0x1p+0", "0x1.9e5c04p-2")))),
    # 2^-10.6
    cbrt=tuple(map(_hex, ("0x1.1b7f46p-1", "0x1.1b79a8p-1", "-0x1.b839fcp-4"))),
    exp_range=(-104.0, 89.0), expm1_low=-32.0, tanh_one=10.0,
)  # fmt: skip
_TANH_SMALL: Final = 0.55
_ROOTS: Final = (_hex("0x1.428a2f98d728bp+0"), _hex("0x1.965fea53d6e3dp-1"))
"""Cube roots of 2 and of 1/2."""
_LOG2_E: Final = _hex("0x1.71547652b82fep+0")
# log(x) splits x into 2**k * m with sqrt(1/2) <= m < sqrt(2). These are the bits of sqrt(1/2), rounded down.
_SQRT_HALF: Final[dict[DType, int]] = {"f8": 0x3FE6A09E00000000, "f4": 0x3F3504F3}

# Trigonometric functions are computed in f8 for both formats: the reduction of an f4 would need f8 anyway.
# pi/2 is split into three parts of 33 bits, whose products with integers below 2**20 are exact, and the rest.
_TWO_OVER_PI: Final = _hex("0x1.45f306dc9c883p-1")
_HALF_PI: Final = tuple(
    map(_hex, ("0x1.921fb54400000p+0", "0x1.0b4611a600000p-34", "0x1.3198a2e000000p-69", "0x1.b839a252049c1p-104"))
)
_HALF_PI_F4: Final = (_HALF_PI[0], _hex("0x1.0b4611a626331p-34"))
# (sin(y) - y) / y**3 in z = y**2 on |y| <= pi/4, weight z: 2^-57.4 and, for f4 results, 2^-37.6.
_SIN: Final = tuple(map(_hex, (
    "-0x1.5555555555549p-3", "0x1.111111110f881p-7", "-0x1.a01a019c126acp-13",
    "0x1.71de357873fdap-19", "-0x1.ae5e66d47efcap-26", "0x1.5d932f250efd2p-33",
)))  # fmt: skip
_SIN_F4: Final = tuple(map(_hex, (
    "-0x1.5555554cbacd6p-3", "0x1.11110896f4185p-7", "-0x1.a00f9e303f91ep-13", "0x1.6cd879a0c31bdp-19",
)))  # fmt: skip
# (cos(y) - 1 + z/2) / z**2 in z = y**2 on |y| <= pi/4, weight z**2: 2^-59.9 and 2^-43.2.
_COS: Final = tuple(map(_hex, (
    "0x1.555555555554cp-5", "-0x1.6c16c16c15184p-10", "0x1.a01a019cb26d7p-16",
    "-0x1.27e4f80a75437p-22", "0x1.1ee9ec46f5f61p-29", "-0x1.8faececd3259ap-37",
)))  # fmt: skip
_COS_F4: Final = tuple(map(_hex, (
    "0x1.5555554f4ee53p-5", "-0x1.6c16b8997a63ep-10", "0x1.a011209c6b769p-16", "-0x1.242aee838aa7ap-22",
)))  # fmt: skip


# Public functions ----------------------------------------------------------------------------------------------------
def exp(value: object) -> Node:
    """Return e to the power of the value, with an error below 2 ulp; integers become f8.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The exponential.
    """
    x, f, weak = _argument(value)
    low, high = f.exp_range
    k, r, _ = _split_exponential(_clamp(x, f, low, high), f)
    result = _exp_of_rest(r, f)
    # 2**k is applied in two factors: each is a normal number, and only the last product can round (to a denormal).
    half = k * f.const(0.5) + f.magic
    rest = (k - (half - f.magic)) + f.magic
    return _result(result * _power_of_two(half, f) * _power_of_two(rest, f), weak, ("exp", x))


def expm1(value: object) -> Node:
    """Return exp(x) - 1 without cancellation near zero, with an error below 2 ulp; integers become f8.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The value of exp(value) - 1.
    """
    x, f, weak = _argument(value)
    k, r, c = _split_exponential(_clamp(x, f, f.expm1_low, f.exp_range[1]), f)
    # 2**k may be just too large for the format: then half of it is used, and the sum is doubled.
    large = k > f.const(float(f.bias))
    scale = _power_of_two(where(large, k - f.const(1.0), k) + f.magic, f)
    result = _scaled_expm1(scale, r, c, f)
    result = where(large, result + result, result)
    return _result(where(x == f.const(0.0), x, result), weak, ("expm1", x))


def log(value: object) -> Node:
    """Return the natural logarithm, with an error below 2 ulp; integers become f8.

    log(0) is -inf; the logarithm of a negative number is NaN.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The logarithm.
    """
    x, f, weak = _argument(value)
    tiny = x < f.const(2.0 ** (1 - f.bias))
    steps = f.mantissa + 2
    k, m = split_logarithm(where(tiny, x * f.const(2.0**steps), x), f)
    k = where(tiny, k - f.const(float(steps)), k)
    result = _log_of_parts(k, m - f.const(1.0), f.const(0.0), f)
    return _result(logarithm_specials(x, x, result, f), weak, ("log", x))


def log1p(value: object) -> Node:
    """Return log(1 + x) without cancellation near zero, with an error below 2 ulp; integers become f8.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The value of log(1 + value).
    """
    x, f, weak = _argument(value)
    one = f.const(1.0)
    u = one + x
    k, m = split_logarithm(u, f)
    # The part that was lost in rounding 1 + x, relative to the sum.
    lost = where(x > one, one - (u - x), x - (u - one)) / u
    near = k == f.const(0.0)
    result = _log_of_parts(k, where(near, x, m - one), where(near, f.const(0.0), lost), f)
    result = logarithm_specials(x, u, result, f)
    return _result(where(x == f.const(0.0), x, result), weak, ("log1p", x))


def sin(value: object) -> Node:
    """Return the sine of an angle in radians, with an error below 2 ulp for |x| <= 2**20; integers become f8.

    Beyond 2**20 the error of f8 grows as |x| * 2**-53, and beyond 2**46 the result is an arbitrary number in [-1, 1].

    Parameters
    ----------
    value
        An angle in radians.

    Returns
    -------
    Node
        The sine.
    """
    x, f, weak = _argument(value)
    return _result(where(x == f.const(0.0), x, _sine(x, f, 0)), weak, ("sin", x))


def cos(value: object) -> Node:
    """Return the cosine of an angle in radians, with an error below 2 ulp for |x| <= 2**20; integers become f8.

    Beyond 2**20 the error grows as for `sin`.

    Parameters
    ----------
    value
        An angle in radians.

    Returns
    -------
    Node
        The cosine.
    """
    x, f, weak = _argument(value)
    return _result(_sine(x, f, 1), weak, ("cos", x))


def tanh(value: object) -> Node:
    """Return the hyperbolic tangent, with an error below 2 ulp; integers become f8.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The hyperbolic tangent.
    """
    x, f, weak = _argument(value)
    size = x.__abs__()
    size = where(size > f.const(f.tanh_one), f.const(f.tanh_one), size)
    # A rational function near zero, 1 - 2 / (exp(2 x) + 1) elsewhere; they share the division.
    small, z = size < f.const(_TANH_SMALL), size * size
    k, r, _ = _split_exponential(size + size, f)
    power = _exp_of_rest(r, f) * _power_of_two(k + f.magic, f)
    above = where(small, size * z * polynomial(z, f.tanh[0]), f.const(-2.0))
    below = where(small, polynomial(z, f.tanh[1]), power + f.const(1.0))
    result = where(small, size, f.const(1.0)) + above / below
    return _result(bitcast(bitcast(result, f.word) | _sign_of(x, f), f.dtype), weak, ("tanh", x))


def cbrt(value: object) -> Node:
    """Return the real cube root, with an error below 0.9 ulp; integers become f8.

    Unlike ``x ** (1 / 3)``, it is defined for negative numbers: ``cbrt(-8)`` is -2.

    Parameters
    ----------
    value
        A number.

    Returns
    -------
    Node
        The cube root, with the sign of `value`.
    """
    x, f, weak = _argument(value)
    size = x.__abs__()
    tiny = size < f.const(2.0 ** (1 - f.bias))
    steps = f.mantissa + 2
    k, m = split_logarithm(where(tiny, size * f.const(2.0**steps), size), f)
    k = where(tiny, k - f.const(float(steps)), k)
    # size = 2**(3 third + rest) m = 2**(3 third) a, with `rest` one of -1, 0 and 1.
    third = (k * f.const(1 / 3) + f.magic) - f.magic
    rest = k - f.const(3.0) * third
    up, down = rest > f.const(0.0), rest < f.const(0.0)
    a = m * where(up, f.const(2.0), where(down, f.const(0.5), f.const(1.0)))
    root_of_rest = where(up, f.const(_ROOTS[0]), where(down, f.const(_ROOTS[1]), f.const(1.0)))
    # Half of the digits are kept, so that the square is exact; one step of Halley's iteration triples the correct ones.
    # What remains are the roundings of the sum (1/2 ulp) and of the quotient (1/6 ulp, just below a power of 2 1/3).
    kept = f.bits((1 << f.width) - (1 << (f.mantissa + 2) // 2))
    t = bitcast(bitcast(polynomial(m, f.cbrt) * root_of_rest, f.word) & kept, f.dtype)
    quotient = a / (t * t)
    root = t + t * ((quotient - t) / ((t + t) + quotient))
    result = bitcast(bitcast(root * _power_of_two(third + f.magic, f), f.word) | _sign_of(x, f), f.dtype)
    regular = (size > f.const(0.0)) & (size < f.const(math.inf))
    return _result(where(regular, result, x), weak, ("cbrt", x))


# Exponentials --------------------------------------------------------------------------------------------------------
def _split_exponential(x: Node, f: _Format) -> tuple[Node, Node, Node]:
    """Split x into k, r, c with x = k ln 2 + r + c.

    k is an integer, |r| <= 0.3466, and c is the part that was lost in rounding r.
    """
    k = (x * f.const(_LOG2_E) + f.magic) - f.magic
    high = x - k * f.const(f.ln2[0])
    low = k * f.const(f.ln2[1])
    r = high - low
    return k, r, (high - r) - low


def _exp_of_rest(r: Node, f: _Format) -> Node:
    """Return exp(r) for |r| <= 0.3466."""
    return f.const(1.0) + (r + r * r * polynomial(r, f.exp))


def _scaled_expm1(scale: Node, r: Node, c: Node, f: _Format) -> Node:
    """Return scale * exp(r + c) - 1 for a power of two `scale`: the large terms first, then the small ones."""
    small = r * r * polynomial(r, f.exp) + c
    return ((scale - f.const(1.0)) + scale * r) + scale * small


def _power_of_two(t: Node, f: _Format) -> Node:
    """Return 2**k for t = k + magic: the lowest bits of t become the exponent."""
    return bitcast((bitcast(t, f.word) << f.bits(f.mantissa)) + f.bits(f.bias << f.mantissa), f.dtype)


# Logarithms ----------------------------------------------------------------------------------------------------------
def split_logarithm(x: Node, f: _Format) -> tuple[Node, Node]:
    """Split a normal positive x into k, m with x = 2**k * m and sqrt(1/2) <= m < sqrt(2)."""
    root = _SQRT_HALF[f.dtype]
    moved = bitcast(x, f.word) + f.bits((f.bias << f.mantissa) - root)
    # With the biased exponent in its lowest bits, 2**mantissa becomes the exponent plus 2**mantissa.
    big = 2.0**f.mantissa
    exponent = bitcast((moved >> f.bits(f.mantissa)) | bitcast(f.const(big), f.word), f.dtype)
    m = bitcast((moved & f.bits((1 << f.mantissa) - 1)) + f.bits(root), f.dtype)
    return exponent - f.const(big + f.bias), m


def _log_of_parts(k: Node, t: Node, lost: Node, f: _Format) -> Node:
    """Return k ln 2 + log(1 + t) + lost, with log(1 + t) = t - t**2/2 + s (t**2/2 + R) and s = t / (2 + t)."""
    s = t / (f.const(2.0) + t)
    z = s * s
    half_square = f.const(0.5) * t * t
    small = s * (half_square + z * polynomial(z, f.log)) + (k * f.const(f.ln2[1]) + lost)
    return k * f.const(f.ln2[0]) - ((half_square - small) - t)


def logarithm_specials(x: Node, argument: Node, result: Node, f: _Format) -> Node:
    """Return `result` where the logarithm's argument is positive and finite, else the value that IEEE 754 requires."""
    zero = f.const(0.0)
    result = where(argument > zero, result, where(argument == zero, f.const(-math.inf), f.const(math.nan)))
    return where(x < f.const(math.inf), result, x)


# Trigonometry --------------------------------------------------------------------------------------------------------
def _sine(x: Node, f: _Format, quarter_turns: int) -> Node:
    """Return sin(x + quarter_turns * pi/2)."""
    wide = cast(x, "f8")
    magic = F8.magic
    t = wide * F8.const(_TWO_OVER_PI) + magic
    y, rest = _reduce_angle(wide, t - magic, _HALF_PI if f is F8 else _HALF_PI_F4)
    # |y| can exceed pi/4 only beyond the documented range; even there the result must stay in [-1, 1].
    astray = y.__abs__() > F8.const(0.8)
    y, rest = (where(astray, F8.const(0.0), part) for part in (y, rest))
    z = y * y
    sine = _sine_part(y, rest, z, _SIN if f is F8 else _SIN_F4)
    cosine = _cosine_part(y, rest, z, _COS if f is F8 else _COS_F4)
    quadrant = bitcast(t, "u8") + const(quarter_turns, "u8")
    value = where((quadrant & const(1, "u8")) != const(0, "u8"), cosine, sine)
    sign = (quadrant & const(2, "u8")) << const(62, "u8")
    return cast(bitcast(bitcast(value, "u8") ^ sign, "f8"), f.dtype)


def _reduce_angle(x: Node, k: Node, parts: tuple[float, ...]) -> tuple[Node, Node]:
    """Return x - k pi/2 as a sum of two numbers, the second of which is below half an ulp of the first.

    The products with all parts but the last are exact, and so is the first difference; the errors of the other
    differences are kept.
    """
    *exact, last = (k * F8.const(part) for part in parts)
    y = x - exact[0]
    errors: list[Node] = []
    for product in exact[1:]:
        difference = y - product
        errors.append((y - difference) - product)
        y = difference
    rest = -last if not errors else (errors[0] if len(errors) == 1 else errors[0] + errors[1]) - last
    total = y + rest
    return total, (y - total) + rest


def _sine_part(y: Node, rest: Node, z: Node, coefficients: tuple[float, ...]) -> Node:
    """Return sin(y + rest) for |y| <= pi/4."""
    cube = z * y
    tail = polynomial(z, coefficients[1:])
    return y - ((z * (F8.const(0.5) * rest - cube * tail) - rest) - cube * F8.const(coefficients[0]))


def _cosine_part(y: Node, rest: Node, z: Node, coefficients: tuple[float, ...]) -> Node:
    """Return cos(y + rest) for |y| <= pi/4: 1 - z/2 with its rounding error, then the small terms."""
    half = F8.const(0.5) * z
    near = F8.const(1.0) - half
    return near + (((F8.const(1.0) - near) - half) + (z * (z * polynomial(z, coefficients)) - y * rest))


# Helpers -------------------------------------------------------------------------------------------------------------
def _argument(value: object) -> tuple[Node, _Format, bool]:
    """Return the argument as a strong float, its format, and whether the result must be weak again."""
    node = as_node(value)
    x = cast(node, node.dtype if is_float(node.dtype) else "f8")
    return x, F8 if x.dtype == "f8" else F4, node.weak


def _result(node: Node, weak: bool, of: tuple[str, Node]) -> Node:
    return Node(node.op, node.dtype, node.args, node.data, weak, of)


def _clamp(x: Node, f: _Format, low: float, high: float) -> Node:
    """Limit x to low..high; NaN stays NaN."""
    x = where(x > f.const(high), f.const(high), x)
    return where(x < f.const(low), f.const(low), x)


def _sign_of(x: Node, f: _Format) -> Node:
    """Return the sign bit of x in its place, as an integer."""
    return bitcast(x, f.word) & f.bits(1 << (f.width - 1))


def polynomial(x: Node, coefficients: tuple[float, ...]) -> Node:
    """Return c0 + c1 x + c2 x**2 + ... by Horner's rule."""
    result = const(coefficients[-1], x.dtype)
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + const(coefficient, x.dtype)
    return result
