"""Spectral derivatives in equations on periodic boxes: what a stage of an integrator has to record."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.expr import as_node, cast
from minga.models.pde.source import Source
from minga.models.pde.system import PREFIX, System
from minga.models.pde.terms import Expansion, Term, expand
from minga.models.pde.translate import Names, translate
from minga.solve.fft.etdrk4 import ModalRates
from minga.solve.fft.modes import Modes, Symbol, total
from minga.solve.fft.transform import Spectrum
from minga.solve.integrators import Rates, rates_kernel
from minga.space.field import TIME, Field, Slot

__all__ = ["Spectral"]


class Spectral:
    """The rates of a system of equations by spectral derivatives.

    Parameters
    ----------
    system
        The equations, which must be texts of real fields.
    fields
        The fields.
    constants
        Fields of the parameters that depend on the place.
    dealias
        The share of modes along each axis that is kept.

    Raises
    ------
    ProgramError
        If an equation is a function or complex, or a field has another type than f8.
    LayoutError
        If the grid is no periodic box.
    """

    def __init__(self, system: System, fields: Sequence[Field], constants: Sequence[Field], dealias: float) -> None:
        self.system, self.fields, self.constants = system, tuple(fields), tuple(constants)
        self.modes = Modes(system.grid, dealias, name="spectral")
        _check(system, fields)
        self.sources = [source for source in system.equations if isinstance(source, Source)]
        expansion = Expansion(system.grid.axes, system.constants)
        self.terms = [expand(source, expansion) for source in self.sources]
        self.linear = tuple(
            next((term.symbol for term in terms if term.name == item.name), {})
            for item, terms in zip(fields, self.terms, strict=True)
        )
        self.auxiliary = {name: (terms, self._field(f"derivative {name[1:]}"))
                          for name, terms in expansion.auxiliary.items()}  # fmt: skip
        self.work = self._field("values")
        self.scratch: list[Spectrum] = []
        self.plain = Rates(lambda *_: (), self.constants, {PREFIX + each: v for each, v in system.numbers.items()})

    @property
    def workspace(self) -> tuple[Field, ...]:
        """All fields, once the rates have been recorded."""
        spectra = (item for spectrum in self.scratch for item in spectrum.fields)
        return *self.modes.fields, *(item for _, item in self.auxiliary.values()), self.work, *spectra

    def _field(self, name: str) -> Field:
        return Field(f"spectral {name}", self.system.grid, description="workspace of spectral derivatives")

    # Two forms of the rates ----------------------------------------------------------------------------------------
    def modal(self) -> ModalRates:
        """Return the rates for exponential integrators: what is linear in the field itself apart from the rest."""

        def nonlinear(
            program: Program, values: Sequence[Slot], spectra: Sequence[Spectrum], out: Sequence[Spectrum]
        ) -> None:
            self._derivatives(program, values, spectra)
            for item, source, terms, target in zip(self.fields, self.sources, self.terms, out, strict=True):
                rest = [term for term in terms if term.name != item.name]
                self._sum(program, source, rest, values, spectra, target)

        return ModalRates(self.modes, self.linear, nonlinear)

    def pointwise(self) -> tuple[Rates, tuple[Field, ...]]:
        """Return the rates for other integrators, as fields that are computed before each stage, and its fields."""
        count = len(self.constants)
        found = tuple(self._field(f"rate of {item.name}") for item in self.fields)
        clean = tuple(self._field(f"kept modes of {item.name}") for item in self.fields)
        state = tuple(self.modes.fft.spectrum(f"spectral {item.name}") for item in self.fields)
        result = self.modes.fft.spectrum("spectral rate")

        def prepare(program: Program, values: Sequence[Slot]) -> None:
            for value, spectrum in zip(values, state, strict=True):
                self.modes.fft.forward(program, value, spectrum)
            if self.modes.dealias < 1:
                for item, spectrum in zip(clean, state, strict=True):
                    self.modes.keep(program, spectrum)
                    self.modes.fft.inverse(program, spectrum, item)
                values = [item.now for item in clean]
            self._derivatives(program, values, state)
            for source, terms, target in zip(self.sources, self.terms, found, strict=True):
                self._sum(program, source, terms, values, state, result)
                self.modes.fft.inverse(program, result, target)

        def function(cells: Sequence[Any], constants: Sequence[Any], t: Any, **scalars: Any) -> list[Any]:
            here = (0,) * self.system.grid.ndim
            return [rate[here] for rate in constants[count:]]

        def noise(cells: Sequence[Any], constants: Sequence[Any], t: Any, **scalars: Any) -> list[Any]:
            return self.system.amplitudes(cells, constants[:count], t, **scalars)

        rates = Rates(
            function, (*self.constants, *found), self.plain.scalars, noise if self.system.noise else None, prepare
        )
        spectra = (item for spectrum in (*state, result) for item in spectrum.fields)
        return rates, (*found, *(clean if self.modes.dealias < 1 else ()), *spectra)

    # Recording -----------------------------------------------------------------------------------------------------
    def _derivatives(self, program: Program, values: Sequence[Slot], spectra: Sequence[Spectrum]) -> None:
        """Record the auxiliary fields: derivatives that are multiplied by something."""
        for terms, target in self.auxiliary.values():
            spectrum = self._spectrum(0)
            self._sum(program, self.sources[0], terms, values, spectra, spectrum)
            self.modes.fft.inverse(program, spectrum, target)

    def _sum(
        self, program: Program, source: Source, terms: Sequence[Term], values: Sequence[Slot],
        spectra: Sequence[Spectrum], target: Spectrum,
    ) -> None:  # fmt: skip
        """Record the spectrum of a sum of terms."""
        by_name = dict(zip(self.system.names, spectra, strict=True))
        parts = [(term.symbol, by_name[term.name]) for term in terms if term.name in by_name]
        for number, (symbol, body) in enumerate(_grouped([term for term in terms if term.name not in by_name]), 1):
            self._evaluate(program, source, body, values)
            spectrum = self._spectrum(number)
            self.modes.fft.forward(program, self.work, spectrum)
            parts.append((symbol, spectrum))
        self.modes.combine(program, parts, target)

    def _spectrum(self, number: int) -> Spectrum:
        """Return a spectrum of the workspace."""
        while len(self.scratch) <= number:
            self.scratch.append(self.modes.fft.spectrum(f"spectral product {len(self.scratch)}"))
        return self.scratch[number]

    def _evaluate(self, program: Program, source: Source, body: ast.expr, values: Sequence[Slot]) -> None:
        """Record the values of an expression at the points."""
        text = dataclasses.replace(source, tree=ast.Expression(body))
        needed = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)}
        states = {name: slot for name, slot in zip(self.system.names, values, strict=True) if name in needed}
        others = {name: item for name, (_, item) in self.auxiliary.items() if name in needed}
        placed = {name: item for name, item in zip(self.system.placed, self.constants, strict=True) if name in needed}
        names = (*states, *others, *placed)
        here = (0,) * self.system.grid.ndim

        def evaluate(given: list[Any], out: Any, **scalars: Any) -> None:
            known: Mapping[str, Any] = {name: reader[here] for name, reader in zip(names, given, strict=True)}
            numbers = {each.removeprefix(PREFIX): value for each, value in scalars.items()}
            value = translate(text, Names({**known, **numbers}, self.system.grid.axes, as_node(TIME)))
            out[here] = cast(as_node(value), "f8")

        kernel = rates_kernel(evaluate, "values", self.plain, step=False)
        program.apply(kernel, [*states.values(), *others.values(), *placed.values()], self.work, **self.plain.scalars)


def _check(system: System, fields: Sequence[Field]) -> None:
    """Raise ProgramError for equations that have no spectral form."""
    for item, equation in zip(system.unknowns, system.equations, strict=True):
        if not isinstance(equation, Source):
            raise ProgramError(
                f"d({item})/dt is a function, and functions have no spectral derivatives", remedy="write it as a text"
            )
    if system.complex:
        raise ProgramError(
            f"{system.complex[0]!r} is complex, and spectral derivatives are those of real fields",
            remedy="write two real fields",
        )
    for field in fields:
        if field.dtype != "f8":
            raise ProgramError(f"spectral derivatives of {field!r}", remedy='give dtype="f8"')
        if any(condition is not None for pair in field.boundary.sides for condition in pair):
            raise ProgramError(f"conditions of {field.name!r}, whose modes are periodic", remedy="leave boundary= out")


def _grouped(terms: Sequence[Term]) -> list[tuple[Symbol, ast.expr]]:
    """Return terms of which those with one operator up to a factor are added up first."""
    groups: dict[tuple[tuple[tuple[int, ...], float], ...], ast.expr] = {}
    for term in terms:
        key = tuple(sorted(total({}, term.symbol).items()))
        body = groups.get(key)
        groups[key] = term.body if body is None else ast.copy_location(ast.BinOp(body, ast.Add(), term.body), term.body)
    return [(dict(key), body) for key, body in groups.items()]
