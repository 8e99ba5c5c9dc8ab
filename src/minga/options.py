"""Every setting of a run, declared once.

The tables [run], [stop], [checkpoint] and [output] of a case, the options of ``minga run`` and ``minga plan``, and the
keywords of :func:`minga.run` are made from these classes; planning, the engine and the output read them. To add a
setting, add a field here, and read it where it matters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from minga.errors import CaseError, suggest
from minga.schema import tables_of, validate

__all__ = ["AUTO", "CheckpointSettings", "Interval", "OutputSettings", "RunOptions", "RunSettings", "StopSettings"]

AUTO: Final = "auto"

_STRICT = ConfigDict(extra="forbid", frozen=True)
_MIB: Final = 1 << 20
_RAW_CHUNK, _PACKED_CHUNK = 1024 * _MIB, 32 * _MIB
_LARGE: Final = 4 * _MIB
"""Bytes of a frame from which on its files are synchronised to disk at once if ``durable`` is ``"auto"``."""


def _check_interval(value: object) -> object:
    """Return a number of steps or a model time; raise ValueError, which says what was expected, for anything else."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or isinstance(value, str) or (number and 0 < value < math.inf):  # type: ignore[operator]
        return value
    raise ValueError('a whole number of at least 1 for steps, or a time of the model such as 0.5 or "0.5 s"')


Interval = Annotated[int | float | str, BeforeValidator(_check_interval)]
"""A number of steps (an integer), or a time of the model (a number or text with a unit)."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A property of settings that stands in their declaration."""

    meaning: str


FIXED: Final = Mark("must be the same when a run is resumed")
ON_DISK: Final = Mark("has a meaning only for a run that leaves files")
COMMAND: Final = Mark("has a meaning only for a run that `minga run` starts")


class RunSettings(BaseModel):
    """Table [run]: number of steps or time of the model, and the resources of the run."""

    model_config = _STRICT

    steps: Annotated[int, Field(ge=0, description="steps to do; left out, `until` says where the run ends")]
    until: Annotated[
        float | str | None,
        Field(
            description="time of the model at which the run ends, in the unit of its clock, such as 5.0, "
            'or with a unit: "5 s"; in place of `steps`'
        ),
    ] = None
    ranks: Annotated[
        int | None,
        Field(
            ge=1,
            le=1 << 20,
            description="MPI ranks; left out, one for each free physical core, but at most one per 4096 cells, and one "
            "alone for a run that is shorter than the start of ranks",
        ),
    ] = None
    threads: Annotated[
        int,
        Field(
            ge=1,
            description="threads of each rank; `mg.run` takes all free cores if this is left out, but at most one "
            "for each 65536 cells",
        ),
    ] = 1
    overlap: Annotated[
        bool | Literal["auto"], Field(description='hide communication behind computation; "auto": as planned')
    ] = "auto"
    halo_depth: Annotated[
        Annotated[int, Field(ge=1, le=32)] | Literal["auto"],
        Field(description='steps between two halo exchanges, 1 to 32, or "auto": as planned'),
    ] = "auto"
    layout: Annotated[
        str, Field(description='"auto" (planned), or a name such as "slabs", "cartesian" or "cartesian:2x3"')
    ] = "auto"
    mapping: Annotated[
        str,
        Field(
            description='placement of blocks in the machine: "auto" (the best found), "sequential", "round-robin", '
            '"tiles" or "bisection"'
        ),
    ] = "auto"
    topology: Annotated[
        str | None,
        Field(
            description='the machine as nodes x chips x cores, such as "16x2x2", by levels, "rack=2 node=8 core=4", or '
            'as a file, "topology.conf"; left out, it is detected'
        ),
    ] = None
    machine: Annotated[
        str | None,
        Field(description="a machine file for planning, as written by minga measure; left out, the ranks are timed"),
    ] = None
    weights: Annotated[
        tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...] | None,
        Field(
            description="relative speeds of the ranks, in their order, in place of measured ones; a rank of weight 0 "
            "owns no cells, and if all others are equal their speeds are measured"
        ),
    ] = None
    balance: Annotated[
        Annotated[int, Field(ge=1)] | Literal["auto", "off"],
        Field(description='steps from one check of the load balance to the next, "auto" or "off"'),
    ] = "auto"
    device: Annotated[
        Literal["cpu", "gpu", "gpu-shared"],
        Field(description='"cpu", "gpu" (a GPU for each rank), or "gpu-shared" (ranks may share one)'),
    ] = "cpu"
    poll: Annotated[
        Annotated[float, Field(ge=0, le=3600)] | Literal["auto", "off"],
        Field(description='seconds from one poll of MPI to the next behind computation, "auto" or "off"'),
    ] = "auto"
    wall_time: Annotated[
        float | str | None,
        Field(
            description='seconds that the run may take, or "90 s", "10 min", "2 h": before that time it writes a last '
            "checkpoint and ends"
        ),
        ON_DISK,
    ] = None
    watch: Annotated[
        float | str,
        Field(
            description="seconds after which a host or rank that shows no sign of life counts as lost, in ranks that "
            '`minga run` starts; "30 s", or "off"'
        ),
        COMMAND,
    ] = 8.0
    paint: Annotated[
        bool,
        Field(
            description="let the live page set cells of an automaton while the run continues; `edits.jsonl` in the "
            "directory of the run records them"
        ),
        ON_DISK,
    ] = False
    edits: Annotated[
        str | None,
        Field(
            description="a file of cells that are set after given numbers of steps, such as `edits.jsonl` of a run "
            "that was painted, which repeats it"
        ),
        FIXED,
    ] = None
    on_loss: Annotated[
        Literal["stop", "continue"],
        Field(
            description='what `minga run` does when a host or rank is lost: "stop", or "continue" from the last '
            "checkpoint with what is left"
        ),
        COMMAND,
    ] = "stop"


