"""Curves that a model wants drawn together, in addition to pictures of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Drawing", "Span"]


@dataclass(frozen=True, slots=True)
class Span:
    """A named part of an axis, such as a layer.

    Parameters
    ----------
    name
        Name of the part.
    low, high
        Ends of the part, in the unit of the axis.
    """

    name: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """Several curves in one pair of axes.

    Parameters
    ----------
    title
        The title, such as "bands"; pictures are named after it.
    lines
        Curves by label: names of fields after the last step, or of observables.
    over
        The observable on the horizontal axis; None: the axis `along`, for fields. Fields are sampled in the middle of
        their other axes, or at `point`. If observables are lists, such as spectra, those after the last step are drawn.
    along
        The axis of fields.
    unit
        The unit of the vertical axis.
    logarithmic
        Whether absolute values are drawn on a logarithmic scale.
    spans
        Named parts of the axis `along`.
    state
        An observable and its unit that identify the state of fields and lists instead of the step: ("V", "V").
    logarithmic_over
        Whether the scale of the observable `over`, whose values are then positive, is logarithmic.
    point
        The number of the point at which fields are sampled along their other axes, which titles then name; None: in the
        middle.
    ordered
        Whether points are joined in the order in which they were observed, as for loops, and not by ascending `over`.
    equal
        Whether a unit is as long on both axes, as in the complex plane.
    over_name
        The name of the quantity `over` on the horizontal axis, such as "frequency"; empty: the observable's name.
    decibels
        Whether the lines are amplitudes that are drawn in dB, 20 log10 of them.
    """

    title: str
    lines: Mapping[str, str]
    over: str | None = None
    along: str = "x"
    unit: str = ""
    logarithmic: bool = False
    spans: tuple[Span, ...] = ()
    state: tuple[str, str] | None = None
    logarithmic_over: bool = False
    point: int | None = None
    ordered: bool = False
    equal: bool = False
    over_name: str = ""
    decibels: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the drawing as plain data for JSON, which `of` reads.

        Returns
        -------
        dict
            Plain data.
        """
        return asdict(self) | {"lines": dict(self.lines)}

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Drawing:
        """Return the drawing that `as_dict` converted.

        Parameters
        ----------
        said
            The result of `as_dict`.

        Returns
        -------
        Drawing
            The drawing.
        """
        spans = tuple(Span(str(s["name"]), float(s["low"]), float(s["high"])) for s in said["spans"])
        state = said.get("state")
        return cls(**{**said, "spans": spans, "state": None if state is None else (str(state[0]), str(state[1]))})
