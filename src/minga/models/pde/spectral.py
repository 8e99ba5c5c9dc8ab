"""Spectral derivatives in equations on periodic boxes: what a stage of an integrator has to record."""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, TypeVar

from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.expr import as_node, cast
from minga.models.pde.complex_values import Pair, part_names
from minga.models.pde.source import Source
from minga.models.pde.system import PREFIX, System, complex_rate
from minga.models.pde.terms import Expansion, Term, described, expand
from minga.models.pde.translate import Names, translate
from minga.solve.fft.modes import Modes, Symbol, is_real
from minga.solve.fft.transform import Spectrum
from minga.solve.krylov import clear
from minga.solve.modal_rates import ModalOperator, ModalRates
from minga.solve.rates import Rates, rates_kernel
from minga.space.field import TIME, Field, Slot

__all__ = ["Spectral"]

Item = TypeVar("Item")


class Spectral:
    """The rates of a system of equations by spectral derivatives.

    Parameters
    ----------
    system
        The equations, which must be texts. Where some unknowns are complex, real ones have the modes of complex values
        with an imaginary part of 0.
    fields
        The fields.
    constants
        Fields of the parameters that depend on the place.
    dealias
        The share of modes along each axis that is kept.

    Raises
    ------
    ProgramError
        If an equation is a function, the rate of a real unknown is complex, or a field has another type than f8 or c16.
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
        real = [name for name in system.unknowns if system.complex and name not in system.complex]
        self.companions = {name: Field(f"spectral imaginary part of {name}", system.grid, slots=2) for name in real}
        self.real_derivatives: set[str] = set()
        for name, source, symbol in zip(system.unknowns, self.sources, self.linear, strict=True):
            if name in self.companions and any(complex(factor).imag for factor in symbol.values()):
                raise complex_rate(source)
        self.scratch: list[Spectrum] = []
        self.plain = Rates(lambda *_: (), self.constants, {PREFIX + each: v for each, v in system.numbers.items()})

    @property
    def workspace(self) -> tuple[Field, ...]:
        """All fields, once the rates have been recorded."""
        spectra = (item for spectrum in self.scratch for item in spectrum.fields)
        derivatives = (item for _, pair in self.auxiliary.values() for item in pair)
        return *self.modes.fields, *derivatives, *self.work, *self.companions.values(), *spectra

    @property
    def advanced(self) -> tuple[Field, ...]:
        """The fields that an integrator of modes advances: the parts of all unknowns, zeros of real ones included."""
        by_name = {item.name: item for item in self.fields}
        return tuple(
            item
            for name in self.system.unknowns
            for item in (
                (by_name[name], *([self.companions[name]] if name in self.companions else []))
                if name in by_name
                else [by_name[part] for part in part_names(name)]
            )
        )

    def begin(self, program: Program) -> None:
        """Record that imaginary parts of real unknowns are 0, which rounding may have changed."""
        for item in self.companions.values():
            program.apply(clear, item)

    @property
    def _parts(self) -> int:
        """Number of fields of an unknown."""
        return 2 if self.modes.complex else 1

    def _fields(self, name: str) -> tuple[Field, ...]:
        """Return a real or complex field of the workspace."""
        names = part_names(name) if self.modes.complex else (name,)
        about = "workspace of spectral derivatives"
        return tuple(Field(f"spectral {each}", self.system.grid, description=about) for each in names)

    @property
    def sides(self) -> tuple[tuple[str, str], ...]:
        """Notes on the terms that exponential integrators integrate exactly, and on the others."""
        linear: list[str] = []
        rest: list[str] = []
        for name, terms in zip(self.system.unknowns, self.terms, strict=True):
            own = [term for term in terms if term.name == name]
            others = [term for term in terms if term.name != name]
            for group, found in ((linear, own), (rest, others)):
                group += [f"{name}: {described(found, self.system.grid.axes)}"] if found else []
        return ("implicit", "; ".join(linear) or "nothing"), ("explicit", "; ".join(rest) or "nothing")

    # Two forms of the rates ----------------------------------------------------------------------------------------
    def modal(self) -> ModalRates:
        """Return the rates for exponential integrators: what is linear in the field itself apart from the rest."""

        def nonlinear(
            program: Program, values: Sequence[Slot], spectra: Sequence[Spectrum], out: Sequence[Spectrum]
        ) -> None:
            own = self._own([values[at : at + self._parts] for at in range(0, len(values), self._parts)])
            self._derivatives(program, own, spectra)
            for name, source, terms, target in zip(self.system.unknowns, self.sources, self.terms, out, strict=True):
                rest = [term for term in terms if term.name != name]
                self._rate(program, name, source, rest, own, spectra, target)

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
        workspace = tuple(item for pair in rates_of for item in pair)
        found = self._own(rates_of)
        state = tuple(self.modes.fft.spectrum(f"spectral {name}") for name in unknowns)
        result = self.modes.fft.spectrum("spectral rate")

        def prepare(program: Program, values: Sequence[Slot]) -> None:
            self._transformed(program, values, state)
            self._derivatives(program, values, state)
            for name, source, terms, target in zip(unknowns, self.sources, self.terms, rates_of, strict=True):
                self._rate(program, name, source, terms, values, state, result)
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
        return rates, (*workspace, *spectra)

    def finish(self, program: Program) -> None:
        """Record that the modes of noise that are not kept leave the fields at the end of a step."""
        if self.modes.dealias < 1 and self.system.noise:
            self._transformed(program, [item.now for item in self.fields], [self._spectrum(0)] * len(self.sources))

    def _transformed(self, program: Program, values: Sequence[Slot], spectra: Sequence[Spectrum]) -> None:
        """Record the spectra of values; modes that are not kept leave the values as well, where they would stay."""
        for value, spectrum in zip(self._groups(values), spectra, strict=True):
            self.modes.fft.forward(program, value, spectrum)
            if self.modes.dealias < 1:
                self.modes.keep(program, spectrum)
                self.modes.fft.inverse(program, spectrum, value)
        if self.modes.dealias < 1:
            self.begin(program)

    def _groups(self, values: Sequence[Slot]) -> list[Sequence[Slot]]:
        """Return the slots of each unknown from those of all fields; real ones have zeros where modes are complex."""
        rest = iter(values)
        return [
            (next(rest), next(rest))
            if name in self.system.complex
            else (next(rest), *([self.companions[name].now] if name in self.companions else []))
            for name in self.system.unknowns
        ]

    def _own(self, groups: Sequence[Sequence[Item]]) -> list[Item]:
        """Return what belongs to the fields, of groups of each unknown."""
        return [
            item
            for name, group in zip(self.system.unknowns, groups, strict=True)
            for item in (group[:1] if name in self.companions else group)
        ]

    # Recording -----------------------------------------------------------------------------------------------------
    def _derivatives(self, program: Program, values: Sequence[Slot], spectra: Sequence[Spectrum]) -> None:
        """Record the auxiliary fields: derivatives that are multiplied by something."""
        for name, (terms, target) in self.auxiliary.items():
            spectrum = self._spectrum(0)
            if self._sum(program, self.sources[0], terms, values, spectra, spectrum):
                self.real_derivatives.add(name)
            self.modes.fft.inverse(program, spectrum, target)

    def _rate(
        self, program: Program, name: str, source: Source, terms: Sequence[Term], values: Sequence[Slot],
        spectra: Sequence[Spectrum], target: Spectrum,
    ) -> None:  # fmt: skip
        """Record the spectrum of terms of a rate; raise ProgramError if it is complex and the unknown real."""
        if not self._sum(program, source, terms, values, spectra, target) and name in self.companions:
            raise complex_rate(source)

    def _sum(
        self, program: Program, source: Source, terms: Sequence[Term], values: Sequence[Slot],
        spectra: Sequence[Spectrum], target: Spectrum,
    ) -> bool:  # fmt: skip
        """Record the spectrum of a sum of terms; return True if the sum is real."""
        real = not any(complex(factor).imag for term in terms for factor in term.symbol.values())
        real = real and not any(term.name in self.system.complex for term in terms)
        by_name = dict(zip(self.system.unknowns, spectra, strict=True))
        parts = [(term.symbol, by_name[term.name]) for term in terms if term.name in by_name]
        for number, (symbol, body) in enumerate(_grouped([term for term in terms if term.name not in by_name]), 1):
            real = self._evaluate(program, source, body, values) and real
            spectrum = self._spectrum(number)
            self.modes.fft.forward(program, self.work, spectrum)
            parts.append((symbol, spectrum))
        self.modes.combine(program, parts, target)
        return real

    def _spectrum(self, number: int) -> Spectrum:
        """Return a spectrum of the workspace."""
        while len(self.scratch) <= number:
            self.scratch.append(self.modes.fft.spectrum(f"spectral product {len(self.scratch)}"))
        return self.scratch[number]

    def _evaluate(self, program: Program, source: Source, body: ast.expr, values: Sequence[Slot]) -> bool:
        """Record the values of an expression at the points; return True if they are real."""
        text = dataclasses.replace(source, tree=body)
        known = self._readable(values)
        needed = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)}
        in_time = {name: each for name, each in self.system.timed.items() if name in needed}
        needed |= {name for each in in_time.values() for name in each.names}
        names = tuple(name for name in known if name in needed or self._whole(name) in needed)
        here = (0,) * self.system.grid.ndim
        system, real = self.system, [True]
        wholes = {*self.auxiliary} - self.real_derivatives if system.complex else set()

        def evaluate(given: list[Any], out: list[Any], **scalars: Any) -> None:
            found = {each.removeprefix(PREFIX): value for each, value in scalars.items()}
            found |= {name: reader[here] for name, reader in zip(names, given, strict=True)}
            found |= {name: each.value(found, TIME) for name, each in in_time.items()}
            for name in (*system.complex, *system.pairs, *wholes):
                pair = part_names(name)
                if all(part in found for part in pair):
                    found[name] = Pair(*(found[part] for part in pair))
            for name in self.real_derivatives if system.complex else ():
                if (part := part_names(name)[0]) in found:
                    found[name] = found[part]
            value = translate(text, Names(found, system.grid.axes, as_node(TIME), complex=bool(system.complex)))
            real[0] = not isinstance(value, Pair)
            parts = (value,) if len(out) == 1 else (Pair.of(value).re, Pair.of(value).im)
            for item, part in zip(out, parts, strict=True):
                item[here] = cast(as_node(part), "f8")

        kernel = rates_kernel(evaluate, "values", self.plain, step=False)
        program.apply(kernel, [known[name] for name in names], self.work, **self.plain.scalars)
        return real[0]

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
