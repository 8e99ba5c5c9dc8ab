"""How far around its own cells a block's copy of a field must be valid."""

from __future__ import annotations

from dataclasses import dataclass

from minga.engine.program import Apply
from minga.lang.analysis import reads
from minga.space.boundary import SIDES, trace_fill
from minga.space.field import Field, Slot


@dataclass(frozen=True, slots=True)
class Reach:
    """Widths below and above, per axis; `star` if edges and corners are not needed."""

    lo: tuple[int, ...]
    hi: tuple[int, ...]
    star: bool = False

    @classmethod
    def none(cls, ndim: int) -> Reach:
        return cls((0,) * ndim, (0,) * ndim, True)

    @property
    def empty(self) -> bool:
        return not any(self.lo) and not any(self.hi)

    def covers(self, other: Reach) -> bool:
        """Whether every cell of `other` is within this reach."""
        wide = all(a >= b for a, b in zip(self.lo + self.hi, other.lo + other.hi, strict=True))
        return wide and (other.star or not self.star or other.empty)

    def union(self, other: Reach) -> Reach:
        lo = tuple(map(max, self.lo, other.lo))
        hi = tuple(map(max, self.hi, other.hi))
        star = (self.star or self.empty) and (other.star or other.empty)
        return Reach(lo, hi, star)

    def meet(self, other: Reach) -> Reach:
        return Reach(tuple(map(min, self.lo, other.lo)), tuple(map(min, self.hi, other.hi)), self.star or other.star)

    def grown(self, other: Reach) -> Reach:
        """Cells within `other` of cells within this reach."""
        lo = tuple(a + b for a, b in zip(self.lo, other.lo, strict=True))
        hi = tuple(a + b for a, b in zip(self.hi, other.hi, strict=True))
        star = (self.empty and other.star) or (other.empty and self.star) or (self.empty and other.empty)
        return Reach(lo, hi, star)


def stencil(apply: Apply) -> dict[Slot, Reach]:
    """What an operation reads around the block it computes, by distributed slot."""
    needs: dict[Slot, Reach] = {}
    for param, found in reads(apply.graph).items():
        slot = apply.operands[param]
        if not isinstance(slot, Slot) or slot.field.replicated:
            continue
        ndim = slot.field.grid.ndim
        lo = tuple(max(0, *(-o[a] for _, o in found)) for a in range(ndim))
        # At stride s a block of cells [lo, hi) reads up to s * (hi - 1) + offset: s - 1 less than the fine block's end,
        # but where s does not divide the fine axis, its last block ends early.
        shape = slot.field.points.shape
        hi = tuple(max(0, *(o[a] - (s[a] - 1) + -shape[a] % s[a] for s, o in found)) for a in range(ndim))
        star = all(sum(map(bool, o)) <= 1 for _, o in found)
        needs[slot] = needs.get(slot, Reach.none(ndim)).union(Reach(lo, hi, star))
    return needs


def with_boundary(slot: Slot, need: Reach) -> tuple[Reach, dict[Slot, Reach]]:
    """`need` widened by what boundary conditions look at inside, and what they read of other fields."""
    target = slot.field
    lo, hi = list(need.lo), list(need.hi)
    others: dict[Slot, Reach] = {}
    for axis in range(target.grid.ndim):
        for side in SIDES:
            layers = need.lo[axis] if side == "low" else need.hi[axis]
            if target.periodic[axis]:
                continue
            for layer in range(1, layers + 1):
                fill = trace_fill(target, axis, side, layer)
                if fill is None:
                    continue
                width = hi if side == "low" else lo
                width[axis] = max(width[axis], fill.depth - 1)
                for other in fill.operands[1:]:
                    if isinstance(other, Field) and other is not target:
                        depth = tuple(max(need.lo[a], need.hi[a], fill.depth) for a in range(target.grid.ndim))
                        reach = Reach(depth, depth, False)
                        others[other.now] = others.get(other.now, Reach.none(target.grid.ndim)).union(reach)
    return Reach(tuple(lo), tuple(hi), need.star), others


def reads_beyond(apply: Apply, slot: Slot) -> bool:
    """Whether an operation reads ghost cells of a slot beyond an end of the domain that has a condition."""
    target = slot.field
    for param, found in reads(apply.graph).items():
        if apply.operands[param] != slot:
            continue
        for axis in range(target.grid.ndim):
            if target.periodic[axis]:
                continue
            low = min(s[axis] * apply.region.lo[axis] + o[axis] for s, o in found)
            high = max(s[axis] * (apply.region.hi[axis] - 1) + o[axis] for s, o in found) + 1
            if low < target.points.lo[axis] or high > target.points.hi[axis]:
                return True
    return False
