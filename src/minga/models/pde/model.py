"""Models of partial differential equations that are given as text or as functions."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from minga.compile.explain import Kernel
from minga.engine.clock import Clock
from minga.engine.model import Model
from minga.engine.program import Program
from minga.errors import ProgramError, shown, suggest
from minga.lang.functions import max as largest
from minga.lang.functions import min as smallest
from minga.lang.functions import sum as total
from minga.lang.volumes import cell_sizes
from minga.models.keywords import checked_keywords
from minga.models.pde.choice import choose, explainer
from minga.models.pde.complex_values import part_names
from minga.models.pde.conditions import Walls
from minga.models.pde.initial import of_position, of_wall, parts
from minga.models.pde.integrals import preparation
from minga.models.pde.review import review_of
from minga.models.pde.source import Source, normal_name
from minga.models.pde.spectral import Spectral
from minga.models.pde.system import PREFIX, Equation, System
from minga.models.pde.translate import CONSTANTS
from minga.models.pde.unused import check_parameters, conditions_in, texts_in
from minga.models.pde.walls import leaking
from minga.solve.integrators import INTEGRATORS, Integrator
from minga.solve.rates import Evolution, Rates
from minga.space.boundary import BoundaryLike, Condition, neumann
from minga.space.extrapolation import extrapolated
from minga.space.field import Field, Register
from minga.space.grid import Grid
from minga.space.poles import poles

__all__ = ["pde"]


@checked_keywords
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
    space: Literal["differences", "spectral"] = "differences",
    dealias: float = 1.0,
    tolerance: float = 1e-6,
    absolute: float | Mapping[str, float] = 0.0,
    unit: str = "1",
    units: Mapping[str, str] | None = None,
    dtype: str | Mapping[str, str] = "f8",
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
        functions of the coordinates, or texts of them. Functions and texts may depend on the time ``t`` as well.
    initial
        Initial values by field: numbers, arrays, functions of the coordinates, or texts of them; 0 by default.
    boundary
        Conditions at the ends of axes that are not periodic: one for all fields, or one for each by its name; by
        default ``mg.neumann(0.0)``.
    integrator
        "euler", "heun", "ssprk3", "ssprk43", "williamson3" or "rk4" with steps of length `dt`; "imex-euler", "cnab2",
        "sbdf2", "ars222" or "ars443", whose steps are implicit in the terms that are linear in the fields; "bs3" or
        "dp5", which choose their steps by `tolerance`; "tr-bdf2" or "bdf2", which are implicit and choose their steps
        unless `dt` is given; "etdrk4" on periodic boxes, where the linear part limits no step;
        "euler-maruyama" or "milstein" with noise. "auto" chooses among them by the rates at the start, and the notes of
        the model say why.
    dt
        Length of a step, in `unit`; for "bs3" and "dp5" that of the first attempt. By default explicit methods take one
        that is stable for the initial values.
    noise
        Amplitude of white noise in time, independent in each cell: one for all fields, or one for each by its name; a
        number or a text.
    order
        Accuracy of operators for which an equation gives none. Conditions whose order is not given have the highest of
        the equations.
    space
        "differences", or "spectral": derivatives of the Fourier modes, for equations as texts on periodic boxes.
    dealias
        Share of modes along each axis that spectral derivatives keep: 2/3 where fields are squared, 1/2 where cubed.
    tolerance
        For adaptive integrators the largest error of a step, relative to the largest value that each field has had;
        Newton's iterations of implicit ones leave a hundredth of it.
    absolute
        An error that such steps may always have beside it, in the unit of the field: one for all fields, or one for
        each by its name. A field that is zero but for rounding needs one.
    unit
        Unit of time; "1" is dimensionless.
    units
        Units of fields by name.
    dtype
        Type of the fields, "f8", "f4", or the complex ones "c16" and "c8"; one for all, or one for each by its name. A
        complex field ``psi`` consists of two real ones, ``psi_re`` and ``psi_im``.
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
    keywords = {
        "parameters": parameters, "initial": initial, "noise": noise, "space": space, "dealias": dealias,
        "absolute": absolute, "unit": unit, "units": units, "dtype": dtype,
    }  # fmt: skip
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0.0 < tolerance < math.inf:
        raise ProgramError(f"tolerance={shown(tolerance)}", remedy="give a positive number, such as 1e-6")
    _check_units(unit, units)
    grid = _grid(grid)
    system = System.of(equations, grid, dict(parameters or {}), noise, order, seed, dtype)
    check_parameters(parameters or {}, system, texts_in(initial), conditions_in(boundary))
    for each in units or {}:
        if each not in system.known:
            raise _no_field("units", str(each), system)
    walls = {each: Walls.of(_boundary(boundary, each, system), grid, each, system.widest) for each in system.names}
    system = replace(system, closed={each: _closed(each, system, walls) for each in system.unknowns})
    fields = tuple(
        Field(each, grid, kind, slots=2, boundary=walls[each].boundary, unit=_unit(each, units, system))
        for each, kind in zip(system.names, system.kinds, strict=True)
    )
    widest = max(system.kinds)
    constants = tuple(Field(each, grid, widest, boundary=_of_parameters(grid, system.widest)) for each in system.placed)
    rates, spectral, workspace = _rates(system, fields, constants, integrator, space, dealias)
    values = _initial(initial, system) | {each: _placed(value, each, system) for each, value in system.placed.items()}
    starts: dict[Any, Any] = dict(values) | ({} if spectral is None else dict(spectral.modes.initial))
    floors = _absolute(absolute, system)
    step = Program("step")
    known = rates if spectral is None else None
    choice = choose(integrator, dt, system, known, fields, values, tolerance)
    method, length, notes = choice.method, choice.dt, choice.notes
    clock, target, given = _clock(method, length, unit)
    advanced = fields
    if spectral is not None and method.modal:
        spectral.begin(step)
        advanced = spectral.advanced
    recorded = method.record(step, rates, advanced, dt=given, target=target, tolerance=tolerance, absolute=floors)
    if spectral is not None:
        spectral.finish(step)
        notes = (*notes, *(spectral.sides if method.modal else ()))
    workspace = (*workspace, *recorded.fields, *(() if spectral is None else spectral.workspace))
    observe, seen, of_unit = _observables(fields, system.complex)
    return Model(
        name,
        grid,
        (*fields, *constants, *workspace),
        step,
        initial=starts,
        output=system.names,
        observe=observe,
        observables=seen,
        units=of_unit,
        parameters=_record(system, fields, method, keywords | {"order": order, "tolerance": tolerance, "dt": length}),
        seed=seed,
        notes=notes,
        warnings=(*_leaks(boundary, system, walls), *choice.warnings),
        review=review_of(system.names, choice.warnings),
        clock=clock,
        explain=explainer(method, recorded),
        hierarchies=(*recorded.hierarchies, *(() if spectral is None else (spectral.modes.fft,))),
        evolution=Evolution(rates, fields) if isinstance(rates, Rates) and rates.prepare is None else None,
    )


def _grid(given: object) -> Grid:
    """Return the grid; raise ProgramError for anything else."""
    if isinstance(given, Grid):
        if given.seam is not None:
            raise ProgramError(f"a {given.seam.surface} is for automata", remedy="use a torus, or a grid with walls")
        return given
    shape = tuple(given) if isinstance(given, tuple | list) else (given,) if isinstance(given, int) else None
    raise ProgramError(
        f"expected a grid, found {shown(given)}",
        remedy=f"write mg.Grid({shape or (64, 64)}, spacing=..., periodic=...): operators need the width of cells",
    )


def _check_units(unit: object, units: object) -> None:
    """Raise ProgramError for units that are no texts."""
    if not isinstance(unit, str):
        raise ProgramError(f"unit={shown(unit)} is no text", remedy='name the unit of time, unit="s"')
    if units is not None and not (isinstance(units, Mapping) and all(isinstance(each, str) for each in units.values())):
        raise ProgramError(
            f"units={shown(units)}: expected a text for each field", remedy='name them by field: units={"u": "K"}'
        )


def _rates(
    system: System, fields: tuple[Field, ...], constants: tuple[Field, ...], integrator: str, space: str, dealias: float
) -> tuple[Any, Spectral | None, tuple[Field, ...]]:
    """Return the rates, what spectral derivatives need, and the fields of their workspace that is known so far."""
    if space == "spectral":
        if system.integrals:
            raise ProgramError("integrals with spectral derivatives", remedy='write space="differences"')
        spectral = Spectral(system, fields, constants, dealias)
        if integrator in INTEGRATORS and INTEGRATORS[integrator].modal:
            if system.noise:
                raise ProgramError(
                    f"integrator {integrator!r} takes no noise",
                    remedy='use "euler-maruyama" or "milstein", which are made for it',
                )
            return spectral.modal(), spectral, ()
        rates, workspace = spectral.pointwise()
        return rates, spectral, workspace
    if space != "differences" or dealias != 1.0:
        found = f"space={shown(space)}" if space != "differences" else f"dealias={dealias} of differences"
        raise ProgramError(found, remedy='write space="spectral", or leave both out')
    numbers = {PREFIX + each: value for each, value in system.numbers.items()}
    noise = system.amplitudes if system.noise else None
    pairs = len(system.complex) == len(system.unknowns)
    if not system.integrals:
        return Rates(system.rates, constants, numbers, noise, pairs=pairs), None, ()
    prepare = preparation(system.integrals, constants, numbers, system.meanings)
    scalars = {**numbers, **{each.name: each.register for each in system.integrals}}
    return Rates(system.rates, constants, scalars, noise, prepare, pairs), None, ()


def _clock(method: Integrator, dt: float | None, unit: str) -> tuple[Clock, Register | None, float | Register | None]:
    """Return the clock, the register of the time that an adaptive step must not pass, and the length of steps."""
    if method.adaptive:
        target = Register("step.target", initial=math.inf)
        return Clock(target=target, unit=unit), target, dt
    assert dt is not None
    length = Register("step.dt", initial=dt)
    return Clock(dt=length, unit=unit), None, length


def _boundary(given: Any, name: str, system: System) -> BoundaryLike:
    """Return the conditions of one field."""
    given = _given(given, name, system)
    default = _continued(system.grid, system.widest)
    if given is None:
        return default
    if not isinstance(given, Mapping):
        if isinstance(given, Condition) and given.antiperiodic not in system.grid.periodic:
            raise _unused_condition(given, name)
        alone: BoundaryLike = _made(given, name, system)  # the field refuses what is no condition, with a remedy
        return alone
    axes: dict[str | int, Any] = {
        system.grid.axis(axis): _made(condition, name, system) for axis, condition in given.items()
    }
    return {**(default or {}), **axes}


def _by_field(given: Mapping[Any, Any], system: System) -> bool:
    """Return whether conditions are given by field, and not by axis; raise ProgramError for keys that are neither."""
    of_fields = any(key in system.known for key in given)
    for key in given:
        if key not in system.known and (of_fields or (isinstance(key, str) and key not in system.grid.axes)):
            close = suggest(str(key), system.known if of_fields else (*system.known, *system.grid.axes))
            raise ProgramError(
                f"boundary of {key!r}, which is no field" + ("" if of_fields else ", and no axis of the grid"),
                remedy=f"did you mean {close!r}?"
                if close
                else f"the fields are {', '.join(system.names)}, and the axes {', '.join(system.grid.axes)}",
            )
    return of_fields


def _unused_condition(given: Condition, name: str) -> ProgramError:
    """Return the error for a condition that belongs to no end of the grid."""
    if given.antiperiodic:
        what, remedy = "the grid closes along no axis", "make the grid periodic along an axis: periodic=True"
    else:
        what = "all axes of the grid are periodic"
        remedy = "leave boundary= out, or make the grid without periodic= along the axes that have walls"
    return ProgramError(f"boundary of {name!r}: {given}, and {what}", remedy=remedy)


def _given(given: Any, name: str, system: System) -> Any:
    """Return what is given for one field; None if nothing is."""
    whole = system.whole(name)
    own = False
    if isinstance(given, Mapping) and _by_field(given, system):
        own = name in given
        given = given[name] if own else given.get(whole)
    if whole != name and not own:
        _check_homogeneous(given, whole)
    return given


def _first(name: str, system: System) -> str:
    """Return the first field of an unknown."""
    return part_names(name)[0] if name in system.complex else name


def _closed(name: str, system: System, walls: Mapping[str, Walls]) -> Mapping[int, str]:
    """Return the closed ends of an unknown, which its parts have in common if it is complex."""
    if name in system.complex:
        re, im = part_names(name)
        if walls[re].closed != walls[im].closed:
            raise ProgramError(
                f"mg.no_flux() of one part of {name!r} alone", remedy=f"give it for {name}, or for {re} and {im}"
            )
    return walls[_first(name, system)].closed


def _leaks(boundary: Any, system: System, walls: Mapping[str, Walls]) -> Iterator[str]:
    """Yield warnings of terms that carry something through walls whose condition was not given."""
    grid = system.grid
    numbers = {*system.uniform, *CONSTANTS, "t"}
    for name, equation in zip(system.unknowns, system.equations, strict=True):
        given = _given(boundary, _first(name, system), system)
        said = {grid.axis(axis) for axis in given} if isinstance(given, Mapping) else set(range(grid.ndim))
        silent = {axis for axis in range(grid.ndim) if axis not in (set() if given is None else said)}
        open_ = {axis for axis in silent if not grid.periodic[axis] and not all(poles(grid, axis))}
        if not open_ or not isinstance(equation, Source):
            continue
        mirrored = [each for each in system.known if walls[_first(each, system)].mirrored(open_)]
        found = leaking(equation.tree, numbers, mirrored, grid.axes, open_)
        if found:
            axes = ", ".join(grid.axes[axis] for axis in sorted(open_))
            yield (
                f"{', '.join(found)} in the equation of {name} may carry something through the walls along {axes}, "
                f"where d({name})/dn = 0 as no condition was given: boundary={{{name!r}: mg.no_flux()}} closes them, "
                "and mg.neumann(0.0) says that they are meant to be open"
            )


def _made(given: Any, name: str, system: System) -> Any:
    """Return one or several conditions of the order of the equations, of which texts have become functions."""
    if isinstance(given, Condition):
        if given.parsed is not None:
            given = given.parsed(
                lambda text: of_wall(text, f"boundary of {name}", system.grid.axes, dict(system.numbers))
            )
        return given.of_order(system.widest)
    return tuple(_made(each, name, system) for each in given) if isinstance(given, tuple | list) else given


def _check_homogeneous(given: Any, name: str) -> None:
    """Raise an error for conditions of a complex field that its parts would not obey."""
    found = list(given.values()) if isinstance(given, Mapping) else [given]
    for each in found:
        for condition in each if isinstance(each, Sequence) else (each,):
            if isinstance(condition, Condition) and not condition.homogeneous:
                re, im = part_names(name)
                raise ProgramError(
                    f"boundary of {name!r}: {condition} does not say what holds for the imaginary part",
                    remedy=f"give the conditions of {re} and {im}: boundary={{{re!r}: ..., {im!r}: ...}}",
                )


def _no_field(kind: str, name: str, system: System) -> ProgramError:
    """Return the error for a name that is no field's."""
    close = suggest(name, system.known)
    return ProgramError(
        f"{kind} of {name!r}, which is no field",
        remedy=f"did you mean {close!r}?" if close else f"the fields are {', '.join(system.names)}",
    )


