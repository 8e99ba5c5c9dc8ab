"""What one measurement found, as it is stored and shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Final, Literal

from benchmarks.timing import Times

ENGINE: Final = 0.97
"""Least share of the speed of a bare kernel, with its slots in turn, that is left through the engine."""
Sense = Literal["at least", "at most"]


@dataclass(frozen=True, slots=True)
class Target:
    """What should be reached: `found` compared with `limit`."""

    what: str
    found: float
    sense: Sense
    limit: float
    unit: str = ""

    @property
    def met(self) -> bool:
        return self.found >= self.limit if self.sense == "at least" else self.found <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.sense == "at least" else "<="
        return f"{self.what} {self.found:.3g}{self.unit and ' ' + self.unit} ({sign} {self.limit:g})"


@dataclass(frozen=True, slots=True)
class Found:
    """One line of the table.

    values   what was measured, in `unit`, by way ("kernel", "engine", "gcc", "bound", ...): median and best
    ratios   how many times as fast one way is as another, from samples taken side by side
    details  anything else worth keeping: flops, bytes, equal cells
    """

    name: str
    title: str
    unit: str
    values: Mapping[str, Mapping[str, float]]
    ratios: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    targets: tuple[Target, ...] = ()
    details: Mapping[str, object] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        content = asdict(self)
        content["targets"] = [{**asdict(target), "met": target.met} for target in self.targets]
        return content


def rates(times: Times, amount: float) -> dict[str, dict[str, float]]:
    """Amounts a second, by way: `amount` is what one call does, in the unit that is shown."""
    return {
        way: {"median": round(amount / times.median(way), 4), "best": round(amount / times.least(way), 4)}
        for way in times.seconds
    }


def ratios(times: Times, *pairs: str) -> dict[str, dict[str, float]]:
    """The ratios "a / b" among ways that were measured."""
    found = {}
    for pair in pairs:
        way, other = pair.split(" / ")
        if way in times.seconds and other in times.seconds:
            found[pair] = times.ratio(way, other)
    return found


def at_least(found: Mapping[str, Mapping[str, float]], limits: Mapping[str, float]) -> tuple[Target, ...]:
    """Targets for those ratios that were measured."""
    return tuple(
        Target(pair, found[pair]["median"], "at least", limit) for pair, limit in limits.items() if pair in found
    )
