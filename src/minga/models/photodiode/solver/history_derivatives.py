"""Reverse derivatives of the pairs that carriers with dead space generate: from weights of pairs to those of fluxes.

They run backwards through `minga.models.photodiode.solver.history`, step by step. The pairs are continuous functions of
fluxes and fields, with kinks where carriers that gain the threshold energy up to a node began at another node.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.models.photodiode.recurrence import weights_of
from minga.models.photodiode.solver.paths import LEAST, Paths, Starts, totals
from minga.models.photodiode.solver.physics import WEAKEST

__all__ = ["pulled"]

Floats = NDArray[np.float64]

_SERIES: Final = 1e-4
"""Depth below which quotients are replaced by their series."""


def pulled(
    paths: Paths, wanted: Floats, half: Floats, electrons: Floats, holes: Floats, step: Floats, *others: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return what a change of both fluxes and of the slope adds to the weighted pairs, beyond Newton's matrix.

    Parameters
    ----------
    paths
        The functions that the pairs follow from.
    wanted
        Weight of a pair on each edge.
    half, electrons, holes, step, others
        Half the lengths of the edges, fluxes, slope of the potential, the known fields of both carriers, and the
        derivatives of their coefficients by the field.
    """
    slope, weight = step[1:-1], wanted[1:-1]
    along = np.where(slope < 0.0, -1.0, 1.0)
    known, rate_slopes = others[:8], others[8:]
    fluxes = [np.zeros_like(step), np.zeros_like(step)]
    by_field = np.zeros(slope.size)
    for k, (flux, threshold) in enumerate(zip((electrons, holes), paths.thresholds, strict=True)):
        if threshold <= 0.0:
            continue  # ionisation is local, and Newton's matrix exact
        local, *passing = (item[1:-1] for item in known[4 * k : 4 * k + 4])
        by_rate = rate_slopes[k][1:-1]
        strongest = np.maximum(np.abs(slope), WEAKEST)
        rate, share = paths.space.beyond(local, strongest, threshold)
        own, size = flux[1:-1], np.abs(flux[1:-1])
        outer = fluxes[k][1:-1]
        for part, lengths, strength in paths.stretches(k, slope, half):
            events, to = _events_pulled(
                [rate[part], *(item[part] for item in passing)], lengths, strength, size[part], threshold, weight[part]
            )
            to_flux, to_field, to_rate = to
            # Newton's matrix has the derivatives at a constant share.
            frozen = weight[part] * events
            one = np.where(size[part] > 0.0, size[part], 1.0)
            outer[part] += np.where(own[part] < 0.0, -1.0, 1.0) * (to_flux - frozen / one)
            kept = 1.0 - share[part]
            to_local = to_rate / (kept * kept)
            given = np.where(local[part] > 0.0, local[part], 1.0)
            by_field[part] += (to_local - frozen / given) * by_rate[part]
            by_field[part] -= (
                np.where(np.abs(slope[part]) > WEAKEST, to_local * local[part] * share[part], 0.0) / (strongest[part])
            )
            by_field[part] += np.where(np.abs(slope[part]) > LEAST, to_field, 0.0)
    fields = np.concatenate(([0.0], by_field * along, [0.0]))
    return fluxes[0], fluxes[1], fields


