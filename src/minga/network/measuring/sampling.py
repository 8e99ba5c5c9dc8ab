"""Sampling plan of a measurement: the sizes, their order, and the number of repetitions.

Sizes are measured in random order, sweep after sweep, so that a disturbance does not affect one size alone; a size is
done when its median is known well enough (S. Hunold, A. Carpen-Amarie, *MPI Benchmarking Revisited*, arXiv 1505.07734).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minga.network.measuring.statistics import Summary, median_interval, summary
from minga.network.measuring.transports import Pinger

__all__ = ["THESIS_SIZES", "Sample", "between", "message_sizes", "sample"]

THESIS_SIZES = (8, 100, 1000, 60_000, 1_000_000, 10_000_000)
"""Sizes of F. Tinetti, thesis, Appendix C, in bytes; 60 000 because ``ping`` supports no more."""

_WARM, _SWEEPS, _SLOT, _SHORT = 3, 3, 0.02, 0.01
"""Exchanges in the first pass, least sweeps, seconds of a batch, and seconds below which a message is short."""
_MOST_SAMPLES = 400


@dataclass(frozen=True, slots=True)
class Sample:
    """Measurements for one size: one-way seconds, NaN for lost messages; those of the warm-up are kept separately."""

    size: int
    seconds: tuple[float, ...]
    warmup: tuple[float, ...] = ()

    @property
    def summary(self) -> Summary:
        """Statistics of the times, without the warm-up."""
        return summary(self.seconds)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-serialisable data: microseconds with five digits, null for a lost message."""
        return {"bytes": self.size, "us": _micro(self.seconds), "warmup_us": _micro(self.warmup)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Sample:
        """Return the sample that :meth:`as_dict` wrote."""
        every, warm = (tuple(float("nan") if v is None else v * 1e-6 for v in data[key]) for key in ("us", "warmup_us"))
        return cls(int(data["bytes"]), every, warm)


@dataclass(slots=True)
class _Progress:
    """State of a size during the measurement."""

    size: int
    typical: float
    warmup: list[float]
    seconds: list[float] = field(default_factory=list)

    def known(self, tolerance: float, least: int) -> bool:
        """Return True if the median is known well enough, or there are enough samples."""
        times = np.asarray(self.seconds)
        times = np.sort(times[np.isfinite(times)])
        if len(self.seconds) >= _MOST_SAMPLES:
            return True
        if len(times) < least:
            return False
        low, high = median_interval(times)
        return high - low <= tolerance * float(np.median(times))


def message_sizes(least: int = 0, most: int = 10_000_000, mtu: int = 1500, *, neighbours: bool = False) -> list[int]:
    """Return ascending sizes in bytes: powers of two, those of the thesis, and both sides of protocol limits.

    ``neighbours`` adds the sizes 3 bytes above and below powers of two, as NetPIPE does.
    """
    sizes = {0, 1, *(1 << power for power in range(3, 25)), *THESIS_SIZES, 1400, 4_000_000}
    for limit in (mtu - 52, mtu - 28, 65536):  # payload of TCP with time stamps, payload of UDP, 16-bit lengths
        sizes |= {limit, limit + 1}
    if neighbours:
        sizes |= {(1 << power) + shift for power in range(7, 22) for shift in (-3, 3)}
    return sorted(size for size in sizes | {least} if least <= size <= most)


def sample(
    pinger: Pinger,
    sizes: Sequence[int],
    *,
    budget: float,
    seed: int = 0,
    tolerance: float = 0.02,
    least: int = 10,
    on_progress: Callable[[float], None] | None = None,
) -> list[Sample]:
    """Measure ping-pong times of ``sizes`` within about ``budget`` seconds.

    A first ascending pass warms up and shows how long messages take; sizes that would use up the budget are omitted.
    Then follow sweeps over all sizes that are not known yet, each in a new random order (``seed``). A size is known
    when the 95 % interval of its median, relative to the median, is at most ``tolerance``, with at least ``least``
    exchanges.

    Returns
    -------
    list of Sample
        Samples in ascending order of size.
    """
    start = time.perf_counter()
    order = random.Random(seed)
    under_way = _warm_up(pinger, sorted({min(max(s, pinger.least), pinger.most) for s in sizes}), budget)
    sweeps = 0
    while True:
        spent = time.perf_counter() - start
        if on_progress is not None:
            on_progress(min(1.0, spent / budget))
        unknown = [one for one in under_way if sweeps < _SWEEPS or not one.known(tolerance, least)]
        if not unknown or (sweeps and spent > budget):
            break
        slot = max(1e-4, min(_SLOT, (budget - spent) / (2 * len(unknown))))
        order.shuffle(unknown)
        for one in unknown:
            if time.perf_counter() - start > budget and one.seconds:
                continue
            _measure(pinger, one, slot)
        sweeps += 1
    return [Sample(one.size, tuple(one.seconds), tuple(one.warmup)) for one in under_way]


def between(sizes: Sequence[int], breaks: Sequence[int]) -> list[int]:
    """Return the logarithmic midpoints of the intervals that contain breaks, to locate the breaks more precisely.

    ``breaks`` are the first sizes above each break; intervals narrower than 3 % are not divided.
    """
    ordered = sorted(sizes)
    new = set()
    for at in breaks:
        below = max((size for size in ordered if size < at), default=0)
        if below > 0 and at > 1.03 * below:
            new.add(round((below * at) ** 0.5))
    return sorted(new - set(ordered))


def _warm_up(pinger: Pinger, sizes: Sequence[int], budget: float) -> list[_Progress]:
    """Return the sizes that fit into the budget, after first exchanges of each."""
    chosen: list[_Progress] = []
    for size in sizes:
        if chosen:
            last = chosen[-1]
            expected = last.typical * max(1.0, size / max(last.size, 1) if last.size >= 4096 else 1.0)
            if 2 * expected * _SWEEPS > budget / 4:
                break
        warm = pinger.exchange(size, _WARM if not chosen or chosen[-1].typical < 0.01 else 1)
        typical = float(np.nanmin(warm)) if not np.all(np.isnan(warm)) else 1.0
        chosen.append(_Progress(size, typical, warm))
    return chosen


def _measure(pinger: Pinger, one: _Progress, slot: float) -> None:
    """Measure a batch of one size; the first of several short exchanges is warm-up, as other sizes came before."""
    short = one.typical < _SHORT
    count = int(min(50, _MOST_SAMPLES + 1 - len(one.seconds), max(1 + short, slot / (2 * one.typical))))
    extra = int(short)
    times = pinger.exchange(one.size, count + extra)
    one.warmup += times[:extra]
    one.seconds += times[extra:]


def _micro(seconds: Sequence[float]) -> list[float | None]:
    return [float(f"{value * 1e6:.5g}") if value == value else None for value in seconds]
