"""Schema of [photodiode.mesh]."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from minga.models.photodiode.settings_adapt import AdaptSettings
from minga.models.photodiode.settings_types import Place

__all__ = ["GradedSettings", "MeshSettings"]

_STRICT = ConfigDict(extra="forbid", frozen=True)


class GradedSettings(BaseModel):
    """Spacings that grow from the layer boundaries: `{first = "0.1 nm", growth = 1.05, cap = "20 nm"}`."""

    model_config = _STRICT

    first: Annotated[
        Place, Field(gt=0, json_schema_extra={"unit": "um"}, description='spacing at a boundary: first = "0.5 nm"')
    ] = 5e-8
    growth: Annotated[float, Field(ge=1, le=2, description="ratio of neighbouring spacings: growth = 1.1")] = 1.1
    cap: Annotated[
        Place, Field(gt=0, json_schema_extra={"unit": "um"}, description='largest spacing: cap = "20 nm"')
    ] = 2e-6

    @model_validator(mode="after")
    def _grow(self) -> GradedSettings:
        # a first spacing alone may exceed the default cap: all spacings are then the first
        if {"first", "cap"} <= self.model_fields_set and self.cap < self.first:
            raise ValueError(f"a cap of at least first, {1e7 * self.first:g} nm")
        return self


class MeshSettings(BaseModel):
    """Table [photodiode.mesh], with one of spacing, nodes, positions and graded."""

    model_config = _STRICT

    spacing: Annotated[
        Place | None,
        Field(
            gt=0,
            json_schema_extra={"unit": "um"},
            description='height of a row: spacing = "2.5 nm"; layers then have rows',
        ),
    ] = None
    coarsen: Annotated[int, Field(ge=1, description="number of rows merged into one: coarsen = 5")] = 1
    nodes: Annotated[
        int | None, Field(ge=3, le=10_000_000, description="number of equally spaced nodes, both ends included")
    ] = None
    positions: Annotated[
        tuple[Place, ...] | None,
        Field(min_length=3, description="positions of all nodes from end to end, um, ascending"),
    ] = None
    graded: Annotated[GradedSettings | None, Field(description='graded = {first = "0.1 nm", growth = 1.05}')] = None
    adapt: Annotated[
        AdaptSettings | None, Field(description="add nodes where the error arises: adapt = {error = 1e-3, most = 5000}")
    ] = None
    across: Annotated[
        GradedSettings | None,
        Field(description='y spacings from edges of regions and contacts: across = {first = "5 nm"}'),
    ] = None
