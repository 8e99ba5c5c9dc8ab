"""What is reported of an automaton whose cells are stored as bits; the same numbers as of bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, cast, const
from minga.lang.kernel import Kernel
from minga.lang.logic import ANY, network
from minga.space.field import STEP, Register
from minga.space.words import WORD, Packed

__all__ = ["observe_bits"]

STATE = "state_"
Observable = Register | tuple[Register, ...]


def observe_bits(packed: Packed, states: int, names: Sequence[str]) -> tuple[Program, dict[str, Observable]]:
    """A Program that looks at the current step, and the registers it writes, by name: see `observe`.

    They are the population, the histogram and the residual, and where `names` asks for a bounding box its low and high
    ends along each axis.
    """
    program = Program("observe")
    planes, cells = packed.planes, packed.cells.grid.size
    kernel = _kernel(states, packed.cells.grid.ndim if "bounding_box" in names else 0)
    results: Any = program.apply(
        kernel, [p.now for p in planes], [p.previous for p in planes], list(packed.row[:1]), step=STEP
    )
    found: dict[str, Register] = vars(results)
    none = program.let(Register(f"{STATE}0", "i8"), cells - found["population"])
    histogram = (none, *(found[f"{STATE}{state}"] for state in range(1, states)))
    others = {key: register for key, register in found.items() if not key.startswith(STATE)}
    return program, {**others, "histogram": histogram}


def _kernel(states: int, boxed: int) -> Kernel:
    """Counts of bits, and the ends of the box of live cells along so many axes."""

    def observe_words(
        now: Sequence[CellReader], before: Sequence[CellReader], used: Sequence[CellReader], *, step: Any
    ) -> Mapping[str, Reduced]:
        here, old = [_centre(word) for word in now], [_centre(word) for word in before]
        width = len(here)

        def counted(word: Node) -> Node:
            return cast(mg.popcount(inside(word)), "i8")

        def inside(word: Node) -> Node:
            return word & used[0][0] if used else word

        exactly = network([_codes(width, states, {state}) for state in range(1, states)], width)(here)
        alive = network([_codes(width, states, set(range(1, states)))], width)(here)[0]
        changed = here[0] ^ old[0]
        for new_word, old_word in zip(here[1:], old[1:], strict=True):
            changed = changed | (new_word ^ old_word)
        return {
            "population": mg.sum(counted(alive)),
            **{f"{STATE}{state}": mg.sum(counted(word)) for state, word in enumerate(exactly, 1)},
            "residual": mg.sum(mg.where(step > 0, counted(changed), 0)),
            **_box(inside(alive), boxed),
        }

    return Kernel(observe_words)


def _box(alive: Node, axes: int) -> dict[str, Reduced]:
    """The lowest and the highest index of a live cell along each axis; along the last one, within words."""
    found = {}
    for axis in range(axes):
        low = high = mg.index(axis)
        if axis == axes - 1:
            low, high = low * WORD + _lowest_bit(alive), high * WORD + _highest_bit(alive)
        found[f"low_{axis}"] = mg.min(mg.where(alive != 0, low, const(1 << 62, "i8")))
        found[f"high_{axis}"] = mg.max(mg.where(alive != 0, high, const(-1, "i8")))
    return found


def _lowest_bit(word: Node) -> Node:
    """The number of the lowest 1, which has so many zeros below it."""
    return cast(mg.popcount(~word & (word - 1)), "i8")


def _highest_bit(word: Node) -> Node:
    """The number of the highest 1: with all bits below it set, there are so many and one."""
    for step in (1, 2, 4, 8, 16, 32):
        word = word | (word >> step)
    return cast(mg.popcount(word), "i8") - 1


def _codes(width: int, states: int, wanted: set[int]) -> list[int]:
    """The table of whether a state is a wanted one, for every code of so many bits."""
    return [ANY if code >= states else int(code in wanted) for code in range(1 << width)]


def _centre(field: CellReader) -> Node:
    return field[(0,) * len(field.axes)]
