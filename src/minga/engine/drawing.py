"""Curves that belong into one picture, as a model says: what pictures and reports draw of it beyond its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Drawing", "Span"]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the axis with a name, such as a layer: from where to where in the axis's unit."""

    name: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """Several curves in one pair of axes.

    title        what they are: "bands"; pictures are called after it
    lines        what is drawn, by the label it gets: names of fields after the last step, or of observables
    over         the observable that goes to the right; None: the axis `along`, for fields. Of a field's other axes the
                 middle is taken
    along        the axis of fields
    unit         of what goes upwards
    logarithmic  whether absolute values go upwards on a scale of powers of ten
    spans        parts of the axis `along` to be named
    state        an observable and its unit that say of what state fields are, in place of the step: ("V", "V")
    """

    title: str
    lines: Mapping[str, str]
    over: str | None = None
    along: str = "x"
    unit: str = ""
    logarithmic: bool = False
    spans: tuple[Span, ...] = ()
    state: tuple[str, str] | None = None

    def as_dict(self) -> dict[str, Any]:
        """In the terms of JSON; `of` reads it."""
        return asdict(self) | {"lines": dict(self.lines)}

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Drawing:
        """From what `as_dict` gave."""
        spans = tuple(Span(str(s["name"]), float(s["low"]), float(s["high"])) for s in said["spans"])
        state = said.get("state")
        return cls(**{**said, "spans": spans, "state": None if state is None else (str(state[0]), str(state[1]))})
