"""A plan: who does which cells, how, how long it will take, and what each choice gained over the naive one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.space.box import Box
from minga.space.boxes import Ints
from minga.space.layout import Layout

__all__ = ["Choice", "Plan", "Prediction", "duration"]

_FORMAT: Final = "minga plan"
_LISTED: Final = 4
"""Nodes left out that are listed by name."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision: ``naive`` was the alternative that needs no thought, ``gain`` the seconds a step it saves."""

    name: str
    chosen: str
    naive: str
    gain: float
    reason: str


@dataclass(frozen=True, eq=False)
class Prediction:
    """Seconds a step of every rank, shape (ranks,): computing, exchanging, and of that what overlap hides; bytes."""

    compute: Floats
    exchange: Floats
    hidden: Floats
    memory: Ints
    reduce: float = 0.0

    @property
    def seconds(self) -> float:
        """Of one step: the slowest rank's."""
        return float((self.compute + self.exchange - self.hidden).max()) + self.reduce


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What :func:`minga.plan.planner.make_plan` found best.

    layout      cuts the grid of ``Work.domain``; other grids of the model follow it (``Model.layouts_like``)
    word        what sort of layout it is: "slabs:0", "cartesian:2x3", "columns:0x1", "bisection", "blocks:4"
    mapping     how its blocks came to their ranks
    choices     what each decision gained
    left_out    nodes that get no cells, with the reason
    source      where the speeds and links are from
    naive       predicted seconds a step of equal Cartesian parts in order, an exchange a step, overlapped
    notes       what to know about the prediction
    """

    layout: Layout
    word: str
    mapping: str
    halo_depth: int
    overlap: bool
    prediction: Prediction
    choices: tuple[Choice, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    source: str = ""
    naive: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The plan in a line."""
        used = int((self.prediction.compute > 0).sum())
        ranks = f"{self.layout.ranks} rank{'s' if self.layout.ranks > 1 else ''}"
        of = ranks if used == self.layout.ranks else f"{used} of {ranks}"
        depth = f", halo of {self.halo_depth} steps" if self.halo_depth > 1 else ""
        alone = "" if self.overlap else ", no overlap"
        gain = self.naive - self.prediction.seconds
        against = f" (equal parts: {duration(self.naive)})" if gain > 5e-3 * self.naive else ""
        return f"{self.word} on {of}{depth}{alone}: {duration(self.prediction.seconds)} a step predicted{against}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``plan.json``."""
        return {
            "format": _FORMAT,
            "version": 1,
            "word": self.word,
            "mapping": self.mapping,
            "halo_depth": self.halo_depth,
            "overlap": self.overlap,
            "source": self.source,
            "seconds": self.prediction.seconds,
            "naive": self.naive,
            "choices": [asdict(choice) for choice in self.choices],
            "left_out": [list(pair) for pair in self.left_out],
            "notes": list(self.notes),
            "prediction": {
                "compute": self.prediction.compute.tolist(),
                "exchange": self.prediction.exchange.tolist(),
                "hidden": self.prediction.hidden.tolist(),
                "memory": self.prediction.memory.tolist(),
                "reduce": self.prediction.reduce,
            },
            "layout": {
                "domain": [list(self.layout.domain.lo), list(self.layout.domain.hi)],
                "ranks": self.layout.ranks,
                "lo": self.layout.lo.tolist(),
                "hi": self.layout.hi.tolist(),
                "owner": self.layout.owner.tolist(),
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """The plan that :meth:`as_dict` wrote. CaseError where the data is no plan."""
        if data.get("format") != _FORMAT or data.get("version") != 1:
            raise CaseError(
                f"expected a {_FORMAT} of version 1, found {data.get('format')!r} of version {data.get('version')!r}",
                remedy="write one with minga plan CASE -o FILE",
            )
        try:
            box, told = data["layout"], data["prediction"]
            domain = Box(tuple(box["domain"][0]), tuple(box["domain"][1]))
            lo, hi, owner = (np.array(box[name], np.int64) for name in ("lo", "hi", "owner"))
            compute, exchange, hidden = (np.array(told[name], float) for name in ("compute", "exchange", "hidden"))
            memory = np.array(told["memory"], np.int64)
            return cls(
                layout=Layout(domain, box["ranks"], lo, hi, owner),
                word=data["word"],
                mapping=data["mapping"],
                halo_depth=data["halo_depth"],
                overlap=data["overlap"],
                prediction=Prediction(compute, exchange, hidden, memory, told["reduce"]),
                choices=tuple(Choice(**choice) for choice in data["choices"]),
                left_out=tuple((name, reason) for name, reason in data["left_out"]),
                source=data["source"],
                naive=data["naive"],
                notes=tuple(data["notes"]),
            )
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise CaseError(f"the plan is not complete: {error!r}", remedy="write it anew") from error

    def __repr__(self) -> str:
        lines = [f"Plan: {self.summary}", f"  {self.layout!r}"]
        for choice in self.choices:
            what = f"  {choice.name}: {choice.chosen}"
            lines.append(what if choice.chosen == choice.naive else f"{what} ({_gain(choice)}); {choice.reason}")
        lines += [f"  without {name}: {reason}" for name, reason in self.left_out[:_LISTED]]
        if len(self.left_out) > _LISTED:
            lines.append(f"  without {len(self.left_out) - _LISTED} more nodes")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


def _gain(choice: Choice) -> str:
    saved = "saves" if choice.gain >= 0 else "costs"
    return f"{saved} {duration(abs(choice.gain))} a step against {choice.naive}"


def duration(seconds: float) -> str:
    """Seconds as people read them: "1.25 ms"."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= 0.9995 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