def _continued(grid: Grid, order: int) -> dict[str | int, Condition] | None:
    """Return the default conditions: no derivative across walls, so that nothing diffuses through them."""
    return {axis: neumann(0.0, order=order) for axis, periodic in enumerate(grid.periodic) if not periodic} or None


def _of_parameters(grid: Grid, order: int) -> dict[str | int, tuple[Condition, Condition]] | None:
    """Return the conditions of parameters that depend on the place: they go on beyond walls, and are even at poles."""
    outside, even = extrapolated(order), neumann(0.0, order=order)
    ends = {axis: poles(grid, axis) for axis, periodic in enumerate(grid.periodic) if not periodic}
    return {axis: (even if low else outside, even if high else outside) for axis, (low, high) in ends.items()} or None


def _initial(given: object, system: System) -> dict[str, Any]:
    """Return the initial values by field."""
    if given is None:
        return {}
    values = given if isinstance(given, Mapping) else {system.unknowns[0]: given}
    result: dict[str, Any] = {}
    for key, value in values.items():
        name = normal_name(key)
        if name not in system.known:
            raise _no_field("initial values", name, system)
        if name in system.complex:
            label = f"initial {name}"
            numbers = system.constants
            result.update(
                zip(part_names(name), parts(value, label, system.grid.axes, numbers, system.seed), strict=True)
            )
        else:
            result[name] = _placed(value, f"initial {name}", system)
    return result


