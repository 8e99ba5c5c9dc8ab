"""Levels of switches between machines, inferred from the latencies or bandwidths of all pairs.

A message passes the lines of both machines and whatever lies between their switches. The line of a machine, slow or
fast, is a leaf of a tree; what pairs need beyond their two leaves is the distance of their switches: nothing for
machines at the same switch. Gromov products give the leaves, average linkage (UPGMA) groups machines by what is left,
and a level is where the next groups are clearly farther apart than the spread of the measurements. The bandwidth of a
pair is that of its slowest part, so what pairs need beyond the slower of two machines is grouped in the same way.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from minga.network.measuring.matrix import PairMatrix

__all__ = ["Levels", "levels_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FEWEST: Final = 4
"""Fewest machines with which switches can be told from slow machines."""
_SPREADS: Final = 4.0
"""Distance between groups of the next level, in standard deviations of a measurement."""
_LATENCY: Final = 0.1
_BANDWIDTH: Final = 0.25
"""Least part of the usual latency, and least logarithm of a ratio of bandwidths, that a level must add to matter."""
_DEEPEST: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Groups of machines above the machines, the outermost level first.

    Attributes
    ----------
    basis
        What the groups were inferred from.
    of
        ``of[l, m]`` is the number of machine ``m``'s group on level ``l``, through all groups: shape (levels,
        machines).
    """

    basis: Literal["latency", "bandwidth"]
    of: Ints

    @property
    def common(self) -> Ints:
        """Number of levels that each pair of machines has in common, shape (machines, machines)."""
        common: Ints = (self.of[:, :, None] == self.of[:, None, :]).sum(axis=0)
        return common

    def groups(self, names: list[str]) -> list[object]:
        """Return names of machines as nested lists, one level each."""
        return self._below(0, np.arange(self.of.shape[1]), names)

    def _below(self, level: int, machines: Ints, names: list[str]) -> list[object]:
        if level == len(self.of):
            return [names[machine] for machine in machines.tolist()]
        numbers = self.of[level, machines]
        return [
            self._below(level + 1, machines[numbers == number], names) for number in dict.fromkeys(numbers.tolist())
        ]


def levels_of(matrix: PairMatrix) -> Levels | None:
    """Return the switches between machines; None if one switch, or a hub, explains all pairs as well."""
    if len(matrix.names) < _FEWEST or matrix.medium.kind == "hub":
        return None
    latency = matrix.values("latency")
    usual = float(np.nanmedian(latency)) if np.isfinite(latency).any() else 0.0
    near = np.fmin(latency, latency.T)
    found = _levels(_beyond_leaves(near), max(_SPREADS * _spread(latency), _LATENCY * usual), near)
    if found is not None:
        return Levels("latency", found)
    with np.errstate(divide="ignore"):
        slowness = -np.log(matrix.values("bandwidth"))
    found = _levels(_beyond_slower(slowness), max(_SPREADS * _spread(slowness), _BANDWIDTH))
    return None if found is None else Levels("bandwidth", found)


def _spread(values: Floats) -> float:
    """Return the standard deviation of a measurement, from pairs that were measured in both directions."""
    twice = np.abs(values - values.T)[np.triu_indices(len(values), 1)]
    twice = twice[np.isfinite(twice)]
    return 1.4826 * float(np.median(twice)) / np.sqrt(2) if len(twice) else np.inf


def _beyond_leaves(near: Floats) -> Floats:
    """Return what pairs take beyond the lines of their machines, NaN where unknown.

    A machine's line is the least that a message there and away adds to one between two others. A machine that no other
    comes close to may be slow, or alone at its switch; it is taken to be as fast as the others.
    """
    count = len(near)
    leaves = np.full(count, np.nan)
    for machine in range(count):
        row = near[machine]
        product = 0.5 * (row[:, None] + row[None, :] - near)
        product[np.arange(count), np.arange(count)] = np.nan
        if np.isfinite(product).any():
            leaves[machine] = np.nanmin(product)
    left: Floats = near - leaves[:, None] - leaves[None, :]
    np.fill_diagonal(left, np.nan)
    return left


