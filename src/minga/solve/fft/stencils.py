"""Rates of change by differences in the space of modes: stencils with constant coefficients become eigenvalues.

On a periodic grid of equal cells the modes of a field are eigenvectors of every stencil with constant coefficients, and
sum over offsets of c exp(i k offset) are its eigenvalues. The coefficients are the derivatives of the part of the rates
that is linear; terms that couple fields, and those with coefficients that depend on place or time, belong to the rest.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Final

from minga.engine.program import Program
from minga.errors import KernelError, ProgramError
from minga.lang.expr import Node, as_node, cast, where
from minga.lang.functions import index
from minga.lang.functions import max as largest
from minga.lang.graph import topological
from minga.lang.linear import linear_parts
from minga.lang.math import cos, sin
from minga.solve.fft.transform import FFT, Spectrum
from minga.solve.modal_rates import ModalOperator, ModalRates
from minga.solve.rates import Rates, rates_kernel
from minga.solve.row_entries import row_entries
from minga.space.box import Box
from minga.space.field import TIME, Field, Register, Slot

__all__ = ["modal_rates"]

Offsets = tuple[int, ...]
Stencil = dict[Offsets, Node]

_ROUNDING: Final = 1e-14
"""Sum of coefficients beside the sum of their absolute values that is rounding, and counts as 0."""
_MOST: Final = 20000
"""Most operations of a linear part."""


def modal_rates(rates: Rates, fields: Sequence[Field]) -> ModalRates:
    """Return rates by differences in the space of modes.

    Parameters
    ----------
    rates
        The rates of change.
    fields
        The fields, f8, on a periodic Cartesian grid with cells of one width along each axis.

    Returns
    -------
    ModalRates
        The same rates.

    Raises
    ------
    ProgramError
        If the grid or a field has no such modes, or no term is linear in its own field with constant coefficients.
    """
    _check(fields)
    return _Stencils(rates, tuple(fields)).modal()


class _Stencils:
    """The split of rates into stencils with constant coefficients and the rest, and its recording."""

    def __init__(self, rates: Rates, fields: tuple[Field, ...]) -> None:
        self.rates, self.fields, grid = rates, fields, fields[0].grid
        self.here = (0,) * grid.ndim
        self.parts = 2 if rates.pairs else 1
        self.fft = FFT(grid, complex=rates.pairs, name="modes")
        self.offsets = self._found()
        if not any(any(offset) for part in self.offsets for offset in part):
            raise ProgramError(
                "no term of the rates is linear in its own field, with constant coefficients, and reads neighbours",
                remedy='use a method that needs none, such as "rk4" or "tr-bdf2"',
            )
        leaders = fields[:: self.parts]
        self.work = tuple(Field(f"{item.name}@rest", grid) for item in fields)
        self.eigenvalues = tuple(self.fft.spectrum(f"{item.name}@eigenvalue") for item in leaders)
        names = ("re", "im")[: self.parts]
        self.known = [
            {
                (number % self.parts, offset): Register(f"{fields[number].name}.{names[number % self.parts]} {offset}")
                for offset in sorted(offsets)
            }
            for number, offsets in enumerate(self.offsets)
        ]

    # Tracing -------------------------------------------------------------------------------------------------------
    def split(
        self, state: Sequence[Any], constants: Sequence[Any], scalars: Mapping[str, Any]
    ) -> tuple[list[Stencil], list[Node]]:
        """Return the stencil that belongs to each field, and the rest of the rates, in a kernel.

        Of a pair of fields the first has the real coefficients, and the second the imaginary ones.
        """
        own = [item.parameter for item in state]
        found = [as_node(value) for value in self.rates.function(state, constants, TIME, **scalars)]
        parts = linear_parts(found, lambda node: node.op == "read" and node.data[0] in own)
        rows = [{} if linear is None else dict(row_entries(linear, own, _MOST)) for linear, _ in parts]
        chosen = [self._chosen(rows, own, number) for number in range(len(own))]
        rest = [
            functools.reduce(
                operator.add, self._terms(state, rows, chosen, number), as_node(0.0 if other is None else other)
            )
            for number, (_, other) in enumerate(parts)
        ]
        return chosen, rest

    def _chosen(self, rows: Sequence[Mapping[Any, Node]], own: Sequence[int], number: int) -> Stencil:
        """Return the constant parts of the entries by the leading field of an unknown."""
        lead = own[number - number % self.parts]
        entries = {offset: entry for (field, offset), entry in rows[number].items() if field == lead}
        constant = {offset: self._constant_part(entry) for offset, entry in entries.items()}
        return {offset: part for offset, part in constant.items() if part is not None}

    def _constant_part(self, entry: Node) -> Node | None:
        """Return the terms of a sum that depend on numbers and on scalars of the rates only; None if there are none."""
        if self._is_constant(entry):
            return None if entry.op == "const" and entry.data == 0 else entry
        if entry.of is not None or entry.op not in ("add", "sub", "neg", "mul", "div"):
            return None
        parts = [self._constant_part(arg) for arg in entry.args]
        known = [part for part in parts if part is not None]
        if entry.op in ("add", "sub", "neg"):
            signed = [
                -part if entry.op == "neg" or (entry.op == "sub" and at) else part
                for at, part in enumerate(parts)
                if part is not None
            ]
            return functools.reduce(operator.add, signed) if signed else None
        if len(known) < 2 or not any(map(self._is_constant, entry.args[entry.op == "div" :])):
            return None
        return known[0] * known[1] if entry.op == "mul" else known[0] / known[1]

    def _is_constant(self, entry: Node) -> bool:
        """Return True if an expression depends on numbers and on scalars of the rates only."""
        return all(
            node.args or node.op == "const" or (node.op == "scalar" and self._given(str(node.data)))
            for node in topological([entry])
        )

    def _given(self, name: str) -> bool:
        """Return True for scalars that stay the same during a step: neither the time nor an integral of the fields."""
        if name not in self.rates.scalars:
            return name.startswith("@")
        value = self.rates.scalars[name]
        return value is not TIME and (self.rates.prepare is None or not isinstance(value, Register))

    def _terms(
        self, state: Sequence[Any], rows: Sequence[Mapping[Any, Node]], chosen: Sequence[Stencil], number: int
    ) -> list[Node]:
        """Return the linear terms of a rate that are not those of its stencil."""
        own, part = [item.parameter for item in state], number % self.parts
        lead = number - part
        # What the stencil says of this rate: of the pair (a, b), a' = A a - B b and b' = B a + A b.
        said: dict[tuple[int, Offsets], Node] = {}
        for other in range(self.parts):
            for offset, entry in chosen[lead + (part ^ other)].items():
                said[own[lead + other], offset] = -entry if other > part else entry
        terms: list[Node] = []
        for key in dict.fromkeys((*rows[number], *said)):
            found, known = rows[number].get(key), said.get(key)
            if found is known:
                continue
            left = found if known is None else -known if found is None else found - known
            terms.append(left * state[own.index(key[0])][key[1]])
        return terms

    def _found(self) -> list[list[Offsets]]:
        """Return the offsets of the stencil of each field."""
        found: list[list[Offsets]] = []

        def look(state: list[Any], constants: list[Any], **scalars: Any) -> Any:
            found[:] = [list(stencil) for stencil in self.split(state, constants, scalars)[0]]
            return largest(state[0][self.here])

        kernel = rates_kernel(look, "stencils", self.rates, step=False)
        try:
            Program("trial").apply(kernel, list(self.fields), self.rates.constants, **self.rates.scalars)
        except KernelError as error:
            raise ProgramError(
                f"the linear part of the rates: {error.message}", remedy='use "ars443", which needs no modes'
            ) from error
        return found

    # Recording -----------------------------------------------------------------------------------------------------
    def modal(self) -> ModalRates:
        """Return the rates in the space of modes."""
        operators = tuple(
            ModalOperator(spectrum.fields, lambda tables: (tables[0][self.here], tables[1][self.here]), False)
            for spectrum in self.eigenvalues
        )
        fields = (*self.work, *(item for spectrum in self.eigenvalues for item in spectrum.fields), *self.fft.fields)
        return ModalRates(self.fft, operators, self.nonlinear, renew=self.renew, fields=fields)

    def nonlinear(
        self, program: Program, values: Sequence[Slot], spectra: Sequence[Spectrum], out: Sequence[Spectrum]
    ) -> None:
        """Record the spectra of the rest of the rates."""

        def compute(state: list[Any], constants: list[Any], rest: list[Any], **scalars: Any) -> None:
            for target, value in zip(rest, self.split(state, constants, scalars)[1], strict=True):
                target[self.here] = cast(value, "f8")

        self.rates.ready(program, values)
        kernel = rates_kernel(compute, "rest", self.rates, step=False)
        program.apply(kernel, values, self.rates.constants, self.work, **self.rates.scalars)
        for number, target in enumerate(out):
            self.fft.forward(program, self.work[number * self.parts : (number + 1) * self.parts], target)

    def renew(self, program: Program) -> Register:
        """Record the coefficients in one cell, and new eigenvalues if they have changed."""
        words = {
            f"c{n}_{k}": (n, offset) for n, part in enumerate(self.offsets) for k, offset in enumerate(sorted(part))
        }

        def compute(state: list[Any], constants: list[Any], **scalars: Any) -> dict[str, Any]:
            stencils = self.split(state, constants, scalars)[0]
            return {word: largest(stencils[number][offset]) for word, (number, offset) in words.items()}

        cell = Box(self.here, (1,) * len(self.here))
        kernel = rates_kernel(compute, "coefficients", self.rates, step=False)
        found: Any = program.apply(kernel, list(self.fields), self.rates.constants, region=cell, **self.rates.scalars)
        changed = Register(f"{program.name}.changed", "bool")
        pairs = [
            (self.known[number][number % self.parts, offset], getattr(found, word))
            for word, (number, offset) in words.items()
        ]
        program.let(changed, functools.reduce(operator.or_, (known != new for known, new in pairs)))
        with program.when(changed):
            for known, new in pairs:
                program.let(known, new)
            for number, spectrum in enumerate(self.eigenvalues):
                known_here = {key: register for part in self.known[number * self.parts : (number + 1) * self.parts]
                              for key, register in part.items()}  # fmt: skip
                self.eigenvalue(program, known_here, spectrum)
        return changed

    def eigenvalue(self, program: Program, known: Mapping[tuple[int, Offsets], Register], target: Spectrum) -> None:
        """Record the eigenvalues of a stencil.

        They are written as differences with those of the mode 0, whose eigenvalue is the sum of all coefficients:
        c (exp(i a) - 1) = c (-2 sin(a/2)^2 + i sin(a)), so that long waves lose no digits.
        """
        words = {f"c{number}": key for number, key in enumerate(known)}
        scalars: dict[str, Any] = {word: known[key] for word, key in words.items()}

        def compute(out: list[Any], **scalars: Any) -> None:
            half = self._half_angles()
            sums = [[scalars[word] for word, (part, _) in words.items() if part == which] for which in range(2)]
            totals = [_total(each) for each in sums]
            for word, (part, offset) in words.items():
                c = scalars[word]
                if not any(offset):
                    continue
                angle = functools.reduce(operator.add, (n * a for n, a in zip(offset, half, strict=True) if n))
                s = sin(angle)
                even, odd = -2.0 * (c * (s * s)), 2.0 * (c * (s * cos(angle)))
                re, im = (even, odd) if part == 0 else (-odd, even)
                totals = [totals[0] + re, totals[1] + im]
            for item, value in zip(out, totals, strict=True):
                item[self.here] = value

        kernel = rates_kernel(compute, "eigenvalues", Rates(self.rates.function, (), dict.fromkeys(words)), step=False)
        program.apply(kernel, target.fields, **scalars)

    def _half_angles(self) -> list[Node]:
        """Return half of the phase between neighbours along each axis, in a kernel over the modes."""
        found: list[Node] = []
        for line in sorted(self.fft.lines, key=lambda each: each.axis):
            mode = index(line.axis)
            signed = mode if line.kind == "half" else where(2 * mode <= line.n, mode, mode - line.n)
            found.append(cast(signed, "f8") * (math.pi / line.n))
        return found


def _total(values: Sequence[Any]) -> Node:
    """Return the sum of some coefficients; 0 where it is rounding."""
    if not values:
        return as_node(0.0)
    total = functools.reduce(operator.add, values)
    size = functools.reduce(operator.add, (abs(as_node(value)) for value in values))
    return where(abs(as_node(total)) <= _ROUNDING * size, 0.0, total)


def _check(fields: Sequence[Field]) -> None:
    """Raise ProgramError for fields that have no modes."""
    grid = fields[0].grid
    box = all(grid.periodic) and not grid.twisted and grid.geometry == "cartesian"
    if not box or not all(grid.uniform(axis) for axis in range(grid.ndim)):
        raise ProgramError(
            f"modes on {grid!r}: they need a periodic Cartesian box, with cells of one width along each axis",
            remedy='use "ars443" or "tr-bdf2", whose implicit parts limit no step on any grid',
        )
    for item in fields:
        conditions = any(condition is not None for pair in item.boundary.sides for condition in pair)
        if item.grid != grid or item.dtype != "f8" or any(item.centre) or item.on is not None or conditions:
            raise ProgramError(
                f"modes of {item!r}",
                remedy="declare fields as f8, at the cells of one periodic grid, without boundary=",
            )