class StopSettings(BaseModel):
    """Table [stop]: when to end before the last step."""

    model_config = _STRICT

    when: Annotated[
        str | None,
        Field(description='a condition on observables and step: when = "population < 10 and step > 100"'),
        FIXED,
    ] = None
    fixed_point: Annotated[bool, Field(description="end when a step changes nothing"), FIXED] = False
    period: Annotated[
        int | None, Field(ge=1, description="end when the state recurs after at most so many steps"), FIXED
    ] = None
    wall_time: Annotated[float | str | None, Field(description='seconds of computing, or "90 s", "10 min", "2 h"')] = (
        None
    )
    every: Annotated[int, Field(ge=1, description="steps from one check to the next"), FIXED] = 1


class CheckpointSettings(BaseModel):
    """Table [checkpoint]: how often the state of a run is saved, so that the run can be resumed."""

    model_config = _STRICT

    every: Annotated[
        Interval | None,
        Field(
            description='steps from one checkpoint to the next, or time of the model (0.5, "0.5 s"), or "off"; '
            "left out, seconds apply"
        ),
    ] = None
    seconds: Annotated[
        float,
        Field(
            gt=0,
            description="seconds from one to the next; more if writing one takes over 2 % of that, less after losses",
        ),
    ] = 300.0
    at_end: Annotated[bool, Field(description="save one at the last step, so that the run can be extended")] = False
    place: Annotated[
        Literal["partner", "local", "gathered"],
        Field(
            description="where they lie if hosts do not share the directory of the run: each host keeps the parts of "
            'its ranks and a copy of those of another host ("partner"), or its own parts only ("local"), or the host '
            'of rank 0 has all parts ("gathered")'
        ),
    ] = "partner"
    directory: Annotated[
        str | None,
        Field(
            description="a directory for them on every host, with an absolute path, such as one that all hosts share; "
            "left out, they are in the directory of the run"
        ),
    ] = None


class OutputSettings(BaseModel):
    """Table [output]: what is saved, and how often."""

    model_config = _STRICT

    every: Annotated[
        Interval | None,
        Field(
            description='steps (an integer) or time of the model (0.5, "0.5 s") from one frame to the next; left out, '
            "the first and the last only"
        ),
        FIXED,
    ] = None
    observe: Annotated[
        Interval | None,
        Field(
            description="steps (an integer) or time of the model from one observation to the next; observables are "
            "also read at frames"
        ),
        FIXED,
    ] = None
    fields: Annotated[
        tuple[str, ...] | None,
        Field(min_length=1, description="names of the fields to save; left out, all of them"),
        FIXED,
    ] = None
    pictures: Annotated[
        int, Field(ge=0, description="maximum number of pictures of each field; 0 draws none"), ON_DISK
    ] = 16
    report: Annotated[bool, Field(description="write report.html at the end"), ON_DISK] = True
    trace: Annotated[
        bool, Field(description="record the activities of each rank over time in trace.json.gz"), ON_DISK
    ] = False
    region: Annotated[
        dict[str, tuple[int, int]] | None,
        Field(description="cells to save, by axis, the first and the one after the last: region = { x = [10, 50] }"),
        FIXED,
    ] = None
    decimate: Annotated[
        Annotated[int, Field(ge=1)] | dict[str, Annotated[int, Field(ge=1)]],
        Field(description="save every n-th cell along all axes, or by axis: decimate = { x = 2 }"),
        FIXED,
    ] = 1
    codec: Annotated[
        Literal["none", "blosc", "zfp"],
        Field(description='"none", "blosc" (lossless) or "zfp" (to an accuracy)'),
        FIXED,
        ON_DISK,
    ] = "none"
    accuracy: Annotated[
        float,
        Field(gt=0, lt=1, description="largest error of zfp, relative to a frame's largest magnitude"),
        FIXED,
        ON_DISK,
    ] = 1e-4
    buffers: Annotated[
        int,
        Field(ge=2, le=1024, description="maximum number of frames in memory that wait for the disk; 2 or more"),
        ON_DISK,
    ] = 3
    policy: Annotated[
        Literal["block", "drop", "raise"],
        Field(description='when all buffers are full: "block" the steps, "drop" the frame, or "raise" an error'),
        ON_DISK,
    ] = "block"
    durable: Annotated[
        bool | Literal["auto"],
        Field(description='ensure that every frame is on disk before it counts; "auto": frames of 4 MiB and more'),
        ON_DISK,
    ] = "auto"
    direct: Annotated[
        bool | Literal["auto"], Field(description='bypass the page cache if possible; "auto": as with durable'), ON_DISK
    ] = "auto"
    writers: Annotated[
        int, Field(ge=0, description="number of ranks that only write frames and own no cells"), ON_DISK
    ] = 0
    chunk: Annotated[
        int | None,
        Field(ge=4096, description="largest chunk of a frame in bytes; left out, 1 GiB, or 32 MiB if compressed"),
        FIXED,
        ON_DISK,
    ] = None

    @property
    def chunk_bytes(self) -> int:
        """Largest chunk of a frame in bytes."""
        if self.chunk is not None:
            return self.chunk
        return _RAW_CHUNK if self.codec == "none" else _PACKED_CHUNK

    def lasting(self, frame_bytes: int) -> bool:
        """Return True if each frame of `frame_bytes` is synchronised to disk before it counts."""
        return frame_bytes >= _LARGE if self.durable == "auto" else self.durable

    def past_the_cache(self, frame_bytes: int) -> bool:
        """Return True if files of frames of `frame_bytes` must be written with O_DIRECT."""
        return self.lasting(frame_bytes) if self.direct == "auto" else self.direct


