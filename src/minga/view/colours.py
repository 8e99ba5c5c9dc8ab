"""Colours of values: one for each state if there are few states, a smooth scale otherwise.

Everything that draws a field - pictures, movies, reports, terminals - takes its colours from here, so that a run looks
the same everywhere. A field that gives colours for its states (attribute ``flag_colors``, as land cover maps do:
hexadecimal colours separated by blanks, the first for state 0) is drawn in them. A field that oscillates around 0
(attribute ``colour_scale`` is ``signed``) is blue below and red above; the scale covers the usual values of the frames
shown, and much larger ones, such as those of waves near their source, are clipped. Of a field whose `colour_scale` is
``logarithmic``, the decimal logarithm is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from minga.extras import require

__all__ = [
    "FLAG_COLOURS",
    "LINES",
    "ColourScale",
    "Limits",
    "colour_scale",
    "is_discrete",
    "is_logarithmic",
    "is_signed",
    "limits_of",
    "smooth_palette",
    "values_shown",
]

FLAG_COLOURS = "flag_colors"
SIGNED = "colour_scale"
_CLIPPED = 97.0
"""Percentage of the values of a frame that a signed scale covers; its end is the median over frames that are alike."""
_SEEN = 30.0
"""Largest factor between the values of two frames of which one scale shows both."""
_USUAL, _FAR, _JUDGED = 0.9, 5.0, 4
"""Share of the frames that always count, factor by which others may reach farther, and least number of frames."""
_PEAK, _RARE = 2.0, 1.0
"""Factor by which a hundredth of the cells may reach farther, and this percentage of them."""
FEW_STATES = 16
_LIGHT, _DARK = "#f7f5ef", "#1f3b57"
_STATE_COLOURS = (_LIGHT, "#2b8a6e", "#d2491d", _DARK, "#f0bf3c", "#a06cc0")
"""Colours of states, which differ for people with any kind of colour blindness too."""
LINES = ("#0b3c62", "#bf6216", "#41ac98", "#6b4cad", "#deae10", "#6a2533", "#96a2e0", "#88643c")
"""Colours of curves on white, likewise; those of pages are in ``pages/palette.css``."""
_NOT_FINITE = "#b9b4ab"
_SHADES = 255
_HEXADECIMAL = re.compile(r"#[0-9a-fA-F]{6}")

Values = NDArray[Any]
Colours = NDArray[np.uint8]


class Limits(NamedTuple):
    """Ends of a scale, and the least and the largest value in the data."""

    low: float
    high: float
    least: float
    most: float


@dataclass(frozen=True, slots=True, eq=False)
class ColourScale:
    """Colours of the values from ``low`` to ``high``.

    Attributes
    ----------
    low, high
        Ends of the scale.
    palette
        Red, green and blue of each colour, u1, shape (colours, 3), at most 256.
    states
        True if each colour stands for one state, ``low`` + its number; otherwise the colours are evenly spaced, and the
        last one is for values that are not finite.
    extremes
        The least and the largest value in the data, if known.
    logarithmic
        True if these are decimal logarithms of the values.
    """

    low: float
    high: float
    palette: Colours
    states: bool
    extremes: tuple[float, float] | None = None
    logarithmic: bool = False

    def number(self, place: float) -> float:
        """Return the value at a place on the scale."""
        return 10.0**place if self.logarithmic else place

    @property
    def clipped(self) -> str:
        """Remark on values beyond the ends, which are clipped; empty if there are none."""
        least, most = self.extremes or (self.low, self.high)
        return (
            f"clipped, values are {self.number(least):.3g} to {self.number(most):.3g}"
            if least < self.low or most > self.high
            else ""
        )

    def numbers(self, values: Values) -> Colours:
        """Return the palette index of the colour of each value; values beyond the ends have the colour of the end."""
        if self.states:
            if values.dtype.itemsize == 1 and self.low == 0:
                return np.minimum(values.view(np.uint8), len(self.palette) - 1)
            inside = np.clip(values.astype(np.int64) - int(self.low), 0, len(self.palette) - 1)
            return inside.astype(np.uint8)
        span = self.high - self.low
        shades = len(self.palette) - 1
        values = values.astype(np.float64)
        finite = np.isfinite(values)
        share = (np.where(finite, values, self.low) - self.low) / (span if span > 0 else 1.0)
        numbers = np.clip(share * shades, 0, shades - 1).astype(np.uint8)
        numbers[~finite] = shades
        return numbers

    def of_states(self) -> ColourScale:
        """Return the scale of whole numbers with one colour for each, starting at 0, or this one if 256 are too few."""
        if self.low < 0 or self.high > _SHADES or self.high != int(self.high):
            return self
        states = np.arange(int(self.high) + 1)
        return ColourScale(0.0, self.high, self.rgb(states), states=True)

    def rgb(self, values: Values) -> Colours:
        """Return red, green and blue of each value, shape (*values.shape, 3)."""
        coloured: Colours = self.palette[self.numbers(values)]
        return coloured

    @property
    def hexadecimal(self) -> list[str]:
        """The palette as ``#rrggbb``; for a smooth scale without the colour of values that are not finite."""
        return [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in self._shown.tolist()]

    @property
    def _shown(self) -> Colours:
        return self.palette if self.states else self.palette[:-1]


