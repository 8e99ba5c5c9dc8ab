"""Spectral derivatives in equations on periodic boxes: what a stage of an integrator has to record."""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.expr import as_node, cast
from minga.models.pde.complex_values import Pair, part_names
from minga.models.pde.source import Source
from minga.models.pde.system import PREFIX, System
from minga.models.pde.terms import Expansion, Term, expand
from minga.models.pde.translate import Names, translate
from minga.solve.fft.modes import Modes, Symbol, is_real
from minga.solve.fft.transform import Spectrum
from minga.solve.modal_rates import ModalOperator, ModalRates
from minga.solve.rates import Rates, rates_kernel
from minga.space.field import TIME, Field, Slot

__all__ = ["Spectral"]


class Spectral:
    """The rates of a system of equations by spectral derivatives.

    Parameters
    ----------
    system
        The equations, which must be texts; the unknowns are all real or all complex.
    fields
        The fields.
    constants
        Fields of the parameters that depend on the place.
    dealias
        The share of modes along each axis that is kept.

    Raises
    ------
    ProgramError
        If an equation is a function, unknowns are of both kinds, or a field has another type than f8 or c16.
    LayoutError
        If the grid is no periodic box.
    """

    def __init__(self, system: System, fields: Sequence[Field], constants: Sequence[Field], dealias: float) -> None:
        self.system, self.fields, self.constants = system, tuple(fields), tuple(constants)
        self.modes = Modes(system.grid, dealias, bool(system.complex), name="spectral")
        _check(system, fields)
        self.sources = [source for source in system.equations if isinstance(source, Source)]
        expansion = Expansion(system.grid.axes, _numbers(system))
        self.terms = [expand(source, expansion) for source in self.sources]
        self.linear = tuple(
            next((term.symbol for term in terms if term.name == name), {})
            for name, terms in zip(system.unknowns, self.terms, strict=True)
        )
        self.auxiliary = {
            name: (terms, self._fields(f"derivative {name[1:]}")) for name, terms in expansion.auxiliary.items()
        }
        self.work = self._fields("values")
        self.scratch: list[Spectrum] = []
        self.plain = Rates(lambda *_: (), self.constants, {PREFIX + each: v for each, v in system.numbers.items()})

    @property
    def workspace(self) -> tuple[Field, ...]:
        """All fields, once the rates have been recorded."""
        spectra = (item for spectrum in self.scratch for item in spectrum.fields)
        derivatives = (item for _, pair in self.auxiliary.values() for item in pair)
        return *self.modes.fields, *derivatives, *self.work, *spectra

    @property
    def _parts(self) -> int:
        """Number of fields of an unknown."""
        return 2 if self.modes.complex else 1

    def _fields(self, name: str) -> tuple[Field, ...]:
        """Return a real or complex field of the workspace."""
        names = part_names(name) if self.modes.complex else (name,)
        about = "workspace of spectral derivatives"
        return tuple(Field(f"spectral {each}", self.system.grid, description=about) for each in names)

    # Two forms of the rates ----------------------------------------------------------------------------------------
    def modal(self) -> ModalRates:
        """Return the rates for exponential integrators: what is linear in the field itself apart from the rest."""

        def nonlinear(
            program: Program, values: Sequence[Slot], spectra: Sequence[Spectrum], out: Sequence[Spectrum]
        ) -> None:
            self._derivatives(program, values, spectra)
            for name, source, terms, target in zip(self.system.unknowns, self.sources, self.terms, out, strict=True):
                rest = [term for term in terms if term.name != name]
                self._sum(program, source, rest, values, spectra, target)

        operators = tuple(
            ModalOperator(self.modes.tables, functools.partial(self.modes.symbol, symbol=symbol), is_real(symbol))
            for symbol in self.linear
        )
        return ModalRates(self.modes.fft, operators, nonlinear, self.modes.keep if self.modes.dealias < 1 else None)

    def pointwise(self) -> tuple[Rates, tuple[Field, ...]]:
        """Return the rates for other integrators, as fields that are computed before each stage, and its fields."""
        count = len(self.constants)
        unknowns = self.system.unknowns
        rates_of = [self._fields(f"rate of {name}") for name in unknowns]
        found = tuple(item for pair in rates_of for item in pair)
        clean = tuple(item for name in unknowns for item in self._fields(f"kept modes of {name}"))
        state = tuple(self.modes.fft.spectrum(f"spectral {name}") for name in unknowns)
        result = self.modes.fft.spectrum("spectral rate")

        def grouped(slots: Sequence[Slot]) -> list[Sequence[Slot]]:
            return [slots[at : at + self._parts] for at in range(0, len(slots), self._parts)]

        def prepare(program: Program, values: Sequence[Slot]) -> None:
            for value, spectrum in zip(grouped(values), state, strict=True):
                self.modes.fft.forward(program, value, spectrum)
            if self.modes.dealias < 1:
                values = [item.now for item in clean]
                for value, spectrum in zip(grouped(values), state, strict=True):
                    self.modes.keep(program, spectrum)
                    self.modes.fft.inverse(program, spectrum, value)
            self._derivatives(program, values, state)
            for source, terms, target in zip(self.sources, self.terms, rates_of, strict=True):
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
        by_name = dict(zip(self.system.unknowns, spectra, strict=True))
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
        known = self._readable(values)
        needed = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)}
        names = tuple(name for name in known if name in needed or self._whole(name) in needed)
        here = (0,) * self.system.grid.ndim
        system = self.system

        def evaluate(given: list[Any], out: list[Any], **scalars: Any) -> None:
            found = {each.removeprefix(PREFIX): value for each, value in scalars.items()}
            found |= {name: reader[here] for name, reader in zip(names, given, strict=True)}
            for name in (*system.complex, *system.pairs, *(self.auxiliary if system.complex else ())):
                pair = part_names(name)
                if all(part in found for part in pair):
                    found[name] = Pair(*(found[part] for part in pair))
            value = translate(text, Names(found, system.grid.axes, as_node(TIME), complex=bool(system.complex)))
            parts = (value,) if len(out) == 1 else (Pair.of(value).re, Pair.of(value).im)
            for item, part in zip(out, parts, strict=True):
                item[here] = cast(as_node(part), "f8")

        kernel = rates_kernel(evaluate, "values", self.plain, step=False)
        program.apply(kernel, [known[name] for name in names], self.work, **self.plain.scalars)

    def _readable(self, values: Sequence[Slot]) -> dict[str, Field | Slot]:
        """Return all that an expression may read, by name; complex values are two fields."""
        found: dict[str, Field | Slot] = dict(zip(self.system.names, values, strict=True))
        found |= zip(self.system.placed, self.constants, strict=True)
        for name, (_, pair) in self.auxiliary.items():
            names = part_names(name) if self.modes.complex else (name,)
            found |= zip(names, pair, strict=True)
        return found

    def _whole(self, name: str) -> str:
        """Return the complex value that a field belongs to, or its own name."""
        wholes = (*self.system.complex, *self.system.pairs, *self.auxiliary)
        return next((each for each in wholes if name in part_names(each)), name)


