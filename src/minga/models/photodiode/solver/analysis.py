"""Analyses of a solution at each voltage: the recorders of a problem's mode, their observables and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from minga.engine.program import Program
from minga.errors import CaseError
from minga.models.photodiode.solver.biasing import Track
from minga.models.photodiode.solver.noise import Noise, noise_method
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.solver.spectrum import FrequencyResponse
from minga.models.photodiode.structure.constants import CHARGE
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.optics import photon_energy
from minga.space.field import Field, Register

__all__ = ["Analysis", "analyses_of", "check_analysis", "tables_of_analyses"]


class Analysis(Protocol):
    """Recorder of an analysis of one curve."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""

    @property
    def observed(self) -> Mapping[str, Register | tuple[Register, ...]]:
        """Registers by the name of the observable."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Observables in the table of the mode."""

    def record(self, program: Program) -> None:
        """Record the analysis of the present solution."""


def analyses_of(device: Device, problem: Problem, tracks: tuple[Track, ...]) -> tuple[Analysis, ...]:
    """Return the recorders of the mode, one for each curve; none for I-V curves."""
    power = _power(device)
    if problem.mode in ("ac", "cv"):
        return tuple(FrequencyResponse(track, problem, power if problem.mode == "ac" else None) for track in tracks)
    if problem.mode == "noise":
        return tuple(Noise(track, problem, power or 0.0) for track in tracks)
    return ()


def tables_of_analyses(problem: Problem, analyses: tuple[Analysis, ...]) -> dict[str, tuple[str, ...]]:
    """Return the columns of the table named after the mode; empty without analyses."""
    columns = tuple(dict.fromkeys(name for item in analyses for name in item.columns))
    return {problem.mode: ("V", *columns)} if analyses else {}


def check_analysis(device: Device, problem: Problem) -> None:
    """Raise CaseError for a device or scheme that the mode does not cover."""
    _check_dead_space(device, problem)
    if problem.mode == "iv":
        return
    if problem.scheme == "pointwise":
        raise CaseError(
            f"mode = {problem.mode!r} with the pointwise scheme",
            key="photodiode.scheme",
            remedy='write scheme = "newton"',
        )
    if problem.mode == "noise" and _power(device) is None:
        raise CaseError(
            'mode = "noise" without light',
            key="photodiode.light",
            remedy="write [photodiode.light] with a wavelength and a power: F is that of a photocurrent",
        )
    if problem.mode == "noise":
        _check_noise(device, problem)


def _check_dead_space(device: Device, problem: Problem) -> None:
    """Raise CaseError for a device or a problem in which ionisation is local."""
    if problem.dead_space is None:
        return
    for excluded, what, remedy in (
        (not problem.ionisation, "without ionisation", "write ionisation = true"),
        (device.grid.ndim > 1, "in a device with two axes, whose carriers follow no single path", "give it one axis"),
        (
            problem.mode not in ("iv", "noise", "qe"),
            f"in mode {problem.mode!r}, where ionisation is local",
            'write mode = "iv", "breakdown", "noise" or "qe"',
        ),
        (
            problem.mode == "noise" and noise_method(problem, device.grid) == "adjoint",
            "in noise by the adjoint, where a carrier's next ionisation would not depend on its last one",
            'write method = "profile"',
        ),
        (problem.scheme != "newton", f"with scheme = {problem.scheme!r}", 'write scheme = "newton"'),
    ):
        if excluded:
            raise CaseError(
                f"dead space {what}", key="photodiode.dead_space", remedy=f"leave dead_space out, or {remedy}"
            )


def _check_noise(device: Device, problem: Problem) -> None:
    """Raise CaseError for a device that the method of the noise does not cover."""
    if noise_method(problem, device.grid) == "profile":
        if device.grid.ndim > 1:
            raise CaseError(
                'noise by method = "profile" of a device with two axes, which has no single profile',
                key="photodiode.noise.method",
                remedy='write method = "adjoint", or leave it out',
            )
        return
    if not device.opposite:
        raise CaseError(
            'noise by method = "adjoint" of a device whose contacts are on the same side',
            key="photodiode.contacts",
            remedy="put them on opposite sides",
        )
    if device.surface is not None and device.surface.free.any():
        raise CaseError(
            'noise by method = "adjoint" of a contact with a velocity of recombination',
            key="photodiode.contacts",
            remedy="leave recombination out, so that the contact takes up all minority carriers",
        )


def _power(device: Device) -> float | None:
    """Return the power per area of the device, W/cm2; 0 if it is not known, None if nothing is generated."""
    if not (device.generation * device.volumes).any():
        return None
    if device.light is None:
        return 0.0
    if device.light.flux is None:
        return device.light.power * device.lit_section
    return device.light.flux * photon_energy(device.light.wavelength) * CHARGE * device.lit_section
