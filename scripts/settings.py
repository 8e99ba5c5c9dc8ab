"""Write docs/settings.md from the classes in `minga.options`: python scripts/settings.py."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from minga.options import RunOptions
from minga.running.keywords import declared
from minga.schema import tables_of

PAGE: Final = Path(__file__).parents[1] / "docs" / "settings.md"
_HEAD: Final = """# Settings of a run

Every setting of a run is an entry of one of these tables of a [case](cases.md): write it in the file, or give
`--set TABLE.ENTRY=VALUE` to `minga run` and `minga plan`. From Python, the entries of `[run]` and `[output]` are
keywords of `mg.run`, and `stop=` and `checkpoint=` take those of the other two tables as dicts. None of them changes a
bit of the result, except that `run.steps`, `run.until` and `[stop]` say when the run ends, and that [times of the
model](time.md) may determine the length of steps.

This page is made from the classes in `minga.options` by `scripts/settings.py`.
"""
_NAMES: Final = {int: "whole number", float: "number", str: "text", bool: "true or false", type(None): ""}


def page() -> str:
    """Return the text of the page."""
    return "\n".join([_HEAD, *(_section(name, table) for name, table in tables_of(RunOptions).items())])


def _section(name: str, table: type[BaseModel]) -> str:
    python = {keyword: default for keyword, _, default in declared()} if name in ("run", "output") else {}
    lines = [f"## `[{name}]`", "", "| entry | values | default | meaning |", "|---|---|---|---|"]
    for entry, field in table.model_fields.items():
        default = _written(field.default)
        if entry in python and python[entry] != field.default:
            default += f" (from Python: {_written(python[entry])})"
        values = ", ".join(dict.fromkeys(filter(None, _values(field.annotation))))
        lines.append(f"| `{entry}` | {values} | {default} | {field.description} |".replace("  ", " "))
    return "\n".join([*lines, ""])


def _values(annotation: Any) -> list[str]:
    """Return the kinds of values that an annotation permits."""
    if get_origin(annotation) is Annotated:
        return _values(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [text for choice in get_args(annotation) for text in _values(choice)]
    if get_origin(annotation) is Literal:
        return [_written(value) for value in get_args(annotation)]
    if get_origin(annotation) is tuple:
        return [
            "list of "
            + " and ".join(f"{text}s" if text != "text" else "names" for text in _values(get_args(annotation)[0]))
        ]
    if get_origin(annotation) is dict:
        return ["table by axis"]
    return [_NAMES[annotation]]


def _written(value: Any) -> str:
    """Return a value as TOML has it."""
    if value is PydanticUndefined:
        return "the model's"
    if value is None:
        return ""
    return (
        "`"
        + (str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value))
        + "`"
    )


if __name__ == "__main__":
    PAGE.write_text(page())
