"""Voltages or currents requested by a case."""

from __future__ import annotations

import math
from typing import Final

from minga.errors import CaseError
from minga.models.photodiode.settings import BIAS_FORM, BiasSettings, PhotodiodeSettings
from minga.models.photodiode.settings_breakdown import BreakdownSettings
from minga.models.photodiode.structure.depletion import Depletion, reverse_sign
from minga.models.photodiode.structure.device import Device

__all__ = ["biases_of", "check_biases", "currents_of", "evenly", "search_of"]

_MOST: Final = 100_000  # largest number of voltages in one run
_SEARCHED: Final = 50  # number of voltages in a search for breakdown
_FAR: Final = 200.0  # end of a search, V
_BEYOND: Final = 1.25  # the multiple of the estimated breakdown that it goes to where that is further
_STRONGEST: Final = 3e6
"""Mean field in V/cm beyond which any semiconductor breaks down."""


def biases_of(settings: PhotodiodeSettings) -> tuple[float, ...]:
    """Return the voltages in the order in which they are solved; empty if the case gives currents.

    Raises
    ------
    CaseError
        If the case gives neither voltages nor currents, or more than 100,000 of them.
    """
    if settings.mode == "breakdown":
        _check_breakdown(settings)
        return (0.0,)  # the others depend on the device: `search_of`
    if settings.bias is None and settings.current is not None:
        return ()
    if settings.bias is None:
        raise CaseError("'bias' is missing", key="photodiode.bias", remedy=BIAS_FORM)
    if isinstance(settings.bias, BiasSettings):
        return _range(settings.bias)
    found = settings.bias if isinstance(settings.bias, tuple) else (settings.bias,)
    if not found:
        raise CaseError("bias is an empty list", key="photodiode.bias", remedy=BIAS_FORM)
    return tuple(float(v) for v in found)


def currents_of(settings: PhotodiodeSettings) -> tuple[float, ...]:
    """Return the currents to be imposed, A/cm2, in order; empty if the case gives voltages."""
    found = () if settings.current is None else settings.current
    found = found if isinstance(found, tuple) else (found,)
    if settings.current is not None and not found:
        raise CaseError("current is an empty list", key="photodiode.current", remedy='write current = ["-1 uA/cm2"]')
    return found


def _range(settings: BiasSettings) -> tuple[float, ...]:
    count = (settings.to - settings.start) / settings.step
    whole = math.floor(abs(count) + 1e-9)
    if whole + 1 > _MOST:
        raise CaseError(
            f"{whole + 1:,} voltages from {settings.start:g} to {settings.to:g} V in steps of {settings.step:g} V",
            key="photodiode.bias.step",
            remedy=f"make the step larger: a run has up to {_MOST:,} voltages",
        )
    return evenly(settings.start, settings.to, settings.step)


def evenly(start: float, to: float, step: float) -> tuple[float, ...]:
    """Return evenly spaced numbers that include both ends; `step` is positive, the last interval may be shorter."""
    count = (to - start) / step
    sign = math.copysign(1.0, count)
    # Round to decimal numbers, so that -0.3 is written as such.
    found = [float(f"{start + sign * k * step:.12g}") for k in range(math.floor(abs(count) + 1e-9) + 1)]
    if abs(found[-1] - to) > 1e-9 * max(1.0, abs(to)):
        found.append(to)
    return tuple(found)


def _check_breakdown(settings: PhotodiodeSettings) -> None:
    """Raise CaseError for entries with which there is no search for a breakdown voltage."""
    for name in ("bias", "current"):
        if getattr(settings, name) is not None:
            raise CaseError(
                f'mode = "breakdown" with {name}: it chooses the voltages itself',
                key=f"photodiode.{name}",
                remedy="leave it out, and write [photodiode.breakdown] to = -200.0 for the end of the search",
            )
    if settings.ionisation is False:
        raise CaseError(
            'mode = "breakdown" without ionisation', key="photodiode.ionisation", remedy="write ionisation = true"
        )


def search_of(settings: PhotodiodeSettings, device: Device) -> tuple[float, ...]:
    """Return the voltages of a search for breakdown: up to its end, or to what no layer of the device withstands.

    Without an end of its own, a search goes in reverse bias to 200 V, or beyond an estimated breakdown.

    Raises
    ------
    CaseError
        If the search goes nowhere, or in the forward direction.
    """
    reverse = reverse_sign(device) if all(t.kind == "ohmic" for t in device.terminals) else 0.0
    to = (settings.breakdown or BreakdownSettings()).to
    if to is None:
        estimate = Depletion.of(device) if reverse < 0.0 else None
        found = None if estimate is None else estimate.breakdown()
        to = math.copysign(max(_FAR, float(f"{_BEYOND * abs(found or 0.0):.3g}")), reverse or -1.0)
    if to == 0.0:
        raise CaseError("a search for breakdown up to 0 V", key="photodiode.breakdown.to", remedy="write to = -200.0")
    if to * reverse < 0.0:
        side = "n" if reverse > 0.0 else "p"
        raise CaseError(
            f"a search for breakdown in the forward direction, up to {to:g} V: the {side} side is at the anode",
            key="photodiode.breakdown.to",
            remedy=f"write to = {-to:g}",
        )
    thickness = float(device.nodes[0][-1] - device.nodes[0][0])
    limit = min(abs(to), float(f"{0.99 * _STRONGEST * thickness:.3g}"))
    return evenly(0.0, math.copysign(limit, to), limit / _SEARCHED)


def check_biases(device: Device, biases: tuple[float, ...], key: str | None = None) -> None:
    """Raise CaseError for a voltage that no layer of the device could withstand; `key` is the entry that gives it."""
    thickness = float(device.nodes[0][-1] - device.nodes[0][0])
    for k, bias in enumerate(biases):
        if abs(bias) > _STRONGEST * thickness:
            raise CaseError(
                f"{bias:g} V across {1e4 * thickness:.3g} um is a mean field of {abs(bias) / thickness:.2g} V/cm, more "
                "than any layer withstands",
                key=key or f"photodiode.bias[{k}]",
                remedy=f"keep below {_STRONGEST * thickness:.3g} V",
            )
