"""The case's table [automaton]: its schema, and the model it describes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from minga.engine.model import Model
from minga.errors import CaseError
from minga.models.automaton.initial import pattern_of
from minga.models.automaton.model import automaton
from minga.models.automaton.rules import FORMS, KEY
from minga.models.schema import validate
from minga.models.settings import GridSettings

__all__ = ["AutomatonSettings", "load"]


class AutomatonSettings(BaseModel):
    """Table [automaton] of a case.

    rule        "B3/S23" and the like, "W30", or "file.py:name"; None: the rule that the pattern file of `init` names
    init        where the cells start, see `minga.models.automaton.initial`
    parameters  values of the rule's keyword parameters
    seed        of mg.random() in the rule, and of soups that have none of their own
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    rule: str | None = None
    init: Annotated[Any, Field(description='give a pattern, init = "pattern.rle", or a soup, init = {soup = 0.3}')]
    parameters: dict[str, bool | int | float] = Field(default_factory=dict)
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0


def load(section: Mapping[str, object], grid: GridSettings, directory: Path) -> Model:
    """The model that the table [automaton] of a case describes."""
    settings = validate(AutomatonSettings, section, "automaton")
    if grid.shape is None:
        raise CaseError("an automaton needs the number of cells along each axis", key="grid.shape", remedy="[512, 512]")
    rule: str | None = settings.rule
    if rule is None:
        pattern = pattern_of(settings.init, directory)
        if pattern is None or pattern.rule is None:
            raise CaseError("no rule, and the initial cells name none", key=KEY, remedy=FORMS)
        rule = pattern.rule
    return automaton(
        rule,
        grid.shape,
        init=settings.init,
        boundary="periodic" if grid.boundary is None else grid.boundary,
        parameters=settings.parameters,
        seed=settings.seed,
        directory=directory,
    )
