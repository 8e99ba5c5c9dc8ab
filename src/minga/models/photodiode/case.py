"""Conversion of the [photodiode] table of a case to a Device, a Problem and their Model, with all checks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from minga.engine.model import Model
from minga.errors import CaseError, suggest
from minga.models.photodiode.bands import with_bands
from minga.models.photodiode.biases import biases_of, check_biases, currents_of
from minga.models.photodiode.case_layers import device_of
from minga.models.photodiode.drawings import drawings_of
from minga.models.photodiode.preflight import notes_of
from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.photodiode.solver.observe import RENAMED_OBSERVABLES
from minga.models.photodiode.solver.problem import Problem
from minga.models.settings import GridSettings
from minga.schema import validate

if TYPE_CHECKING:
    from minga.models.photodiode.pointwise.setup import Pointwise
    from minga.models.photodiode.structure.device import Device

__all__ = ["device_of", "how_of", "load", "problem_of", "read_settings"]

_LAYER: Final = re.compile(r"photodiode\.layers\[(\d+)\]")


def load(section: Mapping[str, object], grid: GridSettings, directory: Path) -> Model:
    """Return the model described by the [photodiode] table of a case; see `minga.models`."""
    from minga.models.photodiode.model import photodiode
    from minga.models.photodiode.pointwise.scheme import pointwise

    for name in ("shape", "boundary"):
        if getattr(grid, name) is not None:
            raise CaseError(
                f"the grid of a device follows from its layers and [photodiode.mesh]; there is no {name} to choose",
                key=f"grid.{name}",
                remedy="leave it out",
            )
    said = read_settings(section)
    if said.pointwise is not None and said.scheme != "pointwise":
        raise CaseError(
            f"[photodiode.pointwise] in a case whose scheme is {said.scheme!r}",
            key="photodiode.pointwise",
            remedy='leave it out, or write scheme = "pointwise"',
        )
    problem = problem_of(said)
    device = device_of(said, directory)
    check_biases(device, problem.bias)
    solved = pointwise(device, problem, how_of(said, device)) if said.pointwise else photodiode(device, problem)
    model = with_bands(solved, device, problem.curves)
    return replace(
        model,
        notes=(*_warnings(section), *notes_of(device, problem), *model.notes),
        steps=problem.steps,
        drawings=drawings_of(model, device, problem.curves),
    )


RENAMED: Final = {"capacitance": "quasistatic_capacitance"}
"""Current names of settings, by their former names."""


def renamed_in(section: Mapping[str, object]) -> list[str]:
    """Return the former names of settings used in a table."""
    return [key for key in RENAMED if key in section]


def _warnings(section: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield a note for each former name that is used."""
    for former in renamed_in(section):
        observables = ", ".join(f"{old} is now {new}" for old, new in RENAMED_OBSERVABLES.items())
        yield "renamed", f"photodiode.{former} is now {RENAMED[former]}, {observables}: dQ/dV, not small-signal"


def read_settings(section: Mapping[str, object]) -> PhotodiodeSettings:
    """Validate the table against its schema.

    Former names of settings are accepted too; `renamed_in` lists those in use.

    Raises
    ------
    CaseError
        If the table is invalid; the error names the key, and the layer if the key belongs to one.
    """
    for former in renamed_in(section):
        if RENAMED[former] in section:
            raise CaseError(
                f"both {former!r} and its current name {RENAMED[former]!r} are given",
                key=f"photodiode.{former}",
                remedy=f"leave {former} out",
            )
    try:
        present = {RENAMED.get(key, key): value for key, value in section.items()}
        return validate(PhotodiodeSettings, present, "photodiode")
    except CaseError as error:
        name = _layer_of(error.key or "", section)
        if name is None:
            raise
        raise CaseError(
            f"layer {name!r}: {error.message}",
            key=error.key,
            suggestion=error.suggestion,
            where=error.where,
            remedy=error.remedy,
        ) from None


def _layer_of(key: str, section: Mapping[str, object]) -> str | None:
    """Return the name of the layer to which a key belongs; None for other keys."""
    found = _LAYER.match(key)
    layers = section.get("layers")
    if found is None or not isinstance(layers, Sequence) or int(found[1]) >= len(layers):
        return None
    entry = layers[int(found[1])]
    name = entry.get("name") if isinstance(entry, Mapping) else None
    return name if isinstance(name, str) and name else f"layer {int(found[1]) + 1}"


def how_of(said: PhotodiodeSettings, device: Device) -> Pointwise:
    """Return the options of the pointwise scheme."""
    from minga.models.photodiode.pointwise.setup import Pointwise

    options = {} if said.pointwise is None else said.pointwise.model_dump(exclude_none=True)
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


def problem_of(said: PhotodiodeSettings) -> Problem:
    """Return the problem that a case states.

    Raises
    ------
    CaseError
        If the problem is inconsistent; the error names the key.
    """
    curves = said.curves or (("dark",) if said.light is None else ("dark", "lit"))
    if "lit" in curves and said.light is None:
        raise CaseError(
            "a lit curve, but there is no light",
            key="photodiode.curves",
            remedy="write [photodiode.light] with a wavelength and a power, or leave the curve out",
        )
    options: dict[str, Any] = {}
    for name in ("tolerance", "limit"):
        if (value := getattr(said, name)) is not None:
            options[name] = value
    if said.steps is not None:
        options |= {f"{name}_step": value for name, value in said.steps if value is not None}
    return Problem(
        bias=biases_of(said),
        current=currents_of(said),
        curves=curves,
        ionisation=said.ionisation is not False,
        gain=said.gain,
        quasistatic_capacitance=said.quasistatic_capacitance,
        scheme=said.scheme,
        linear=said.linear,
        **options,
    )
