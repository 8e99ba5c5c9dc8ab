"""Wavelets: the signals of sources, at the times of the steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.errors import CaseError
from minga.lang.expr import as_node, cast, where
from minga.lang.functions import lookup
from minga.lang.math import exp, sin
from minga.models.waves.domain import is_number
from minga.space.field import STEP

__all__ = ["Ormsby", "Ricker", "Signal", "Wavelet", "check_wavelet"]

_SILENT: Final = 1e-3
"""Share of its largest value below which an Ormsby wavelet stays before time 0, unless it has a delay."""


@dataclass(frozen=True, slots=True)
class Ricker:
    """Ricker wavelet, (1 - 2 e) exp(-e) with e = (pi frequency (t - delay))^2.

    Parameters
    ----------
    frequency
        Peak frequency of the spectrum, Hz; the highest significant frequency is three times as high.
    delay
        Time of the largest value, s; None: 2 sqrt(pi) / (3 frequency), so that the wavelet is below 1e-5 before 0.
    amplitude
        Largest value.
    """

    frequency: float = 40 / 3
    delay: float | None = None
    amplitude: float = 1.0

    def __post_init__(self) -> None:
        if not (is_number(self.frequency) and math.isfinite(self.frequency) and self.frequency > 0):
            raise CaseError(
                f"the frequency is {self.frequency!r}", key="fletcher.source.frequency", remedy="give a number of Hz"
            )
        _check_numbers(delay=0.0 if self.delay is None else self.delay, amplitude=self.amplitude)

    @property
    def starts(self) -> float:
        """Delay in seconds."""
        return 2 * math.sqrt(math.pi) / (3 * self.frequency) if self.delay is None else self.delay

    @property
    def peak(self) -> float:
        """Peak frequency of the spectrum, Hz."""
        return self.frequency

    @property
    def highest(self) -> float:
        """Highest significant frequency, Hz."""
        return 3 * self.frequency

    def at(self, time: Any) -> Any:
        """Return the values at times in seconds, computed by NumPy.

        Parameters
        ----------
        time
            Times in seconds.

        Returns
        -------
        ndarray
            Values.
        """
        e = np.square(math.pi * self.frequency * (np.asarray(time) - self.starts))
        return self.amplitude * (1 - 2 * e) * portable.exp(-e)

    def value(self, dt: float, later: int = 0) -> Any:
        """Return the value at the present step or some steps later, an expression of registers.

        Parameters
        ----------
        dt
            Seconds of a step.
        later
            Number of steps.

        Returns
        -------
        Node
            The value.
        """
        late = cast(_step(later), "f8") * dt - self.starts
        e = late * late * (math.pi * self.frequency * (math.pi * self.frequency))
        return (1.0 - 2.0 * e) * exp(-e) * self.amplitude


@dataclass(frozen=True, slots=True)
class Ormsby:
    """Ormsby wavelet, whose amplitude spectrum is a trapezoid: it rises from f1 to f2, is flat to f3 and falls to f4.

    With g(f) = (sin(pi f (t - delay)) / (t - delay))^2 it is proportional to
    (g(f4) - g(f3)) / (f4 - f3) - (g(f2) - g(f1)) / (f2 - f1). Source: W. Ryan, "Ricker, Ormsby, Klauder, Butterworth -
    a choice of wavelets", CSEG Recorder 19(7), 1994. Its sides decay slowly, with the square of time.

    Parameters
    ----------
    frequencies
        Corners f1 < f2 < f3 < f4 of the trapezoid, Hz; f1 may be 0.
    delay
        Time of the largest value, s; None: so late that the wavelet is below a thousandth of it before 0.
    amplitude
        Largest value.
    """

    frequencies: tuple[float, float, float, float]
    delay: float | None = None
    amplitude: float = 1.0

    def __post_init__(self) -> None:
        given: Any = self.frequencies
        corners = tuple(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else ()
        known = len(corners) == 4 and all(is_number(f) and math.isfinite(f) for f in corners)
        if not known or not 0 <= corners[0] < corners[1] < corners[2] < corners[3]:
            raise CaseError(
                f"the corner frequencies of an Ormsby wavelet are {given!r}",
                key="fletcher.source.frequencies",
                remedy="give four rising numbers of Hz: (5, 10, 40, 60)",
            )
        object.__setattr__(self, "frequencies", tuple(map(float, corners)))
        _check_numbers(delay=0.0 if self.delay is None else self.delay, amplitude=self.amplitude)

    @property
    def starts(self) -> float:
        """Delay in seconds."""
        if self.delay is not None:
            return self.delay
        f1, f2, f3, f4 = self.frequencies
        return math.sqrt((1 / (f4 - f3) + 1 / (f2 - f1)) / (_SILENT * math.pi * self._height))

    @property
    def peak(self) -> float:
        """Frequency in the middle of the flat part of the spectrum, Hz."""
        return 0.5 * (self.frequencies[1] + self.frequencies[2])

    @property
    def highest(self) -> float:
        """Highest frequency, Hz."""
        return self.frequencies[3]

    @property
    def _height(self) -> float:
        """Largest value of the usual formula."""
        f1, f2, f3, f4 = self.frequencies
        return math.pi * (f4 + f3 - f2 - f1)

    def at(self, time: Any) -> Any:
        """Return the values at times in seconds, computed by NumPy.

        Parameters
        ----------
        time
            Times in seconds.

        Returns
        -------
        ndarray
            Values.
        """
        late = np.asarray(time) - self.starts
        safe = np.where(late == 0.0, 1.0, late)
        return np.where(late == 0.0, self.amplitude, self._formula(safe, portable.sin))

    def value(self, dt: float, later: int = 0) -> Any:
        """Return the value at the present step or some steps later, an expression of registers.

        Parameters
        ----------
        dt
            Seconds of a step.
        later
            Number of steps.

        Returns
        -------
        Node
            The value.
        """
        late = cast(_step(later), "f8") * dt - self.starts
        safe = where(late == 0.0, 1.0, late)
        return where(late == 0.0, self.amplitude, self._formula(safe, sin))

    def _formula(self, late: Any, sine: Any) -> Any:
        """Return the values at times from that of the largest one, none of them 0."""
        parts = [sine(late * (math.pi * f)) for f in self.frequencies]
        g1, g2, g3, g4 = (part * part for part in parts)
        f1, f2, f3, f4 = self.frequencies
        share = self.amplitude / (math.pi * self._height)
        return ((g4 - g3) * (1 / (f4 - f3)) - (g2 - g1) * (1 / (f2 - f1))) / (late * late) * share


@dataclass(frozen=True, slots=True, eq=False)
class Wavelet:
    """Samples, one for each step from the first; 0 after the last.

    Parameters
    ----------
    samples
        Values, or a file of them: .npy, or text with a number per line.
    frequency
        Peak frequency of the spectrum, Hz, for notes about wavelengths; None: unknown.

    Attributes
    ----------
    values
        The samples as an array.
    """

    samples: Sequence[float] | NDArray[Any] | str | Path
    frequency: float | None = None
    values: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        given = self.samples
        try:
            values = _read(Path(given)) if isinstance(given, str | Path) else np.asarray(given, np.float64)
        except (TypeError, ValueError):
            values = np.zeros(0)
        if values.ndim != 1 or not values.size or not np.isfinite(values).all():
            raise CaseError(
                f"the wavelet has shape {values.shape}"
                if values.ndim != 1 or not values.size
                else "the wavelet has a value that is not finite",
                key="fletcher.source.wavelet",
                remedy="give one finite number for each step",
            )
        if self.frequency is not None:
            known = is_number(self.frequency) and math.isfinite(self.frequency) and self.frequency > 0
            if not known:
                raise CaseError(
                    f"the frequency of a wavelet is {self.frequency!r}",
                    key="fletcher.source.frequency",
                    remedy="give a number of Hz, or leave it out",
                )
        object.__setattr__(self, "values", values)

    @property
    def peak(self) -> float | None:
        """Peak frequency of the spectrum, Hz; None: unknown."""
        return self.frequency

    @property
    def highest(self) -> float | None:
        """Highest significant frequency, Hz; None: unknown."""
        return None if self.frequency is None else 3 * self.frequency

    def value(self, dt: float, later: int = 0) -> Any:
        """Return the value at the present step or some steps later, an expression of registers.

        Parameters
        ----------
        dt
            Seconds of a step.
        later
            Number of steps.

        Returns
        -------
        Node
            The value; 0 before the first sample and after the last.
        """
        step = _step(later)
        inside = step < len(self.values) if later >= 0 else (step >= 0) & (step < len(self.values))
        return where(inside, lookup(self.values, step), 0.0)


Signal = Ricker | Ormsby | Wavelet
"""Signal of a source."""


def _step(later: int) -> Any:
    """Return the number of the step, or of one some steps later."""
    return cast(as_node(STEP), "i8") + later if later else as_node(STEP)


def check_wavelet(wavelet: object, table: str) -> None:
    """Raise CaseError for what is no wavelet.

    Parameters
    ----------
    wavelet
        What was given.
    table
        Name of the table of the model.
    """
    if not callable(getattr(wavelet, "value", None)):
        raise CaseError(
            f"the wavelet of a source is {wavelet!r}",
            key=f"{table}.source.wavelet",
            remedy="give Ricker(frequency), Ormsby(frequencies) or Wavelet(samples)",
        )


def _check_numbers(**values: Any) -> None:
    """Raise CaseError for the first value that is no finite number."""
    for name, value in values.items():
        if not (is_number(value) and math.isfinite(value)):
            raise CaseError(f"the {name} is {value!r}", key=f"fletcher.source.{name}", remedy="give a finite number")


def _read(path: Path) -> NDArray[np.float64]:
    try:
        values = np.load(path) if path.suffix == ".npy" else np.loadtxt(path, ndmin=1)
        return np.asarray(values, np.float64)
    except (OSError, ValueError) as error:
        raise CaseError(
            f"cannot read the wavelet {path.name}: {error}",
            key="fletcher.source.wavelet",
            where=str(path),
            remedy="give a .npy file, or text with a number per line",
        ) from error
