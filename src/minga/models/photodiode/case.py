"""Conversion of the [photodiode] table of a case to a Device, a Problem and their Model, with all checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minga.case.settings import GridSettings
from minga.engine.model import Model
from minga.errors import CaseError, suggest
from minga.models.photodiode.bands import with_bands
from minga.models.photodiode.biases import biases_of, check_biases, currents_of, search_of
from minga.models.photodiode.boundary_notes import staircase_notes
from minga.models.photodiode.case_adapt import adapted_device
from minga.models.photodiode.case_analysis import analysis_of, dead_space_of
from minga.models.photodiode.case_layers import device_of, device_on, meshes_of_case, stack_of
from minga.models.photodiode.case_materials import borrowed
from minga.models.photodiode.case_qe import check_contacts, check_qe, spectrum_of_case
from minga.models.photodiode.case_transient import check_transient, transient_case
from minga.models.photodiode.drawings import drawings_of, styles_of
from minga.models.photodiode.preflight import drift_notes, notes_of
from minga.models.photodiode.review import of_search
from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.photodiode.solver.observe import RENAMED_OBSERVABLES
from minga.models.photodiode.solver.problem import Problem

if TYPE_CHECKING:
    from minga.models.photodiode.pointwise.setup import Pointwise
    from minga.models.photodiode.structure.device import Device

__all__ = ["device_of", "make", "pointwise_options", "problem_of"]


def make(settings: PhotodiodeSettings, grid: GridSettings, directory: Path) -> Model:
    """Make the model that the table [photodiode] of a case describes."""
    from minga.models.photodiode.model import photodiode
    from minga.models.photodiode.pointwise.scheme import pointwise

    for name in ("shape", "boundary"):
        if getattr(grid, name) is not None:
            raise CaseError(
                f"the grid of a device follows from its layers and [photodiode.mesh]; there is no {name} to choose",
                key=f"grid.{name}",
                remedy="leave it out",
            )
    if settings.pointwise is not None and settings.scheme != "pointwise":
        raise CaseError(
            f"[photodiode.pointwise] in a case whose scheme is {settings.scheme!r}",
            key="photodiode.pointwise",
            remedy='leave it out, or write scheme = "pointwise"',
        )
    if settings.mode == "transient":
        check_transient(settings)
        return transient_case(settings, directory)
    check_qe(settings)
    problem = problem_of(settings)
    stack = stack_of(settings, directory)
    meshes = meshes_of_case(settings, stack)
    device = device_on(settings, stack, meshes)
    if settings.mode == "breakdown":
        problem = replace(problem, bias=search_of(settings, device))
    check_biases(device, problem.bias)
    device, adaptation = adapted_device(device, settings, stack, meshes, problem)
    spectrum = spectrum_of_case(settings, stack, meshes[0]) if settings.mode == "qe" else None
    if spectrum is not None:
        check_contacts(device)
    if device.dopants is not None and problem.quasistatic_capacitance:
        raise CaseError(
            "quasi-static capacitance with dopants that keep carriers, whose charge it would leave out",
            key="photodiode.quasistatic_capacitance",
            remedy="leave it or incomplete_ionisation out",
        )
    solved = (
        pointwise(device, problem, pointwise_options(settings, device))
        if settings.pointwise
        else photodiode(device, problem, spectrum)
    )
    model = with_bands(solved, device, problem.curves)
    if settings.mode == "breakdown":
        model = replace(model, review=of_search(model.review))
    drift = drift_notes(device, min(problem.bias, default=0.0)) if problem.mode == "ac" else ()
    return replace(
        model,
        notes=(
            *_warnings(settings),
            *notes_of(device, problem, spectrum),
            *staircase_notes(device, stack.regions),
            *drift,
            *adaptation,
            *model.notes,
        ),
        presentation=replace(
            model.presentation,
            fields=styles_of(model, device),
            drawings=drawings_of(model, device, problem.curves),
        ),
    )


def _warnings(settings: PhotodiodeSettings) -> Iterator[tuple[str, str]]:
    """Yield a note for each former name that is used, and for alloys with parameters of another composition."""
    yield from borrowed(settings)
    if settings.capacitance is not None:
        observables = ", ".join(f"{old} is now {new}" for old, new in RENAMED_OBSERVABLES.items())
        yield (
            "renamed",
            f"photodiode.capacitance is now quasistatic_capacitance, {observables}: dQ/dV, not small-signal",
        )


def pointwise_options(settings: PhotodiodeSettings, device: Device) -> Pointwise:
    """Return the options of the pointwise scheme."""
    from minga.models.photodiode.pointwise.setup import Pointwise

    options = {} if settings.pointwise is None else settings.pointwise.model_dump(exclude_none=True)
    if isinstance(count := options.get("segments"), int):
        rows = device.grid.shape[0]
        if count > rows:
            raise CaseError(
                f"{count} segments, but only {rows} rows",
                key="photodiode.pointwise.segments",
                remedy=f"use {rows} segments or fewer",
            )
        options["segments"] = tuple(rows * k // count for k in range(count + 1))
    if (name := options.get("heavy")) is not None:
        layers = {layer.name: layer for layer in device.layers}
        if name not in layers:
            raise CaseError(
                f"there is no layer {name!r}",
                key="photodiode.pointwise.heavy",
                suggestion=suggest(name, layers),
                remedy=f"name one of {', '.join(layers)}",
            )
        options["heavy"] = (layers[name].first, layers[name].last + 1)
    return Pointwise(**options)


def problem_of(settings: PhotodiodeSettings) -> Problem:
    """Return the problem that a case states.

    Raises
    ------
    CaseError
        If the problem is inconsistent; the error names the key.
    """
    dark = settings.light is None or settings.mode == "qe"
    curves = settings.curves or (("dark",) if dark else ("dark", "lit"))
    if "lit" in curves and settings.light is None:
        raise CaseError(
            "a lit curve, but there is no light",
            key="photodiode.curves",
            remedy="write [photodiode.light] with a wavelength and a power, or leave the curve out",
        )
    options: dict[str, Any] = {}
    for name in ("tolerance", "limit"):
        if (value := getattr(settings, name)) is not None:
            options[name] = value
    if settings.steps is not None:
        options |= {f"{name}_step": value for name, value in settings.steps if value is not None}
    return Problem(
        bias=biases_of(settings),
        current=currents_of(settings),
        curves=curves,
        ionisation=settings.ionisation is not False,
        gain=settings.gain,
        quasistatic_capacitance=settings.quasistatic_capacitance,
        scheme=settings.scheme,
        current_parts=settings.current_parts,
        dead_space=dead_space_of(settings),
        linear=settings.linear,
        **analysis_of(settings),
        **options,
    )
