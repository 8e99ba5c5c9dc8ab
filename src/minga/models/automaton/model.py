"""Cellular automata as Models: fields, one step, observables, and initial cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from minga.case.boundary import Boundaries, parse_boundary
from minga.engine.model import Model
from minga.engine.presentation import FieldStyle, Presentation
from minga.engine.program import Program
from minga.errors import CaseError, shown, suggest
from minga.lang.block import BlockRule
from minga.lang.colours import as_colours
from minga.lang.neighbourhood import moore
from minga.lang.rule import Rule
from minga.lang.types import integer_range, is_float
from minga.lang.updates import SecondOrder, Update
from minga.models.automaton.avalanche import watch_avalanches
from minga.models.automaton.bits import Bits, stored_as_bits
from minga.models.automaton.bits_observe import observe_bits
from minga.models.automaton.edges import End, edge_diagnostics, watched_ends
from minga.models.automaton.golly import pattern_attributes
from minga.models.automaton.initial import Initial, initial_values
from minga.models.automaton.observe import chosen_names, observe_states
from minga.models.automaton.observe import observe as record_observation
from minga.models.automaton.observers import Observers, parse_observers
from minga.models.automaton.plane import axes_in, check_plane, ends_of_plane, first_cells, on_plane, on_window
from minga.models.automaton.quiet import enable_quiet_skipping
from minga.models.automaton.rules import find_rule
from minga.models.automaton.step import record_step, recurrence, with_update
from minga.models.automaton.units import units_of
from minga.models.automaton.written_rows import shape_of
from minga.space.boundary import SIDES, trace_fill
from minga.space.box import Box, Point
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["automaton"]

Number = bool | int | float


def automaton(
    rule: Rule | BlockRule | str,
    shape: Sequence[int] | None,
    *,
    init: object,
    before: object = None,
    update: Update | str | Mapping[str, object] | None = None,
    boundary: object = None,
    parameters: Mapping[str, Number] | None = None,
    seed: int = 0,
    directory: Path | str = ".",
    storage: str = "auto",
    observe: object = None,
    skip_quiet: bool | str = "auto",
    colours: Sequence[str] = (),
) -> Model:
    """Make the model of a cellular automaton on a grid.

        model = mg.automaton("B3/S23", (512, 512), init={"soup": 0.375, "seed": 1})

    Parameters
    ----------
    rule
        A Rule or a BlockRule (made by @mg.rule, @mg.block_rule), or a text as in a case: "B3/S23", "W30",
        "file.py:name".
    shape
        Cells along each of one to four axes. None on an unbounded plane: those of the rows or the array `init`.
    init
        Initial cells, in one of the forms of a case (see `minga.models.automaton.initial`), or an array or a function.
    before
        For a second-order update the cells one step before, in the same forms; by default those of `init`.
    update
        Choice of the cells that change in a step, if it is not the rule's own: mg.Asynchronous(0.5), "coloured", ...
    boundary
        "periodic", "fixed" (at 0), "reflect", "zero-gradient", ["fixed", value], ...: see the page on cases. The
        default is "periodic"; with the default, and with "fixed" at 0, the run reports when live cells reach the edge.
        "twisted" is a cross-surface, ["twisted", "periodic"] a Klein bottle, "sphere" a sphere, as in Golly.
        "unbounded": the plane goes on in all directions, and `shape` is only that of the first cells; with an entry for
        each axis, such as ["fixed", "unbounded"], along those axes only.
    parameters
        Values of the rule's keyword parameters that differ from their defaults.
    seed
        Seed of mg.random() in the rule, and of soups without a seed.
    directory
        Directory that relative paths refer to.
    storage
        "bytes", "bits" (64 cells a word; not every rule can), or "auto": bits where they are faster. Results are the
        same; mg.run and the command line show cells either way.
    observe
        Reported quantities: names such as ["population", "entropy"], functions of a cell (and its neighbours) that
        return reductions, or a mapping of names to such functions; see `minga.models.automaton.observers`.
    skip_quiet
        Leave out tiles of cells in which nothing can change: True, False, or "auto": on large grids if the rule allows
        it. Results are the same.
    colours
        Colours in which pictures draw the states, "#rrggbb" each, if they differ from those of the rule.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    CaseError
        If an argument is invalid; its key is the one that a case has for this argument.
    """
    if shape is None and ends_of_plane(boundary, axes_in(boundary)) is not None:
        shape = shape_of(init)
    _check_arguments(rule, shape, seed)
    assert shape is not None  # or it was refused
    base = Path(directory)
    chosen = with_update(find_rule(rule, len(shape), base) if isinstance(rule, str) else rule, update)
    ends = ends_of_plane(boundary, len(shape))
    init, first = (init, None) if ends is None else first_cells(init, tuple(shape), ends)
    make = partial(
        _on_grid,
        rule,
        _coloured(chosen, colours) if colours else chosen,
        tuple(shape),
        init=init,
        before=before,
        parameters=parameters,
        seed=seed,
        base=base,
        storage=storage,
        observers=parse_observers(observe, base),
        skip_quiet=skip_quiet,
    )
    return make(boundary) if first is None or ends is None else on_plane(make, chosen, first, ends)


def _on_grid(
    given: Rule | BlockRule | str,
    chosen: Rule | BlockRule,
    shape: tuple[int, ...],
    boundary: object,
    placed: tuple[Box, Point] | None = None,
    *,
    init: object,
    before: object,
    parameters: Mapping[str, Number] | None,
    seed: int,
    base: Path,
    storage: str,
    observers: Observers,
    skip_quiet: bool | str,
) -> Model:
    """Make the model on a grid of `shape`, or on a window of a plane with the corner of first cells of that shape."""
    window = None if placed is None else placed[0]
    values = _parameters(chosen, parameters or {})
    ends = parse_boundary("periodic" if boundary is None else boundary, len(shape))
    _check_ends(ends, chosen)
    grid = ends.grid(shape) if window is None else ends.grid(window.shape, window.lo)
    _check_mirrors(ends, chosen, grid)
    _check_seam(grid, chosen)
    said = f"state of rule {chosen.name}"
    fields = {
        name: Field(name, grid, dtype, slots=2, boundary=ends.conditions, description=said)
        for name, dtype in chosen.fields.items()
    }
    step = record_step(chosen, fields, values)
    about = pattern_attributes(given, chosen, grid, ends, values)
    watched: tuple[End, ...] = ()
    if window is None:
        watched = watched_ends(chosen, grid, ends, init, step, joined=boundary is None)
    else:
        observers = check_plane(chosen, step, observers)
    first, earlier = (_first(cells, chosen, shape, base, seed, placed) for cells in (init, before))
    enough = {} if window is None else {"enough": 0}  # choices of "auto" are the same on all windows

    def quiet(step: Program) -> None:
        enable_quiet_skipping(step, skip_quiet, **enough)

    bits = None
    if before is None and _bits_will_do(observers, storage):
        bits = stored_as_bits(chosen, grid, ends, values, storage, **enough)
    if bits is not None:
        return replace(_of_bits(bits, chosen, first, values, seed, observers, quiet, watched), about=about)
    avalanches, registers = (
        ({}, {}) if observers.avalanche is None else watch_avalanches(step, tuple(fields.values()), observers.avalanche)
    )
    quiet(step)
    program, observables = record_observation(chosen, fields, observers, values)
    return Model(
        name="automaton",
        grid=grid,
        fields=tuple(fields.values()),
        step=step,
        initial=_start(first, earlier, chosen, fields),
        output=tuple(fields),
        observe=program,
        observables=observables | avalanches,
        units=units_of(observables | avalanches, fields),
        registers=registers,
        parameters={"rule": chosen.name, **values},
        seed=int(seed),
        recurrence=recurrence(chosen, step, tuple(fields.values())),
        diagnostics=edge_diagnostics(step, watched, grid, tuple(fields.values())),
        about=about,
        presentation=_presentation(chosen, fields),
        paintable=dict.fromkeys(fields, chosen.states) if chosen.states else {},
    )


def _first(
    init: object,
    rule: Rule | BlockRule,
    shape: tuple[int, ...],
    directory: Path,
    seed: int,
    placed: tuple[Box, Point] | None,
) -> dict[str, Initial]:
    """Return the first cells of each field by name, on a window if there is one; no fields if `init` is None."""
    if init is None:
        return {}
    found = initial_values(init, rule, shape, directory, seed)
    if placed is None:
        return found
    window, corner = placed
    return {name: on_window(cells, shape, corner, window) for name, cells in found.items()}


def _of_bits(
    bits: Bits,
    rule: Rule | BlockRule,
    initial: Mapping[str, Initial],
    parameters: Mapping[str, Number],
    seed: int,
    observers: Observers,
    quiet: Callable[[Program], None],
    watched: Sequence[End],
) -> Model:
    """Return the model of an automaton whose cells are stored as bits."""
    packed = bits.packed
    name = packed.cells.name
    step = bits.step()
    quiet(step)
    states = rule.states or 2
    names = chosen_names(observers, states, floats=False)
    program, known = observe_bits(packed, states, names)
    observables = observe_states(program, names, states, packed.cells, known)
    return Model(
        name="automaton",
        grid=packed.cells.grid,
        fields=bits.fields,
        step=step,
        initial=bits.initial(initial.get(name)),
        output=(name,),
        observe=program,
        observables=observables,
        units=units_of(observables, (name,)),
        parameters={"rule": rule.name, **parameters},
        seed=int(seed),
        packed={name: packed},
        recurrence=recurrence(rule, step, packed.planes),
        diagnostics=edge_diagnostics(step, watched, packed.cells.grid, packed),
        presentation=_presentation(rule, (name,)),
        paintable={name: states},
    )


def _presentation(rule: Rule | BlockRule, fields: Iterable[str]) -> Presentation:
    """Return the presentation of a rule's fields, by name, in the colours of the rule."""
    return Presentation(dict.fromkeys(fields, FieldStyle(colours=rule.colours)) if rule.colours else {})