def _placed(value: Any, label: str, system: System) -> Any:
    """Return values that depend on the place, of which texts become functions."""
    if not isinstance(value, str):
        return value
    return of_position(value, label, system.grid.axes, system.constants, system.seed)


def _absolute(given: object, system: System) -> tuple[float, ...]:
    """Return the error of each field that is always permitted."""
    by_name: Mapping[str, Any] = given if isinstance(given, Mapping) else dict.fromkeys(system.names, given)
    for name, value in by_name.items():
        if name not in system.known:
            raise _no_field("absolute", str(name), system)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
            raise ProgramError(
                f"absolute={shown(value)}", remedy="give 0, or a positive number in the unit of the field"
            )
    return tuple(float(by_name.get(name, by_name.get(system.whole(name), 0.0))) for name in system.names)


def _unit(name: str, units: Mapping[str, str] | None, system: System) -> str:
    """Return the unit of a field."""
    given = units or {}
    return given.get(name, given.get(system.whole(name), "1"))


def _look(u: Any) -> dict[str, Any]:
    """Compute the integral and the extremes of a field in a kernel."""
    value = u[(0,) * len(u.axes)]
    integral = total(functools.reduce(operator.mul, cell_sizes(), value))
    return {"smallest": smallest(value), "largest": largest(value), "integral": integral}


