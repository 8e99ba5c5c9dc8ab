"""A plan: the distribution of cells to ranks, the predicted time, and the gain of each choice over the naive one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.markup import block, described, details, table
from minga.space.box import Box
from minga.space.boxes import Ints
from minga.space.layout import Layout

__all__ = ["Choice", "Plan", "Prediction", "duration"]

_FORMAT: Final = "minga plan"
_LISTED: Final = 4
"""Maximum number of unused nodes that are listed by name."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision: ``naive`` is the plain alternative, ``gain`` the savings over it in seconds per step."""

    name: str
    chosen: str
    naive: str
    gain: float
    reason: str


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicted seconds per step and bytes of every rank, shape (ranks,).

    Attributes
    ----------
    compute, exchange, hidden
        Seconds of computation, of exchanges, and the part of exchanges that overlap hides.
    memory
        Bytes.
    reduce
        Seconds of reductions over all ranks.
    """

    compute: Floats
    exchange: Floats
    hidden: Floats
    memory: Ints
    reduce: float = 0.0

    @property
    def seconds(self) -> float:
        """Seconds of one step, which are those of the slowest rank."""
        return float((self.compute + self.exchange - self.hidden).max()) + self.reduce


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The best way to run that :func:`minga.plan.planner.make_plan` found.

    Parameters
    ----------
    layout
        Cuts of the grid of ``Work.domain``; other grids of the model follow it (``Model.layouts_like``).
    name
        Kind of the layout: "slabs:0", "cartesian:2x3", "columns:0x1", "bisection", "blocks:4".
    mapping
        Mapping of its blocks to ranks.
    halo_depth
        Number of steps per halo exchange.
    overlap
        True if messages overlap with computation.
    prediction
        Predicted time and memory of every rank.
    choices
        Gain of each decision.
    left_out
        Nodes that get no cells, with the reason.
    source
        Origin of the speeds and links.
    naive
        Predicted seconds per step of the naive plan: equal Cartesian parts in order, one exchange per step, overlapped.
    notes
        Remarks on the prediction.
    uplinks
        For each level of the machine from the outermost to the node, its name and the most bytes that leave one of its
        groups in a step; empty on a single node.
    """

    layout: Layout
    name: str
    mapping: str
    halo_depth: int
    overlap: bool
    prediction: Prediction
    choices: tuple[Choice, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    source: str = ""
    naive: float = 0.0
    notes: tuple[str, ...] = ()
    uplinks: tuple[tuple[str, int], ...] = ()

    @property
    def summary(self) -> str:
        """The plan on one line."""
        used = int((self.prediction.compute > 0).sum())
        ranks = f"{self.layout.ranks} rank{'s' if self.layout.ranks > 1 else ''}"
        of = ranks if used == self.layout.ranks else f"{used} of {ranks}"
        depth = f", halo of {self.halo_depth} steps" if self.halo_depth > 1 else ""
        alone = "" if self.overlap else ", no overlap"
        gain = self.naive - self.prediction.seconds
        against = f" (equal parts: {duration(self.naive)})" if gain > 5e-3 * self.naive else ""
        return f"{self.name} on {of}{depth}{alone}: {duration(self.prediction.seconds)} a step predicted{against}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for ``plan.json``.

        Returns
        -------
        dict
            Plain data.
        """
        return {
            "format": _FORMAT,
            "version": 1,
            "word": self.name,
            "mapping": self.mapping,
            "halo_depth": self.halo_depth,
            "overlap": self.overlap,
            "source": self.source,
            "seconds": self.prediction.seconds,
            "naive": self.naive,
            "choices": [asdict(choice) for choice in self.choices],
            "left_out": [list(pair) for pair in self.left_out],
            "notes": list(self.notes),
            "uplinks": dict(self.uplinks),
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
        """Read a plan that :meth:`as_dict` wrote; raise CaseError if the data is not a plan.

        Parameters
        ----------
        data
            The result of :meth:`as_dict`.

        Returns
        -------
        Plan
            The plan.
        """
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
                name=data["word"],
                mapping=data["mapping"],
                halo_depth=data["halo_depth"],
                overlap=data["overlap"],
                prediction=Prediction(compute, exchange, hidden, memory, told["reduce"]),
                choices=tuple(Choice(**choice) for choice in data["choices"]),
                left_out=tuple((name, reason) for name, reason in data["left_out"]),
                source=data["source"],
                naive=data["naive"],
                notes=tuple(data["notes"]),
                uplinks=tuple(data.get("uplinks", {}).items()),
            )
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise CaseError(f"the plan is not complete: {error!r}", remedy="write it again") from error

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

    def _repr_html_(self) -> str:
        rows = [(c.name, c.chosen, "" if c.chosen == c.naive else _gain(c), c.reason) for c in self.choices]
        facts = {f"without {name}": reason for name, reason in self.left_out}
        facts |= {f"note {number}": note for number, note in enumerate(self.notes, 1)}
        return block(
            f"Plan: {self.summary}",
            table(("decision", "choice", "gain", "reason"), rows, named=True),
            described(facts),
            details("layout", repr(self.layout)),
        )


def _gain(choice: Choice) -> str:
    saved = "saves" if choice.gain >= 0 else "costs"
    return f"{saved} {duration(abs(choice.gain))} a step against {choice.naive}"


def duration(seconds: float) -> str:
    """Format seconds with a suitable unit: "1.25 ms"."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= 0.9995 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
