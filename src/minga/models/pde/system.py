"""The equations of a model of partial differential equations, and the names in them."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from minga.errors import ProgramError, shown, suggest
from minga.lang.cell import CellReader
from minga.lang.closed import closed_ends
from minga.lang.expr import as_node
from minga.lang.functions import coordinate
from minga.models.pde.complex_values import Pair, part_names
from minga.models.pde.integrals import Integral, integrals_of
from minga.models.pde.source import Source, name_problem, normal_name, parse
from minga.models.pde.timed import Timed, timed
from minga.models.pde.translate import IMAGINARY_UNIT, Names, meanings, translate
from minga.space.field import Register
from minga.space.grid import Grid

__all__ = ["PREFIX", "Equation", "System", "complex_rate"]

Equation = str | Callable[..., object]
PREFIX: Final = "parameter_"
_ONLY: Final = "u"
ORDERS: Final = range(2, 17, 2)
_KINDS: Final = {"f4": "f4", "f8": "f8", "c8": "f4", "c16": "f8"}
"""Types that fields may have, and those of the real fields that hold them."""


@dataclass(frozen=True)
class System:
    """The equations of all fields, and the names in them.

    Attributes
    ----------
    unknowns
        Names of what the equations determine.
    names, kinds
        Names of the fields and their types; an unknown that is complex has two fields.
    complex
        The unknowns that are complex.
    equations
        The rate of change of each unknown.
    grid
        The grid of all fields.
    numbers
        Parameters that are the same everywhere: numbers and registers.
    placed
        Parameters that depend on the place.
    pairs
        Parameters that are complex.
    timed
        Parameters that depend on the time.
    noise
        The amplitude of the noise of each field; empty where no field has any.
    order
        Accuracy of operators for which an equation gives none.
    seed
        Seed of the noise.
    closed
        By unknown the ends of axes through which nothing flows, as `minga.lang.closed.closed_ends` takes them.
    """

    unknowns: tuple[str, ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    complex: tuple[str, ...]
    equations: tuple[Source | Callable[..., object], ...]
    grid: Grid
    numbers: Mapping[str, Any]
    placed: Mapping[str, Any]
    pairs: tuple[str, ...]
    timed: Mapping[str, Timed]
    noise: tuple[Source | float | None, ...]
    order: int
    seed: int
    closed: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, equations: object, grid: Grid, parameters: Mapping[str, Any], noise: object, order: int, seed: int,
        dtype: str | Mapping[str, str] = "f8",
    ) -> System:  # fmt: skip
        """Check the arguments of `pde` and parse its texts."""
        given = equations if isinstance(equations, Mapping) else {_ONLY: equations}
        if not given:
            raise ProgramError("there are no equations", remedy='write {"u": "laplace(u)"}')
        unknowns = tuple(normal_name(each) for each in given)
        _check_whole("order", order, ORDERS, "orders of accuracy are 2, 4, ... 16")
        _check_whole("seed", seed, range(2**64), "give a whole number of at least 0")
        types = _types(dtype, unknowns)
        pairs = tuple(each for each in unknowns if types[each].startswith("c"))
        fields = [(part, _KINDS[types[each]]) for each in unknowns for part in _parts(each, each in pairs)]
        names = tuple(name for name, _ in fields)
        _check_axes(grid, bool(pairs))
        _check_names({"field": (*given, *names), "parameter": (*parameters,)}, grid, bool(pairs))
        numbers, placed, of_pairs, in_time = _parameters(parameters, {*unknowns, *names}, grid.axes)
        _check_names({"parameter": (*numbers, *placed)}, grid, bool(pairs))
        if len(set(names)) < len(names):
            raise ProgramError(f"two fields have one name: {', '.join(names)}", remedy="rename one of them")
        if of_pairs and not pairs:
            raise ProgramError(
                f"parameter {of_pairs[0]!r} is complex, and no field is", remedy='give dtype="c16" for complex fields'
            )
        for name, value in placed.items():
            if isinstance(value, np.ndarray) and value.shape not in ((), grid.shape):
                raise ProgramError(
                    f"parameter {name!r} has the shape {value.shape}, and the grid {grid.shape}",
                    remedy="give an array with one value for each cell, or a number",
                )
        parsed = tuple(_equation(each, value) for each, value in zip(unknowns, given.values(), strict=True))
        kinds = tuple(kind for _, kind in fields)
        return cls(
            unknowns, names, kinds, pairs, parsed, grid, numbers, placed, of_pairs, in_time,
            _amplitudes(noise, names, pairs), order, seed,
        )  # fmt: skip

    @property
    def known(self) -> tuple[str, ...]:
        """Names of all fields, and of those that consist of two."""
        return (*self.names, *self.complex)

    @property
    def constants(self) -> dict[str, float]:
        """Parameters that are numbers."""
        return {name: value for name, value in self.numbers.items() if isinstance(value, float)}

    @property
    def uniform(self) -> tuple[str, ...]:
        """Names of values that are the same everywhere."""
        pairs = (each for each in self.pairs if part_names(each)[0] in self.numbers)
        return (*self.numbers, *pairs, *((IMAGINARY_UNIT,) if self.complex else ()))

    def whole(self, name: str) -> str:
        """Return the unknown that a field belongs to."""
        return next((each for each in self.complex if name in part_names(each)), name)

    def rates(self, cells: Sequence[Any], constants: Sequence[Any], t: Any, **scalars: Any) -> list[Any]:
        """Return the rate of change of each field while a kernel is traced."""
        found: list[Any] = []
        for name, each in zip(self.unknowns, self.equations, strict=True):
            value = self._value(each, cells, constants, t, scalars, name)
            found += self._fields_of(name, value)
        return found

    def amplitudes(self, cells: Sequence[Any], constants: Sequence[Any], t: Any, **scalars: Any) -> list[Any]:
        """Return the amplitude of the noise of each field, None where there is none."""
        found: list[Any] = []
        for each in self.noise or (None,) * len(self.names):
            value = self._value(each, cells, constants, t, scalars) if isinstance(each, Source) else each
            if isinstance(value, Pair):
                raise complex_rate(each)
            found.append(value)
        return found

    def terms(
        self, cells: Sequence[Any], constants: Sequence[Any], t: Any, taken_apart: Callable[[Source], list[Source]],
        **scalars: Any,
    ) -> list[tuple[str, str, list[Any]]]:  # fmt: skip
        """Return for each term of each equation the unknown, the text, and the rates of its fields; see `rates`."""
        found: list[tuple[str, str, list[Any]]] = []
        for name, each in zip(self.unknowns, self.equations, strict=True):
            for term in taken_apart(each) if isinstance(each, Source) else [each]:
                text = ast.unparse(term.tree) if isinstance(term, Source) else getattr(term, "__name__", "function")
                found.append((name, text, self._fields_of(name, self._value(term, cells, constants, t, scalars, name))))
        return found

    def _fields_of(self, name: str, value: Any) -> list[Any]:
        """Return the rates of the fields of an unknown."""
        equation = self.equations[self.unknowns.index(name)]
        if name in self.complex:
            if isinstance(value, tuple) and len(value) != 2:
                raise _returned(
                    equation, f"a tuple of {len(value)}", f"return two, the rates of {' and '.join(part_names(name))}"
                )
            pair = Pair(*value) if isinstance(value, tuple) else Pair.of(value)
            return [as_node(pair.re), as_node(pair.im)]
        if isinstance(value, tuple):
            raise _returned(
                equation, f"a tuple of {len(value)}", f"return the rate of {name}: one value for each function"
            )
        if isinstance(value, Pair):
            raise complex_rate(equation)
        return [as_node(value)]

    def _value(
        self, equation: Source | Callable[..., object], cells: Sequence[Any], constants: Sequence[Any], t: Any,
        scalars: Mapping[str, Any], unknown: str = "",
    ) -> Any:  # fmt: skip
        ends = self.closed.get(unknown, {})
        if isinstance(equation, Source):
            names = self.meanings(cells, constants, t, scalars)
            names.closed, names.numbers = ends, self.uniform
            names.own = (unknown, *(part_names(unknown) if unknown in self.complex else ()))
            return translate(equation, names)
        readers = {
            name: _named(reader, name, name in self.placed)
            for name, reader in zip((*self.names, *self.placed), (*cells, *constants), strict=True)
        }
        in_time = self.timed_values(self.parameters_at(constants, scalars), t) if self.timed else {}
        with closed_ends(ends):
            value = _called(equation, {**readers, **_numbers(scalars), **in_time, "t": t}, self.grid.axes)
        return _checked(equation, value, self.grid.ndim)

    def meanings(
        self, cells: Sequence[Any], constants: Sequence[Any], t: Any, scalars: Mapping[str, Any]
    ) -> Names:  # fmt: skip
        """Return the meaning of names in texts while a kernel is traced."""
        here = (0,) * self.grid.ndim
        known = self.parameters_at(constants, scalars)
        values = {each: reader[here] for each, reader in zip(self.names, cells, strict=True)} | known
        values |= self.timed_values(known, t)
        for name in (*self.complex, *self.pairs):
            values[name] = Pair(*(values[part] for part in part_names(name)))
        integrals = {each.text: scalars[each.name] for each in self.integrals if each.name in scalars}
        return Names(
            values, self.grid.axes, as_node(t), self.order, complex=bool(self.complex), integrals=integrals
        )  # fmt: skip

    def parameters_at(self, constants: Sequence[Any], scalars: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values at a cell of the parameters that do not depend on the time, while a kernel is traced."""
        here = (0,) * self.grid.ndim
        placed = {each: reader[here] for each, reader in zip(self.placed, constants, strict=True)}
        return placed | _numbers(scalars)

    def timed_values(self, parameters: Mapping[str, Any], t: Any) -> dict[str, Any]:
        """Return the values of the parameters that depend on the time, given those of the others."""
        return {name: each.value(parameters, t) for name, each in self.timed.items()}

    @functools.cached_property
    def widest(self) -> int:
        """The highest accuracy of operators in the texts, or that of the model if it is higher."""
        trees = (each.tree for each in self.equations if isinstance(each, Source))
        found = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.keyword))
        orders = (node.value.value for node in found if node.arg == "order" and isinstance(node.value, ast.Constant))
        return max(self.order, *(order for order in orders if isinstance(order, int) and order in ORDERS), 2)

    @functools.cached_property
    def integrals(self) -> tuple[Integral, ...]:
        """Integrals and means in the texts."""
        return integrals_of((*self.equations, *self.noise), self.grid)


