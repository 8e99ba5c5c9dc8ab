"""Adaptation of the mesh that a case asks for."""

from __future__ import annotations

import math
from dataclasses import replace

from minga.errors import CaseError, RunError
from minga.models.photodiode.adaptation import Adapted, adapted
from minga.models.photodiode.case_layers import device_on
from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.photodiode.settings_adapt import AdaptSettings
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.mesh import Mesh
from minga.models.photodiode.structure.stack import Stack

__all__ = ["adapted_device"]

Notes = tuple[tuple[str, str], ...]

_KEY = "photodiode.mesh.adapt"


def adapted_device(
    device: Device, settings: PhotodiodeSettings, stack: Stack, meshes: tuple[Mesh, ...], problem: Problem
) -> tuple[Device, Notes]:
    """Return the device of a case on an adapted mesh, if the case asks for one, and notes on the adaptation.

    Raises
    ------
    CaseError
        If the adaptation does not cover the case.
    """
    options = settings.mesh.adapt
    if options is None:
        return device, ()
    _check(settings, device, problem)
    # Without voltage and light there is no current.
    curves = tuple(curve for curve in problem.curves if curve == "lit" or problem.bias[-1] != 0.0)
    try:
        found = adapted(meshes, stack, replace(problem, curves=curves, gain=False), options.error, options.most)
    except RunError as error:
        raise CaseError(
            f"the mesh cannot be adapted to the currents at {problem.bias[-1]:g} V: {error.message}",
            key=_KEY,
            remedy="let the voltages end before, or leave adapt out",
        ) from error
    return device_on(settings, stack, found.meshes), (("adaptation", _words(found, options, problem.bias[-1])),)


def _words(found: Adapted, options: AdaptSettings, bias: float) -> str:
    reached = found.found.relative <= options.error
    return (
        f"{_counted(found.meshes)} nodes after {found.rounds} solution{'s' if found.rounds > 1 else ''}; the mesh "
        f"changes J at {bias:g} V by about {found.found.relative:.2g} of it"
        + ("" if reached else f", more than {options.error:g}: allow more nodes than {options.most:,} (most)")
    )


def _counted(meshes: tuple[Mesh, ...]) -> str:
    """Return the number of nodes, with two axes also that of the lines along each."""
    counts = [mesh.nodes.size for mesh in meshes]
    along = f"{' x '.join(f'{count:,}' for count in counts)} = " if len(counts) > 1 else ""
    return f"{along}{math.prod(counts):,}"


def _check(settings: PhotodiodeSettings, device: Device, problem: Problem) -> None:
    """Raise CaseError for what an adaptation does not cover."""
    for excluded, what, remedy in (
        (not device.opposite, "contacts on the same side", "put them on opposite sides, or leave adapt out"),
        (
            settings.columns is not None,
            "columns, whose outermost nodes are not at the ends",
            'leave columns out, and write across = {first = "0.1 um", growth = 1.5, cap = "1 um"}',
        ),
        (
            device.grid.ndim > 1 and settings.mesh.spacing is not None,
            "two axes and rows of a spacing, whose outermost nodes are not at the ends",
            "give graded, nodes or positions in place of spacing",
        ),
        (problem.scheme != "newton", f"scheme = {problem.scheme!r}", 'write scheme = "newton"'),
        (problem.mode == "qe", 'mode = "qe"', 'find the mesh with mode = "iv", and give its spacings as graded'),
        (
            problem.dead_space is not None,
            "dead space",
            "find the mesh without dead_space, and give its spacings as graded",
        ),
        (bool(problem.current), "imposed currents", "give voltages as bias"),
        (
            bool(problem.bias) and problem.bias[-1] == 0.0 and problem.curves == ("dark",),
            "a last voltage of 0 in the dark, where no current flows",
            "let bias end with another voltage",
        ),
    ):
        if excluded:
            raise CaseError(f"a mesh cannot be adapted with {what}", key=_KEY, remedy=remedy)
