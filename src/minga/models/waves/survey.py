"""Surveys: many shots over one medium, each on a grid cut around it, shared out over ranks, written shot by shot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from minga.engine.comm import Comm
from minga.errors import CaseError
from minga.models.waves.attenuation import Attenuation
from minga.models.waves.boundary import Boundary, Sponge
from minga.models.waves.domain import axes_of, check_shape, check_spacing
from minga.models.waves.elastic.medium import ElasticMedium
from minga.models.waves.elastic.waves import prepare_elastic
from minga.models.waves.kernels import Form
from minga.models.waves.medium import Floats, Medium
from minga.models.waves.preparation import prepare
from minga.models.waves.shot import AnyWaves, Shot, shot_traces
from minga.models.waves.survey_checks import check_parameters
from minga.models.waves.survey_cut import cut, cut_attenuation, moved, part_of
from minga.models.waves.survey_frame import Frame
from minga.models.waves.survey_recording import SurveyProgress, record
from minga.space.box import Box

__all__ = ["Survey", "SurveyProgress"]


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Shots over a medium, of acoustic or of elastic waves; other parameters are those of `fletcher` or `elastic`.

    Parameters
    ----------
    shape
        Cells of the model.
    spacing
        Metres between cells.
    dt
        Seconds of a step; None: three quarters of the stability limit of the whole medium.
    medium
        The medium; an ElasticMedium for elastic waves.
    shots
        The shots; all of them record the same quantities.
    boundary
        The boundary of the model and of the grids that are cut out of it.
    aperture
        Metres that the grid of a shot has on either side of its sources and receivers, along all axes but z; None: all
        of the model.
    order, dtype
        As for `fletcher` or `elastic`.
    time_order, form, sigma
        As for `fletcher`; not for elastic waves.
    attenuation
        Attenuation of the waves; None: none.
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

    Attributes
    ----------
    step
        Seconds of a step of all shots.
    """

    shape: Sequence[int]
    spacing: Sequence[float] | float
    dt: float | None
    medium: Medium | ElasticMedium
    shots: Sequence[Shot]
    boundary: Boundary = field(default_factory=Sponge)
    aperture: float | None = None
    order: int = 8
    time_order: int = 2
    form: Form = "fletcher"
    sigma: float = 0.75
    dtype: str = "f4"
    attenuation: Attenuation | None = None
    records: Sequence[int] | None = None
    points: Sequence[float] | None = None
    first: int = 0
    delay: float = 0.0
    frame: Frame = field(default_factory=Frame)
    step: float = field(init=False)

    def __post_init__(self) -> None:
        unused = [name for name in ("time_order", "form", "sigma") if self.elastic and _given(self, name)]
        if unused:
            raise CaseError(f"elastic waves have no {', '.join(unused)}", key=unused[0], remedy="leave it out")
        check_parameters(self)
        if self.dt is None:
            lengths = check_shape(list(self.shape))
            whole = self._prepared(Box((0,) * len(lengths), lengths), check_spacing(self.spacing, len(lengths)), None)
            object.__setattr__(self, "step", whole.dt)
        else:
            object.__setattr__(self, "step", self.dt)

    @property
    def elastic(self) -> bool:
        """True if the waves are elastic."""
        return isinstance(self.medium, ElasticMedium)

    @property
    def quantities(self) -> tuple[str, ...]:
        """Quantities that receivers record."""
        return tuple(self.shots[0].record)

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

    def of(self, number: int) -> tuple[AnyWaves, Shot]:
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
            return self._prepared(part, widths, self.step), moved(shot, offset, axes_of(len(lengths)))
        except CaseError as error:
            error.key = f"shots[{number}]"
            raise

    def _prepared(self, part: Box, widths: tuple[float, ...], dt: float | None) -> AnyWaves:
        """Return the waves on a part of the model, with a time step."""
        common: dict[str, Any] = {
            "dt": dt, "order": self.order, "boundary": self.boundary, "dtype": self.dtype,
            "attenuation": None if self.attenuation is None else cut_attenuation(self.attenuation, part),
        }  # fmt: skip
        medium = cut(self.medium, part)
        if isinstance(medium, ElasticMedium):
            return prepare_elastic(part.shape, widths, medium=medium, **common)
        return prepare(
            part.shape, widths, medium=medium, sigma=self.sigma, time_order=self.time_order, form=self.form,
            **common,
        )  # fmt: skip

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
        """Return the traces of a shot, of shape (samples, traces), quantity after quantity.

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
        weights: Sequence[float] | None = None,
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
        weights
            Relative speeds of the ranks before they are measured, not all of them 0; a rank of weight 0 computes
            nothing. None: equal ones.

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
        record(self, Path(file), samples, threads, comm, callback, stop, weights)
        return Path(file)


def _given(survey: Survey, name: str) -> bool:
    """Return whether a parameter differs from its default."""
    (entry,) = (each for each in fields(survey) if each.name == name)
    return bool(getattr(survey, name) != entry.default)
