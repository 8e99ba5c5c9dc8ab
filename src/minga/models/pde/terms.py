"""Equations as sums of operators with constant coefficients applied to values at points, for spectral derivatives.

The checked tree of an equation is rewritten: what is linear in a field, such as `laplace(c**3 - c - g*laplace(c))`,
becomes terms whose operator is a polynomial in derivatives, `laplace` of `c**3`, `-laplace - g laplace²` of `c`.
Derivatives within products become names of auxiliary fields.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from minga.compile.elementwise import evaluated
from minga.lang.expr import as_node
from minga.models.pde.source import Source
from minga.models.pde.translate import CONSTANTS, FUNCTIONS, OPERATORS, component_number
from minga.solve.fft.modes import Symbol, product, total, zero

__all__ = ["Expansion", "Term", "described", "expand"]

_SYNONYMS: Final = {"divergence": "div", "gradient": "grad", "laplacian": "laplace"}
_CONSTANT: Final[Mapping[type, Callable[[complex, complex], complex]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


@dataclass(frozen=True)
class Term:
    """An operator applied to values at points.

    Parameters
    ----------
    symbol
        The operator.
    body
        The tree of the values.
    """

    symbol: Symbol
    body: ast.expr

    @property
    def name(self) -> str | None:
        """The name that the values consist of; None for other values."""
        return self.body.id if isinstance(self.body, ast.Name) else None


@dataclass
class Expansion:
    """Terms of all equations, and the auxiliary fields in them.

    Parameters
    ----------
    axes
        Names of the grid's axes.
    numbers
        Values of constants by name.
    auxiliary
        Terms of auxiliary fields by name, in the order in which they are computed.
    """

    axes: Sequence[str]
    numbers: Mapping[str, complex]
    auxiliary: dict[str, list[Term]] = field(default_factory=dict)
    _known: dict[str, str] = field(default_factory=dict)


def described(terms: Sequence[Term], axes: Sequence[str]) -> str:
    """Return the text of a sum of operators applied to values.

    Parameters
    ----------
    terms
        The terms.
    axes
        Names of the axes.

    Returns
    -------
    str
        The text, such as ``"-1 * d2_dx2(u)"``.
    """
    found = []
    for term in terms:
        body = ast.unparse(term.body)
        for key, factor in term.symbol.items():
            value = body
            for axis, power in zip(axes, key, strict=True):
                value = f"d{power}_d{axis}{power}({value})" if power > 1 else f"d_d{axis}({value})" if power else value
            number = factor if isinstance(factor, complex) and factor.imag else complex(factor).real
            found.append(value if number == 1.0 else f"{number:g} * {value}")
    return " + ".join(found) or "nothing"


def expand(source: Source, expansion: Expansion) -> list[Term]:
    """Return the terms of an equation, of which each operator and body occurs once.

    Parameters
    ----------
    source
        The checked text.
    expansion
        Takes the auxiliary fields.

    Returns
    -------
    list of Term
        The terms.

    Raises
    ------
    EquationError
        If an operator has an option, or no spectral form.
    """
    return _Expander(source, expansion).terms(source.tree)


_WITHOUT_CURL: Final = "write its derivatives, such as d_dx(v) - d_dy(u)"


class _Expander:
    """The expansion of one text."""

    def __init__(self, source: Source, expansion: Expansion) -> None:
        self.source, self.expansion = source, expansion
        self.axes, self.nothing = expansion.axes, {zero(len(expansion.axes)): 1.0}

    # Sums of terms -------------------------------------------------------------------------------------------------
    def terms(self, node: ast.expr) -> list[Term]:
        """Return the terms of a part of the tree."""
        match node:
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                right = self.terms(node.right)
                if isinstance(node.op, ast.Sub):
                    right = _scaled(right, -1.0)
                return _collected([*self.terms(node.left), *right])
            case ast.UnaryOp(op=ast.USub()):
                return _scaled(self.terms(node.operand), -1.0)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.terms(node.operand)
            case ast.BinOp(op=ast.Mult()) if (factor := self.constant(node.left)) is not None:
                return _scaled(self.terms(node.right), factor)
            case ast.BinOp(op=ast.Mult() | ast.Div()) if (factor := self.constant(node.right)) is not None:
                if isinstance(node.op, ast.Div):
                    if factor == 0:
                        raise self.source.error("division by zero", node.right)
                    factor = 1.0 / factor
                return _scaled(self.terms(node.left), factor)
            case ast.Call() if self.is_operator(node):
                return _collected(self.operator(node))
            case ast.Subscript():
                return self.terms(self.component(node))
        return [Term(self.nothing, self.pointwise(node))]

    def constant(self, node: ast.expr) -> complex | None:
        """Return the value of a part that is the same number everywhere and at all times; None for others."""
        match node:
            case ast.Constant(value=int(value) | float(value)) if not isinstance(value, bool):
                return float(value)
            case ast.Name():
                return CONSTANTS.get(node.id, self.expansion.numbers.get(node.id))
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                operand = self.constant(node.operand)
                return -operand if operand is not None and isinstance(node.op, ast.USub) else operand
            case ast.BinOp() if type(node.op) in _CONSTANT:
                left, right = self.constant(node.left), self.constant(node.right)
                return None if left is None or right is None else _computed(_CONSTANT[type(node.op)], left, right)
            case ast.Call(keywords=[]) if (name := self.name_of(node)) in FUNCTIONS:
                values = [self.constant(arg) for arg in node.args]
                real = [float(value.real) for value in values if value is not None and value.imag == 0.0]
                return _of_constants(name, real) if len(real) == len(values) else None
        return None

    def pointwise(self, node: ast.expr) -> ast.expr:
        """Return a part of the tree with auxiliary fields in place of operators."""
        if isinstance(node, ast.Call) and self.is_operator(node):
            return self.auxiliary(node)
        if isinstance(node, ast.Subscript):
            return self.pointwise(self.component(node))
        changed: dict[str, Any] = {}
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                changed[name] = self.pointwise(value)
            elif isinstance(value, list):
                changed[name] = [self.pointwise(item) if isinstance(item, ast.expr) else item for item in value]
        if not changed:
            return node
        fields = {name: changed.get(name, value) for name, value in ast.iter_fields(node)}
        return ast.copy_location(type(node)(**fields), node)

    def auxiliary(self, node: ast.Call) -> ast.expr:
        """Return the name of the auxiliary field of an operator's value."""
        known, key = self.expansion._known, ast.dump(node)
        if key not in known:
            terms = self.terms(node)
            name = f"@{len(self.expansion.auxiliary) + 1}"
            self.expansion.auxiliary[name] = terms
            known[key] = name
        return ast.copy_location(ast.Name(known[key], ast.Load()), node)

    # Operators -----------------------------------------------------------------------------------------------------
    def is_operator(self, node: ast.Call) -> bool:
        """Return True for a call of an operator on fields."""
        return self.name_of(node) in OPERATORS or self.derivative(node) is not None

    def name_of(self, node: ast.Call) -> str:
        """Return the name of what is called."""
        assert isinstance(node.func, ast.Name)
        return _SYNONYMS.get(node.func.id, node.func.id)

    def derivative(self, node: ast.Call) -> Symbol | None:
        """Return the operator of d_dx, d3_dx3, d2_dxdy; None for other names."""
        name = self.name_of(node)
        axes = "|".join(map(re.escape, sorted(self.axes, key=len, reverse=True)))
        mixed = re.fullmatch(rf"d2_d({axes})d?({axes})", name)
        plain = re.fullmatch(rf"d(\d*)_d({axes})(\d*)", name)
        if plain and plain.group(1) == plain.group(3):
            return {self.along(plain.group(2), int(plain.group(1) or 1)): 1.0}
        if mixed:
            first, second = (self.along(axis, 1) for axis in mixed.groups())
            return {tuple(map(operator.add, first, second)): 1.0}
        return None

    def along(self, axis: str, n: int) -> tuple[int, ...]:
        """Return the key of a derivative along an axis."""
        return tuple(n if each == axis else 0 for each in self.axes)

    def operator(self, node: ast.Call) -> list[Term]:
        """Return the terms of an operator's value."""
        name, args = self.name_of(node), list(node.args)
        self.check_options(node, name)
        symbol = self.derivative(node)
        laplace: Symbol = {self.along(axis, 2): 1.0 for axis in self.axes}
        if name == "d" and len(args) == 2:
            axis = args.pop()
            if not isinstance(axis, ast.Name) or axis.id not in self.axes:
                raise self.source.error("d takes a value and an axis", axis, f"the axes are {', '.join(self.axes)}")
            symbol = {self.along(axis.id, 1): 1.0}
        elif name in ("laplace", "biharmonic"):
            symbol = laplace if name == "laplace" else product(laplace, laplace)
        if symbol is not None:
            self.check_count(node, name, args, 1)
            return [Term(product(symbol, term.symbol), term.body) for term in self.terms(args[0])]
        return self.of_vectors(node, name, args)

    def of_vectors(self, node: ast.Call, name: str, args: list[ast.expr]) -> list[Term]:
        """Return the terms of an operator that takes vectors, or makes some in between."""
        self.check_count(node, name, args, 1 if name in ("div", "gradient_squared", "grad", "curl") else 2)
        match name:
            case "div":
                return self.divergence(self.components(args[0]))
            case "div_grad":
                return self.divergence(self.flux(node, args[0], self.gradient(args[1])))
            case "gradient_squared":
                return self.products(self.gradient(args[0]), self.gradient(args[0]))
            case "dot":
                return self.products(self.components(args[0]), self.components(args[1]))
            case "advect" if self.conservative(node):
                return self.divergence([_times(part, args[1]) for part in self.components(args[0])])
            case "advect":
                return self.products(self.components(args[0]), self.gradient(args[1]))
        raise self.source.error(f"{name} has no spectral form here", node, _WITHOUT_CURL)

    def component(self, node: ast.Subscript) -> ast.expr:
        """Return a component of a vector."""
        return self.components(node.value)[component_number(self.source, node, self.axes)]

    def flux(self, node: ast.expr, k: ast.expr, gradient: Sequence[ast.expr]) -> list[ast.expr]:
        """Return the components of k times a gradient, where k may be a tuple of numbers or the rows of a tensor."""
        if not isinstance(k, ast.Tuple):
            return [_times(k, part) for part in gradient]
        rows = [row.elts if isinstance(row, ast.Tuple) else row for row in k.elts]
        wide = len(rows) == len(gradient) and all(
            isinstance(row, ast.expr) or len(row) == len(gradient) for row in rows
        )
        if not wide:
            raise self.source.error(f"the tensor has not {len(gradient)} rows and columns", k, "give one for each axis")
        return [
            _times(row, gradient[axis])
            if isinstance(row, ast.expr)
            else functools.reduce(
                lambda a, b: ast.copy_location(ast.BinOp(a, ast.Add(), b), node), map(_times, row, gradient)
            )
            for axis, row in enumerate(rows)
        ]

    def divergence(self, parts: Sequence[ast.expr]) -> list[Term]:
        """Return the terms of the divergence of components."""
        return [
            Term(product({self.along(axis, 1): 1.0}, term.symbol), term.body)
            for axis, part in zip(self.axes, parts, strict=True)
            for term in self.terms(part)
        ]

    def products(self, a: Sequence[ast.expr], b: Sequence[ast.expr]) -> list[Term]:
        """Return the terms of a scalar product."""
        return [term for pair in zip(a, b, strict=True) for term in self.terms(_times(*pair))]

    def gradient(self, node: ast.expr) -> list[ast.expr]:
        """Return the components of a gradient."""
        return [
            ast.copy_location(ast.Call(ast.copy_location(ast.Name(f"d_d{axis}", ast.Load()), node), [node], []), node)
            for axis in self.axes
        ]

    def components(self, node: ast.expr) -> list[ast.expr]:
        """Return the components of a vector."""
        match node:
            case ast.Tuple() if len(node.elts) == len(self.axes):
                return list(node.elts)
            case ast.Call() if self.name_of(node) == "grad" and len(node.args) == 1:
                self.check_options(node, "grad")
                return self.gradient(node.args[0])
            case ast.UnaryOp():
                return [ast.copy_location(ast.UnaryOp(node.op, part), node) for part in self.components(node.operand)]
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                pairs = zip(self.components(node.left), self.components(node.right), strict=True)
                return [ast.copy_location(ast.BinOp(a, node.op, b), node) for a, b in pairs]
            case ast.BinOp(op=ast.Mult()) if self.is_vector(node.right):
                return [_times(node.left, part) for part in self.components(node.right)]
            case ast.BinOp(op=ast.Mult() | ast.Div()) if self.is_vector(node.left):
                parts = self.components(node.left)
                return [ast.copy_location(ast.BinOp(part, node.op, node.right), node) for part in parts]
        if isinstance(node, ast.Call) and self.name_of(node) == "curl":
            raise self.source.error("curl has no spectral form here", node, _WITHOUT_CURL)
        if len(self.axes) == 1:
            return [node]
        names = ", ".join(f"v{axis}" for axis in self.axes)
        raise self.source.error("a vector is expected", node, f"write grad(u), or components: ({names})")

    def is_vector(self, node: ast.expr) -> bool:
        """Return True for a part that is a vector."""
        match node:
            case ast.Tuple():
                return True
            case ast.Call():
                return self.name_of(node) == "grad"
            case ast.UnaryOp():
                return self.is_vector(node.operand)
            case ast.BinOp():
                return self.is_vector(node.left) or self.is_vector(node.right)
        return False

    # Checks --------------------------------------------------------------------------------------------------------
    def check_options(self, node: ast.Call, name: str) -> None:
        """Raise an error for options of differences."""
        for item in node.keywords:
            if not (name == "advect" and item.arg == "conservative"):
                raise self.source.error(
                    f"{name} takes no {item.arg}= here", item.value, "spectral derivatives have no order and no scheme"
                )

    def check_count(self, node: ast.Call, name: str, args: Sequence[ast.expr], wanted: int) -> None:
        """Raise an error for another number of arguments."""
        if len(args) != wanted:
            plural = "" if wanted == 1 else "s"
            raise self.source.error(f"{name} takes {wanted} argument{plural}, found {len(args)}", node)

    def conservative(self, node: ast.Call) -> bool:
        """Return the option of advect."""
        return not any(isinstance(item.value, ast.Constant) and item.value.value is False for item in node.keywords)


