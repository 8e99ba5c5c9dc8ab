"""Pictures of a survey: the model with its geometry, a gather with gain, and its spectrum."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError

__all__ = ["Gain", "draw_gather", "draw_geometry", "draw_spectrum", "draw_waves", "gained"]

Gain = Literal["none", "power", "agc"]
GAINS: Final = ("none", "power", "agc")

_MOST: Final = 1500
"""Largest number of rows and columns that are drawn."""


def gained(samples: NDArray[Any], seconds: NDArray[Any], gain: Gain, *, power: float = 2.0, window: float = 0.2) -> Any:
    """Return samples over (time, trace) with gain.

    Parameters
    ----------
    samples
        The samples.
    seconds
        Time of each row.
    gain
        "power": times the time to a power, counted from the first row; "agc": over the root mean square in a window
        around each sample; "none".
    power
        The power.
    window
        Length of the window, s.

    Returns
    -------
    ndarray
        Samples, f8.
    """
    values = np.asarray(samples, np.float64)
    if gain == "none":
        return values
    if gain == "power":
        return values * (np.asarray(seconds)[:, None] - seconds[0]) ** power
    if gain != "agc":
        raise CaseError(f"there is no gain {gain!r}", key="--gain", remedy=f"choose one of {', '.join(GAINS)}")
    step = float(seconds[1] - seconds[0]) if len(seconds) > 1 else 1.0
    half = max(1, round(0.5 * window / step))
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(np.square(values), axis=0)])
    rows = np.arange(len(values))
    low, high = np.maximum(0, rows - half), np.minimum(len(values), rows + half + 1)
    mean = np.sqrt(np.maximum(0.0, total[high] - total[low]) / (high - low)[:, None])
    least = 1e-6 * float(mean.max(initial=0.0)) or 1.0  # what is quieter than that is rounding
    return values / np.maximum(mean, least)


def draw_gather(
    samples: NDArray[Any], seconds: NDArray[Any], title: str, gain: Gain = "agc", clip: float = 98.0
) -> bytes:
    """Return a PNG of a gather: time downwards, traces across.

    Parameters
    ----------
    samples
        Samples over (time, trace).
    seconds
        Time of each row.
    title
        Title of the picture.
    gain
        Gain, see `gained`.
    clip
        Percentage of the samples that are not clipped.
    """
    shown = gained(samples, seconds, gain)
    shown = shown[:: max(1, -(-len(shown) // _MOST)), :: max(1, -(-shown.shape[1] // _MOST))]
    loud = float(np.percentile(np.abs(shown), clip)) or float(np.abs(shown).max(initial=0.0)) or 1.0
    figure, axes = _figure()
    extent = (0.5, samples.shape[1] + 0.5, float(seconds[-1]), float(seconds[0]))
    axes.imshow(shown, cmap="gray_r", vmin=-loud, vmax=loud, aspect="auto", extent=extent, interpolation="bilinear")
    axes.set(xlabel="trace", ylabel="time (s)", title=title)
    return _png(figure)


def draw_spectrum(samples: NDArray[Any], interval: float, title: str) -> bytes:
    """Return a PNG of the mean amplitude spectrum of a gather, in dB below its largest value.

    Parameters
    ----------
    samples
        Samples over (time, trace).
    interval
        Seconds between rows.
    title
        Title of the picture.
    """
    amplitude = np.abs(np.fft.rfft(np.asarray(samples, np.float64), axis=0)).mean(axis=1)
    top = float(amplitude.max(initial=0.0)) or 1.0
    figure, axes = _figure()
    axes.plot(np.fft.rfftfreq(len(samples), interval), 20 * np.log10(np.maximum(amplitude / top, 1e-6)))
    axes.set(xlabel="frequency (Hz)", ylabel="amplitude (dB)", title=title, ylim=(-80, 3))
    axes.grid(alpha=0.3)
    return _png(figure)


def draw_geometry(
    plane: NDArray[Any],
    ends: Sequence[float],
    shots: NDArray[Any],
    receivers: NDArray[Any],
    labels: tuple[str, str],
    title: str,
) -> bytes:
    """Return a PNG of a section or a map of the model with sources and receivers.

    Parameters
    ----------
    plane
        Velocities, m/s.
    ends
        Position of the last cell along both axes of the plane, m.
    shots, receivers
        Positions along both axes of the plane, one row each.
    labels
        Names of both axes, that downwards first.
    title
        Title of the picture.
    """
    figure, axes = _figure()
    shown = plane[:: max(1, -(-len(plane) // _MOST)), :: max(1, -(-plane.shape[1] // _MOST))]
    image = axes.imshow(shown, cmap="viridis", extent=(0, ends[1], ends[0], 0), aspect="auto")
    axes.plot(receivers[:, 1], receivers[:, 0], "w.", markersize=3, label="receivers")
    axes.plot(shots[:, 1], shots[:, 0], "r*", markersize=8, label="shots")
    axes.set(xlabel=f"{labels[1]} (m)", ylabel=f"{labels[0]} (m)", title=title)
    axes.legend(loc="lower right", facecolor="0.6")
    figure.colorbar(image, label="vp (m/s)", shrink=0.8)
    return _png(figure)


def draw_waves(
    planes: Sequence[NDArray[Any]],
    times: Sequence[float],
    model: NDArray[Any],
    ends: Sequence[tuple[float, float]],
    labels: tuple[str, str],
    title: str,
    clip: float = 99.5,
) -> bytes:
    """Return a PNG of waves at some times over the model, which shows where they are weak.

    Parameters
    ----------
    planes
        Waves on a section at each time.
    times
        The times, s.
    model
        Velocities on the section, m/s.
    ends
        Positions of the first and the last cell along both axes of the section, m.
    labels
        Names of both axes, that downwards first.
    title
        Title of the picture.
    clip
        Percentage of the cells that are not clipped.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 2.6 * len(planes)), layout="constrained")
    (top, bottom), (left, right) = ends
    extent = (left, right, bottom, top)
    image: Any = None
    for axes, plane, time in zip(figure.subplots(len(planes), squeeze=False)[:, 0], planes, times, strict=True):
        loud = float(np.percentile(np.abs(plane), clip)) or float(np.abs(plane).max(initial=0.0)) or 1.0
        image = axes.imshow(model, cmap="gray", extent=extent, aspect="auto")
        opaque = np.clip(3.0 * np.abs(plane) / loud, 0.0, 1.0)
        axes.imshow(plane, cmap="RdBu_r", vmin=-loud, vmax=loud, alpha=opaque, extent=extent, aspect="auto")
        axes.set(xlabel=f"{labels[1]} (m)", ylabel=f"{labels[0]} (m)", title=f"{title}, {time:.3g} s")
    figure.colorbar(image, ax=figure.axes, label="vp (m/s)", shrink=0.8)
    return _png(figure)


def _figure() -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 5.4), layout="constrained")
    return figure, figure.subplots()


def _png(figure: Any) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, dpi=110, format="png", metadata={"Software": None})
    return stream.getvalue()
