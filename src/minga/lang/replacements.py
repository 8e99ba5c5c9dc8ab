"""Replacements in kernels for functions of NumPy or `math`, which act on numbers and not on expressions."""

from __future__ import annotations

from typing import Final

__all__ = ["FUNCTIONS", "replacement_for"]

FUNCTIONS: Final = (
    "abs", "acos", "acosh", "advect", "asin", "asinh", "atan", "atan2", "atanh", "biharmonic", "bitreverse", "cast",
    "cbrt", "ceil", "clip", "coordinate", "cos", "cosh", "curl", "d", "d2", "derivative", "div", "div_grad", "erf",
    "exp", "expm1", "floor", "flush", "fma", "grad", "gradient_squared", "heaviside", "hypot", "index", "iterate",
    "laplace", "local", "log", "log10", "log1p", "log2", "lookup", "max", "min", "popcount", "pow", "random", "round",
    "sign", "sin", "sinh", "spacing", "sqrt", "tan", "tanh", "trunc", "where",
)  # fmt: skip
"""The functions of `mg.` that return a cell's value; tests compare them with the public names."""

_REPLACEMENTS: Final = {
    "absolute": "mg.abs(x)", "fabs": "mg.abs(x)", "maximum": "mg.max(x, y)", "fmax": "mg.max(x, y)",
    "minimum": "mg.min(x, y)", "fmin": "mg.min(x, y)", "square": "x * x",
    "power": "x**y", "float_power": "x**y", "negative": "-x", "reciprocal": "1 / x", "rint": "mg.round(x)",
    "exp2": "2.0**x", "arcsin": "mg.asin(x)", "arccos": "mg.acos(x)", "arctan": "mg.atan(x)",
    "arctan2": "mg.atan2(y, x)", "arcsinh": "mg.asinh(x)", "arccosh": "mg.acosh(x)", "arctanh": "mg.atanh(x)",
    "fix": "mg.trunc(x)", "isnan": "x != x",
    "logical_and": "(a) & (b)", "logical_or": "(a) | (b)", "logical_not": "~(a)", "invert": "~x", "mod": "x % y",
    "fmod": "x % y", "gradient": "mg.grad(u)",
}  # fmt: skip


def replacement_for(name: str) -> str:
    """Return an instruction for writing a function of this name in a kernel."""
    if name in FUNCTIONS:
        return f"write mg.{name}"
    if name in _REPLACEMENTS:
        return f"write {_REPLACEMENTS[name]}"
    return f"there is no mg.{name}: a kernel has operators and {', '.join(f'mg.{each}' for each in FUNCTIONS)}"