def _bits_will_do(observers: Observers, storage: str) -> bool:
    """Return whether all observables can be computed from cells stored as bits; raise CaseError if they must be."""
    if storage == "bits" and not observers.only_names:
        raise CaseError(
            "cells stored as bits cannot be observed by functions, nor their avalanches",
            key="automaton.observe",
            remedy='leave these out, or write storage = "auto"',
        )
    return observers.only_names


def _start(
    initial: Mapping[str, Initial],
    earlier: Mapping[str, Initial],
    rule: Rule | BlockRule,
    fields: Mapping[str, Field],
) -> dict[Any, Initial]:
    """Return the first values of the fields by name, and for a second-order update of the slots of the state before."""
    if isinstance(rule, Rule) and isinstance(rule.update, SecondOrder):
        return {**initial, **{fields[name].previous: values for name, values in (earlier or initial).items()}}
    if earlier:
        raise CaseError(
            f"rule {rule.name!r} does not use the state before the first",
            key="automaton.before",
            remedy='leave it out, or use update = "second-order"',
        )
    return dict(initial)


def _coloured(rule: Rule | BlockRule, colours: Sequence[str]) -> Rule | BlockRule:
    """Return the rule with other colours for its states."""
    try:
        return replace(rule, colours=as_colours(colours, rule.states))
    except ValueError as error:
        remedy = 'give one for each state, the first for state 0: ["#f7f5ef", "#1f3b57"]'
        raise CaseError(str(error), key="automaton.colours", remedy=remedy) from error


