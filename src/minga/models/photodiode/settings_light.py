"""Schema of films in front of a device, [[photodiode.light.coatings]]."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from minga.models.photodiode.quantities import quantity
from minga.models.photodiode.structure.indices import IndexSaid

__all__ = ["INDEX_FORM", "CoatingSettings"]

INDEX_FORM = 'n, [n, k], a shipped table or a file of nm, n, k: index = 2.0, or "Si3N4"'


class CoatingSettings(BaseModel):
    """One film in front of the device, `[[photodiode.light.coatings]]`; they are listed from the outside inwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thickness: Annotated[
        float,
        BeforeValidator(lambda v: quantity(v, "length")),
        Field(gt=0, json_schema_extra={"unit": "um"}, description='um, or with a unit: thickness = "117.5 nm"'),
    ]
    index: Annotated[IndexSaid, Field(description=INDEX_FORM)]
