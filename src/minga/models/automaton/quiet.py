"""Skipping of quiet regions: a step leaves out tiles in which nothing can change, including ash of period 2.

A rule allows that if its next state depends only on the cells it reads: no random numbers, no clock, no other operation
that changes its cells. Results are the same, to the bit.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from minga.engine.active_check import default_tile, stored_fields, unfit_operation, unfit_program
from minga.engine.program import Apply, Program
from minga.errors import CaseError
from minga.space.region import Region

__all__ = ["enable_quiet_skipping"]

KEY: Final = "automaton.skip_quiet"
ENOUGH: Final = 1024
"""Tiles from which on "auto" leaves quiet ones out; fewer take no time either way."""


def enable_quiet_skipping(step: Program, setting: object, enough: int = ENOUGH) -> None:
    """Change a step to leave out quiet regions if the setting asks for it.

    Parameters
    ----------
    step
        Program of one step; changed in place.
    setting
        False; True; or "auto": if the rule allows it and the grid has enough tiles.
    enough
        Number of tiles from which on "auto" leaves quiet ones out.

    Raises
    ------
    CaseError
        If `setting` is unknown, or is True and the rule does not allow it; the message gives the reason.
    """
    if not isinstance(setting, bool) and setting != "auto":
        raise CaseError(f"found {setting!r}", key=KEY, remedy='write true, false or "auto"')
    if setting is False:
        return
    apply, reason = _suitable(step)
    if apply is None:
        if setting is True:
            raise CaseError(
                f"quiet regions cannot be left out here: {reason}",
                key=KEY,
                remedy='write "auto", which leaves them out where the rule allows it; results are the same',
            )
        return
    tile = default_tile(sorted(stored_fields(apply), key=lambda item: item.name))
    tiles = math.prod(n // size for n, size in zip(apply.region.shape, tile, strict=True))
    if setting is True or tiles >= enough:
        region = Region(active=tile).within(apply.region)
        step.operations[step.operations.index(apply)] = replace(apply, cells=region)


def _suitable(step: Program) -> tuple[Apply | None, str]:
    """Return the operation of a step that may leave out tiles, or None and the reason why none may."""
    stores = [operation for operation in step.operations if isinstance(operation, Apply) and operation.graph.written]
    if len(stores) != 1:
        return None, "its cells do not all change at once"
    apply = stores[0]
    if apply.grid.seam is not None:
        return None, "edges of the grid are joined in reverse"
    whole = apply.region == apply.grid.box and not apply.cells.sparse
    reason = unfit_operation(apply.graph, apply.operands, whole) or unfit_program(step.operations, apply)
    return (apply, "") if reason is None else (None, reason)
