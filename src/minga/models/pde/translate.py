"""From the checked tree of an equation to an expression of the kernel language."""

from __future__ import annotations

import ast
import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from minga.compile import portable
from minga.errors import MingaError
from minga.lang import elementary, operators
from minga.lang import math as transcendental
from minga.lang.closed import closed_ends
from minga.lang.expr import Node, as_node, extreme, square_root, where
from minga.lang.functions import coordinate
from minga.models.pde import complex_values
from minga.models.pde.complex_values import Pair
from minga.models.pde.operands import Vector, divergence_of_gradient, operand
from minga.models.pde.source import Source, unknown
from minga.models.pde.walls import DERIVATIVE, SYNONYMS, calls, conservative_terms, unclosable

__all__ = [
    "CONSTANTS", "FUNCTIONS", "IMAGINARY_UNIT", "OPERATORS", "Names", "component_number", "meanings", "translate",
]  # fmt: skip

SCHEMES: Final = ("upwind", "up3", "up5", "c2", "c4", "van_leer", "weno5")
MEANS: Final = ("arithmetic", "harmonic")
_LARGEST_EXPONENT: Final = 64

FUNCTIONS: Final[Mapping[str, tuple[int, Callable[..., object]]]] = {
    "abs": (1, operator.abs),
    "acos": (1, elementary.acos),
    "acosh": (1, elementary.acosh),
    "asin": (1, elementary.asin),
    "asinh": (1, elementary.asinh),
    "atan": (1, elementary.atan),
    "atan2": (2, elementary.atan2),
    "atanh": (1, elementary.atanh),
    "ceil": (1, elementary.ceil),
    "clip": (3, elementary.clip),
    "cos": (1, transcendental.cos),
    "cosh": (1, elementary.cosh),
    "erf": (1, elementary.erf),
    "exp": (1, transcendental.exp),
    "expm1": (1, transcendental.expm1),
    "floor": (1, elementary.floor),
    "heaviside": (2, elementary.heaviside),
    "hypot": (2, elementary.hypot),
    "log": (1, transcendental.log),
    "log10": (1, elementary.log10),
    "log1p": (1, transcendental.log1p),
    "log2": (1, elementary.log2),
    "max": (2, lambda *values: extreme("max", values)),
    "min": (2, lambda *values: extreme("min", values)),
    "pow": (2, elementary.pow),
    "round": (1, elementary.round),
    "sign": (1, elementary.sign),
    "sin": (1, transcendental.sin),
    "sinh": (1, elementary.sinh),
    "sqrt": (1, square_root),
    "tan": (1, elementary.tan),
    "tanh": (1, transcendental.tanh),
    "trunc": (1, elementary.trunc),
    "where": (3, where),
}
"""Functions of values by their names, with the number of arguments."""
OPERATORS: Final = (
    "advect", "biharmonic", "curl", "d", "div", "div_grad", "dot", "grad", "gradient_squared",
    "integral", "laplace", "mean",
)  # fmt: skip
"""Operators on fields by their names; `d_dx`, `d2_dx2`, `d2_dxdy` and the like come from the axes of the grid."""
_ARGUMENTS: Final = {
    "advect": "v, u", "curl": "v", "d": "u, x", "div": "v", "div_grad": "k, u", "dot": "v, w",
}  # fmt: skip
"""Arguments of operators in messages, where they are not those of laplace(u)."""
_OPTIONAL: Final = {"heaviside": 1}
_UNLIMITED: Final = ("max", "min")
_BINARY: Final[Mapping[type, Callable[[Any, Any], Any]]] = {
    ast.Add: complex_values.sum_of,
    ast.Sub: complex_values.difference,
    ast.Mult: complex_values.product,
    ast.Div: complex_values.quotient,
    ast.Mod: operator.mod,
}
_COMPARE: Final[Mapping[type, Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
CONSTANTS: Final = {"pi": math.pi}
"""Constants by their names."""
IMAGINARY_UNIT: Final = "I"


@dataclass(slots=True)
class Names:
    """The meaning of the names in an equation while a kernel is traced.

    Attributes
    ----------
    values
        Values of fields and parameters by their names.
    axes
        Names of the grid's axes.
    time
        The value of ``t``; None where there is no time.
    order
        Accuracy of operators for which the text gives none.
    functions
        Functions of values, which differ between kernels and initial values.
    coordinates
        The values of coordinates by axis; empty: those of the kernel's cell.
    operators
        Whether operators on fields may be used.
    complex
        Whether there are complex values: the imaginary unit ``I``, ``re``, ``im``, ``conj`` and ``arg``.
    integrals
        The values of integrals and means by the text of the tree of their call.
    closed
        The ends of axes through which nothing flows of what the equation determines.
    own, numbers
        Names of what the equation determines, and of parameters that are the same everywhere.
    """

    values: Mapping[str, Any]
    axes: Sequence[str]
    time: Any = None
    order: int = 2
    functions: Mapping[str, tuple[int, Callable[..., object]]] = field(default_factory=lambda: FUNCTIONS)
    coordinates: Mapping[str, Any] = field(default_factory=dict)
    operators: bool = True
    complex: bool = False
    integrals: Mapping[str, Any] = field(default_factory=dict)
    closed: Mapping[int, str] = field(default_factory=dict)
    own: Sequence[str] = ()
    numbers: Sequence[str] = ()

    @property
    def known(self) -> set[str]:
        """All names of values."""
        imaginary = (IMAGINARY_UNIT,) if self.complex else ()
        return {*self.values, *self.axes, *CONSTANTS, *imaginary, *(() if self.time is None else ("t",))}

    @property
    def callables(self) -> set[str]:
        """All names of functions and operators."""
        of_pairs = complex_values.FUNCTIONS if self.complex else ()
        return {*self.functions, *of_pairs, *(OPERATORS if self.operators else ()), *self.derivatives}

    @property
    def derivatives(self) -> set[str]:
        """Names of the derivatives along the axes up to the fourth, for messages."""
        if not self.operators:
            return set()
        first = {f"d_d{axis}" for axis in self.axes}
        return first | {f"d{n}_d{axis}{n}" for axis in self.axes for n in (2, 3, 4)}


def meanings(axes: Sequence[str], with_complex: bool = False) -> dict[str, str]:
    """Return what names mean in equations on a grid with these axes: neither fields nor parameters can have them.

    Parameters
    ----------
    axes
        Names of the axes.
    with_complex
        Whether there are complex values.

    Returns
    -------
    dict
        A description of each name.
    """
    names = Names({}, axes, time=0.0, complex=with_complex)
    found = dict.fromkeys(names.derivatives, "a derivative")
    found |= {name: f"another name of {other}" for name, other in SYNONYMS.items()}
    found |= dict.fromkeys((*names.functions, *(complex_values.FUNCTIONS if with_complex else ())), "a function")
    found |= {name: f"the operator {name}({_ARGUMENTS.get(name, 'u')})" for name in OPERATORS}
    found |= {IMAGINARY_UNIT: "the imaginary unit"} if with_complex else {}
    found |= {"t": "the time", "pi": "the number 3.14159...", "noise": "an argument of mg.pde"}
    return found | dict.fromkeys(axes, "the coordinate along an axis of the grid")


def translate(source: Source, names: Names, body: ast.expr | None = None) -> Any:
    """Return the value of an equation's text as an expression of the kernel that is being traced.

    Parameters
    ----------
    source
        The checked text.
    names
        The meaning of names.
    body
        A part of its tree, whose value must be real; by default the whole.

    Returns
    -------
    Node, float or Pair
        The expression, a pair of two if it is complex.

    Raises
    ------
    EquationError
        If a name is unknown or a part has no value.
    """
    translation = _Translation(source, names)
    if body is not None:
        return translation.real(body)
    value = translation.value(source.tree)
    if isinstance(value, Vector):
        raise source.error("the rate of change is a vector", source.tree, "write one equation for each component")
    return value


class _Translation:
    """The translation of one text."""

    def __init__(self, source: Source, names: Names) -> None:
        self.source, self.names = source, names
        self.operands = {ast.dump(part) for part in self._operands()} if names.operators else set()
        self.made: dict[str, Any] = {}
        self.fluxes = self._fluxes() if names.closed else set()

    def _fluxes(self) -> set[int]:
        """Return the calls of the operators whose fluxes are 0 at closed ends, after all others are checked."""
        names = self.names
        derivatives = {node.func.id for node in calls(self.source.tree) if DERIVATIVE.match(node.func.id)}
        found = conservative_terms(self.source.tree, {*names.numbers, *CONSTANTS, "t"})
        wrong = next(unclosable(self.source.tree, found, names.own, derivatives), None)
        if wrong is not None:
            said, remedy = wrong[1:]
            raise self.source.error(said, wrong[0], remedy)
        return {id(node) for node in found}

    def _operands(self) -> Iterator[ast.AST]:
        """Iterate over the expressions that operators are applied to."""
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) not in self.names.functions:
                yield from (part for part in node.args if isinstance(part, ast.Call | ast.BinOp))

    def value(self, node: ast.AST) -> Any:
        """Return the value of a part of the tree; one that an operator is applied to anywhere is computed once."""
        if not self.operands or not isinstance(node, ast.Call | ast.BinOp) or id(node) in self.fluxes:
            return self._value(node)
        text = ast.dump(node)
        if text not in self.operands:
            return self._value(node)
        if text not in self.made:
            value = self._value(node)
            self.made[text] = value if isinstance(value, Vector) else complex_values.linear(operand, value)
        return self.made[text]

    def _value(self, node: ast.AST) -> Any:
        """Return the value of a part of the tree; errors point at it."""
        try:
            return getattr(self, f"_{type(node).__name__.lower()}")(node)
        except MingaError as error:
            if error.where is not None and str(error.where).startswith("column"):
                raise
            raise self.source.error(error.message, node, error.remedy) from error
        except ZeroDivisionError:
            raise self.source.error("division by zero", node) from None
        except OverflowError:
            raise self.source.error("the number is too large", node) from None

    def scalar(self, node: ast.AST) -> Any:
        """Return the value of a part that must be no vector."""
        value = self.value(node)
        if isinstance(value, Vector):
            raise self.source.error("this is a vector where a number is expected", node, "use dot, div, or components")
        return value

    def real(self, node: ast.AST) -> Any:
        """Return the value of a part that must be neither a vector nor complex."""
        value = self.scalar(node)
        if isinstance(value, Pair):
            raise self.source.error("this is complex where a real number is expected", node, "use re, im, abs or arg")
        return value

    def linear(self, operator_: Callable[[Node], Any], node: ast.AST) -> Any:
        """Return a linear operator applied to the value of a part, if it is complex to both of its parts."""
        return complex_values.linear(lambda part: operator_(operand(part)), self.scalar(node))

    def _constant(self, node: ast.Constant) -> float:
        number = float(node.value)  # type: ignore[arg-type]
        if not math.isfinite(number):
            raise self.source.error("the number is too large", node)
        return number

    def _name(self, node: ast.Name) -> Any:
        names, name = self.names, node.id
        if name in names.values:
            return names.values[name]
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name == IMAGINARY_UNIT and names.complex:
            return complex_values.IMAGINARY
        if name == "t" and names.time is not None:
            return names.time
        if name in names.axes:
            return names.coordinates[name] if names.coordinates else coordinate(name)
        if name in names.callables:
            raise self.source.error(f"{name} is a function", node, f"write {name}(...)")
        raise unknown(self.source, node, name, names.known)

    def _tuple(self, node: ast.Tuple) -> Vector:
        if len(node.elts) != len(self.names.axes):
            raise self.source.error(
                f"a vector of {len(node.elts)} components on a grid with axes {', '.join(self.names.axes)}",
                node,
                "give one component for each axis, in this order",
            )
        return Vector(components=tuple(self.scalar(item) for item in node.elts))

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return ~_truth(self.real(node.operand))
        value = self.value(node.operand)
        if isinstance(node.op, ast.UAdd):
            return value
        return value.times(-1.0) if isinstance(value, Vector) else complex_values.negative(value)

    def _binop(self, node: ast.BinOp) -> Any:
        if isinstance(node.op, ast.Pow):
            return self._power(node)
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(left, Vector) or isinstance(right, Vector):
            return self._vectors(node, left, right)
        if isinstance(node.op, ast.Mod):
            left, right = self.real(node.left), self.real(node.right)
        return _BINARY[type(node.op)](left, right)

    def _vectors(self, node: ast.BinOp, left: Any, right: Any) -> Vector:
        match node.op, left, right:
            case ast.Add(), Vector(), Vector():
                return left.plus(right)
            case ast.Sub(), Vector(), Vector():
                return left.plus(right.times(-1.0))
            case (ast.Mult(), Vector(), _) if not isinstance(right, Vector):
                return left.times(right)
            case (ast.Mult(), _, Vector()) if not isinstance(left, Vector):
                return right.times(left)
            case (ast.Div(), Vector(), _) if not isinstance(right, Vector):
                return left.times(complex_values.quotient(1.0, right))
        both = isinstance(left, Vector) and isinstance(right, Vector)
        remedy = "the scalar product is dot(a, b)" if both else "use vectors with vectors and numbers with numbers"
        raise self.source.error("this operation of a vector has no meaning", node, remedy)

    def _power(self, node: ast.BinOp) -> Any:
        base, exponent = self.scalar(node.left), self.real(node.right)
        if isinstance(base, Pair):
            return self._complex_power(node, base, exponent)
        squares = self._squares(node.left)
        if squares is not None and isinstance(exponent, float) and exponent in (2.0, 4.0, 6.0, 8.0):
            return squares if exponent == 2.0 else squares ** (int(exponent) // 2)
        if not isinstance(exponent, float):
            return base**exponent
        if not isinstance(base, float):
            if abs(exponent) > _LARGEST_EXPONENT:
                raise self.source.error(
                    f"an exponent of {exponent:g}; the largest is {_LARGEST_EXPONENT}",
                    node.right,
                    "write exp(n*log(u))",
                )
            return base ** (int(exponent) if exponent.is_integer() else exponent)
        value = base**exponent
        if isinstance(value, complex):
            raise self.source.error("the power of a negative number is complex", node)
        return portable.power(base, exponent)  # C's has other bits on other processors

    def _complex_power(self, node: ast.BinOp, base: Pair, exponent: Any) -> Any:
        """Return a whole power of a complex value."""
        if not isinstance(exponent, float) or not exponent.is_integer() or abs(exponent) > _LARGEST_EXPONENT:
            remedy = f"write a whole exponent up to {_LARGEST_EXPONENT}, or powers of abs(...)"
            raise self.source.error("a complex value to this power", node.right, remedy)
        return complex_values.power(base, int(exponent))

    def _squares(self, node: ast.AST) -> Any:
        """Return the square of abs(z) for a complex z, which needs no root; None for anything else."""
        match node:
            case ast.Call(func=ast.Name(id="abs"), args=[part], keywords=[]):
                value = self.scalar(part)
                return value.squared() if isinstance(value, Pair) else None
        return None

    def _compare(self, node: ast.Compare) -> Any:
        values = [self.real(part) for part in (node.left, *node.comparators)]
        tests = [_COMPARE[type(op)](a, b) for op, a, b in zip(node.ops, values, values[1:], strict=False)]
        return functools.reduce(operator.and_, map(_truth, tests))

    def _boolop(self, node: ast.BoolOp) -> Any:
        tests = [_truth(self.real(part)) for part in node.values]
        return functools.reduce(operator.and_ if isinstance(node.op, ast.And) else operator.or_, tests)

    def _ifexp(self, node: ast.IfExp) -> Any:
        return self._choice(self.real(node.test), self.scalar(node.body), self.scalar(node.orelse))

    def _choice(self, test: Any, yes: Any, no: Any) -> Any:
        """Return one of two values, of which either may be complex."""
        choose = self.names.functions["where"][1]
        if not isinstance(yes, Pair) and not isinstance(no, Pair):
            return choose(_truth(test), yes, no)
        yes, no = Pair.of(yes), Pair.of(no)
        return Pair(choose(_truth(test), yes.re, no.re), choose(_truth(test), yes.im, no.im))

    def _call(self, node: ast.Call) -> Any:
        assert isinstance(node.func, ast.Name)
        name = SYNONYMS.get(node.func.id, node.func.id)
        if name in self.names.functions or (self.names.complex and name in complex_values.FUNCTIONS):
            return self._function(node, name)
        if self.names.operators:
            derivative = self._derivative(node, name)
            if derivative is not None:
                return derivative
            if name in OPERATORS:
                with closed_ends(self.names.closed if id(node) in self.fluxes else {}):
                    return self._operator(node, name)
        if node.func.id in self.names.known:
            remedy = f"write {node.func.id}*(...) for a product"
            raise self.source.error(f"{node.func.id} is no function", node, remedy)
        raise unknown(self.source, node, node.func.id, self.names.callables, "function")

    def _function(self, node: ast.Call, name: str) -> Any:
        number, function = self.names.functions.get(name, (1, None))
        least = _OPTIONAL.get(name, number)
        given = len(node.args)
        if node.keywords:
            raise self.source.error(f"{name} has no options", node.keywords[0].value)
        if given < least or (given > number and name not in _UNLIMITED):
            count = f"{least} or more" if name in _UNLIMITED else f"{least} or {number}" if least < number else number
            plural = "" if count == 1 else "s"
            raise self.source.error(f"{name} takes {count} argument{plural}, found {given}", node)
        if name == "where" and self.names.complex:
            return self._choice(self.real(node.args[0]), *map(self.scalar, node.args[1:]))
        if self.names.complex and name in complex_values.FUNCTIONS:
            real = {each: part for each, (_, part) in self.names.functions.items()}
            return complex_values.FUNCTIONS[name](self.scalar(node.args[0]), real)
        assert function is not None
        return function(*map(self.real, node.args))

    def _derivative(self, node: ast.Call, name: str) -> Any:
        """Return the value of d_dx(u), d3_dx3(u), d2_dxdy(u); None for other names."""
        axes = "|".join(map(re.escape, sorted(self.names.axes, key=len, reverse=True)))
        mixed = re.fullmatch(rf"d2_d({axes})d({axes})|d2_d({axes})({axes})", name)
        plain = re.fullmatch(rf"d(\d*)_d({axes})(\d*)", name)
        if plain and plain.group(1) == plain.group(3):
            options = self._options(node, name, 1, "order")
            n = int(plain.group(1) or 1)
            return self.linear(lambda u: operators.d(u, plain.group(2), n, options["order"]), node.args[0])
        if mixed:
            options = self._options(node, name, 1, "order")
            first, second = (group for group in mixed.groups() if group)
            return self.linear(lambda u: operators.d2(u, first, second, options["order"]), node.args[0])
        return None

    def _operator(self, node: ast.Call, name: str) -> Any:
        match name:
            case "integral" | "mean":
                return self.names.integrals[ast.dump(node)]
            case "laplace" | "biharmonic":
                options = self._options(node, name, 1, "order")
                return self.linear(lambda u: getattr(operators, name)(u, options["order"]), node.args[0])
            case "gradient_squared":
                options = self._options(node, name, 1, "order")
                return operators.gradient_squared(operand(self.real(node.args[0])), options["order"])
            case "grad":
                options = self._options(node, name, 1, "order")
                value = complex_values.linear(operand, self.scalar(node.args[0]))
                return Vector(gradients=((1.0, value, options["order"]),))
            case "div":
                options = self._options(node, name, 1, "order")
                return self.vector(node.args[0]).divergence(options["order"])
            case "div_grad":
                options = self._options(node, name, 2, "order", "mean")
                k, u = self.coefficient(node.args[0]), self.scalar(node.args[1])
                return divergence_of_gradient(k, u, options["order"], options.get("mean", "arithmetic"))
            case "dot":
                self._options(node, name, 2)
                pairs = zip(*(self.vector(part).parts() for part in node.args), strict=True)
                return functools.reduce(complex_values.sum_of, itertools.starmap(complex_values.product, pairs))
            case "curl":
                options = self._options(node, name, 1, "order")
                value = operators.curl(tuple(map(as_node, self.reals(node.args[0]))), options["order"])
                return Vector(components=value) if isinstance(value, tuple) else value
            case "advect":
                options = self._options(node, name, 2, "scheme", "conservative")
                velocity, scheme = self.reals(node.args[0]), options.get("scheme", "upwind")
                conservative = options.get("conservative", True)
                return self.linear(lambda u: operators.advect(velocity, u, scheme, conservative), node.args[1])
        self._options(node, name, 2, "order")
        axis = node.args[1]
        if not isinstance(axis, ast.Name) or axis.id not in self.names.axes:
            raise self.source.error("d takes a value and an axis", axis, f"the axes are {', '.join(self.names.axes)}")
        order = self._options(node, name, 2, "order")["order"]
        return self.linear(lambda u: operators.d(u, axis.id, 1, order), node.args[0])

    def reals(self, node: ast.AST) -> tuple[Any, ...]:
        """Return the components of a vector that must be real."""
        parts = self.vector(node).parts()
        if any(isinstance(part, Pair) for part in parts):
            raise self.source.error("this vector is complex where a real one is expected", node, "use re or im")
        return parts

    def coefficient(self, node: ast.AST) -> Any:
        """Return the first operand of div_grad: a scalar, or a real tensor as a tuple of numbers or of tuples."""
        if not isinstance(node, ast.Tuple):
            return self.scalar(node)
        return tuple(
            tuple(map(self.real, row.elts)) if isinstance(row, ast.Tuple) else self.real(row) for row in node.elts
        )

    def _subscript(self, node: ast.Subscript) -> Any:
        """Return a component of a vector, by the number or the name of its axis."""
        number = component_number(self.source, node, self.names.axes)
        return self.vector(node.value).parts()[number]

    def vector(self, node: ast.AST) -> Vector:
        """Return the value of a part that must be a vector."""
        value = self.value(node)
        if isinstance(value, Vector):
            return value
        if len(self.names.axes) == 1:
            return Vector(components=(value,))
        components = ", ".join(f"v{axis}" for axis in self.names.axes)
        raise self.source.error("a vector is expected", node, f"write grad(u), or components: ({components})")

    def _options(self, node: ast.Call, name: str, arguments: int, *known: str) -> dict[str, Any]:
        """Return the options of an operator, after the number of its arguments is checked."""
        if len(node.args) != arguments:
            said = f"{arguments} argument{'s' if arguments > 1 else ''}"
            raise self.source.error(f"{name} takes {said}, found {len(node.args)}", node)
        options: dict[str, Any] = {"order": self.names.order}
        for item in node.keywords:
            if item.arg not in known:
                raise unknown(self.source, item.value, str(item.arg), known, f"option of {name},")
            options[item.arg] = self._option(item.arg, item.value)
        return options

    def _option(self, name: str, node: ast.expr) -> Any:
        match name, node:
            case "order", ast.Constant(value=int(number)) if not isinstance(number, bool):
                return number
            case "conservative", ast.Constant(value=bool(chosen)):
                return chosen
            case "scheme", ast.Name(id=word) if word in SCHEMES:
                return word
            case "mean", ast.Name(id=word) if word in MEANS:
                return word
        forms = {
            "order": "an even number from 2 to 16",
            "conservative": "True or False",
            "scheme": ", ".join(SCHEMES),
            "mean": ", ".join(MEANS),
        }
        raise self.source.error(f"an invalid value of {name}", node, f"write {forms[name]}")


def component_number(source: Source, node: ast.Subscript, axes: Sequence[str]) -> int:
    """Return the number of the component that a subscript of a vector names: a number from 0, or an axis.

    Parameters
    ----------
    source, node
        The text and the subscript in it.
    axes
        Names of the axes.
    """
    match node.slice:
        case ast.Constant(value=int(number)) if not isinstance(number, bool) and number < len(axes):
            return number
        case ast.Name(id=axis) if axis in axes:
            return list(axes).index(axis)
    remedy = f"write the name of an axis, [{axes[-1]}], or a number from 0 to {len(axes) - 1}"
    raise source.error("a component that the vector does not have", node.slice, remedy)


def _truth(value: Any) -> Any:
    """Return a condition as a bool of the kernel."""
    if isinstance(value, bool | float | int):
        return as_node(bool(value))
    if isinstance(value, Node) and value.dtype != "bool":
        return value != 0.0
    return value