def _beyond_slower(slowness: Floats) -> Floats:
    """Return what pairs take beyond the slower of their machines, NaN where that hides what lies between them."""
    near = np.fmin(slowness, slowness.T)
    np.fill_diagonal(near, np.nan)
    if not np.isfinite(near).any(axis=1).all():
        return np.full(near.shape, np.nan)
    own = np.nanmin(near, axis=1)
    slower = np.maximum(own[:, None], own[None, :])
    left: Floats = near - slower
    left[(slower > own.min() + _BANDWIDTH) & (left < _BANDWIDTH)] = np.nan
    return left


def _levels(left: Floats, need: float, near: Floats | None = None) -> Ints | None:
    """Return the groups of machines on each level that is clear, the outermost first; None if there is none.

    Parameters
    ----------
    left
        What pairs take beyond their machines.
    need
        How much a level must add to that.
    near
        Latencies of pairs, for machines that are alone at their switch.
    """
    if not np.isfinite(left).any(axis=1).all() or not np.isfinite(need):
        return None
    if near is not None:
        left = _as_others(left, need, near)
    found = [groups for groups in _clear_cuts(left, need) if _apart(left, groups, need)]
    return np.array(found[:_DEEPEST]) if found else None


def _as_others(left: Floats, need: float, near: Floats) -> Floats:
    """Return what pairs take beyond their machines, if those that are alone are as fast as others usually are."""
    alone = np.nanmin(left, axis=1) > need
    if not alone.any() or alone.all():
        return left
    product = 0.5 * (near - left)  # half of the sum of two leaves
    leaves = np.where(alone, np.nan, np.nanmedian(np.where(alone[None, :], np.nan, product), axis=1))
    leaves[alone] = np.nanmedian(leaves)
    found = np.maximum(near - leaves[:, None] - leaves[None, :], 0.0)
    return np.where(alone[:, None] | alone[None, :], found, left)


def _clear_cuts(left: Floats, need: float) -> Iterator[Ints]:
    """Yield the number of each machine's group wherever the next groups are clearly farther apart, from the outside."""
    heights, groups = _merged(left)
    for (low, high), before in reversed(list(zip(itertools.pairwise(heights), groups[1:], strict=False))):
        if np.isfinite(high) and high - low > need:
            yield before


def _merged(left: Floats) -> tuple[list[float], list[Ints]]:
    """Return the distances at which groups merge, the least first, and the groups before and after each."""
    known = np.isfinite(left)
    total, count = np.where(known, left, 0.0), known.astype(float)
    group = np.arange(len(left))
    heights: list[float] = []
    groups = [group.copy()]
    for _ in range(len(left) - 1):
        mean = np.divide(total, count, out=np.full(total.shape, np.inf), where=count > 0)
        np.fill_diagonal(mean, np.inf)
        first, second = sorted(divmod(int(np.argmin(mean)), len(mean)))
        heights.append(max(float(mean[first, second]), heights[-1] if heights else 0.0))
        for table in (total, count):
            table[first] += table[second]
            table[:, first] += table[:, second]
            table[second] = table[:, second] = 0.0
        group[group == second] = first
        groups.append(group.copy())
    return heights, groups


def _apart(left: Floats, groups: Ints, need: float) -> bool:
    """Return whether pairs within groups are clearly nearer than pairs between groups, of which several have pairs.

    A single group beside single machines would not tell switches from machines that are slow.
    """
    if (np.bincount(groups) > 1).sum() < 2:
        return False
    upper = np.triu_indices(len(left), 1)
    values, same = left[upper], (groups[:, None] == groups[None, :])[upper]
    inside, between = values[same & np.isfinite(values)], values[~same & np.isfinite(values)]
    return (
        len(inside) > 0 and len(between) > 0 and bool(np.quantile(between, 0.1) - np.quantile(inside, 0.9) > 0.5 * need)
    )
