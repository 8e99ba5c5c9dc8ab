"""The plan of a run and its outcome: shares, predictions against measurements, costs, and blocks moved meanwhile."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from minga.view.report.charts import Bar, Curve, curves, stacked_bars
from minga.view.report.decomposition import Block, blocks_of, rank_colour
from minga.view.report.svg import Element, drawing, element, text, titled

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["Cost", "PlanRow", "PlanSection", "plan_section"]

_MOST_BARS, _MOST_ROWS, _MOST_DECISIONS = 32, 16, 12
_WIDTH, _HIGHEST, _LOWEST = 420.0, 420.0, 48.0

_COSTS = {
    "ideal": "computing if all ranks had finished together",
    "imbalance": "extra computing of the rank that had the most work for its speed",
    "network": "that rank's messages, waits and agreements",
    "balance": "moving blocks between ranks",
    "other": "starting loops, reading the clock",
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Part of the wall time in steps; ``share`` of all of it."""

    name: str
    meaning: str
    seconds: float
    share: float


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A rank, or all ranks of a host: seconds for each step, None if nothing was predicted or measured."""

    label: str
    host: str
    colour: str
    cells: int
    share: float
    predicted: float | None
    measured: float | None
    memory: int | None


@dataclass(frozen=True, slots=True)
class PlanSection:
    """Contents of the page about the plan.

    Attributes
    ----------
    error
        Share by which the predicted time is too long.
    kept
        Choices for which the naive one was the best.
    hindsight
        Times of the cuts beside those of the best fixed cut, as of :class:`minga.plan.hindsight.Regret`.
    """

    facts: tuple[tuple[str, str], ...]
    picture: Markup | None
    shown: str
    rows: tuple[PlanRow, ...]
    bars: Markup | None
    predicted: float | None
    measured: float | None
    error: float | None
    costs: tuple[Cost, ...]
    costs_bar: Markup | None
    choices: tuple[Mapping[str, Any], ...]
    kept: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    decisions: tuple[Mapping[str, Any], ...]
    more_decisions: int
    moved: int
    timeline: Markup | None
    looks: int
    hindsight: Mapping[str, Any]


def plan_section(plan: Mapping[str, Any], ledger: Mapping[str, Any], shape: Sequence[int]) -> PlanSection | None:
    """Return the section; None for a run without plan and shares: on one rank, or of an older minga."""
    lines = [line for line in _list(plan.get("ranks")) if isinstance(line, Mapping)]
    if len(lines) < 2:
        return None
    account, whole = _table(ledger.get("account")), _table(plan.get("plan"))
    predicted = _table(account.get("predicted"))
    steps = int(account.get("steps") or 0)
    measured = [_table(line) for line in _list(account.get("ranks"))]
    expected = [_table(line) for line in _list(predicted.get("ranks"))]
    balance = ledger.get("balance")
    choices = [_table(choice) for choice in _list(whole.get("choices"))]
    decisions = [_table(entry) for entry in _list(_table(balance).get("decisions"))]
    return PlanSection(
        facts=tuple(_facts(plan)),
        picture=_picture(blocks := blocks_of(plan.get("blocks"), len(shape)), shape),
        shown=_shown(blocks, shape),
        rows=tuple(_rows(lines, expected, measured)),
        bars=_bars(expected, measured),
        predicted=predicted["seconds"] / steps if steps and "seconds" in predicted else None,
        measured=float(account["seconds"]) / steps if steps else None,
        error=predicted.get("error"),
        costs=(costs := tuple(_costs(account))),
        costs_bar=stacked_bars([Bar("", [(c.name, c.seconds) for c in costs])], "seconds in steps by what they cost")
        if costs
        else None,
        choices=tuple(choice for choice in choices if choice.get("chosen") != choice.get("naive")),
        kept=tuple(str(choice.get("name")) for choice in choices if choice.get("chosen") == choice.get("naive")),
        left_out=tuple((str(pair[0]), str(pair[-1])) for pair in _list(whole.get("left_out")) if _list(pair)),
        decisions=tuple(decisions[:_MOST_DECISIONS]),
        more_decisions=max(0, len(decisions) - _MOST_DECISIONS),
        moved=sum(int(entry.get("bytes") or 0) for entry in decisions),
        timeline=_timeline(decisions),
        looks=int(_table(balance).get("looks") or 0),
        hindsight=_table(_table(balance).get("hindsight")),
    )


def _facts(plan: Mapping[str, Any]) -> list[tuple[str, str]]:
    depth = int(plan.get("halo_depth", 1))
    return [
        ("layout", str(plan.get("layout", ""))),
        ("mapping", str(plan.get("mapping", ""))),
        ("halo depth", f"{depth} step{'s' if depth > 1 else ''}"),
        ("overlap", "yes" if plan.get("overlap") else "no"),
        ("speeds and links", str(plan.get("source", ""))),
        *([("busiest uplinks, a step", uplinks)] if (uplinks := _uplinks(_table(plan.get("plan")))) else []),
        *([("shares", str(unmeasured))] if (unmeasured := plan.get("unmeasured")) else []),
        ("planning took", f"{float(plan.get('seconds') or 0.0):.2g} s"),
    ]


def _uplinks(whole: Mapping[str, Any]) -> str:
    """Return the most bytes that leave one group of each level in a step."""
    return ", ".join(f"{name} {int(size or 0) / 1e6:.3g} MB" for name, size in _table(whole.get("uplinks")).items())


def _rows(
    lines: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]], measured: Sequence[Mapping[str, Any]]
) -> list[PlanRow]:
    """Return one row for each rank, or if they are too many one for each host, with the longest times of its ranks."""
    total = max(1, sum(int(line.get("cells", 0)) for line in lines))
    groups: dict[object, list[int]] = {}
    for number, line in enumerate(lines):
        groups.setdefault(number if len(lines) <= _MOST_ROWS else line.get("host"), []).append(number)
    rows = []
    for ranks in list(groups.values())[:_MOST_ROWS]:
        cells = sum(int(lines[rank].get("cells", 0)) for rank in ranks)
        memory = [int(lines[rank]["memory"]) for rank in ranks if lines[rank].get("memory") is not None]
        rows.append(
            PlanRow(
                str(ranks[0]) if len(ranks) == 1 else f"{len(ranks)} ranks",
                str(lines[ranks[0]].get("host", "")),
                rank_colour(ranks[0]),
                cells,
                cells / total,
                _longest(expected, ranks),
                _longest(measured, ranks),
                sum(memory) if memory else None,
            )
        )
    return rows


def _longest(times: Sequence[Mapping[str, Any]], ranks: Sequence[int]) -> float | None:
    """Return the computing time in seconds for each step of the slowest of some ranks."""
    known = [float(times[rank]["compute"]) for rank in ranks if rank < len(times) and "compute" in times[rank]]
    return max(known) if known else None


def _bars(expected: Sequence[Mapping[str, Any]], measured: Sequence[Mapping[str, Any]]) -> Markup | None:
    """Draw for each rank the predicted times above the measured ones; None if there is nothing to compare."""
    if len(expected) != len(measured) or not expected or len(measured) > _MOST_BARS:
        return None
    bars = []
    for rank, (before, after) in enumerate(zip(expected, measured, strict=True)):
        for word, line in (("predicted", before), ("measured", after)):
            parts = [("compute", 1e3 * float(line["compute"])), ("wait", 1e3 * float(line["exchange"]))]
            bars.append(Bar(f"rank {rank} {word}" if word == "predicted" else word, parts, f"rank {rank}, {word}"))
    return stacked_bars(bars, "milliseconds a step of each rank, predicted and measured", "ms")


def _costs(account: Mapping[str, Any]) -> list[Cost]:
    seconds = {name: max(0.0, float(account.get(name) or 0.0)) for name in _COSTS}
    whole = sum(seconds.values())
    shown = {name: amount for name, amount in seconds.items() if amount or name != "balance"}
    return [Cost(name, _COSTS[name], amount, amount / whole) for name, amount in shown.items()] if whole > 0 else []


def _timeline(decisions: Sequence[Mapping[str, Any]]) -> Markup | None:
    """Draw the imbalance of the ranks at each time that blocks were moved."""
    seen = [(float(d["step"]), float(d["imbalance"])) for d in decisions if _number(d.get("imbalance")) is not None]
    if len(seen) < 2:
        return None
    steps, values = zip(*seen, strict=True)
    return curves("imbalance", [Curve("slowest rank over the best cut", steps, values)], logarithmic=False)


def _plane(blocks: Sequence[Block], shape: Sequence[int]) -> tuple[int, ...]:
    """Return the two axes (or the one) of the plane through the middle that meets most blocks; on ties the last two."""
    pairs: list[tuple[int, ...]] = [*itertools.combinations(range(len(shape)), min(2, len(shape)))]
    return max(pairs, key=lambda pair: (len(_met(blocks, shape, pair)), pair))


def _met(blocks: Sequence[Block], shape: Sequence[int], plane: Sequence[int]) -> list[Block]:
    """Return the blocks that the plane of some axes through the middle meets."""
    across = [axis for axis in range(len(shape)) if axis not in plane]
    return [b for b in blocks if all(b.lo[axis] <= shape[axis] // 2 < b.hi[axis] for axis in across)]


def _shown(blocks: Sequence[Block], shape: Sequence[int]) -> str:
    """Describe the part of all blocks that the picture shows; empty if it shows all."""
    if len(shape) < 3:
        return ""
    first, second = _plane(blocks, shape)
    met = len(_met(blocks, shape, (first, second)))
    plane = f"axes {first + 1} (down) and {second + 1} (across) of {len(shape)}, through the middle of the others"
    return plane + ("" if met == len(blocks) else f": {met} of {len(blocks)} blocks")


def _picture(blocks: Sequence[Block], shape: Sequence[int]) -> Markup | None:
    """Draw the blocks of the plan in a plane through the middle, each with its rank's share of all cells."""
    if not blocks or len(blocks) > 1024:
        return None
    plane = _plane(blocks, shape)
    rows, columns = (1, shape[-1]) if len(shape) == 1 else (shape[axis] for axis in plane)
    width = _WIDTH if columns >= rows else max(140.0, _WIDTH * columns / rows)
    height = max(_LOWEST, min(_HIGHEST, width * rows / columns))
    total = float(np.prod(shape, dtype=float))
    share: dict[int, float] = {}
    for block in blocks:
        share[block.rank] = share.get(block.rank, 0.0) + block.cells / total
    children: list[Element] = []
    for block in _met(blocks, shape, plane):
        low, high = (0, 1) if len(shape) == 1 else (block.lo[plane[0]], block.hi[plane[0]])
        left, right = block.lo[plane[-1]], block.hi[plane[-1]]
        x, wide = left * width / columns, (right - left) * width / columns
        y, tall = low * height / rows, (high - low) * height / rows
        says = f"rank {block.rank}: {block.cells:,} cells here, {100 * share[block.rank]:.3g} % of all"
        box = element("rect", x=x, y=y, width=wide, height=tall, fill=rank_colour(block.rank), class_="part")
        children.append(titled(says, box))
        for label in (f"{block.rank}: {100 * share[block.rank]:.3g} %", str(block.rank)):
            if wide >= 8 * len(label) + 6 and tall >= 16:
                children.append(text(label, x + wide / 2, y + tall / 2 + 4.5, text_anchor="middle", class_="owner"))
                break
    return drawing(width, height, *children, label="planned blocks, and the share of the cells of their ranks")


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()
