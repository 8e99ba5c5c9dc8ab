from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

import minga as mg
from minga.extend import CaseError, Metres, ModelSpec


class HeatSettings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    spacing: Annotated[Metres, Field(gt=0, description='from cell to cell: spacing = "1 mm"')] = 1e-3
    diffusivity: Annotated[float, Field(gt=0, description="m2/s: diffusivity = 1e-4")] = 1e-4
    spot: Annotated[float, Field(description="temperature of the warm spot: spot = 1.0")] = 1.0


@mg.kernel
def diffuse(u, new, *, r):
    new[0, 0] = u[0, 0] + r * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


def make(settings, grid, directory):
    if grid.shape is None or len(grid.shape) != 2:
        raise CaseError("heat needs a grid of two axes", key="grid.shape", remedy="write shape = [64, 64] in [grid]")
    cells = mg.Grid(grid.shape, spacing=settings.spacing, units="m", periodic=True)
    u = mg.Field("u", cells, slots=2, description="temperature")
    step = mg.Program("step")
    step.apply(diffuse, u, u.next, r=0.2)
    step.rotate(u)
    warm = np.zeros(grid.shape)
    warm[grid.shape[0] // 2, grid.shape[1] // 2] = settings.spot
    clock = mg.Clock(dt=0.2 * settings.spacing**2 / settings.diffusivity)
    return mg.Model("heat", cells, (u,), step, {u: warm}, clock=clock)


SPEC = ModelSpec(
    settings=HeatSettings,
    make=make,
    bytes_per_cell=16,
    examples=(Path(__file__).with_name("warm.toml"),),
    description="heat in a plate",
)