class RunOptions(BaseModel):
    """Every setting of a run, in the tables of a case.

    No setting changes a bit of the result, except for the end of the run and, where the run sets the length of steps to
    reach times of the model exactly, these times.
    """

    model_config = _STRICT

    run: RunSettings
    stop: StopSettings = StopSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    output: OutputSettings = OutputSettings()

    @classmethod
    def of(
        cls, stop: Mapping[str, Any] | None = None, checkpoint: Mapping[str, Any] | None = None, **settings: Any
    ) -> RunOptions:
        """Make options from keywords, as Python gives them.

        Parameters
        ----------
        stop, checkpoint
            The entries of these tables.
        **settings
            Entries of the tables [run] and [output], which share no name.

        Raises
        ------
        CaseError
            For an unknown name or an invalid value.
        """
        given = {name: _plain(value) for name, value in settings.items()}
        tables: dict[str, dict[str, Any]] = {"run": {}, "output": {}}
        for name, value in given.items():
            tables[table_of(name)][name] = value
        tables["run"] = ending(tables["run"], keywords=True)
        return cls(
            run=validate(RunSettings, tables["run"], thing="a run", keywords=True),
            stop=validate(StopSettings, _plain(stop or {}), "stop", keywords=True),
            checkpoint=validate(CheckpointSettings, _plain(checkpoint or {}), "checkpoint", keywords=True),
            output=validate(OutputSettings, tables["output"], thing="a run", keywords=True),
        )


def ending(run: Mapping[str, Any], *, keywords: bool = False) -> dict[str, Any]:
    """Return entries of [run] with a number of steps where only `until` says how long the run is; it is found later.

    Raises
    ------
    CaseError
        If both are given, or `until` is a whole number.
    """
    until, steps = run.get("until"), run.get("steps")
    if until is None:
        return dict(run)
    key, at = ("until", "until=") if keywords else ("run.until", "until = ")
    if isinstance(until, int) and not isinstance(until, bool):
        raise CaseError(
            f"{at}{until}: a time is written with a decimal point or a unit, a whole number counts steps",
            key=key,
            remedy=f"write {at}{until}.0, or {at.replace('until', 'steps')}{until}",
        )
    if steps is not None:
        raise CaseError(
            f"{at}{until!r} and {steps!r} steps: a run has one end", key=key, remedy="leave one of them out"
        )
    return {**run, "steps": 0}


def marked(mark: Mark) -> frozenset[tuple[str, str]]:
    """Return table and name of all settings with a mark."""
    return frozenset(
        (table, name)
        for table, kind in tables_of(RunOptions).items()
        for name, field in kind.model_fields.items()
        if mark in field.metadata
    )


def table_of(name: str) -> str:
    """Return the table, "run" or "output", of the setting `name`; raise CaseError if there is none."""
    for table, kind in (("run", RunSettings), ("output", OutputSettings)):
        if name in kind.model_fields:
            return table
    known = [*RunSettings.model_fields, *OutputSettings.model_fields, "stop", "checkpoint"]
    raise CaseError(
        f"a run has no setting {name!r}",
        key=name,
        suggestion=suggest(name, known),
        remedy=f"its settings are {', '.join(sorted(known))}",
    )


def _plain(value: Any) -> Any:
    """Return a value as TOML could hold it: NumPy numbers as Python numbers, paths as text."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