def _check_arguments(rule: object, shape: object, seed: object) -> None:
    """Raise CaseError for invalid arguments from Python; those of a case file have been validated already."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise CaseError(f"seed={seed!r}: expected an integer 0 .. 2**64 - 1", key="automaton.seed")
    if not isinstance(rule, Rule | BlockRule | str):
        name = getattr(rule, "__name__", None)
        raise CaseError(
            f"found {name or repr(rule)}, which is not a rule",
            key="automaton.rule",
            remedy=f"write @mg.rule above def {name}(cell, near)"
            if name
            else 'write "B3/S23", or make one by @mg.rule',
        )
    lengths = shape if isinstance(shape, Sequence) and not isinstance(shape, str) else ()
    if not lengths or any(isinstance(n, bool) or not isinstance(n, int | np.integer) for n in lengths):
        raise CaseError(
            f"shape={shown(shape)}: expected a whole number of cells for each axis",
            key="grid.shape",
            remedy="write (512, 512), or (512,) for one axis",
        )


def _parameters(rule: Rule | BlockRule, given: Mapping[str, Number]) -> dict[str, Number]:
    """Return a value for each parameter of the rule, in the order of its function."""
    known = [*rule.parameters, *rule.required]
    for name in given:
        if name not in known:
            raise CaseError(
                f"rule {rule.name!r} has no parameter {name!r}",
                key=f"automaton.parameters.{name}",
                suggestion=suggest(name, known),
                remedy=f"its parameters are {', '.join(known)}" if known else "it has none",
            )
    for name in rule.required:
        if name not in given:
            raise CaseError(f"rule {rule.name!r} needs a value of {name!r}", key=f"automaton.parameters.{name}")
    return {
        name: _like(name, given[name], rule.parameters.get(name)) if name in given else rule.parameters[name]
        for name in known
    }


def _like(name: str, value: Number, default: Number | None) -> Number:
    """Convert an integer to float if the default is a float: the type of a parameter is part of the kernel."""
    if not isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating):
        raise CaseError(f"expected a number, found {shown(value)}", key=f"automaton.parameters.{name}")
    return float(value) if isinstance(default, float) and not isinstance(value, bool) else value


def _check_ends(ends: Boundaries, rule: Rule | BlockRule) -> None:
    for name, dtype in rule.fields.items():
        low, high = (0, rule.states - 1) if rule.states else (0, 0) if is_float(dtype) else integer_range(dtype)
        for value in ends.values:
            if not is_float(dtype) and (value != int(value) or not low <= value <= high):
                raise CaseError(
                    f"cells beyond the end are fixed at {value}; the states of {name!r} are {low} .. {high}",
                    key="grid.boundary",
                )


def _check_seam(grid: Grid, rule: Rule | BlockRule) -> None:
    """Raise CaseError if a rule reads farther across a seam than to the nearest cells."""
    if grid.seam is None or not isinstance(rule, Rule):
        return
    reach = max((abs(n) for offset in rule.neighbourhood.around(grid.ndim) for n in offset), default=0)
    if reach > 1:
        raise CaseError(
            f"rule {rule.name!r} reads cells {reach} cells away; on a {grid.seam.surface} rules read the nearest ones",
            key="grid.boundary",
            remedy='use "periodic" or "fixed", or a rule of radius 1',
        )


def _check_mirrors(ends: Boundaries, rule: Rule | BlockRule, grid: Grid) -> None:
    """Raise CaseError if cells beyond an end mirror more cells than the axis has."""
    around = (rule.neighbourhood if isinstance(rule, Rule) else moore(1)).around(grid.ndim)
    field = Field("cell", grid, "u1", boundary=ends.conditions)
    for axis, length in enumerate(grid.shape):
        for side, sign in zip(SIDES, (-1, 1), strict=True):
            layers = 0 if grid.periodic[axis] else max(sign * offset[axis] for offset in around)
            fill = trace_fill(field, axis, side, layers) if layers > 0 else None
            if fill is not None and fill.depth > length:
                raise CaseError(
                    f"the boundary of axis {axis} mirrors {fill.depth} cells, but there are only {length}",
                    key="grid.shape",
                    remedy='use more cells along the axis, a smaller neighbourhood, or the boundary "zero-gradient"',
                )
