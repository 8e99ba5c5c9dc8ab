"""Analysis that a case asks for at each voltage: its frequencies, and the circuit around the device."""

from __future__ import annotations

import math
from typing import Any, Final

from minga.compile import portable
from minga.errors import CaseError
from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.photodiode.settings_ac import AcSettings, CvSettings, FrequencySettings, NoiseSettings
from minga.models.photodiode.solver.circuit import Circuit
from minga.models.photodiode.solver.problem import MOST_FREQUENCIES
from minga.models.photodiode.solver.thresholds import DeadSpace

__all__ = ["analysis_of", "dead_space_of"]

_CIRCUIT: Final = ("load", "series", "pad", "inductance")
"""Options of a circuit, which require an area."""


def analysis_of(settings: PhotodiodeSettings) -> dict[str, Any]:
    """Return the arguments of Problem that describe the analysis.

    Raises
    ------
    CaseError
        For invalid frequencies and circuits.
    """
    mode = settings.mode
    found: dict[str, Any] = {"mode": "iv" if mode == "breakdown" else mode}
    if mode == "cv":
        found["frequencies"] = ((settings.cv or CvSettings()).frequency,)
    elif mode == "ac":
        options = settings.ac or AcSettings()
        found |= {"frequencies": _frequencies(options), "circuit": _circuit(options, "ac")}
    elif mode == "noise":
        noise = settings.noise or NoiseSettings()
        found |= {"noise_method": noise.method, "circuit": _circuit(noise, "noise")}
    return found


def dead_space_of(settings: PhotodiodeSettings) -> DeadSpace | None:
    """Return the threshold energies of ionisation of a case; None if it is local."""
    said = settings.dead_space
    return None if said is None else DeadSpace(said.electrons, said.holes, said.coefficients == "local")


def _frequencies(options: AcSettings) -> tuple[float, ...]:
    """Return the frequencies, Hz."""
    given, key = options.frequencies, "photodiode.ac.frequencies"
    if not isinstance(given, FrequencySettings):
        if not given:
            raise CaseError("frequencies is an empty list", key=key, remedy='write frequencies = ["1 MHz", "1 GHz"]')
        _check_number(len(given), key)
        return given
    if given.to < given.start:
        raise CaseError(
            f"frequencies from {given.start:g} to {given.to:g} Hz", key=f"{key}.to", remedy="exchange the two ends"
        )
    decades = (float(portable.log(given.to)) - float(portable.log(given.start))) / float(portable.log(10.0))
    steps = given.per_decade * decades
    whole = math.floor(steps + 1e-9)
    _check_number(whole + 2, key)
    ratio = [float(portable.power(10.0, k / given.per_decade)) for k in range(whole + 1)]
    found = [float(f"{given.start * value:.12g}") for value in ratio]
    if found[-1] < given.to * (1.0 - 1e-9):
        found.append(given.to)
    else:
        found[-1] = given.to
    return tuple(found)


def _check_number(count: int, key: str) -> None:
    if count > MOST_FREQUENCIES:
        raise CaseError(
            f"{count:,} frequencies", key=key, remedy=f"give fewer: a run has up to {MOST_FREQUENCIES:,} frequencies"
        )


def _circuit(options: AcSettings | NoiseSettings, table: str) -> Circuit | None:
    """Return the circuit around the device; None without an area."""
    found = ((name, getattr(options, name, None)) for name in _CIRCUIT)
    given: dict[str, float] = {name: value for name, value in found if value is not None}
    if options.area is not None:
        return Circuit(options.area, **given)
    if given:
        raise CaseError(
            f"{' and '.join(given)} without the area of the device",
            key=f"photodiode.{table}.area",
            remedy='write area = "100 um2": currents are computed per area',
        )
    return None
