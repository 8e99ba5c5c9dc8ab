"""Terms of equations as texts that are fluxes, and of these the ones by which something may leave through walls."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

__all__ = ["DERIVATIVE", "SYNONYMS", "calls", "conservative_terms", "leaking", "unclosable"]

SYNONYMS: Final = {"divergence": "div", "gradient": "grad", "arctan2": "atan2", "laplacian": "laplace"}
"""Other names of functions and operators."""
DERIVATIVE: Final = re.compile(r"d\d*(_d\w+)?$")
"""Names of derivatives along axes."""
_FLUXES: Final = ("advect", "div", "div_grad", "laplace")
_REFUSED: Final = ("advect", "biharmonic", "div", "div_grad", "grad", "laplace")
_REMEDY: Final = (
    "write what flows as a sum of div(...), laplace(...) and advect(...) times numbers, or give another condition such "
    "as mg.neumann(0.0)"
)
_SUMS: Final = ("integral", "mean")


def calls(tree: ast.AST) -> list[Any]:
    """Return the calls in a text, whose functions are names."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]


def conservative_terms(tree: ast.expr, numbers: Collection[str]) -> list[ast.Call]:
    """Return the calls of which an equation is the sum, perhaps times numbers, and which are fluxes through faces.

    Parameters
    ----------
    tree
        The tree of the equation.
    numbers
        Names of values that are the same everywhere.

    Returns
    -------
    list of ast.Call
        The calls, in the order of the text.
    """
    match tree:
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            return [*conservative_terms(tree.left, numbers), *conservative_terms(tree.right, numbers)]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            return conservative_terms(tree.operand, numbers)
        case ast.BinOp(op=ast.Mult() | ast.Div()) if _is_number(tree.right, numbers):
            return conservative_terms(tree.left, numbers)
        case ast.BinOp(op=ast.Mult()) if _is_number(tree.left, numbers):
            return conservative_terms(tree.right, numbers)
        case ast.Call() if _word(tree) in _FLUXES and not _carries(tree):
            return [tree]
    return []


def unclosable(
    tree: ast.expr, fluxes: Sequence[ast.Call], own: Sequence[str], derivatives: Collection[str]
) -> Iterator[tuple[ast.AST, str, str]]:
    """Yield operators on a field whose walls are closed that are no flux, with what is wrong and the remedy.

    Parameters
    ----------
    tree
        The tree of the equation.
    fluxes
        The calls that are fluxes, as `conservative_terms` returns them.
    own
        Names of the field and its parts.
    derivatives
        Names of derivatives along axes that the text has.

    Yields
    ------
    tuple
        The call, and two sentences.
    """
    for node in _outside(tree, fluxes):
        word = _word(node)
        if word not in _REFUSED and word not in derivatives:
            continue
        if _names(node) & set(own):
            said = f"{word} of {'/'.join(own)} is here no flux that mg.no_flux() could make 0 at the wall"
            yield node, said, _REMEDY


def _outside(tree: ast.AST, fluxes: Sequence[ast.Call]) -> Iterator[Any]:
    """Yield all calls but fluxes and the gradients of which they consist, and what is in integrals."""
    known = {id(node) for node in fluxes}
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, inside = waiting.pop()
        if isinstance(node, ast.Call):
            word = _word(node)
            if word in _SUMS:  # what they add up has no closed walls
                waiting += [(child, False) for child in ast.iter_child_nodes(node)]
                continue
            flux = id(node) in known
            if not flux and not (inside and (word == "grad" or DERIVATIVE.match(word))):
                yield node
            inside = flux and word == "div"
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]


def leaking(
    tree: ast.expr, numbers: Collection[str], mirrored: Collection[str], axes: Sequence[str], walls: Collection[int]
) -> list[str]:
    """Return the terms of an equation through which something may flow at walls where du/dn = 0.

    Parameters
    ----------
    tree
        The tree of the equation.
    numbers
        Names of values that are the same everywhere.
    mirrored
        Names of fields with du/dn = 0 at these walls.
    axes
        Names of the axes.
    walls
        Numbers of the axes with walls that have this condition because none was given.

    Returns
    -------
    list of str
        The texts of the terms.
    """
    even = {*numbers, *mirrored}
    return [ast.unparse(term) for term in conservative_terms(tree, numbers) if _leaks(term, even, len(axes), walls)]


def _leaks(term: ast.Call, even: Collection[str], ndim: int, walls: Collection[int]) -> bool:
    match _word(term):
        case "laplace":
            return not _names(term) <= set(even)
        case "div_grad":
            return len(term.args) == 2 and not _names(term.args[1]) <= set(even)
        case "advect":
            return bool(term.args) and _has_component(term.args[0], ndim, walls)
    return bool(term.args) and _flows(term.args[0], even, ndim, walls)


def _flows(vector: ast.expr, even: Collection[str], ndim: int, walls: Collection[int]) -> bool:
    """Return whether a vector may have a component through walls that is no gradient of mirrored values."""
    match vector:
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            return _flows(vector.left, even, ndim, walls) or _flows(vector.right, even, ndim, walls)
        case ast.UnaryOp():
            return _flows(vector.operand, even, ndim, walls)
        case ast.BinOp(op=ast.Mult()) if _has_gradient(vector.left) or isinstance(vector.left, ast.Tuple):
            return _flows(vector.left, even, ndim, walls)
        case ast.BinOp(op=ast.Mult()) if _has_gradient(vector.right) or isinstance(vector.right, ast.Tuple):
            return _flows(vector.right, even, ndim, walls)
        case ast.BinOp(op=ast.Div()):
            return _flows(vector.left, even, ndim, walls)
        case ast.Call() if _word(vector) == "grad":
            return not _names(vector) <= set(even)
    return _has_component(vector, ndim, walls)


def _has_component(vector: ast.expr, ndim: int, walls: Collection[int]) -> bool:
    """Return whether a vector has a component along an axis with walls that is not the number 0."""
    if not isinstance(vector, ast.Tuple) or len(vector.elts) != ndim:
        return not _is_zero(vector)
    return any(not _is_zero(part) for axis, part in enumerate(vector.elts) if axis in walls)


def _is_zero(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _has_gradient(node: ast.AST) -> bool:
    return any(_word(each) == "grad" for each in calls(node))


def _carries(node: ast.Call) -> bool:
    """Return whether this is velocity . grad u."""
    return any(
        item.arg == "conservative" and isinstance(item.value, ast.Constant) and item.value.value is False
        for item in node.keywords
    )


def _is_number(node: ast.AST, numbers: Collection[str]) -> bool:
    if any(_word(each) in (*_REFUSED, *_SUMS) for each in calls(node)):
        return False
    return _names(node) <= set(numbers)


def _word(node: ast.Call) -> str:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    return SYNONYMS.get(name, name)


def _names(node: ast.AST) -> set[str]:
    """Return the names of values in a text, without those of functions and options."""
    functions = {id(each.func) for each in calls(node)}
    options = {id(each) for call in calls(node) for item in call.keywords for each in ast.walk(item.value)}
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and id(each) not in functions and id(each) not in options
    }