def _numbers(scalars: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of parameters by their names, from the keywords of a kernel."""
    return {each.removeprefix(PREFIX): value for each, value in scalars.items() if each.startswith(PREFIX)}


def _called(function: Callable[..., object], known: Mapping[str, Any], axes: Sequence[str]) -> object:
    """Return what the function of an equation returns while a kernel is traced."""
    words = list(inspect.signature(function).parameters)
    for word in words:
        if word not in known and word not in axes:
            close = suggest(word, [*known, *axes])
            raise ProgramError(
                f"the function of an equation has a parameter {word!r}",
                remedy=f"did you mean {close!r}?" if close else f"known are {', '.join([*known, *axes])}",
            )
    return function(**{word: known[word] if word in known else coordinate(word) for word in words})


def _named(reader: Any, name: str, parameter: bool) -> Any:
    """Return the reader of a field or a parameter with its name in equations, for messages."""
    if not isinstance(reader, CellReader):
        return reader
    numbers = f'give it as one: parameters={{"{name}": 1.0}}' if parameter else ""
    return dataclasses.replace(reader, name=name, numbers=numbers)


def _checked(function: Callable[..., object], value: object, ndim: int) -> object:
    """Return what the function of an equation returned; raise ProgramError for what is no value of a cell."""
    for each in value if isinstance(value, tuple) else (value,):
        if each is None:
            raise _returned(function, "nothing", "end it with `return` and the rate of change")
        if isinstance(each, str):
            raise _returned(function, f"the text {shown(each)}", "give the text itself as the equation")
        if isinstance(each, CellReader):
            cell = f"{each.name}[{', '.join(['0'] * ndim)}]"
            raise _returned(function, f"the field {each.name}", f"return the value of a cell, {cell}")
        if isinstance(each, list | np.ndarray | Mapping):
            raise _returned(function, shown(each), "return the rate of change of one cell")
    return value


def _returned(function: object, what: str, remedy: str) -> ProgramError:
    """Return the error for what the function of an equation returned."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", "function")
    return ProgramError(
        f"the function {name} of an equation returns {what}",
        where=None if code is None else (code.co_filename, code.co_firstlineno), remedy=remedy,
    )  # fmt: skip