def colour_scale(
    limits: Limits | tuple[float, float], dtype: np.dtype[Any], attributes: Mapping[str, Any]
) -> ColourScale:
    """Return the scale of a field whose values lie within ``limits``."""
    scale = replace(_scale(limits[:2], dtype, attributes), logarithmic=is_logarithmic(attributes))
    return replace(scale, extremes=(limits.least, limits.most)) if isinstance(limits, Limits) else scale


def _scale(limits: tuple[float, float], dtype: np.dtype[Any], attributes: Mapping[str, Any]) -> ColourScale:
    low, high = limits
    own = _own_colours(attributes) if dtype.kind in "bui" and low >= 0 else []
    if own and len(own) > high:
        return ColourScale(0.0, float(len(own) - 1), _palette(own), states=True)
    if dtype.kind == "f" and is_signed(attributes):
        most = max(abs(low), abs(high))
        return ColourScale(-most, most, _palette([*_sampled("RdBu_r", 0.0, 1.0, _SHADES), _NOT_FINITE]), states=False)
    if not is_discrete(limits, dtype):
        return ColourScale(low, high, _palette([*_smooth(_SHADES), _NOT_FINITE]), states=False)
    low = min(low, 0.0) if high < FEW_STATES else low  # so that state 0 keeps its colour even if no cell is in it
    states = max(2, int(high - low) + 1)
    return ColourScale(low, low + states - 1, _palette(_state_colours(states)), states=True)


def is_discrete(limits: tuple[float, float], dtype: np.dtype[Any]) -> bool:
    """Return whether values are whole numbers, and few enough to have a colour each."""
    return dtype.kind in "bui" and limits[1] - limits[0] < FEW_STATES


def is_signed(attributes: Mapping[str, Any]) -> bool:
    """Return whether a field with these attributes oscillates around 0."""
    return attributes.get(SIGNED) == "signed"


def is_logarithmic(attributes: Mapping[str, Any]) -> bool:
    """Return whether the logarithm of a field with these attributes is drawn."""
    return attributes.get(SIGNED) == "logarithmic"


def values_shown(values: Values, attributes: Mapping[str, Any]) -> Values:
    """Return values as they are drawn: their decimal logarithms, NaN for 0 and below, if the field is logarithmic."""
    if not is_logarithmic(attributes):
        return values
    positive = np.where(values > 0, values, np.nan)
    logarithms: Values = np.log10(positive)
    return logarithms


