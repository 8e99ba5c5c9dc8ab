"""Matching of layouts for kernels that access fields of several grids (other resolutions, other labels)."""

from __future__ import annotations

import numpy as np

from minga.engine.program import Apply
from minga.engine.regions import lead_field
from minga.engine.storage import Storage
from minga.errors import LayoutError
from minga.lang.analysis import reads
from minga.space.field import Field, Slot
from minga.space.layout import Layout


def check_layouts(apply: Apply, storage: Storage) -> None:
    """Raise LayoutError unless block n of every field's layout holds what block n of the iteration reads and stores.

    At stride s a block that begins at cell c iterates over the fine cells from s * c on: the fine block must begin
    there, and belong to the same rank. All ranks know all layouts, so all reach the same result.
    """
    if apply.replicated:
        return
    lead = lead_field(apply)
    coarse = storage.layout(lead.grid)
    for item, strides in _accesses(apply):
        if item.replicated or (item.grid == lead.grid and set(strides) == {1}):
            continue
        fine = storage.layout(item.grid)
        if not _lie_on(fine, coarse, strides):
            raise LayoutError(
                f"apply({apply.label}): the blocks of {item.name!r} ({fine!r}) and those of {lead.name!r} ({coarse!r}) "
                f"do not match at stride {strides}",
                where=apply.graph.where or None,
                remedy="give one the layout `fine.coarsen(stride)` of the other, with the fine cuts on multiples of "
                "the stride; P.move brings a field to a grid (a relabelled one) that has such a layout",
            )


def _lie_on(fine: Layout, coarse: Layout, strides: tuple[int, ...]) -> bool:
    return (
        len(fine) == len(coarse)
        and bool((fine.owner == coarse.owner).all())
        and bool((fine.lo == coarse.lo * np.array(strides)).all())
    )


def _accesses(apply: Apply) -> list[tuple[Field, tuple[int, ...]]]:
    """Return every field that an operation reads or stores, with each stride of its accesses."""
    found: dict[tuple[Field, tuple[int, ...]], None] = {}
    for param, accesses in reads(apply.graph).items():
        slot = apply.operands[param]
        if isinstance(slot, Slot):
            found.update(dict.fromkeys((slot.field, tuple(strides)) for strides, _ in accesses))
    for store in apply.graph.stores:
        slot = apply.operands[store.param]
        if isinstance(slot, Slot):
            found[slot.field, tuple(store.strides)] = None
    return list(found)