def _events_pulled(
    known: list[Floats], lengths: Floats, strength: Floats, flux: Floats, threshold: float, weight: Floats
) -> tuple[Floats, tuple[Floats, Floats, Floats]]:
    """Return the pairs on each edge of a stretch, and the derivatives of their weighted sum.

    The derivatives are those by the absolute flux, the field, and the coefficient beyond the dead space.
    """
    rate, depth, left, whole = known
    zero = np.zeros(lengths.size)
    if not depth.any():
        return zero, (zero, zero, zero)
    starts = Starts.of(lengths, strength, flux, threshold)
    total, sources = totals(depth, left, whole, starts)
    to_weights, to_share, to_passed = _totals_pulled(depth, left, whole, starts, total, sources, weight)
    # From the weights of the ends of edges to depths.
    early = weights_of(depth, left, whole)[1]
    series = 0.5 - depth * (2.0 / 3.0 - 0.375 * depth)
    early_slope = np.where(depth < _SERIES, series, left - early / np.where(depth > 0.0, depth, 1.0))
    to_depth = -to_weights[0] * left + to_weights[1] * early_slope + to_weights[2] * (left - early_slope)
    reached = (starts.energy[1:] - threshold) / (strength * lengths)
    inside = (reached > 0.0) & (reached < 1.0)
    to_reached = np.where(inside, to_depth * rate * lengths, 0.0) / (strength * lengths)
    to_energy = np.zeros(lengths.size + 1)
    to_energy[1:] += to_reached
    to_field = -to_reached * reached * lengths
    # From the passed fluxes to fluxes and the places where carriers began.
    ends = np.concatenate((flux[:1], flux, flux[-1:]))
    place = np.maximum(starts.begun, starts.start)
    at = np.clip(np.searchsorted(starts.middles, place, side="right") - 1, 0, lengths.size)
    gap = starts.middles[at + 1] - starts.middles[at]
    part = (place - starts.middles[at]) / gap
    to_ends = np.zeros(lengths.size + 2)
    np.add.at(to_ends, at, (1.0 - part) * to_passed)
    np.add.at(to_ends, at + 1, part * to_passed)
    to_flux = to_ends[1:-1].copy()
    to_flux[0] += to_ends[0]
    to_flux[-1] += to_ends[-1]
    to_place = to_passed * (ends[at + 1] - ends[at]) / gap
    later = starts.begun > starts.start
    to_begun = np.where(later, to_place, 0.0) + to_share / lengths[starts.edge]
    to_begun = np.where(starts.energy[1:] > threshold, to_begun, 0.0)
    to_start = float(np.where(later, 0.0, to_place).sum())
    first = int(np.clip(np.searchsorted(starts.nodes, starts.start, side="right") - 1, 0, lengths.size - 1))
    edges = np.append(starts.edge, first)
    to_begun, begun = np.append(to_begun, to_start), np.append(starts.begun, starts.start)
    # From these places, x_j + (energy - energy_j)/field_j, to energies and fields.
    over = to_begun / strength[edges]
    to_energy[1:] += over[:-1]
    np.add.at(to_energy, edges, -over)
    np.add.at(to_field, edges, -over * (begun - starts.nodes[edges]))
    to_field += lengths * (np.cumsum(to_energy[::-1])[::-1][1:])
    return np.diff(np.array(total)), (to_flux, to_field, to_depth * lengths * np.clip(reached, 0.0, 1.0))


def _totals_pulled(
    depth: Floats, left: Floats, whole: Floats, starts: Starts, total: list[float], sources: list[float],
    weight: Floats,
) -> tuple[tuple[Floats, Floats, Floats], Floats, Floats]:  # fmt: skip
    """Return the derivatives of the weighted pairs by the weights of `totals`, by shares, and by the passed fluxes.

    The weights are `left` and the early and late ones of `weights_of`.
    """
    late, early = weights_of(depth, left, whole)
    count, begin = depth.size, int(np.argmax(depth > 0.0))
    to_left, to_early, to_late, to_share, to_passed = (np.zeros(count) for _ in range(5))
    to_total, to_source = np.zeros(count + 1), np.zeros(count + 1)
    to_total[1:] += weight
    to_total[:-1] -= weight
    for k in range(count - 1, begin - 1, -1):
        now, source = total[k], sources[k - 1] if k else float(starts.passed[0])
        j, part, last = int(starts.edge[k]), float(starts.share[k]), float(late[k])
        to_end, to_own = to_total[k + 1], to_source[k]
        if total[k + 1] == now:  # nothing ionises; rounding must not make it less than nothing
            to_total[k] += to_end
            to_end = 0.0
        if j < k:
            to_own = to_own + last * to_end
            to_late[k] = sources[k] * to_end
            to_total[j] += (1.0 - part) * to_own
            to_total[j + 1] += part * to_own
            to_share[k] = (total[j + 1] - total[j]) * to_own
            to_passed[k] += to_own
        else:
            end = total[k + 1]
            to_end = (to_end + part * to_own) / (1.0 - last * part)
            to_late[k] = sources[k] * to_end
            to_total[k] += (1.0 - part) * (to_own + last * to_end)
            to_share[k] = (end - now) * (to_own + last * to_end)
            to_passed[k] += to_own + last * to_end
        to_total[k] += float(left[k]) * to_end
        to_left[k] = now * to_end
        to_early[k] = source * to_end
        if k > begin:
            to_source[k - 1] += float(early[k]) * to_end
        else:
            to_passed[max(begin - 1, 0)] += float(early[k]) * to_end
    return (to_left, to_early, to_late), to_share, to_passed
