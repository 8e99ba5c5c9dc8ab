"""From the case's table [automaton] to its Model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from minga.case.settings import GridSettings
from minga.engine.model import Model
from minga.errors import CaseError
from minga.models.automaton.bounds import Bounds, parse_bounds, split_bounds
from minga.models.automaton.golly import least_width
from minga.models.automaton.initial import pattern_of
from minga.models.automaton.model import automaton
from minga.models.automaton.notation.larger_than_life import parse_larger_than_life
from minga.models.automaton.patterns import Pattern
from minga.models.automaton.plane import UNBOUNDED
from minga.models.automaton.rules import FORMS, KEY
from minga.models.automaton.settings import AutomatonSettings
from minga.models.automaton.written_rows import shape_of

__all__ = ["make"]

_OF_A_LINE: Final = re.compile(r"\s*[Ww]\s*[0-9]")
"""Beginning of rules that are for one dimension only."""


def make(settings: AutomatonSettings, grid: GridSettings, directory: Path) -> Model:
    """Make the model that the table [automaton] of a case describes."""
    pattern = pattern_of(settings.init, directory)
    rule, bounds = _rule(settings, pattern, grid)
    shape = grid.shape or (None if bounds is None else _shape(bounds, settings.init, pattern))
    init = _placed(settings.init, pattern, bounds) if grid.shape is None else settings.init
    if grid.boundary == UNBOUNDED and pattern is not None and grid.shape is None:
        shape, init = pattern.cells.shape, _on_plane(settings.init, pattern)
    if grid.boundary == UNBOUNDED and shape is None:
        shape = shape_of(settings.init)
    if shape is None:
        raise CaseError("an automaton needs the number of cells along each axis", key="grid.shape", remedy="[512, 512]")
    ends = bounds.boundary if bounds and bounds.fit(shape) else None
    return automaton(
        rule,
        shape,
        init=init,
        before=settings.before,
        update=settings.update,
        observe=settings.observe,
        boundary=ends if grid.boundary is None else grid.boundary,
        parameters=settings.parameters,
        seed=settings.seed,
        directory=directory,
        storage=settings.storage,
        skip_quiet=settings.skip_quiet,
        colours=settings.colours,
    )


def _shape(bounds: Bounds, init: object, pattern: Pattern | None) -> tuple[int, ...] | None:
    """Return the cells along each axis: along unbounded ones those of the first cells, if they have a shape."""
    first = shape_of(init) if pattern is None else pattern.cells.shape
    if 0 not in bounds.shape or first is None or len(first) != len(bounds.shape):
        return bounds.shape if 0 not in bounds.shape else None
    return tuple(n or m for n, m in zip(bounds.shape, first, strict=True))


def _rule(settings: AutomatonSettings, pattern: Pattern | None, grid: GridSettings) -> tuple[str, Bounds | None]:
    """Return the rule, of the case or of its pattern, and its bounded grid if the case lacks a shape or a boundary."""
    rule, suffix = (None, None) if settings.rule is None else split_bounds(settings.rule)
    key = KEY if suffix else "automaton.init"
    if pattern is not None:
        rule, suffix = rule or pattern.rule, suffix or pattern.bounds
    if rule is None:
        raise CaseError("no rule, and the initial cells name none", key=KEY, remedy=FORMS)
    wanted = suffix is not None and (grid.shape is None or grid.boundary is None) and grid.boundary != UNBOUNDED
    ndim = 1 if _OF_A_LINE.match(rule) else 2
    bounds = parse_bounds(suffix, key, ndim) if wanted and suffix else None
    if bounds is not None and grid.shape is None:
        _check_width(rule, bounds, key)
    return rule, bounds


def _check_width(rule: str, bounds: Bounds, key: str) -> None:
    """Raise CaseError if Golly would use a wider grid than a suffix says."""
    large = parse_larger_than_life(rule)
    if large is not None and min(filter(None, bounds.shape), default=1 << 30) < (least := least_width(large)):
        raise CaseError(
            f"a bounded grid of {bounds.shape[1]} x {bounds.shape[0]} cells, which Golly widens to at least {least} "
            f"along each axis for {large}",
            key=key,
            remedy=f"write {least} in place of smaller numbers, or grid.shape = {list(bounds.shape)}, where a cell "
            "that the neighbourhood meets several times is counted as often",
        )


def _on_plane(init: object, pattern: Pattern) -> dict[str, object]:
    """Return `init` with the position of its pattern on an unbounded plane, if the file gives one, or the case."""
    given = dict(init) if isinstance(init, Mapping) else {"pattern": init}
    return {"at": list(pattern.position or (0, 0)), **given}


def _placed(init: object, pattern: Pattern | None, bounds: Bounds | None) -> object:
    """Return `init` with the position of its pattern in a bounded grid, if the file gives one and the case does not."""
    if pattern is None or pattern.position is None or bounds is None:
        return init
    place = list(bounds.index(pattern.position))
    if isinstance(init, str):
        return {"pattern": init, "at": place}
    return {"at": place, **init} if isinstance(init, Mapping) else init
