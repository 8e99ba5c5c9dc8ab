"""Schema of the tables [run], [stop] and [output] of a case, which are the same for all models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from minga.engine.stop import Stop

__all__ = ["OutputSettings", "RunSettings", "StopSettings"]

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
    overlap: Annotated[
        bool | Literal["auto"], Field(description='hide communication behind computation; "auto": as it is planned')
    ] = "auto"
    halo_depth: Annotated[
        Annotated[int, Field(ge=1, le=32)] | Literal["auto"],
        Field(description='steps between two halo exchanges, 1 to 32, or "auto": as it is planned'),
    ] = "auto"
    layout: Annotated[
        str, Field(description='"auto" (planned), or a word such as "slabs", "cartesian" or "cartesian:2x3"')
    ] = "auto"
    mapping: Annotated[
        str,
        Field(
            description='which block goes where in the machine: "auto" (the best found), "sequential", "round-robin", '
            '"tiles" or "bisection"'
        ),
    ] = "auto"
    topology: Annotated[
        str | None,
        Field(description='the machine, such as "16x2x2" nodes, chips in each, cores in each; left out, what is found'),
    ] = None
    machine: Annotated[
        str | None,
        Field(description="a machine file to plan by, as minga measure writes it; left out, the ranks are timed"),
    ] = None
    balance: Annotated[
        Annotated[int, Field(ge=1)] | Literal["auto", "off"],
        Field(description='steps from one look at the balance of the ranks to the next, "auto" or "off"'),
    ] = "auto"
    poll: Annotated[
        Annotated[float, Field(ge=0, le=3600)] | Literal["auto", "off"],
        Field(description='seconds from one poll of MPI to the next behind computation, "auto" or "off"'),
    ] = "auto"


class StopSettings(BaseModel):
    """Table [stop]: when to end before the last step."""

    model_config = _STRICT

    when: Annotated[
        str | None, Field(description='a condition on observables and step: when = "population < 10 and step > 100"')
    ] = None
    fixed_point: Annotated[bool, Field(description="end when a step changes nothing")] = False
    period: Annotated[
        int | None, Field(ge=1, description="end when the state comes back after at most so many steps")
    ] = None
    wall_time: Annotated[float | str | None, Field(description='seconds of computing, or "90 s", "10 min", "2 h"')] = (
        None
    )
    every: Annotated[int, Field(ge=1, description="steps from one check to the next")] = 1

    @property
    def stop(self) -> Stop | None:
        """What is asked for; None where nothing is. CaseError for a condition or duration that cannot be read."""
        asked = self.when is not None or self.fixed_point or self.period is not None or self.wall_time is not None
        return Stop(**self.model_dump()) if asked else None


class OutputSettings(BaseModel):
    """Table [output]: what is kept, and how often."""

    model_config = _STRICT

    every: Annotated[
        int | None, Field(ge=1, description="steps from one frame to the next; left out, the first and the last only")
    ] = None
    observe: Annotated[
        int | None,
        Field(ge=1, description="steps from one observation to the next; observables are also read at frames"),
    ] = None
    fields: Annotated[
        tuple[str, ...] | None, Field(min_length=1, description="names of the fields to keep; left out, all of them")
    ] = None
    pictures: Annotated[int, Field(ge=0, description="pictures of each field at most; 0 draws none")] = 16
    report: Annotated[bool, Field(description="write report.html at the end")] = True
    trace: Annotated[bool, Field(description="keep when each rank did what, in trace.json.gz")] = False
