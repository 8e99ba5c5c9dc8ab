from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

import minga as mg
from minga.extend import ObserverSpec


class HottestSettings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    every: Annotated[int, Field(ge=1, description="steps from one row to the next: every = 10")] = 10


class Hottest(mg.Observer):
    """Write the highest temperature to hottest.csv in the run's directory."""

    name = "hottest"

    def __init__(self, settings, directory):
        self.schedule = mg.Schedule(steps=settings.every, start=True)
        self.file = directory / "hottest.csv"
        self.rows = []

    def observe(self, simulation):
        whole = simulation.whole("u")
        if whole is not None:  # on rank 0
            self.rows.append([simulation.step, float(whole.max())])

    def state(self):
        return self.rows

    def resume(self, simulation, state):
        self.rows = state or []

    def finish(self, simulation):
        if simulation.rank == 0:
            self.file.write_text("".join(f"{step},{value!r}\n" for step, value in self.rows))


SPEC = ObserverSpec(settings=HottestSettings, make=Hottest, description="the highest temperature, every so many steps")
