"""Equations as text: mathematical signs become Python's, and the syntax tree is checked against what is allowed.

Nothing is evaluated here. Every part of the tree knows its place in the text as it was written.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from minga.errors import MingaError, suggest
from minga.expression import parse_expression
from minga.lang import elementary, math, operators

__all__ = ["EquationError", "Source", "name_problem", "normal_name", "parse", "unknown"]

LONGEST: Final = 10_000
"""Characters of the longest text."""
DEEPEST: Final = 100
"""Levels of the deepest nesting."""
_SIGNS: Final = {"−": "-", "×": "*", "·": "*", "⋅": "*", "²": "**2", "³": "**3"}
_NABLA: Final = (
    (re.compile(r"\|∇(\w+)\|²"), "gradient_squared({})"),
    (re.compile(r"∇²(\w+)(?![\w(])"), "laplace({})"),
    (re.compile(r"∇²(?=\s*\()"), "laplace"),
    (re.compile(r"∇\s*[·⋅](?=\s*\()"), "div"),
    (re.compile(r"∇(\w+)(?![\w(])"), "grad({})"),
    (re.compile(r"∇(?=\s*\()"), "grad"),
    (re.compile(r"\|(\w+)\|"), "abs({})"),
)
_ALLOWED: Final = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.keyword, ast.Name,
    ast.Constant, ast.Tuple, ast.Load, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.Mod, ast.USub, ast.UAdd,
    ast.Not, ast.And, ast.Or, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE,
)  # fmt: skip
_WORDS: Final = {
    ast.Attribute: "an attribute",
    ast.Subscript: "a subscript",
    ast.Lambda: "a lambda",
    ast.List: "a list",
    ast.Dict: "a dict",
    ast.Set: "a set",
    ast.ListComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.JoinedStr: "a string",
    ast.Starred: "a starred argument",
    ast.NamedExpr: "an assignment",
    ast.Await: "await",
    ast.Yield: "yield",
}
_INSTEAD: Final = {
    "e": "write exp(...)",
    "E": "write exp(...)",
    "I": 'values are real unless the field is complex: give dtype="c16"',
    "ln": "write log(...), the natural logarithm",
    "arcsin": "write asin(...)",
    "arccos": "write acos(...)",
    "arctan": "write atan(...)",
    "integral": "integrals over the grid can appear in equations only",
    "mean": "means over the grid can appear in equations only",
    "noise": "noise is an argument of its own, noise=0.1",
    "time": "write t",
    "random": "noise is an argument of its own, noise=0.1; initial values have random()",
}
"""Remedies for names that other programs have."""
_MODULES: Final = ("np", "numpy", "math", "mg", "minga", "sp", "scipy", "sympy")
"""Names of modules whose functions are written without them."""
_OPERATORS: Final = {
    ast.FloorDiv: ("//", "write floor(a / b)"),
    ast.MatMult: ("@", "write dot(a, b)"),
    ast.BitAnd: ("&", "write `and`"),
    ast.BitOr: ("|", "write `or`; the absolute value is abs(u)"),
    ast.Invert: ("~", "write `not`"),
    ast.LShift: ("<<", "write a product"),
    ast.RShift: (">>", "write a quotient"),
    ast.In: ("in", "write comparisons"),
    ast.NotIn: ("not in", "write comparisons"),
    ast.Is: ("is", "write =="),
    ast.IsNot: ("is not", "write !="),
}


class EquationError(MingaError):
    """A mistake in the text of an equation: the message shows the text, and a caret below the place.

    Parameters
    ----------
    message
        The problem.
    where
        The place: a position in a file, or a phrase.
    remedy
        The correction that is proposed.
    """

    exit_status = 2


@dataclass(frozen=True, slots=True)
class Source:
    """A text with the places that the characters of its Python form come from.

    Attributes
    ----------
    label
        Name of the equation in messages, such as ``"d(u)/dt"``.
    text
        The text as it was written.
    python
        The text with Python's signs.
    places
        For each character of `python` the number of the character of `text` that it stands for.
    tree
        The checked syntax tree.
    """

    label: str
    text: str
    python: str
    places: tuple[int, ...]
    tree: ast.expr

    @property
    def names(self) -> set[str]:
        """All names in the text."""
        return {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}

    def error(self, message: str, node: ast.AST | None, remedy: str | None = None) -> EquationError:
        """Return an error that points at a part of the tree."""
        return _error(self.label, self.text, message, self.column(node), remedy)

    def column(self, node: ast.AST | None) -> int:
        """Return the column of a part of the tree in the text as it was written, from 0."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        return _place(self.python, self.places, line, column)


