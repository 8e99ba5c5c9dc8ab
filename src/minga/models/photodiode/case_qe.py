"""Quantum efficiencies that a case asks for: its checks and the light at each wavelength."""

from __future__ import annotations

from typing import Final

from minga.errors import CaseError
from minga.models.photodiode.biases import evenly
from minga.models.photodiode.case_mesh import across_of
from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.photodiode.settings_qe import WAVELENGTHS_FORM, WavelengthsSettings
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.illumination import Spectrum, spectrum_of
from minga.models.photodiode.structure.mesh import Mesh
from minga.models.photodiode.structure.stack import Light, Stack

__all__ = ["check_contacts", "check_qe", "spectrum_of_case"]

_MOST: Final = 10_000  # largest number of wavelengths


def check_qe(settings: PhotodiodeSettings) -> None:
    """Raise CaseError for entries that quantum efficiencies exclude."""
    if settings.mode != "qe":
        return
    if settings.qe is None:
        raise CaseError(
            'mode = "qe" without wavelengths', key="photodiode.qe", remedy=f"in [photodiode.qe], {WAVELENGTHS_FORM}"
        )
    if settings.light is not None and settings.light.generation is not None:
        raise CaseError(
            'mode = "qe" with pairs from a file',
            key="photodiode.light.generation",
            remedy='leave it out: light of each wavelength is absorbed, or write mode = "iv"',
        )
    for name, excluded in (
        ("gain", settings.gain),
        ("quasistatic_capacitance", settings.quasistatic_capacitance),
        ("current", settings.current is not None),
        ("scheme", settings.scheme != "newton"),
    ):
        if excluded:
            raise CaseError(
                f'mode = "qe" with {name}: it is for voltages and Newton\'s method',
                key=f"photodiode.{name}",
                remedy='leave it out, or write mode = "iv"',
            )
    if settings.curves is not None and len(settings.curves) > 1:
        raise CaseError(
            "quantum efficiencies of two curves",
            key="photodiode.curves",
            remedy='choose one: ["dark"], or ["lit"] for weak light in addition to [photodiode.light]',
        )


def check_contacts(device: Device) -> None:
    """Raise CaseError if a current does not flow from one end of x to the other."""
    if not device.opposite:
        raise CaseError(
            "quantum efficiencies of a device whose contacts are on the same side",
            key="photodiode.contacts",
            remedy='put them on opposite sides, or write mode = "iv" and compare currents with and without light',
        )


def spectrum_of_case(settings: PhotodiodeSettings, stack: Stack, mesh: Mesh) -> Spectrum:
    """Return the light in the device at each wavelength of a case whose mode is "qe".

    Raises
    ------
    CaseError
        If there is no wavelength or too many, or a layer's optical properties are unknown at one of them.
    """
    assert settings.qe is not None
    wavelengths = _wavelengths(settings.qe.wavelengths)
    light = stack.light or Light(wavelengths[0])
    try:
        spectrum = spectrum_of(stack, light, mesh, wavelengths, across_of(settings))
    except CaseError as error:
        error.key = error.key if error.key != "photodiode.light.wavelength" else "photodiode.qe.wavelengths"
        raise
    if not any(any(item.layers) for item in spectrum.illuminations):
        raise CaseError(
            f"no layer absorbs light of {wavelengths[0]:g} to {wavelengths[-1]:g} nm",
            key="photodiode.qe.wavelengths",
            remedy="choose shorter wavelengths",
        )
    return spectrum


def _wavelengths(said: tuple[float, ...] | WavelengthsSettings) -> tuple[float, ...]:
    key = "photodiode.qe.wavelengths"
    if isinstance(said, WavelengthsSettings):
        count = abs(said.to - said.start) / said.step
        if count >= _MOST:
            raise CaseError(
                f"{count + 1:,.0f} wavelengths", key=f"{key}.step", remedy=f"make the step larger: up to {_MOST:,}"
            )
        return evenly(said.start, said.to, said.step)
    if not 0 < len(said) <= _MOST:
        raise CaseError(f"{len(said):,} wavelengths", key=key, remedy=f"{WAVELENGTHS_FORM}, up to {_MOST:,}")
    return said