def _norm(re: Any, im: Any) -> dict[str, Any]:
    """Compute the integral of the squared absolute value of a complex field in a kernel."""
    here = (0,) * len(re.axes)
    squares = re[here] * re[here] + im[here] * im[here]
    return {"norm": total(functools.reduce(operator.mul, cell_sizes(), squares))}


def _observables(
    fields: Sequence[Field], complex_fields: Sequence[str]
) -> tuple[Program, dict[str, Register], dict[str, tuple[str, str]]]:
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
    by_name = {item.name: item for item in fields}
    for name in complex_fields:
        re, im = (by_name[part] for part in part_names(name))
        found = observe.apply(Kernel(_norm, name="norm"), re, im)
        seen[f"norm_{name}"] = found.norm
        quantities[f"norm_{name}"] = (_unit_of_integral(re, 2), f"integral over the grid of abs({name})^2")
    return observe, seen, quantities


def _unit_of_integral(item: Field, power: int = 1) -> str:
    """Return the unit of a power of a field times that of the volume of cells."""
    lengths = [unit for unit in _lengths(item.grid) if unit != "1"]
    powers = {unit: lengths.count(unit) for unit in lengths}
    factors = [(item.unit, power)] if item.unit != "1" else []
    return " ".join(unit if n == 1 else f"{unit}{n}" for unit, n in [*factors, *powers.items()]) or "1"


