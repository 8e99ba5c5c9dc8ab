"""Surveys: many shots over one medium, each on a grid cut around it, shared out over ranks, written shot by shot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from minga.engine.comm import Comm
from minga.errors import CaseError
from minga.models.waves.boundary import Boundary, Cpml, Random, Sponge, faces_of
from minga.models.waves.domain import axes_of, check_shape, check_spacing
from minga.models.waves.kernels import Form
from minga.models.waves.medium import Floats, Medium
from minga.models.waves.model import Waves, prepare
from minga.models.waves.shot import Shot, shot_traces
from minga.models.waves.survey_cut import cut, moved, part_of
from minga.models.waves.survey_frame import Frame
from minga.models.waves.survey_recording import SurveyProgress, record

__all__ = ["Survey", "SurveyProgress"]


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Shots over a medium; other parameters are those of `fletcher`.

    Parameters
    ----------
    shape
        Cells of the model.
    spacing
        Metres between cells.
    dt
        Seconds of a step.
    medium
        The medium.
    shots
        The shots.
    boundary
        The boundary of the model and of the grids that are cut out of it.
    aperture
        Metres that the grid of a shot has on either side of its sources and receivers, along all axes but z; None: all
        of the model.
    order, time_order, form, sigma, dtype
        As for `fletcher`.
    records
        Number of each shot in the file (FFID); None: 1, 2, ...
    points
        Number of each source point; None: as `records`.
    first
        Samples left out at the start of each trace.
    delay
        Time of the first sample as the file states it, s, in whole milliseconds.
    frame
        Place of the model on the map, for the coordinates in the file.
    """

    shape: Sequence[int]
    spacing: Sequence[float] | float
    dt: float
    medium: Medium
    shots: Sequence[Shot]
    boundary: Boundary = field(default_factory=Sponge)
    aperture: float | None = None
    order: int = 8
    time_order: int = 2
    form: Form = "fletcher"
    sigma: float = 0.75
    dtype: str = "f4"
    records: Sequence[int] | None = None
    points: Sequence[float] | None = None
    first: int = 0
    delay: float = 0.0
    frame: Frame = field(default_factory=Frame)

    def __post_init__(self) -> None:
        if not self.shots:
            raise CaseError("a survey without shots", key="shots", remedy="give at least one")
        if self.aperture is not None and not self.aperture >= 0:
            raise CaseError(f"the aperture is {self.aperture}", key="aperture", remedy="give metres, or None")
        sides = faces_of(self.boundary, len(self.shape))[1:]
        if self.aperture is not None and not all(isinstance(f, Sponge | Cpml | Random) for pair in sides for f in pair):
            raise CaseError(
                "an aperture with a boundary at the sides that has no layers: it would stand where grids are cut",
                key="aperture",
                remedy="choose sponges at the sides, or leave the aperture out",
            )
        for number, shot in enumerate(self.shots):
            if not len(shot.receivers.positions):
                said = f"shot {self.name(number)} has no receivers"
                raise CaseError(said, key="shots", remedy="give each shot one or more")
        if len({shot.receivers.every for shot in self.shots}) > 1:
            raise CaseError(
                "shots have samples at different intervals", key="shots", remedy="give all receivers one every="
            )

    def name(self, number: int) -> int:
        """Return the number of a shot in files and messages: that of its record if these are given, else from 1.

        Parameters
        ----------
        number
            Number of the shot, from 0.

        Returns
        -------
        int
            Its number.
        """
        return number + 1 if self.records is None else self.records[number]

    def of(self, number: int) -> tuple[Waves, Shot]:
        """Return the waves of a shot on its part of the model, and the shot with its positions there.

        Parameters
        ----------
        number
            Number of the shot, from 0.

        Returns
        -------
        tuple
            The waves and the shot.
        """
        lengths, shot = check_shape(list(self.shape)), self.shots[number]
        widths = check_spacing(self.spacing, len(lengths))
        part = part_of(shot, lengths, widths, self.aperture)
        offset = tuple(lo * h for lo, h in zip(part.lo, widths, strict=True))
        try:
            waves = prepare(
                part.shape, widths, dt=self.dt, medium=cut(self.medium, part), sigma=self.sigma, order=self.order,
                time_order=self.time_order, form=self.form, boundary=self.boundary, dtype=self.dtype,
            )  # fmt: skip
            return waves, moved(shot, offset, axes_of(len(lengths)))
        except CaseError as error:
            error.key = f"shots[{number}]"
            raise

    def cost(self, number: int) -> int:
        """Return the number of cells on which a shot is computed, without layers.

        Parameters
        ----------
        number
            Number of the shot, from 0.

        Returns
        -------
        int
            Cells.
        """
        lengths = check_shape(list(self.shape))
        return part_of(self.shots[number], lengths, check_spacing(self.spacing, len(lengths)), self.aperture).size

    def traces(self, number: int, samples: int, *, threads: int = 1) -> Floats:
        """Return the traces of a shot, of shape (samples, receivers).

        Parameters
        ----------
        number
            Number of the shot, from 0.
        samples
            Number of samples.
        threads
            Threads.

        Returns
        -------
        ndarray
            Samples, f8.
        """
        waves, shot = self.of(number)
        return shot_traces(waves, shot, self.first + samples, threads=threads)[self.first :]

    def record(
        self,
        file: str | Path,
        samples: int,
        *,
        threads: int = 1,
        comm: Comm | None = None,
        callback: Callable[[SurveyProgress], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Path:
        """Compute all shots and write them to one SEG-Y file; collective.

        Rank 0 writes each shot when it is there. After an interruption, or a disk that was full, the same call computes
        the shots that are missing.

        Parameters
        ----------
        file
            The file (.sgy), which appears when all shots are there.
        samples
            Number of samples of each trace.
        threads
            Threads of each rank.
        comm
            Ranks that share the shots; None: this process alone.
        callback
            Called on rank 0 with the progress.
        stop
            Called on each rank after its shots; True on any ends the call, so that the file does not appear yet.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        CaseError
            If a shot is invalid, or the file exists or belongs to another survey.
        RunError
            If the disk fails.
        """
        record(self, Path(file), samples, threads, comm, callback, stop)
        return Path(file)