def _error(label: str, text: str, message: str, column: int, remedy: str | None) -> EquationError:
    """Return an error with the text and a caret; of long texts the part around the place."""
    flat = re.sub(r"\s", " ", text)
    first = max(0, column - 60)
    shown = ("... " if first else "") + flat[first : first + 100] + (" ..." if len(flat) > first + 100 else "")
    caret = " " * (column - first + (4 if first else 0)) + "^"
    return EquationError(f"{label}: {message}\n  {shown}\n  {caret}", where=f"column {column + 1}", remedy=remedy)


def _place(python: str, places: tuple[int, ...], line: int, column: int) -> int:
    """Return the place in the text for a line (from 1) and a column in bytes (from 0) of its Python form."""
    start = sum(len(part) + 1 for part in python.split("\n")[: line - 1])
    rest = python[start:].encode()[:column].decode(errors="ignore")
    number = start + len(rest)
    return places[min(number, len(places) - 1)] if places else 0


def _rewritten(text: str) -> tuple[str, tuple[int, ...]]:
    """Return a text with Python's signs, and where each of its characters comes from."""
    out: list[str] = []
    places: list[int] = []
    at = 0
    while at < len(text):
        piece, length = text[at], 1
        if piece in _SIGNS:
            piece = _SIGNS[piece]
        elif piece in "\n\r\t":
            piece = " "
        elif piece in "|∇":
            for pattern, form in _NABLA:
                match = pattern.match(text, at)
                if match:
                    piece, length = form.format(*match.groups()), len(match.group())
                    break
        out.append(piece)
        places += [at] * len(piece)
        at += length
    return "".join(out), (*places, max(len(text) - 1, 0))


def parse(text: object, label: str) -> Source:
    """Parse and check the text of an expression, without evaluating any of it.

    Parameters
    ----------
    text
        The text.
    label
        Its name in messages.

    Returns
    -------
    Source
        The checked tree and the places of its parts.

    Raises
    ------
    EquationError
        If the text is not an expression of the allowed parts.
    """
    if not isinstance(text, str):
        raise EquationError(f"{label}: expected text, found {type(text).__name__}", remedy='write "laplace(u) - u"')
    if len(text) > LONGEST:
        raise _error(label, text[:50], f"the text has {len(text)} characters, at most {LONGEST} are allowed", 0, None)
    if not text.strip():
        raise EquationError(f"{label}: the text is empty", remedy='write the rate of change, such as "laplace(u)"')
    python, places = _rewritten(text.rstrip())
    _check_brackets(label, text, python, places)
    stripped = len(python) - len(python.lstrip())  # leading blanks would be an indentation
    python, places = python[stripped:], places[stripped:]
    try:
        tree = parse_expression(python)
    except SyntaxError as error:
        raise _syntax(label, text, python, places, error) from None
    except (RecursionError, MemoryError, ValueError):
        raise _error(label, text, "the text cannot be read", 0, "write a shorter expression") from None
    source = Source(label, text, python, places, _unquoted(tree))
    _check_depth(source)
    for node in ast.walk(tree):
        _check_node(source, node)
    return source