def _lengths(grid: Grid) -> list[str]:
    """Return the units whose product is that of a volume: angles that a grid has or lacks have none."""
    if grid.geometry == "cartesian":
        return list(grid.units)
    by_axis = dict(zip(grid.axes, grid.units, strict=True))
    return [by_axis["r"]] * (3 if grid.geometry == "spherical" else 2) + [
        by_axis[name] for name in ("z",) if name in by_axis
    ]


def _record(
    system: System, fields: Sequence[Field], method: Integrator, keywords: Mapping[str, object]
) -> dict[str, object]:
    """Return the parameters for the record: numbers by their names, and all that the model was made of."""
    texts = {
        name: each.text if isinstance(each, Source) else getattr(each, "__name__", "function")
        for name, each in zip(system.unknowns, system.equations, strict=True)
    }
    walls = {
        item.name: {
            axis: [repr(condition) for condition in pair]
            for axis, pair in zip(item.grid.axes, item.boundary.sides, strict=True)
            if any(pair)
        }
        for item in fields
    }
    said = {name: _said(value) for name, value in keywords.items() if value is not None}
    return {
        **system.constants, "equations": texts, "integrator": method.name, **said,
        "boundary": {name: conditions for name, conditions in walls.items() if conditions}, "grid": repr(system.grid),
    }  # fmt: skip


def _said(value: object) -> object:
    """Return a value for the record, functions and arrays by name and shape."""
    if isinstance(value, Mapping):
        return {str(name): _said(each) for name, each in value.items()}
    if isinstance(value, np.ndarray) and value.ndim:
        return f"array of shape {value.shape}, {value.dtype}"
    if isinstance(value, Register):
        return f"register {value.name}"
    return getattr(value, "__name__", "function") if callable(value) else value
