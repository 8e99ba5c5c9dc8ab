"""Schema of [photodiode.pointwise]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from minga.models.photodiode.settings_types import Positive

__all__ = ["PointwiseSettings"]

_STRICT = ConfigDict(extra="forbid", frozen=True)


class PointwiseSettings(BaseModel):
    """Table [photodiode.pointwise]: options of scheme = "pointwise"; omitted entries take the scheme's defaults."""

    model_config = _STRICT

    across: Annotated[
        Literal["exact", "block"] | None,
        Field(description="exact: blocks of different ranks wait for one another; block: they do not"),
    ] = None
    segments: Annotated[
        Annotated[int, Field(ge=1)] | tuple[int, ...] | None,
        Field(description="number of segments of the rows, or the rows at which segments end"),
    ] = None
    inner_sweeps: Annotated[int | None, Field(ge=1, description="sweeps of each equation per iteration")] = None
    weight: Annotated[float | None, Field(gt=0, lt=2, description="over-relaxation factor of the potential")] = None
    test: Annotated[Literal["max", "paper", "current", "residual"] | None, Field(description='test = "max"')] = None
    tolerance: Annotated[
        Positive | None,
        Field(json_schema_extra={"unit": "kT/q"}, description="tolerance of the test, kT/q: tolerance = 1e-6"),
    ] = None
    limit: Annotated[int | None, Field(ge=1, description="largest number of iterations per voltage")] = None
    cost: Annotated[Literal["measured", "synthetic"] | None, Field(description='cost = "synthetic"')] = None
    heavy: Annotated[str | None, Field(description='layer with the growing cost under cost = "synthetic"')] = None
    growth: Annotated[float | None, Field(ge=0, le=20, description="growth of the synthetic cost: growth = 4.0")] = None
    expected: Annotated[
        int | None, Field(ge=2, description="expected number of iterations, for the synthetic cost")
    ] = None
