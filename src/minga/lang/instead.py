"""Replacements in kernels for functions of NumPy or `math`, which act on numbers and not on expressions."""

from __future__ import annotations

from typing import Final

__all__ = ["FUNCTIONS", "instead_of"]

FUNCTIONS: Final = (
    "abs", "cast", "coordinate", "cos", "derivative", "exp", "expm1", "flush", "fma", "index", "iterate", "local",
    "log", "log1p", "lookup", "max", "min", "popcount", "random", "sin", "sqrt", "tanh", "where",
)  # fmt: skip
"""The functions of `mg.` that return a cell's value; tests compare them with the public names."""

_OTHERWISE: Final = {
    "absolute": "mg.abs(x)", "fabs": "mg.abs(x)", "maximum": "mg.max(x, y)", "fmax": "mg.max(x, y)",
    "minimum": "mg.min(x, y)", "fmin": "mg.min(x, y)", "clip": "mg.min(mg.max(x, low), high)", "square": "x * x",
    "power": "x**2, or mg.exp(y * mg.log(x))", "pow": "x**2, or mg.exp(y * mg.log(x))", "negative": "-x",
    "reciprocal": "1 / x", "floor": "x // 1", "ceil": "-(-x // 1)", "rint": "(x + 0.5) // 1", "round": "(x + 0.5) // 1",
    "tan": "mg.sin(x) / mg.cos(x)", "cosh": "0.5 * (mg.exp(x) + mg.exp(-x))",
    "sinh": "0.5 * (mg.expm1(x) - mg.expm1(-x))",
    "exp2": "mg.exp(x * math.log(2))", "log2": "mg.log(x) / math.log(2)", "log10": "mg.log(x) / math.log(10)",
    "hypot": "mg.sqrt(x * x + y * y)", "sign": "mg.where(x > 0, 1.0, mg.where(x < 0, -1.0, 0.0))", "isnan": "x != x",
    "logical_and": "(a) & (b)", "logical_or": "(a) | (b)", "logical_not": "~(a)", "invert": "~x", "mod": "x % y",
    "fmod": "x % y", "heaviside": "mg.where(x > 0, 1.0, 0.0)",
}  # fmt: skip


def instead_of(name: str) -> str:
    """Return an instruction for writing a function of this name in a kernel."""
    if name in FUNCTIONS:
        return f"write mg.{name}"
    if name in _OTHERWISE:
        return f"write {_OTHERWISE[name]}"
    return f"there is no mg.{name}: a kernel has operators and {', '.join(f'mg.{each}' for each in FUNCTIONS)}"