def limits_of(frames: Iterable[Values], signed: bool = False) -> Limits:
    """Return the ends of a scale for the finite values of all frames; 0 and 1 if there are none.

    For floats the scale covers the usual values in these frames: if values of few frames reach much farther than those
    of all others, or those of few cells in few frames reach farther, they are clipped. For ``signed`` values both ends
    are equally far from 0 and cover the usual values: frames of zeros do not count, and frames with large values count
    no more than others. If values grow or decay so far that no scale shows all frames, it is that of most frames, and
    of the louder ones where as many are quiet.
    """
    ends, cores, loud, floats = [], [], [], False
    for frame in frames:
        floats = frame.dtype.kind == "f"
        finite = frame[np.isfinite(frame)] if floats else frame
        if finite.size:
            ends.append((float(finite.min()), float(finite.max())))
        if floats and not signed and finite.size:
            low, high = np.percentile(finite, [_RARE, 100.0 - _RARE])
            cores.append((float(low), float(high)))
        if signed and (loudness := _loudness(frame)) > 0:
            loud.append(loudness)
    least, most = min((low for low, _ in ends), default=0.0), max((high for _, high in ends), default=1.0)
    if signed:
        usual = float(np.median(_together(loud))) if loud else 1.0
        return Limits(-usual, usual, least, most) if ends else Limits(-usual, usual, -usual, usual)
    low, high = _usual(ends, cores) if floats else (least, most)
    return Limits(low, high, least, most)


def _together(loud: Sequence[float]) -> list[float]:
    """Return the magnitudes of most frames that one scale can show, the largest ones where there are as many."""
    found: list[float] = []
    for least in sorted(loud):
        alike = [each for each in loud if least <= each <= _SEEN * least]
        found = max(found, alike, key=lambda several: (len(several), max(several, default=0.0)))
    return found


def _usual(ends: Sequence[tuple[float, float]], cores: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return ends of a scale for frames with these extremes, ignoring the few that reach far beyond the others.

    `cores` are the ends of the frames without the lowest and the highest hundredth of their values.
    """
    low, high = min((low for low, _ in ends), default=0.0), max((high for _, high in ends), default=1.0)
    moving = [(least, most) for least, most in ends if least < most]
    if len(moving) < _JUDGED:
        return low, high
    rank = int(_USUAL * (len(moving) - 1))
    usual_low = sorted((least for least, _ in moving), reverse=True)[rank]
    usual_high = sorted(most for _, most in moving)[rank]
    core_low, core_high = min(usual_low, *(low for low, _ in cores)), max(usual_high, *(high for _, high in cores))
    return _end(low, core_low, usual_low, usual_high), _end(high, core_high, usual_high, usual_low)


def _end(extreme: float, core: float, usual: float, other: float) -> float:
    """Return the end of a scale whose other end is usual: the extreme, that of most cells, or that of most frames."""
    span, reach = abs(usual - other), abs(extreme - other)
    if reach > _FAR * span > 0:
        return usual
    return core if reach > _PEAK * span > 0 and abs(core - other) <= _PEAK * span else extreme


def _loudness(frame: Values) -> float:
    """Return the magnitude that few of the nonzero values exceed; 0 if there are none."""
    magnitudes = np.abs(frame[np.isfinite(frame) & (frame != 0)])
    return float(np.percentile(magnitudes, _CLIPPED)) if magnitudes.size else 0.0


def _own_colours(attributes: Mapping[str, Any]) -> list[str]:
    """Return the colours that a field gives for its states; an empty list if it gives none, or invalid ones."""
    said = attributes.get(FLAG_COLOURS)
    codes = said.split() if isinstance(said, str) else []
    return codes if codes and len(codes) <= 256 and all(map(_HEXADECIMAL.fullmatch, codes)) else []


def _state_colours(states: int) -> list[str]:
    """Return a light colour for the lowest state, as sparse patterns have in books, and distinct ones for others."""
    if states == 2:
        return [_LIGHT, _DARK]
    if states <= len(_STATE_COLOURS):
        return list(_STATE_COLOURS[:states])
    return [_LIGHT, *_sampled("turbo", 0.08, 0.92, states - 1)]


def smooth_palette(shades: int) -> Colours:
    """Return evenly spaced colours of the smooth scale, red, green and blue of each, u1, shape (shades, 3)."""
    return _palette(_smooth(max(shades, 2)))[:shades]


def _smooth(shades: int) -> list[str]:
    return _sampled("viridis", 0.0, 1.0, shades)


def _sampled(name: str, first: float, last: float, count: int) -> list[str]:
    require("matplotlib")
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in colormaps[name](np.linspace(first, last, count))]


def _palette(colours: Iterable[str]) -> Colours:
    return np.array([list(bytes.fromhex(colour[1:])) for colour in colours], np.uint8)
