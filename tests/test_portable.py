"""Results depend on no function whose bits depend on the processor: NumPy's and C's elementary functions, and BLAS."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import minga

SOURCE = Path(minga.__file__).parent
ROOMS = ("lang", "compile", "space", "engine", "solve", "case", "models", "examples")
"""Rooms whose code makes or advances the state of a run."""

_ELEMENTARY = {
    "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "asin", "asinh", "atan",
    "atan2", "atanh", "cbrt", "cos", "cosh", "dist", "erf", "erfc", "exp", "exp2", "expm1", "gamma", "hypot", "lgamma",
    "log", "log10", "log1p", "log2", "pow", "power", "sin", "sinh", "tan", "tanh",
}  # fmt: skip
_OF_NUMPY = {
    "angle", "convolve", "correlate", "dot", "einsum", "fft", "float_power", "geomspace", "i0", "inner", "linalg",
    "logaddexp", "logaddexp2", "logspace", "matmul", "polyfit", "sinc", "tensordot", "vdot",
}  # fmt: skip
FORBIDDEN = {"math": _ELEMENTARY, "np": _ELEMENTARY | _OF_NUMPY, "cmath": _ELEMENTARY}
ALLOWED = {
    "solve/row_blocks.py": ({"np.linalg", "np.matmul", "@"}, "the solution is refined until they do not matter"),
    "solve/refinement.py": ({"np.linalg"}, "the solution is refined until they do not matter"),
    "solve/fft/convolve.py": ({"math.log2"}, "estimates the time of a convolution"),
    "models/electrodeposition/liquids.py": ({"math.exp", "math.log"}, "notes for people"),
    "models/electrodeposition/preflight.py": ({"math.tanh", "math.hypot"}, "notes for people"),
    "models/photodiode/preflight.py": ({"@"}, "notes for people"),
    "models/photodiode/recurrence.py": ({"np.linalg", "@"}, "the solution is refined until they do not matter"),
    "models/waves/frequency_bands.py": ({"np.fft"}, "rounded to twelve digits"),
    "models/waves/preflight.py": ({"math.sin", "math.cos", "math.asin"}, "notes for people"),
    "models/waves/reflection.py": ({"np.exp", "math.log10"}, "notes for people"),
    "models/waves/wavelet_file.py": ({"np.fft"}, "only the place of the largest value is used"),
}
"""What files may use all the same, and why."""
WITHOUT = ("models/matmul/",)
"""Products of matrices are as accurate on all processors, and have other bits: docs/matmul.md says so."""


_NAMES = "|".join(_ELEMENTARY | _OF_NUMPY)
_PERHAPS = re.compile(
    rf"\b(np|c?math)\.({_NAMES})\b|^from (c?math|numpy) import| @=? |\*\*=? ?\d*\.\d|\*\* ?\(|\d ?\*\* ?", re.M
)


def uses(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each use of what is forbidden."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if _PERHAPS.search(text) else ():
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if name in FORBIDDEN.get(module, ()):
                yield node.lineno, f"{module}.{name}"
            case ast.ImportFrom(module="math" | "cmath" | "numpy", names=names):
                found = {name.name for name in names} & (_ELEMENTARY | _OF_NUMPY)
                yield from ((node.lineno, name) for name in sorted(found))
            case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
                yield node.lineno, "@"
            case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=float(exponent))) if not exponent.is_integer():
                yield node.lineno, f"** {exponent}"
            case ast.BinOp(op=ast.Pow(), left=ast.Call(func=ast.Name(id="Decimal"))):
                pass  # Decimals have the same digits everywhere.
            case ast.BinOp(op=ast.Pow(), right=ast.BinOp(op=ast.Div())):
                yield node.lineno, f"** ({ast.unparse(node.right)})"
            case ast.BinOp(op=ast.Pow(), left=ast.Constant(value=float(base)), right=exponent) if base != 2.0:
                yield node.lineno, f"{base} ** {ast.unparse(exponent)}"


def test_results_depend_on_no_function_of_the_processor() -> None:
    found: list[str] = []
    unused = {(name, use) for name, (allowed, _) in ALLOWED.items() for use in allowed}
    for room in ROOMS:
        for path in sorted((SOURCE / room).rglob("*.py")):
            name = path.relative_to(SOURCE).as_posix()
            if name.startswith(WITHOUT) or "/cli/" in name:
                continue
            allowed = ALLOWED.get(name, (set(), ""))[0]
            for line, use in uses(path):
                unused.discard((name, use))
                if use not in allowed:
                    found.append(f"{name}:{line}: {use}")
    assert not found, "use minga.compile.portable, or say in ALLOWED why not:\n" + "\n".join(found)
    assert not unused, f"no longer needed in ALLOWED: {sorted(unused)}"


def test_uses_are_found(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text(
        "from math import exp\nx = np.exp(a @ b) ** 1.5 + np.linalg.norm(c) + math.sqrt(d) + e ** 2\n"
        "y = 10.0 ** a + 2.0 ** b + c ** (-1.0 / 3.0) + Decimal(10) ** (d / e)\n"
    )
    assert sorted(uses(path)) == [
        (1, "exp"), (2, "** 1.5"), (2, "@"), (2, "np.exp"), (2, "np.linalg"), (3, "** (-1.0 / 3.0)"), (3, "10.0 ** a"),
    ]  # fmt: skip
