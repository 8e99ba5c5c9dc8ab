"""Reaches: widths around a block's own cells in which its copy of a field must be valid."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from minga.engine.program import Apply
from minga.lang.analysis import Access, reads
from minga.space.boundary import SIDES, trace_fill
from minga.space.field import Field, Slot
from minga.space.grid import Grid
from minga.space.layout import Layout


@dataclass(frozen=True, slots=True)
class Reach:
    """Widths below and above, per axis; `star` if edges and corners are not needed."""

    lo: tuple[int, ...]
    hi: tuple[int, ...]
    star: bool = False

    @classmethod
    def none(cls, ndim: int) -> Reach:
        """Return the reach of width 0."""
        return cls((0,) * ndim, (0,) * ndim, True)

    @property
    def empty(self) -> bool:
        """True if all widths are 0."""
        return not any(self.lo) and not any(self.hi)

    def covers(self, other: Reach) -> bool:
        """Return True if every cell of `other` is within this reach."""
        wide = all(a >= b for a, b in zip(self.lo + self.hi, other.lo + other.hi, strict=True))
        return wide and (other.star or not self.star or other.empty)

    def union(self, other: Reach) -> Reach:
        """Return the smallest reach that covers both."""
        lo = tuple(map(max, self.lo, other.lo))
        hi = tuple(map(max, self.hi, other.hi))
        star = (self.star or self.empty) and (other.star or other.empty)
        return Reach(lo, hi, star)

    def meet(self, other: Reach) -> Reach:
        """Return the widths that both reaches cover."""
        return Reach(tuple(map(min, self.lo, other.lo)), tuple(map(min, self.hi, other.hi)), self.star or other.star)

    def grown(self, other: Reach) -> Reach:
        """Return the reach of cells within `other` of cells within this reach."""
        lo = tuple(a + b for a, b in zip(self.lo, other.lo, strict=True))
        hi = tuple(a + b for a, b in zip(self.hi, other.hi, strict=True))
        star = (self.empty and other.star) or (other.empty and self.star) or (self.empty and other.empty)
        return Reach(lo, hi, star)


def closed_axes(grid: Grid, layout: Layout) -> tuple[bool, ...]:
    """Return for each axis True if no block has a neighbour along it: blocks reach from end to end of the domain."""
    whole = (layout.lo == np.array(layout.domain.lo)) & (layout.hi == np.array(layout.domain.hi))
    return tuple(bool(w) and not p for w, p in zip(whole.all(axis=0), grid.periodic, strict=True))


# Nested loops are analysed repeatedly, always with the same kernels.
_KNOWN = functools.lru_cache(maxsize=1 << 13)


@_KNOWN
def stencil(apply: Apply, *, exchanged: bool = True) -> Mapping[Slot, Reach]:
    """Return the reach that an operation reads around the block it computes, by distributed slot.

    With `exchanged`, values that a sweep receives from the blocks before it while it proceeds are left out.
    """
    needs: dict[Slot, Reach] = {}
    for param, found in reads(apply.graph).items():
        slot = apply.operands[param]
        if not isinstance(slot, Slot) or slot.field.replicated:
            continue
        ndim = slot.field.grid.ndim
        if exchanged:
            own = ((1,) * ndim, (0,) * ndim)
            found = frozenset(access for access in found if not _updated(apply, slot, access)) | {own}
        lo = tuple(max(0, *(-o[a] for _, o in found)) for a in range(ndim))
        # At stride s a block of cells [lo, hi) reads up to s * (hi - 1) + offset: s - 1 less than the fine block's end.
        # If s does not divide the fine axis, however, its last block ends early.
        shape = slot.field.points.shape
        hi = tuple(max(0, *(o[a] - (s[a] - 1) + -shape[a] % s[a] for s, o in found)) for a in range(ndim))
        star = all(sum(map(bool, o)) <= 1 for _, o in found)
        needs[slot] = needs.get(slot, Reach.none(ndim)).union(Reach(lo, hi, star))
    return needs


def _updated(apply: Apply, slot: Slot, access: Access) -> bool:
    """Return True if an exact sweep reads a value there that it has updated already.

    Such a value comes from the blocks before, not from an exchange. (On a periodic axis the first cells read old values
    beyond the end.)
    """
    order, (_, offsets) = apply.graph.order, access
    if order is None or order.kind == "red-black" or order.across != "exact":
        return False
    if all(apply.operands[param] != slot for param in apply.graph.written):
        return False
    first = next((o * d for o, d in zip(offsets, order.directions, strict=True) if o * d), 0)
    return first < 0 and not any(o and p for o, p in zip(offsets, slot.field.periodic, strict=True))


@dataclass(frozen=True, slots=True)
class Ghosts:
    """Ghost cells beyond the ends of the domain, `layers` deep, along `reach` of each block, and their dependencies."""

    reach: Reach
    layers: Reach
    registers: frozenset[str] = frozenset()
    others: frozenset[Slot] = frozenset()

    def covers(self, other: Ghosts) -> bool:
        """Return True if these ghost cells include others."""
        return self.reach.covers(other.reach) and self.layers.covers(other.layers)


def with_boundary(slot: Slot, need: Reach, layers: Reach) -> tuple[dict[Slot, Reach], Ghosts]:
    """Return the reaches, of the field and of those it reads, required to fill `layers` of ghosts along `need`."""
    target = slot.field
    star = need.star and layers.star
    lo, hi = list(need.lo), list(need.hi)
    registers: set[str] = set()
    others: set[Slot] = set()
    for axis in range(target.grid.ndim):
        if target.periodic[axis]:
            continue
        for side in SIDES:
            width, count = (hi, layers.lo[axis]) if side == "low" else (lo, layers.hi[axis])
            for layer in range(1, count + 1):
                fill = trace_fill(target, axis, side, layer)
                if fill is None:
                    continue
                # A block at an end of the domain has a cell inside it; one next to the box of a partial field may not.
                apart = 0 if target.on is None else (need.hi if side == "low" else need.lo)[axis] + layer
                width[axis] = max(width[axis], fill.depth - 1 + apart)
                registers.update(scalar.name for scalar in fill.graph.scalars)
                others.update(o.now for o in fill.operands if isinstance(o, Field) and o is not target)
    wide = Reach(tuple(lo), tuple(hi), star)
    needs = dict.fromkeys(others, wide) | {slot: wide}
    # At corners a ghost cell is computed from ghost cells of earlier axes, as far inside as its condition reads.
    along = Reach(tuple(map(max, wide.lo, layers.lo)), tuple(map(max, wide.hi, layers.hi)), star)
    return needs, Ghosts(along, layers, frozenset(registers), frozenset(others))


def layers_read(apply: Apply, slot: Slot) -> Reach:
    """Return the number of ghost cells that an operation reads of a slot beyond each end of the domain (or its box).

    The reach is not a star if faces, or cells of another box, read diagonal neighbours at an end that is not theirs.
    """
    target, region = slot.field, apply.region
    ndim = target.grid.ndim
    lo, hi = [0] * ndim, [0] * ndim
    found = [access for p, accesses in reads(apply.graph).items() if apply.operands[p] == slot for access in accesses]
    if region.empty:
        return Reach.none(ndim)
    for axis in range(ndim):
        if not target.periodic[axis]:
            first = min(s[axis] * region.lo[axis] + o[axis] for s, o in found)
            last = max(s[axis] * (region.hi[axis] - 1) + o[axis] for s, o in found)
            lo[axis] = max(0, target.points.lo[axis] - first)
            hi[axis] = max(0, last + 1 - target.points.hi[axis])
    # Axes along which the computed cells extend beyond the field's.
    further = [
        lo[a] > max(0, *(-o[a] for _, o in found)) or hi[a] > max(0, *(o[a] for _, o in found)) for a in range(ndim)
    ]
    star = all(sum(bool(o[a]) or further[a] for a in range(ndim)) <= 1 for _, o in found)
    return Reach(tuple(lo), tuple(hi), star)


@_KNOWN
def requirements(apply: Apply, extent: Reach) -> tuple[Mapping[Slot, Reach], Mapping[Slot, Ghosts]]:
    """Return the in-domain validity that an operation needs on blocks extended by `extent`, and its ghost cells."""
    needs: dict[Slot, Reach] = {}
    ghosts: dict[Slot, Ghosts] = {}
    for slot, reach in stencil(apply).items():
        need, layers = extent.grown(reach), layers_read(apply, slot)
        wanted = {slot: need}
        if not layers.empty:
            # However far blocks are extended, no cell of the domain reads more layers beyond its end.
            wanted, ghosts[slot] = with_boundary(slot, need, layers)
        for item, wide in wanted.items():
            if not wide.empty:
                needs[item] = needs.get(item, Reach.none(len(wide.lo))).union(wide)
    return needs, ghosts
