"""Integrals and means over the grid in equations: sums that are computed before each evaluation of the rates."""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from minga.engine.program import Program
from minga.lang.functions import sum as total
from minga.lang.volumes import cell_sizes, whole_angles
from minga.models.pde.source import Source
from minga.models.pde.translate import Names, translate
from minga.solve.rates import Rates, rates_kernel
from minga.space.field import TIME, Field, Register, Slot
from minga.space.grid import Grid
from minga.space.metric import measures

__all__ = ["Integral", "integrals_of", "preparation"]

WORDS: Final = ("integral", "mean")


@dataclass(frozen=True)
class Integral:
    """An integral or mean in an equation, and the register that holds it.

    Attributes
    ----------
    name
        The keyword of kernels.
    text
        The tree of the call as text, by which it is found in equations.
    source, body
        The equation, and the tree of what is integrated.
    scale
        The factor of the integral: one over the volume of the grid for a mean.
    register
        The register.
    """

    name: str
    text: str
    source: Source
    body: ast.expr
    scale: float
    register: Register


def integrals_of(sources: Iterable[object], grid: Grid) -> tuple[Integral, ...]:
    """Return the integrals and means in some equations, equal ones once.

    Parameters
    ----------
    sources
        Equations; only texts have any.
    grid
        The grid.

    Returns
    -------
    tuple of Integral
        The integrals.

    Raises
    ------
    EquationError
        If an integral contains another one.
    """
    found: dict[str, Integral] = {}
    for source in sources:
        if not isinstance(source, Source):
            continue
        for node in _calls(source.tree):
            text = ast.dump(node)
            if text not in found:
                name = f"integral_{len(found)}"
                scale = _scale(source, node, grid)
                found[text] = Integral(name, text, source, node.args[0], scale, Register(f"pde.{name}"))
    return tuple(found.values())


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Iterate over the calls of integral and mean."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in WORDS:
            yield node


def _scale(source: Source, node: ast.Call, grid: Grid) -> float:
    """Return the factor of an integral, after its call is checked."""
    assert isinstance(node.func, ast.Name)
    if len(node.args) != 1 or node.keywords:
        raise source.error(f"{node.func.id} takes 1 argument", node, f"write {node.func.id}(u)")
    if next(_calls(node.args[0]), None) is not None:
        raise source.error("an integral within an integral", node, "write the inner one outside: it is a number")
    if node.func.id == "integral":
        return 1.0
    sizes = (float(np.sum(measures(grid, axis))) for axis in range(grid.ndim))
    return 1.0 / (math.prod(sizes) * whole_angles(grid.geometry, grid.axes))


def preparation(
    integrals: Sequence[Integral], constants: tuple[Field, ...], numbers: Mapping[str, Any],
    names_of: Callable[[Sequence[Any], Sequence[Any], Any, Mapping[str, Any]], Names],
) -> Callable[[Program, Sequence[Slot]], None]:  # fmt: skip
    """Return the function that records the sums before the rates are evaluated, as `Rates.prepare`.

    Parameters
    ----------
    integrals
        The integrals.
    constants, numbers
        Fields and scalars that equations read.
    names_of
        Returns the meaning of names from fields, constants, the time and scalars of a kernel.

    Returns
    -------
    callable
        The function of a Program and the slots of the fields.
    """

    def compute(state: list[Any], constants: list[Any], **scalars: Any) -> dict[str, Any]:
        names = names_of(state, constants, TIME, scalars)
        volume = functools.reduce(operator.mul, cell_sizes())
        return {
            each.name: total(volume * translate(each.source, names, each.body)) for each in integrals
        }  # fmt: skip

    def prepare(program: Program, slots: Sequence[Slot]) -> None:
        kernel = rates_kernel(compute, "integrals", Rates(names_of, constants, numbers), step=False)  # type: ignore[arg-type]
        found: Any = program.apply(kernel, list(slots), constants, **numbers)
        for each in integrals:
            program.let(each.register, getattr(found, each.name) * each.scale)

    return prepare