def _unquoted(tree: ast.expr) -> ast.expr:
    """Return a tree in which quoted words of options and axes are names: scheme="weno5", d(u, "x")."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword):
            node.value = _word(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "d":
            node.args[1:] = map(_word, node.args[1:])
    return tree


def _word(node: ast.expr) -> ast.expr:
    quoted = isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier()
    return ast.copy_location(ast.Name(node.value, ast.Load()), node) if quoted else node  # type: ignore[attr-defined]


def _check_brackets(label: str, text: str, python: str, places: tuple[int, ...]) -> None:
    depth = 0
    for number, sign in enumerate(python):
        depth += (sign in "([{") - (sign in ")]}")
        if depth > DEEPEST:
            raise _error(label, text, f"brackets are nested more than {DEEPEST} deep", places[number], None)


def _check_depth(source: Source) -> None:
    level: list[ast.AST] = [source.tree]
    for _ in range(10 * DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    last = next((node for node in level if hasattr(node, "col_offset")), None)
    raise source.error(f"the expression is nested more than {10 * DEEPEST} deep", last, "split it into several terms")


def _check_node(source: Source, node: ast.AST) -> None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
        left, right = (ast.unparse(side) for side in (node.left, node.right))
        form = f"{left}**{right}" if len(left + right) < 40 else "u**2"
        raise source.error("a power is written ** here, and ^ is no operator", node.right, f"write {form}")
    operators = [getattr(node, "op", None), *getattr(node, "ops", [])]
    for operator in operators:
        if operator is not None and type(operator) in _OPERATORS:
            sign, remedy = _OPERATORS[type(operator)]
            raise source.error(f"{sign} is not an operator of equations", node, remedy)
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool | int | float):
            return
        if isinstance(node.value, complex):
            raise source.error("a complex number in an equation", node, f"write {node.value.imag:g}*I")
        raise source.error("text in an equation", node, "write names and numbers without quotes")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Constant):
        raise source.error("a number is called like a function", node, f"write {ast.unparse(node.func)}*(...)")
    if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name):
        raise _called_otherwise(source, node)
    if isinstance(node, ast.Subscript) and not isinstance(node.value, ast.Name):
        return  # a component of a vector
    if type(node) not in _ALLOWED and not isinstance(node, ast.operator | ast.unaryop | ast.cmpop | ast.expr_context):
        what = _WORDS.get(type(node), type(node).__name__)
        raise source.error(f"{what} is not allowed in an equation", node, "use names, numbers, operators and functions")


def _called_otherwise(source: Source, node: ast.Call) -> EquationError:
    """Return the error for a call of what is no name, such as np.sin(u) and v.grad(u)."""
    message = "only functions by their names can be called"
    match node.func:
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in _MODULES:
            return source.error(message, node, f"write {name}(...) without {owner}")
        case ast.Attribute(value=owner, attr="grad"):
            return source.error(message, node, f"write dot({ast.unparse(owner)}, grad(...)) for the scalar product")
        case ast.Attribute(attr=name):
            return source.error(message, node, f"write {name}(...)")
    return source.error(message, node, "write a product with *")


def _is_function(word: str) -> bool:
    """Return whether a word is the name of a function or an operator."""
    return any(callable(getattr(module, word, None)) for module in (elementary, math, operators))


def _syntax(label: str, text: str, python: str, places: tuple[int, ...], error: SyntaxError) -> EquationError:
    """Return the error for a text that Python cannot parse, with the likely correction."""
    product = re.search(r"(?<![\w.])(\d+\.?\d*|\.\d+)\s*([^\W\d]\w*)", python)
    if product:
        number, name = product.groups()
        apart = product.group()[len(number)].isspace() and not _is_function(name)
        unit = "; numbers have no units: leave one out" if apart else ""
        return _error(label, text, "a product needs its sign", places[product.start()], f"write {number}*{name}{unit}")
    equation = re.search(r"(?<![=<>!])=(?!=)", python)
    if equation and "(" not in python[: equation.start()]:
        return _error(
            label, text, "an equation gives the right-hand side only", places[equation.start()],
            "write the rate of change without '='",
        )  # fmt: skip
    bar = python.find("|")
    if bar >= 0:
        return _error(label, text, "| is no sign of equations", places[bar], "write abs(...) for the absolute value")
    column = max((error.offset or 1) - 1, 0)
    where = places[min(column, len(places) - 1)]
    two = re.search(r"(\w+|\))\s+(?!and\b|or\b|if\b|else\b|not\b)([^\W\d]\w*)", python)
    remedy = "check operators and brackets"
    if two and two.group(1) != ")":
        one, other = two.groups()
        remedy = f"write {one}({other})" if _is_function(one) else f"write {one}*{other}"
    return _error(label, text, f"this is not an expression ({error.msg})", where, remedy)


def normal_name(name: object) -> str:
    """Return the normal form of a name, which Python gives to the names in texts."""
    return unicodedata.normalize("NFKC", str(name))


def name_problem(name: object, meanings: Mapping[str, str]) -> str | None:
    """Return why a name cannot be one of a field or parameter, or None.

    Parameters
    ----------
    name
        The name.
    meanings
        What names mean in equations.
    """
    if not isinstance(name, str) or not normal_name(name).isidentifier():
        return "a name consists of letters, digits and _"
    try:
        tree = parse_expression(name)
    except SyntaxError:
        tree = None
    if not isinstance(tree, ast.Name):
        return "the name is a word of Python's syntax, which equations cannot contain"
    meaning = meanings.get(normal_name(name))
    return None if meaning is None else f"in equations {name} is {meaning}"


def unknown(source: Source, node: ast.AST, name: str, known: Iterable[str], kind: str = "name") -> EquationError:
    """Return the error for an unknown name, with the nearest known one."""
    names = sorted(known)
    close = suggest(name, [each for each in names if each != "t" or name == "time"])
    remedy = _INSTEAD.get(name) or (f"did you mean {close!r}?" if close else f"known are {', '.join(names)}")
    if re.fullmatch(r"d\d*_dt\d*", name):
        remedy = (
            'equations are of first order in time; a second field holds the first derivative: {"u": "v", "v": "..."}'
        )
    elif kind == "name" and close is None and name not in _INSTEAD and source.label == "d(u)/dt":
        remedy += (
            f'; a parameter is given by parameters={{"{name}": 1.0}}, and the equation of a field {name} is written '
            f'{{"{name}": "..."}}'
        )
    return source.error(f"unknown {kind} {name!r}", node, remedy)
