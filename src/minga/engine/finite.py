"""Whether fields hold numbers only, found out where they lie."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.kernel import Kernel
from minga.space.field import Field, Register

__all__ = ["all_finite"]


def all_finite(engine: Engine, fields: Sequence[Field]) -> bool:
    """Whether no value is NaN or infinite; collective, by a kernel on what the engine computes on."""
    found = True
    for item in fields:
        program, count = _program(item)
        engine.run(program)
        found &= engine.read(count) == 0
    return found


@functools.lru_cache(maxsize=64)
def _program(item: Field) -> tuple[Program, Register]:
    program = Program(f"finite {item.name}")
    count = program.apply(Kernel(_not_finite, name="finite"), item)
    assert isinstance(count, Register)
    return program, count


def _not_finite(u: CellReader) -> Reduced:
    value = u[(0,) * len(u.axes)]
    return mg.count(value - value != 0)
