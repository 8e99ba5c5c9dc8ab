"""Derivatives of periodic fields in the space of their modes: polynomials in i k, evaluated by kernels."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from minga.compile.explain import Kernel
from minga.engine.program import Program
from minga.errors import LayoutError
from minga.solve.fft.symbols import angles, wave_numbers
from minga.solve.fft.transform import FFT, Spectrum
from minga.space.field import Field
from minga.space.grid import Floats, Grid

__all__ = ["Modes", "Symbol", "is_real", "product", "total", "zero"]

Symbol = Mapping[tuple[int, ...], complex]
"""A differential operator with constant coefficients: the factor of each product of derivatives along the axes."""


def zero(ndim: int) -> tuple[int, ...]:
    """Return the key of no derivative."""
    return (0,) * ndim


def product(a: Symbol, b: Symbol) -> Symbol:
    """Return the operator that applies one after the other."""
    found: dict[tuple[int, ...], complex] = {}
    for m, x in a.items():
        for n, y in b.items():
            key = tuple(map(operator.add, m, n))
            found[key] = found.get(key, 0.0) + x * y
    return found


def total(a: Symbol, b: Symbol) -> Symbol:
    """Return the sum of two operators."""
    return dict(a) | {key: a.get(key, 0.0) + value for key, value in b.items()}


def is_real(symbol: Symbol) -> bool:
    """Return True if an operator has real eigenvalues, as even derivatives with real coefficients have."""
    return not any(_eigenvalue(key, factor).imag for key, factor in symbol.items())


def _eigenvalue(key: tuple[int, ...], factor: complex) -> complex:
    """Return the factor of the wave numbers in the eigenvalue of a derivative: i^n times that of the derivative."""
    return complex(factor) * (1, 1j, -1, -1j)[sum(key) % 4]


@dataclass(frozen=True, eq=False)
class Modes:
    """The modes of fields on a periodic grid, with their wave numbers.

    Parameters
    ----------
    grid
        A periodic Cartesian grid with cells of one width along each axis.
    dealias
        The share of modes along each axis that products keep: 2/3 for squares, 1/2 for cubes; 1 keeps all.
    complex
        Whether fields come in pairs, of real and imaginary parts.
    name
        The beginning of the names of all fields.

    Raises
    ------
    LayoutError
        If the grid is unsuitable.
    """

    grid: Grid
    dealias: float = 1.0
    complex: bool = False
    name: str = "modes"
    fft: FFT = field(init=False)
    tables: tuple[Field, ...] = field(init=False)
    """One-axis fields: wave numbers of all axes, those of odd derivatives, and which modes are kept (1 or 0)."""
    initial: Mapping[Field, Floats] = field(init=False)

    def __post_init__(self) -> None:
        uniform = all(isinstance(width, float) for width in self.grid.spacing)
        if not all(self.grid.periodic) or not uniform or self.grid.geometry != "cartesian" or self.grid.twisted:
            raise LayoutError(
                f"spectral derivatives on {self.grid!r}",
                remedy="they need a periodic Cartesian box, with cells of one width along each axis",
            )
        if not 0 < self.dealias <= 1:
            raise LayoutError(f"dealias={self.dealias}", remedy="give 2/3 for squares, 1/2 for cubes, or 1")
        put = object.__setattr__
        put(self, "fft", FFT(self.grid, complex=self.complex, name=self.name))
        values: dict[Field, Floats] = {}
        for kind in ("wave number", "odd wave number", "kept"):
            for axis, letter in enumerate(self.grid.axes):
                item = Field(f"{self.name} {kind} {letter}", self.fft.modes, axes=(axis,))
                values[item] = self._values(kind, axis)
        put(self, "tables", tuple(values))
        put(self, "initial", values)

    def _values(self, kind: str, axis: int) -> Floats:
        line = next(line for line in self.fft.lines if line.axis == axis)
        numerators, n = angles(line)
        spacing = self.grid.spacing[axis]
        assert isinstance(spacing, float)
        if kind == "kept":
            share = Fraction(self.dealias).limit_denominator(1000)
            return (np.abs(numerators) < float(share * n) if share < 1 else np.ones(len(numerators))).astype(np.float64)
        numbers = wave_numbers(line, spacing)
        # The mode of alternating signs has no odd derivative at the points.
        return np.where(np.abs(numerators) == n, 0.0, numbers) if kind == "odd wave number" else numbers

    @property
    def fields(self) -> tuple[Field, ...]:
        """The tables and the workspace of the transform."""
        return *self.tables, *self.fft.fields

    def symbol(self, tables: Sequence[Any], symbol: Symbol) -> tuple[Any, Any]:
        """Return the real and the imaginary part of an operator's eigenvalue in a kernel; None for 0.

        Parameters
        ----------
        tables
            The kernel's parameters for `tables`.
        symbol
            The operator.
        """
        ndim = self.grid.ndim
        even, odd = [k[0] for k in tables[:ndim]], [k[0] for k in tables[ndim : 2 * ndim]]
        parts: list[Any] = [None, None]
        for key, factor in symbol.items():
            eigenvalue = _eigenvalue(key, factor)
            for which, number in enumerate((eigenvalue.real, eigenvalue.imag)):
                if not number and (which or eigenvalue):
                    continue
                value: Any = number
                for axis, power in enumerate(key):
                    for count in range(power):
                        value = value * (odd[axis] if power % 2 and count == 0 else even[axis])
                parts[which] = value if parts[which] is None else parts[which] + value
        return parts[0], parts[1]

    def kept(self, tables: Sequence[Any]) -> Any:
        """Return 1.0 for a mode that is kept, 0.0 for others, in a kernel.

        Parameters
        ----------
        tables
            The kernel's parameters for `tables`.
        """
        return functools.reduce(operator.mul, (each[0] for each in tables[2 * self.grid.ndim :]))

    def keep(self, program: Program, spectrum: Spectrum) -> None:
        """Record that the modes of a spectrum which are not kept become 0.

        Parameters
        ----------
        program
            The Program to record into.
        spectrum
            The spectrum.
        """
        if self.dealias < 1:
            self.combine(program, [({zero(self.grid.ndim): 1.0}, spectrum)], spectrum)

    def combine(self, program: Program, terms: Sequence[tuple[Symbol, Spectrum]], target: Spectrum) -> None:
        """Record target = sum of operators applied to spectra, without the modes that are not kept.

        Parameters
        ----------
        program
            The Program to record into.
        terms
            Operators and the spectra that they are applied to; `target` may be one of these.
        target
            The sum.
        """
        here = zero(self.grid.ndim)

        def combine(tables: list[Any], sources: list[Any], target: list[Any]) -> None:
            re: Any = 0.0
            im: Any = 0.0
            for number, (symbol, _) in enumerate(terms):
                x, y = sources[2 * number][here], sources[2 * number + 1][here]
                a, b = self.symbol(tables, symbol)
                if a is not None:
                    re, im = re + a * x, im + a * y
                if b is not None:
                    re, im = re - b * y, im + b * x
            share = self.kept(tables) if self.dealias < 1 else 1.0
            target[0][here], target[1][here] = share * re, share * im

        sources = [item for _, spectrum in terms for item in spectrum.fields]
        program.apply(Kernel(combine, name="modes"), self.tables, sources, target.fields)