def _computed(function: Callable[[complex, complex], complex], left: complex, right: complex) -> complex | None:
    """Return a function of two constants; None if it has no value, or real constants give a complex one."""
    try:
        found = function(left, right)
    except (ZeroDivisionError, OverflowError):
        return None
    real = isinstance(left, float) and isinstance(right, float)
    return None if real and isinstance(found, complex) else found


def _of_constants(name: str, values: Sequence[float]) -> float | None:
    """Return a function of real constants; None if it takes another number of them, or its value is not finite."""
    try:
        found = float(evaluated(as_node(FUNCTIONS[name][1](*values)), {}))
    except TypeError:
        return None  # the number of arguments, which the translation refuses with its place
    return found if math.isfinite(found) else None


def _times(a: ast.expr, b: ast.expr) -> ast.expr:
    return ast.copy_location(ast.BinOp(a, ast.Mult(), b), b)


def _scaled(terms: Sequence[Term], factor: complex) -> list[Term]:
    return [
        dataclasses.replace(term, symbol={key: factor * value for key, value in term.symbol.items()}) for term in terms
    ]


def _collected(terms: Sequence[Term]) -> list[Term]:
    """Return terms of which each body occurs once, and then each operator."""
    bodies: dict[str, Term] = {}
    for term in terms:
        key = ast.dump(term.body)
        symbol = total(bodies[key].symbol, term.symbol) if key in bodies else term.symbol
        bodies[key] = Term(symbol, term.body)
    return list(bodies.values())
