"""Observables of an automaton whose cells are stored as bits; the numbers are the same as for bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, cast, const
from minga.lang.kernel import Kernel
from minga.lang.logic import ANY, network
from minga.space.bit_words import WORD, Packed
from minga.space.field import STEP, Register

__all__ = ["observe_bits"]

STATE = "state_"
Observable = Register | tuple[Register, ...]


def observe_bits(packed: Packed, states: int, names: Sequence[str]) -> tuple[Program, dict[str, Observable]]:
    """Return a Program that observes the current step, and the registers it writes, by name; see `observe`.

    The registers are the population, the histogram and the residual, and if `names` contains "bounding_box" its low and
    high ends along each axis.
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
    """Return a kernel that counts bits and finds the bounding box of live cells along the first `boxed` axes."""

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
    """Reduce the lowest and the highest index of a live cell along each axis; along the last axis, within words."""
    found = {}
    for axis in range(axes):
        low = high = mg.index(axis)
        if axis == axes - 1:
            low, high = low * WORD + _lowest_bit(alive), high * WORD + _highest_bit(alive)
        found[f"low_{axis}"] = mg.min(mg.where(alive != 0, low, const(1 << 62, "i8")))
        found[f"high_{axis}"] = mg.max(mg.where(alive != 0, high, const(-1, "i8")))
    return found


def _lowest_bit(word: Node) -> Node:
    """Return the position of the lowest 1: the number of zeros below it."""
    return cast(mg.popcount(~word & (word - 1)), "i8")


def _highest_bit(word: Node) -> Node:
    """Return the position of the highest 1: with all bits below it set, the word has one more bit than that."""
    for step in (1, 2, 4, 8, 16, 32):
        word = word | (word >> step)
    return cast(mg.popcount(word), "i8") - 1


def _codes(width: int, states: int, wanted: set[int]) -> list[int]:
    """Return a table with an entry for every code of `width` bits: 1 if the code is a wanted state."""
    return [ANY if code >= states else int(code in wanted) for code in range(1 << width)]


def _centre(field: CellReader) -> Node:
    return field[(0,) * len(field.axes)]