def complex_rate(equation: object) -> ProgramError:
    """Return the error for a complex rate of a real field."""
    label = equation.label if isinstance(equation, Source) else getattr(equation, "__name__", "the function")
    return ProgramError(
        f"{label} is complex, and its field is real", remedy='write re(...), im(...) or abs(...), or give dtype="c16"'
    )


def _parts(name: str, is_complex: bool) -> tuple[str, ...]:
    return part_names(name) if is_complex else (name,)


def _types(dtype: object, unknowns: Sequence[str]) -> dict[str, str]:
    """Return the type of each unknown."""
    given = {normal_name(name): kind for name, kind in dtype.items()} if isinstance(dtype, Mapping) else None
    for name in given or ():
        if name not in unknowns:
            raise ProgramError(f"dtype of {name!r}, which is no field", remedy=f"the fields are {', '.join(unknowns)}")
    types = {name: dtype if given is None else given.get(name, "f8") for name in unknowns}
    for kind in types.values():
        if kind not in _KINDS:
            raise ProgramError(f"dtype={shown(kind)}", remedy=f"types are {', '.join(_KINDS)}")
    return types  # type: ignore[return-value]


def _check_whole(name: str, value: object, known: range, remedy: str) -> None:
    """Raise an error for an argument that is not one of some whole numbers."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value not in known:
        raise ProgramError(f"{name}={shown(value)}", remedy=remedy)


def _check_axes(grid: Grid, with_complex: bool) -> None:
    """Raise an error for axes whose names have another meaning in equations."""
    known = meanings((), with_complex)
    for axis in grid.axes:
        if axis in known:
            raise ProgramError(
                f"axis {axis!r}: in equations {axis} is {known[axis]}", remedy="give the axis of the grid another name"
            )


def _check_names(words: Mapping[str, Iterable[object]], grid: Grid, with_complex: bool) -> None:
    """Raise an error for names that fields or parameters cannot have."""
    taken = meanings(grid.axes, with_complex)
    for kind, names in words.items():
        for name in names:
            problem = name_problem(name, taken)
            if problem:
                raise ProgramError(f"{kind} {name!r}: {problem}", remedy="choose another name")


def _parameters(
    given: Mapping[str, Any], fields: set[str], axes: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...], dict[str, Timed]]:  # fmt: skip
    """Return the parameters that are the same everywhere, those of the place, the complex ones, and those of time."""
    numbers: dict[str, Any] = {}
    placed: dict[str, Any] = {}
    pairs: list[str] = []
    in_time: dict[str, Timed] = {}
    for word, value in given.items():
        key = normal_name(word)
        if isinstance(value, complex | np.complexfloating) or _is_complex_array(value):
            pairs.append(key)
            parts = dict(zip(part_names(key), (value.real, value.imag), strict=True))
        else:
            parts = {key: value}
        for name, part in parts.items():
            if name in fields:
                raise ProgramError(f"{name!r} is both a field and a parameter", remedy="rename one of them")
            if name in numbers or name in placed or name in in_time:
                raise ProgramError(f"there are two parameters {name!r}", remedy="rename one of them")
            if isinstance(part, bool | int | float | np.integer | np.floating):
                if not math.isfinite(part):
                    raise ProgramError(f"parameter {word!r} is {value}", remedy="give a finite number")
                numbers[name] = float(part)
            elif isinstance(part, Register):
                numbers[name] = part
            elif callable(part) or isinstance(part, str | np.ndarray):
                found = None if isinstance(part, np.ndarray) else timed(name, part, axes)
                (placed if found is None else in_time)[name] = part if found is None else found
            else:
                raise ProgramError(
                    f"parameter {word!r} is {shown(value)}",
                    remedy="give a number, a register, an array, a text or a function of the coordinates",
                )
    return numbers, placed, tuple(pairs), in_time


def _is_complex_array(value: object) -> bool:
    return isinstance(value, np.ndarray) and np.iscomplexobj(value)


def _equation(name: str, given: object) -> Source | Callable[..., object]:
    """Return an equation as parsed text, or the function that it is."""
    if callable(given):
        return given
    return parse(given, f"d({name})/dt")


def _amplitudes(noise: object, names: Sequence[str], pairs: Sequence[str]) -> tuple[Source | float | None, ...]:
    """Return the amplitude of the noise of each field; empty where no field has any."""
    if noise is None:
        return ()
    if pairs and not isinstance(noise, Mapping):
        raise ProgramError(
            f"noise={shown(noise)} of fields of which {pairs[0]!r} is complex",
            remedy=f"give the amplitude for each field: {', '.join(names)}",
        )
    given = noise if isinstance(noise, Mapping) else dict.fromkeys(names, noise)
    for name in given:
        if name not in names:
            raise ProgramError(f"noise of {name!r}, which is no field", remedy=f"the fields are {', '.join(names)}")
    return tuple(_amplitude(name, given.get(name)) for name in names)


def _amplitude(name: str, value: object) -> Source | float | None:
    if isinstance(value, str):
        return parse(value, f"noise of {name}")
    if value is None:
        return None
    if isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value):
        if value < 0:
            raise ProgramError(
                f"noise of {name!r} is {value}: an amplitude is not negative", remedy=f"write noise={abs(value)}"
            )
        return float(value) or None
    raise ProgramError(
        f"noise of {name!r} is {shown(value)}",
        remedy="give a number or a text; an array or a function is a parameter with a name, which the text contains: "
        'parameters={"amplitude": array}, noise="amplitude"',
    )
