"""The case's table [automaton]: its schema. What becomes of it is in `minga.models.automaton.case`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["AutomatonSettings"]


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
