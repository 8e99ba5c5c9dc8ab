"""The case's table [grid], and checking a table against its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from minga.errors import CaseError, suggest

__all__ = ["GridSettings", "validated"]

Schema = TypeVar("Schema", bound=BaseModel)
Length = Annotated[int, Field(strict=True, gt=0)]


class GridSettings(BaseModel):
    """Table [grid] of a case. `shape` and `boundary` are None where the case leaves them to the model."""

    model_config = ConfigDict(extra="forbid")

    shape: Annotated[tuple[Length, ...], Field(min_length=1, max_length=4)] | None = None
    boundary: Any = None


def validated(schema: type[Schema], table: Mapping[str, Any], name: str) -> Schema:
    """The table as the schema's object; the first mistake in it is a CaseError whose key begins with `name`."""
    try:
        return schema.model_validate(table)
    except ValidationError as error:
        mistake: Any = error.errors(include_url=False)[0]
        key = ".".join(map(str, (name, *mistake["loc"])))
        if mistake["type"] == "extra_forbidden":
            close = suggest(str(mistake["loc"][-1]), schema.model_fields)
            raise CaseError("unknown entry", key=key, suggestion=close) from None
        if mistake["type"] == "missing":
            raise CaseError("this entry is needed", key=key) from None
        raise CaseError(f"{mistake['msg']}, found {mistake['input']!r}", key=key) from None
