"""Schema of the tables [run] and [output] of a case, which are the same for all models."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["OutputSettings", "RunSettings"]

_STRICT = ConfigDict(extra="forbid", frozen=True)


class RunSettings(BaseModel):
    """Table [run]: how far, and on what."""

    model_config = _STRICT

    steps: Annotated[
        int, Field(ge=0, description="say how many steps to do: steps = 100 in [run], or --set run.steps=100")
    ]
    ranks: Annotated[
        int | None,
        Field(ge=1, description="MPI ranks; left out, one for each free physical core, but at most one per 4096 cells"),
    ] = None
    threads: Annotated[int, Field(ge=1, description="threads of each rank")] = 1
    overlap: Annotated[bool, Field(description="hide communication behind computation")] = True
    halo_depth: Annotated[int, Field(ge=1, le=32, description="steps between two halo exchanges, 1 to 32")] = 1
    layout: Annotated[str, Field(description='a word such as "slabs", "cartesian" or "cartesian:2x3"')] = "cartesian"


class OutputSettings(BaseModel):
    """Table [output]: what is kept, and how often."""

    model_config = _STRICT

    every: Annotated[
        int | None, Field(ge=1, description="steps from one frame to the next; left out, the first and the last only")
    ] = None
    fields: Annotated[
        tuple[str, ...] | None, Field(min_length=1, description="names of the fields to keep; left out, all of them")
    ] = None
    pictures: Annotated[int, Field(ge=0, description="pictures of each field at most; 0 draws none")] = 16