def _numbers(system: System) -> dict[str, complex]:
    """Return the parameters that are the same numbers everywhere, complex ones included, and the imaginary unit."""
    found: dict[str, complex] = dict(system.constants)
    for name in system.pairs:
        re, im = part_names(name)
        if re in system.constants and im in system.constants:
            found[name] = complex(system.constants[re], system.constants[im])
    return found | ({"I": 1j} if system.complex else {})


def _check(system: System, fields: Sequence[Field]) -> None:
    """Raise ProgramError for equations that have no spectral form."""
    for item, equation in zip(system.unknowns, system.equations, strict=True):
        if not isinstance(equation, Source):
            raise ProgramError(
                f"d({item})/dt is a function, and functions have no spectral derivatives", remedy="write it as a text"
            )
    if system.complex and len(system.complex) < len(system.unknowns):
        raise ProgramError(
            f"{system.complex[0]!r} is complex and others are real, of which the modes differ",
            remedy='give dtype="c16" for all of them',
        )
    for field in fields:
        if field.dtype != "f8":
            raise ProgramError(f"spectral derivatives of {field!r}", remedy='give dtype="f8" or "c16"')
        if any(condition is not None for pair in field.boundary.sides for condition in pair):
            raise ProgramError(f"conditions of {field.name!r}, whose modes are periodic", remedy="leave boundary= out")


def _grouped(terms: Sequence[Term]) -> list[tuple[Symbol, ast.expr]]:
    """Return operators and bodies; the bodies of terms with one operator are added up."""
    groups: dict[tuple[tuple[tuple[int, ...], complex], ...], ast.expr] = {}
    for term in terms:
        key = tuple(sorted(term.symbol.items(), key=lambda item: item[0]))
        body = groups.get(key)
        groups[key] = term.body if body is None else ast.copy_location(ast.BinOp(body, ast.Add(), term.body), term.body)
    return [(dict(key), body) for key, body in groups.items()]
