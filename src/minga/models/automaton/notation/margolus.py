"""Block rules, "M0,8,4,3,2,5,9,7,1,6,10,11,12,13,14,15": the successor of each block of 2 x 2 cells.

Entry `nw + 2 ne + 4 sw + 8 se` is the code of the block that follows; with k states the weights are 1, k, k², k³ and
there are k⁴ entries. MCell's spelling, "MS,D0;8;4;...", is the same list. Blocks lie alternately at even and at odd
positions (see `minga.lang.block`). Source: T. Toffoli, N. Margolus, Cellular Automata Machines, 1987, chapter 12.
"""

from __future__ import annotations

import re
from typing import Final

from minga.lang.block import BlockRule, block_table
from minga.models.automaton.notation.text import in_dimensions, squeezed, wrong

__all__ = ["parse_margolus"]

_TABLE: Final = re.compile(r"(?:MS,D|M)([0-9]{1,9}(?:[,;][0-9]{1,9})+)", re.IGNORECASE)
_MOST_STATES: Final = 8
_LENGTHS: Final = {states**4: states for states in range(2, _MOST_STATES + 1)}


def parse_margolus(text: str, ndim: int = 2) -> BlockRule | None:
    """Return the block rule that a list stands for, or None if it has another form; a wrong list is a CaseError."""
    text = squeezed(text)
    match = _TABLE.fullmatch(text)
    if match is None:
        return None
    table = [int(entry) for entry in re.split("[,;]", match[1])]
    if len(table) not in _LENGTHS:
        raise wrong(
            f"a block rule of two dimensions has 16 entries for 2 states, 81 for 3 or 256 for 4; found {len(table)}",
            'entry nw + 2 ne + 4 sw + 8 se is the next block\'s code: "M0,8,4,3,2,5,9,7,1,6,10,11,12,13,14,15"',
        )
    if bad := [entry for entry in table if entry >= len(table)]:
        raise wrong(f"a block becomes {bad[0]}", f"the codes of blocks are 0 .. {len(table) - 1}")
    in_dimensions("M" + ",".join(map(str, table[:4])) + ",...", 2, ndim)
    return block_table(table, _LENGTHS[len(table)], 2, name="M" + ",".join(map(str, table)))
