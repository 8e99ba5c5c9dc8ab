"""Models of partial differential equations that are given as text or as functions."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from minga.compile.explain import Kernel
from minga.engine.clock import Clock
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.program import Program
from minga.errors import ProgramError, RunError, shown, suggest
from minga.lang.expr import as_node
from minga.lang.functions import coordinate
from minga.lang.functions import max as largest
from minga.lang.functions import min as smallest
from minga.lang.functions import sum as total
from minga.lang.operators import spacing
from minga.lang.trace import current_trace
from minga.models.pde.initial import of_position
from minga.models.pde.source import Source, name_problem, parse
from minga.models.pde.translate import Names, reserved, translate
from minga.solve.integrators import Integrator, Rates, integrator
from minga.solve.stability import largest_rates, stable_step
from minga.space.boundary import BoundaryLike, Condition, neumann
from minga.space.field import TIME, Field, Register
from minga.space.grid import Grid

__all__ = ["pde"]

Equation = str | Callable[..., object]
_PREFIX: Final = "parameter_"
_LETTERS: Final = "u"
_SAFETY: Final = 0.9
_MOST_CELLS: Final = 1 << 22
"""Cells of the largest grid on which the stable step is looked for, since every rank does so on the whole grid."""


def pde(
    equations: Equation | Mapping[str, Equation],
    grid: Grid,
    *,
    parameters: Mapping[str, Any] | None = None,
    initial: Mapping[str, Any] | Any = None,
    boundary: BoundaryLike | Mapping[str, Any] = None,
    integrator: str = "auto",
    dt: float | None = None,
    noise: float | str | Mapping[str, float | str] | None = None,
    order: int = 2,
    tolerance: float = 1e-6,
    unit: str = "1",
    units: Mapping[str, str] | None = None,
    dtype: str = "f8",
    seed: int = 0,
    name: str = "pde",
) -> Model:
    """Return the model of partial differential equations, du/dt = ... for each field.

    Parameters
    ----------
    equations
        The rate of change of each field by its name; one alone is that of a field ``u``. Texts such as
        ``"D * laplace(u) + u - u**3"`` are parsed and never evaluated as Python. Functions return the rate; their
        parameters are named like fields (whose cells they may read, ``u[0, 1]``), parameters, coordinates, and ``t``.
    grid
        The grid of all fields.
    parameters
        Values of names in the equations: numbers, registers, and, where the value depends on the place, arrays,
        functions of the coordinates, or texts of them.
    initial
        Initial values by field: numbers, arrays, functions of the coordinates, or texts of them; 0 by default.
    boundary
        Conditions at the ends of axes that are not periodic: one for all fields, or one for each by its name; by
        default ``mg.neumann(0.0)``.
    integrator
        "euler", "heun", "ssprk3" or "rk4" with steps of length `dt`; "bs3" or "dp5", which choose their steps by
        `tolerance`; "euler-maruyama" with noise. "auto" is "euler-maruyama" with noise, "rk4" where `dt` is given, and
        "bs3" otherwise.
    dt
        Length of a step, in `unit`. By default explicit methods take one that is stable for the initial values.
    noise
        Amplitude of white noise in time, independent in each cell: one for all fields, or one for each by its name; a
        number or a text.
    order
        Accuracy of operators for which an equation gives none, and of the default condition.
    tolerance
        For adaptive integrators the largest error of a step, absolute and relative.
    unit
        Unit of time; "1" is dimensionless.
    units
        Units of fields by name.
    dtype
        Type of the fields, "f8" or "f4".
    seed
        Seed of the noise.
    name
        Name of the model.

    Returns
    -------
    Model
        The model, whose observables are the integral and the extremes of each field.

    Raises
    ------
    EquationError
        If a text is not an equation of known names; the message points into the text.
    ProgramError
        If arguments do not fit together.

    Examples
    --------
    >>> import minga as mg
    >>> grid = mg.Grid((32, 32), periodic=True)
    >>> model = mg.pde("laplace(u) + u - u**3", grid, initial={"u": 0.1}, dt=0.01)
    >>> model.name
    'pde'
    """
    system = _System.of(equations, grid, dict(parameters or {}), noise, order, seed)
    fields = tuple(
        Field(each, grid, dtype, slots=2, boundary=_boundary(boundary, each, system), unit=(units or {}).get(each, "1"))
        for each in system.names
    )
    constants = tuple(Field(each, grid, dtype, boundary=_continued(grid, order)) for each in system.placed)
    method = _method(integrator, dt, system)
    rates = Rates(
        system.rates, constants, {_PREFIX + each: value for each, value in system.numbers.items()},
        system.amplitudes if system.noise else None,
    )  # fmt: skip
    values = _initial(initial, system) | {each: _placed(value, each, system) for each, value in system.placed.items()}
    step = Program("step")
    length, notes = _length(method, dt, rates, fields, values)
    clock, target, given = _clock(method, length, unit)
    recorded = method.record(step, rates, fields, dt=given, target=target, tolerance=tolerance)
    observe, seen, of_unit = _observables(fields)
    return Model(
        name,
        grid,
        (*fields, *constants, *recorded.fields),
        step,
        initial=values,
        output=system.names,
        observe=observe,
        observables=seen,
        units=of_unit,
        parameters=_record(equations, system, method, length, order, tolerance),
        seed=seed,
        notes=notes,
        clock=clock,
        explain=None if recorded.wish is None else _explainer(method, recorded.wish),
    )


@dataclass(frozen=True)
class _System:
    """The equations of all fields, and the names in them."""

    names: tuple[str, ...]
    equations: tuple[Source | Callable[..., object], ...]
    grid: Grid
    numbers: Mapping[str, Any]
    placed: Mapping[str, Any]
    noise: tuple[Source | float | None, ...]
    order: int
    seed: int

    @classmethod
    def of(
        cls, equations: object, grid: Grid, parameters: dict[str, Any], noise: object, order: int, seed: int
    ) -> _System:
        """Check the arguments of `pde` and parse its texts."""
        given = equations if isinstance(equations, Mapping) else {_LETTERS: equations}
        if not given:
            raise ProgramError("there are no equations", remedy='write {"u": "laplace(u)"}')
        names = tuple(unicodedata.normalize("NFKC", str(each)) for each in given)
        taken = reserved(grid.axes)
        for kind, words in (("field", given), ("parameter", parameters)):
            for word in words:
                problem = name_problem(word, taken)
                if problem:
                    raise ProgramError(f"{kind} {word!r}: {problem}", remedy="choose another name")
        numbers: dict[str, Any] = {}
        placed: dict[str, Any] = {}
        for word, value in parameters.items():
            key = unicodedata.normalize("NFKC", word)
            if key in names:
                raise ProgramError(f"{key!r} is both a field and a parameter", remedy="rename one of them")
            if isinstance(value, bool | int | float | np.integer | np.floating):
                if not math.isfinite(value):
                    raise ProgramError(f"parameter {word!r} is {value}", remedy="give a finite number")
                numbers[key] = float(value)
            elif isinstance(value, Register):
                numbers[key] = value
            elif callable(value) or isinstance(value, str | np.ndarray):
                placed[key] = value
            else:
                raise ProgramError(
                    f"parameter {word!r} is {shown(value)}",
                    remedy="give a number, a register, an array, a text or a function of the coordinates",
                )
        parsed = tuple(_equation(each, value) for each, value in zip(names, given.values(), strict=True))
        return cls(names, parsed, grid, numbers, placed, _amplitudes(noise, names), order, seed)

    def rates(self, cells: Sequence[Any], constants: Sequence[Any], t: Any, **scalars: Any) -> list[Any]:
        """Return the rate of change of each field while a kernel is traced."""
        return [self._value(each, cells, constants, t, scalars) for each in self.equations]

    def amplitudes(self, cells: Sequence[Any], constants: Sequence[Any], t: Any, **scalars: Any) -> list[Any]:
        """Return the amplitude of the noise of each field, None where there is none."""
        return [
            self._value(each, cells, constants, t, scalars) if isinstance(each, Source) else each
            for each in self.noise or (None,) * len(self.names)
        ]

    def _value(
        self, equation: Source | Callable[..., object], cells: Sequence[Any], constants: Sequence[Any], t: Any,
        scalars: Mapping[str, Any],
    ) -> Any:  # fmt: skip
        readers = dict(zip((*self.names, *self.placed), (*cells, *constants), strict=True))
        numbers = {each.removeprefix(_PREFIX): value for each, value in scalars.items()}
        if isinstance(equation, Source):
            here = (0,) * self.grid.ndim
            values = {each: reader[here] for each, reader in readers.items()} | numbers
            return translate(equation, Names(values, self.grid.axes, as_node(t), self.order))
        known = {**readers, **numbers, "t": t}
        words = list(inspect.signature(equation).parameters)
        for word in words:
            if word not in known and word not in self.grid.axes:
                close = suggest(word, [*known, *self.grid.axes])
                raise ProgramError(
                    f"the function of an equation has a parameter {word!r}",
                    remedy=f"did you mean {close!r}?" if close else f"known are {', '.join([*known, *self.grid.axes])}",
                )
        return as_node(equation(**{word: known[word] if word in known else coordinate(word) for word in words}))


def _equation(name: str, given: object) -> Source | Callable[..., object]:
    """Return an equation as parsed text, or the function that it is."""
    if callable(given):
        return given
    return parse(given, f"d({name})/dt")


def _amplitudes(noise: object, names: Sequence[str]) -> tuple[Source | float | None, ...]:
    """Return the amplitude of the noise of each field; empty where no field has any."""
    if noise is None:
        return ()
    given = noise if isinstance(noise, Mapping) else dict.fromkeys(names, noise)
    for name in given:
        if name not in names:
            raise ProgramError(f"noise of {name!r}, which is no field", remedy=f"the fields are {', '.join(names)}")
    return tuple(_amplitude(name, given.get(name)) for name in names)


def _amplitude(name: str, value: object) -> Source | float | None:
    if isinstance(value, str):
        return parse(value, f"noise of {name}")
    if value is None or value == 0:
        return None
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    raise ProgramError(f"noise of {name!r} is {shown(value)}", remedy="give a number, or a text")


def _method(name: str, dt: float | None, system: _System) -> Integrator:
    """Return the integrator, the default one for "auto"."""
    if dt is not None and not (isinstance(dt, int | float) and 0 < dt < math.inf):
        raise ProgramError(f"dt={shown(dt)}", remedy="give a positive number, such as dt=0.01")
    if name == "auto":
        name = "euler-maruyama" if system.noise else "bs3" if dt is None else "rk4"
    return integrator(name)


def _clock(method: Integrator, dt: float | None, unit: str) -> tuple[Clock, Register | None, float | Register | None]:
    """Return the clock, the register of the time that an adaptive step must not pass, and the length of steps."""
    if method.adaptive:
        target = Register("step.target", initial=math.inf)
        return Clock(target=target, unit=unit), target, dt
    assert dt is not None
    length = Register("step.dt", initial=dt)
    return Clock(dt=length, unit=unit), None, length


def _length(
    method: Integrator, dt: float | None, rates: Rates, fields: Sequence[Field], values: Mapping[str, Any]
) -> tuple[float | None, tuple[tuple[str, str], ...]]:
    """Return the length of steps, and what people should know of it before the start."""
    if method.adaptive:
        return dt, (("integrator", f"{method.name}, which chooses its steps"),)
    limit = _limit(method, rates, fields, values)
    if dt is None:
        if limit is None or not math.isfinite(limit):
            raise ProgramError(
                f"no stable step of {method.name!r} is known for these equations on {fields[0].grid.size} cells",
                remedy="give dt=, or another integrator: bs3 and dp5 choose their steps",
            )
        dt = float(f"{_SAFETY * limit:.2g}")
    notes = [("integrator", f"{method.name}, dt = {dt:g}")]
    if limit is not None:
        said = f"{limit:.3g} at the start" + (f": dt = {dt:g} may be too long" if dt > 2.0 * limit else "")
        notes.append(("stable step", said))
    return dt, tuple(notes)


def _limit(method: Integrator, rates: Rates, fields: Sequence[Field], values: Mapping[str, Any]) -> float | None:
    """Return a step that is stable for the initial values; None if it is unknown or the grid is large."""
    if fields[0].grid.size > _MOST_CELLS:
        return None
    found = largest_rates(rates, fields, values)
    if found is None or not all(map(math.isfinite, found)):
        return None
    return stable_step(method, *found)


def _explainer(method: Integrator, wish: Register) -> Callable[[Engine], RunError]:
    """Return the function that explains why an adaptive method found no step."""

    def explain(engine: Engine) -> RunError:
        return RunError(
            f"{method.name}: at time {float(engine.read(TIME)):.9g} even a step of {float(engine.read(wish)):.3g} has "
            "too large an error",
            remedy="look at the last frames: does the solution become infinite, or is the tolerance below rounding?",
        )

    return explain


def _boundary(given: Any, name: str, system: _System) -> BoundaryLike:
    """Return the conditions of one field."""
    grid = system.grid
    if isinstance(given, Mapping) and any(key in system.names for key in given):
        for key in given:
            if key not in system.names:
                close = suggest(str(key), system.names)
                raise ProgramError(
                    f"boundary of {key!r}, which is no field",
                    remedy=f"did you mean {close!r}?" if close else f"the fields are {', '.join(system.names)}",
                )
        given = given.get(name)
    default = _continued(grid, system.order)
    if given is None or isinstance(given, Condition):
        return default if given is None else given
    if not isinstance(given, Mapping):
        refused: BoundaryLike = given  # by the field, with a remedy
        return refused
    axes: dict[str | int, Any] = {grid.axis(axis): condition for axis, condition in given.items()}
    return {**(default or {}), **axes}


def _continued(grid: Grid, order: int) -> dict[str | int, Condition] | None:
    """Return the default conditions: nothing flows through the walls."""
    return {axis: neumann(0.0, order=order) for axis, periodic in enumerate(grid.periodic) if not periodic} or None


def _initial(given: object, system: _System) -> dict[str, Any]:
    """Return the initial values by field."""
    if given is None:
        return {}
    values = given if isinstance(given, Mapping) else {system.names[0]: given}
    result = {}
    for key, value in values.items():
        name = unicodedata.normalize("NFKC", str(key))
        if name not in system.names:
            close = suggest(name, system.names)
            raise ProgramError(
                f"initial values of {name!r}, which is no field",
                remedy=f"did you mean {close!r}?" if close else f"the fields are {', '.join(system.names)}",
            )
        result[name] = _placed(value, f"initial {name}", system)
    return result


def _placed(value: Any, label: str, system: _System) -> Any:
    """Return values that depend on the place, of which texts become functions."""
    if not isinstance(value, str):
        return value
    numbers = {each: number for each, number in system.numbers.items() if isinstance(number, float)}
    return of_position(value, label, system.grid.axes, numbers, system.seed)


def _look(u: Any) -> dict[str, Any]:
    """Compute the integral and the extremes of a field in a kernel."""
    value = u[(0,) * len(u.axes)]
    trace = current_trace("the integral")
    found: dict[str, Any] = {"smallest": smallest(value), "largest": largest(value)}
    if trace.metric.geometry == "cartesian":
        found["integral"] = total(functools.reduce(operator.mul, map(spacing, trace.axis_names), value))
    return found


def _observables(fields: Sequence[Field]) -> tuple[Program, dict[str, Register], dict[str, tuple[str, str]]]:
    """Return a Program that finds the integral and the extremes of each field, its registers, and their quantities."""
    observe = Program("observe")
    seen: dict[str, Register] = {}
    quantities: dict[str, tuple[str, str]] = {}
    for item in fields:
        found: Any = observe.apply(Kernel(_look, name="look"), item)
        units = {"smallest": item.unit, "largest": item.unit, "integral": _unit_of_integral(item)}
        texts = {
            "smallest": "smallest value of",
            "largest": "largest value of",
            "integral": "integral over the grid of",
        }
        for word, register in vars(found).items():
            seen[f"{word}_{item.name}"] = register
            quantities[f"{word}_{item.name}"] = (units[word], f"{texts[word]} {item.name}")
    return observe, seen, quantities


def _unit_of_integral(item: Field) -> str:
    """Return the unit of a field times that of the volume of cells."""
    lengths = [unit for unit in item.grid.units if unit != "1"]
    powers = {unit: lengths.count(unit) for unit in lengths}
    factors = [unit if power == 1 else f"{unit}{power}" for unit, power in powers.items()]
    return " ".join([*([item.unit] if item.unit != "1" else []), *factors]) or "1"


def _record(
    equations: object, system: _System, method: Integrator, dt: float | None, order: int, tolerance: float
) -> dict[str, object]:
    """Return the parameters for the record."""
    texts = {
        name: each.text if isinstance(each, Source) else getattr(each, "__name__", "function")
        for name, each in zip(system.names, system.equations, strict=True)
    }
    numbers = {name: value for name, value in system.numbers.items() if isinstance(value, float)}
    length = {"tolerance": tolerance} if method.adaptive else {"dt": dt}
    return {"equations": texts, **numbers, "integrator": method.name, "order": order, **length}
