"""The table [automaton] of a case: its schema, and the model it describes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from minga.engine.model import Model
from minga.errors import CaseError
from minga.models.automaton.bounds import Bounds, parse_bounds, split_bounds
from minga.models.automaton.golly import least_width
from minga.models.automaton.initial import pattern_of
from minga.models.automaton.model import automaton
from minga.models.automaton.notation.larger_than_life import parse_larger_than_life
from minga.models.automaton.patterns import Pattern
from minga.models.automaton.rules import FORMS, KEY
from minga.models.settings import GridSettings
from minga.schema import validate

__all__ = ["AutomatonSettings", "load"]

_OF_A_LINE: Final = re.compile(r"\s*[Ww]\s*[0-9]")
"""Beginning of rules that are for one dimension only."""


class AutomatonSettings(BaseModel):
    """Table [automaton] of a case.

    Attributes
    ----------
    rule
        "B3/S23" and the like, "W30", or "file.py:name"; None: the rule that the pattern file of `init` names.
    init
        Initial cells, see `minga.models.automaton.initial`.
    before
        For a second-order update: the cells one step before, in the same forms; None: those of `init`.
    update
        "synchronous", {asynchronous = 0.5}, "coloured", {coloured = "random"}, "second-order"; None: the rule's own.
    parameters
        Values of the rule's keyword parameters.
    observe
        Reported quantities, see `minga.models.automaton.observers`.
    seed
        Seed of mg.random() in the rule, and of soups that have none of their own.
    storage
        Storage of the cells: "bytes", "bits" (64 cells a word), or "auto": bits where they are faster.
    skip_quiet
        Leave out tiles in which nothing can change: true, false, or "auto": on large grids.
    colours
        Colours in which pictures draw the states, "#rrggbb" each; empty: those of the rule.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    rule: str | None = None
    init: Annotated[Any, Field(description='give a pattern, init = "pattern.rle", or a soup, init = {soup = 0.3}')]
    before: Any = None
    update: Any = None
    observe: Any = None
    parameters: dict[str, bool | int | float] = Field(default_factory=dict)
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0
    storage: Literal["auto", "bytes", "bits"] = "auto"
    skip_quiet: bool | Literal["auto"] = "auto"
    colours: list[str] = Field(default_factory=list)


def load(section: Mapping[str, object], grid: GridSettings, directory: Path) -> Model:
    """Return the model described by a case's table [automaton]."""
    settings = validate(AutomatonSettings, section, "automaton")
    pattern = pattern_of(settings.init, directory)
    rule, bounds = _rule(settings, pattern, grid)
    shape = grid.shape or (bounds.shape if bounds else None)
    if shape is None:
        raise CaseError("an automaton needs the number of cells along each axis", key="grid.shape", remedy="[512, 512]")
    ends = bounds.boundary if bounds and bounds.shape == shape else None
    return automaton(
        rule,
        shape,
        init=_placed(settings.init, pattern, bounds) if grid.shape is None else settings.init,
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


def _rule(settings: AutomatonSettings, pattern: Pattern | None, grid: GridSettings) -> tuple[str, Bounds | None]:
    """Return the rule, of the case or of its pattern, and its bounded grid if the case lacks a shape or a boundary."""
    rule, suffix = (None, None) if settings.rule is None else split_bounds(settings.rule)
    key = KEY if suffix else "automaton.init"
    if pattern is not None:
        rule, suffix = rule or pattern.rule, suffix or pattern.bounds
    if rule is None:
        raise CaseError("no rule, and the initial cells name none", key=KEY, remedy=FORMS)
    wanted = suffix is not None and (grid.shape is None or grid.boundary is None)
    ndim = 1 if _OF_A_LINE.match(rule) else 2
    bounds = parse_bounds(suffix, key, ndim) if wanted and suffix else None
    if bounds is not None and grid.shape is None:
        _check_width(rule, bounds, key)
    return rule, bounds


def _check_width(rule: str, bounds: Bounds, key: str) -> None:
    """Raise CaseError if Golly would use a wider grid than a suffix says."""
    large = parse_larger_than_life(rule)
    if large is not None and min(bounds.shape) < (least := least_width(large)):
        raise CaseError(
            f"a bounded grid of {bounds.shape[1]} x {bounds.shape[0]} cells, which Golly widens to at least {least} "
            f"along each axis for {large}",
            key=key,
            remedy=f"write {least} in place of smaller numbers, or grid.shape = {list(bounds.shape)}, where a cell "
            "that the neighbourhood meets several times is counted as often",
        )


def _placed(init: object, pattern: Pattern | None, bounds: Bounds | None) -> object:
    """Return `init` with the position of its pattern in a bounded grid, if the file gives one and the case does not."""
    if pattern is None or pattern.position is None or bounds is None:
        return init
    place = list(bounds.index(pattern.position))
    if isinstance(init, str):
        return {"pattern": init, "at": place}
    return {"at": place, **init} if isinstance(init, Mapping) else init
