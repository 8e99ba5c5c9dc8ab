"""Text of a model, as print shows it: what it describes first, then its fields, and the beginning of its step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from minga.errors import shown

if TYPE_CHECKING:
    from minga.engine.model import Model

__all__ = ["model_text"]

_STEP_LINES: Final = 12
"""Lines of the step that are shown."""
_ENTRIES: Final = 6
"""Entries of a list that are shown."""


def model_text(model: Model) -> str:
    """Return a model's parameters, notes and fields as text, and the beginning of its step.

    Parameters
    ----------
    model
        The model.
    """
    notes = dict(model.notes)
    lines = [f"Model {model.name!r} on {model.grid!r}"]
    known = {name: value for name, value in model.parameters.items() if name != "grid" and name not in notes}
    tables = {name: value for name, value in known.items() if isinstance(value, Mapping)}
    lines += [f"  {name} of {key}: {_said(each)}" for name, value in tables.items() for key, each in value.items()]
    lines += [f"  {name}: {text}" for name, text in model.notes]
    lines += [f"  warning: {text}" for text in model.warnings]
    rest = ", ".join(f"{name} = {_said(value)}" for name, value in known.items() if name not in tables)
    lines += [f"  {rest}"] if rest else []
    lines += [f"  {item!r}" for item in model.visible if item.name in model.output]
    hidden = sum(item.name not in model.output for item in model.fields)
    if hidden:
        lines.append(f"  {hidden} more field{'s' if hidden > 1 else ''}: model.fields")
    step = repr(model.step).splitlines()
    lines += [f"  {line}" for line in step[:_STEP_LINES]]
    if len(step) > _STEP_LINES:
        lines.append(f"    {len(step) - _STEP_LINES} more lines: print(model.step)")
    return "\n".join(lines)


def _said(value: object) -> str:
    """Return a value as text: of a table or a list its entries."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_said(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_said, value[:_ENTRIES])) + (", ..." if len(value) > _ENTRIES else "")
    return value if isinstance(value, str) else shown(value)
