"""Types of entries in machine files: numbers in SI units, or text with a unit."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BeforeValidator, WithJsonSchema

from minga.plan.machine.units import Kind, quantity

__all__ = ["CellRate", "Memory", "Rate", "Time"]

_TEXT_OR_NUMBER: Final = WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]})


def _of_kind(kind: Kind) -> BeforeValidator:
    return BeforeValidator(lambda value: quantity(value, kind))


Time = Annotated[float, _of_kind("time"), _TEXT_OR_NUMBER]
Rate = Annotated[float, _of_kind("rate"), _TEXT_OR_NUMBER]
Memory = Annotated[float, _of_kind("memory"), _TEXT_OR_NUMBER]
CellRate = Annotated[float, _of_kind("speed"), _TEXT_OR_NUMBER]
