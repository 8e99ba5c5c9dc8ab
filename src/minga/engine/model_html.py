"""HTML of a model, as notebooks show it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from minga.markup import block, described, details, table
from minga.space.field import Field, Register

if TYPE_CHECKING:
    from minga.engine.model import Model

__all__ = ["model_html"]


def model_html(model: Model) -> str:
    """Return a model's grid, fields, parameters and observables as tables, and its step as text to unfold."""
    shown = [field for field in model.visible if field.name in model.output]
    hidden = len(model.fields) - sum(field in model.fields for field in shown)
    facts: dict[str, object] = {"grid": repr(model.grid).removeprefix("Grid(").removesuffix(")")}
    facts |= {name: value for name, value in model.parameters.items() if name not in facts}
    facts |= {name: value for name, value in model.notes if name not in facts}
    facts["seed"] = model.seed or ""
    facts["observables"] = ", ".join(_observables(model))
    facts["workspace"] = f"{hidden} more fields" if hidden > 1 else "1 more field" if hidden else ""
    return block(
        f"Model {model.name!r}",
        table(("field", "type", "shape", "unit", ""), map(_field_row, shown)),
        described(facts),
        details("one step", repr(model.step)),
    )


def _field_row(field: Field) -> tuple[object, ...]:
    shape = " x ".join(map(str, field.bounds.shape))
    return field.name, field.dtype, shape, "" if field.unit == "1" else field.unit, field.description


def _observables(model: Model) -> Iterator[str]:
    quantities = model.quantities
    for name, registers in model.observables.items():
        unit = quantities.get(name, ("1", ""))[0]
        count = "" if isinstance(registers, Register) else f"[{len(registers)}]"
        yield f"{name}{count}" + ("" if unit == "1" else f" ({unit})")
