"""Conversion of the table [photodiode.transient] of a case to a Transient and its Model."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from minga.case.files import locate, nearest
from minga.engine.drawing import Drawing, Span
from minga.engine.model import Model
from minga.errors import CaseError
from minga.models.photodiode.bands import BANDS, with_bands
from minga.models.photodiode.biases import biases_of, check_biases
from minga.models.photodiode.case_adapt import adapted_device
from minga.models.photodiode.case_layers import device_on, meshes_of_case, stack_of
from minga.models.photodiode.drawings import LEVELS, styles_of
from minga.models.photodiode.preflight import drift_notes, notes_of
from minga.models.photodiode.settings import PhotodiodeSettings
from minga.models.photodiode.settings_transient import TransientSettings, WaveSettings
from minga.models.photodiode.solver.circuit import Circuit
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.depletion import Depletion
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.transients.model import transient
from minga.models.photodiode.transients.problem import Transient
from minga.models.photodiode.transients.waveform import Waveform

__all__ = ["check_transient", "transient_case", "transient_of"]

_KEY: Final = "photodiode.transient"
_ENTRIES: Final = {
    "step": ("to", "at", "rise"),
    "pulse": ("to", "at", "rise", "width", "fall", "period"),
    "sine": ("amplitude", "frequency", "at"),
    "points": ("points", "file"),
}
"""Entries of each kind of wave form, apart from `from`."""
_NEEDED: Final = {"step": (), "pulse": ("width",), "sine": ("amplitude", "frequency"), "points": ()}
_TOUCHING: Final = 1e-12
"""Relative difference of times up to which a pulse ends where the next one begins."""
_PULSES: Final = 10_000  # largest number of pulses
_BEYOND: Final = 1.05
"""Voltage over the estimated one of breakdown that a resistance has to limit."""


def check_transient(settings: PhotodiodeSettings) -> None:
    """Raise CaseError for options that transients do not have."""
    for name in ("current", "gain", "quasistatic_capacitance", "curves", "dead_space"):
        if getattr(settings, name):
            raise CaseError(f"{name} in a transient", key=f"photodiode.{name}", remedy='leave it out, or mode = "iv"')


def transient_case(settings: PhotodiodeSettings, directory: Path) -> Model:
    """Make the model of a case whose mode is "transient"."""
    stack = stack_of(settings, directory)
    meshes = meshes_of_case(settings, stack)
    device = device_on(settings, stack, meshes)
    what = transient_of(settings, directory)
    problem = _problem(settings, what)
    check_biases(device, problem.bias, f"{_KEY}.voltage")
    if problem.ionisation and not what.drive.external:
        _check_breakdown(device, what.voltage)
    device, adaptation = adapted_device(device, settings, stack, meshes, _steady(problem))
    model = with_bands(transient(device, problem, what), device, ("dark",), "")
    notes = tuple(note for note in notes_of(device, problem) if note[0] != "solved for")
    return replace(
        model,
        notes=(
            *notes,
            *drift_notes(device, min(problem.bias, default=0.0)),
            *_notes(device, what),
            *adaptation,
            *model.notes,
        ),
        presentation=replace(model.presentation, fields=styles_of(model, device), drawings=_drawings(device, what)),
    )


def _check_breakdown(device: Device, voltage: Waveform) -> None:
    """Raise CaseError for voltages well beyond breakdown, where nothing but space charge limits the current."""
    depletion = Depletion.of(device)
    found = None if depletion is None else depletion.breakdown()
    lowest = voltage.extremes[0]
    if found is not None and lowest < _BEYOND * found:
        raise CaseError(
            f"{lowest:g} V is beyond the breakdown at about {found:.3g} V, and no resistance limits the current",
            key=f"{_KEY}.voltage",
            remedy='give a resistance, load = "100 kohm", and the area of the device',
        )


def transient_of(settings: PhotodiodeSettings, directory: Path) -> Transient:
    """Return what happens to the device of a case over time.

    Parameters
    ----------
    settings
        The table [photodiode].
    directory
        Directory of the case, for files of wave forms.

    Returns
    -------
    Transient
        Sources, circuit, duration and accuracy.

    Raises
    ------
    CaseError
        If they are inconsistent; the error names the key.
    """
    given = settings.transient
    if given is None:
        raise CaseError(
            'mode = "transient" without [photodiode.transient]', key=_KEY, remedy='write until = "1 ns" there'
        )
    biases = biases_of(settings)
    if len(biases) != 1:
        raise CaseError(
            f"{len(biases)} voltages, but a transient begins at one", key="photodiode.bias", remedy="write bias = -5.0"
        )
    voltage = _waveform(given.voltage, "voltage", biases[0], given.until, directory)
    if given.light is not None and settings.light is None:
        raise CaseError(
            "light as a function of time, but there is no light",
            key=f"{_KEY}.light",
            remedy="write [photodiode.light] with a wavelength and a power, or leave the wave form out",
        )
    light = _waveform(given.light, "light", 0.0, given.until, directory)
    options: dict[str, Any] = {name: value for name, value in given.steps if value is not None}
    if given.tolerance is not None:
        options["tolerance"] = given.tolerance
    return Transient(given.until, voltage, light, _circuit(given), **options)


def _problem(settings: PhotodiodeSettings, what: Transient) -> Problem:
    """Return physics and accuracy; the voltages are the extremes, which notes and checks are about."""
    options: dict[str, Any] = {}
    for name in ("tolerance", "limit"):
        if (value := getattr(settings, name)) is not None:
            options[name] = value
    if settings.steps is not None:
        options |= {f"{name}_step": value for name, value in settings.steps if value is not None}
    extremes = tuple(dict.fromkeys(what.voltage.extremes))
    return Problem(
        bias=extremes, curves=("dark",) if settings.light is None else ("lit",),
        ionisation=settings.ionisation is not False, scheme=settings.scheme, linear=settings.linear, **options,
    )  # fmt: skip


def _steady(problem: Problem) -> Problem:
    """Return the steady state for which a mesh is adapted: at the lowest voltage, the highest where none is below 0."""
    lowest = min(problem.bias)
    return replace(problem, bias=(lowest if lowest < 0.0 else max(problem.bias),))


def _circuit(given: TransientSettings) -> Circuit | None:
    """Return the circuit; None without elements."""
    names = ("load", "series", "pad", "inductance")
    elements: dict[str, float] = {name: getattr(given, name) for name in names if getattr(given, name)}
    if not elements:
        return None
    if given.area is None:
        raise CaseError(
            f"{' and '.join(elements)} without the area of the device",
            key=f"{_KEY}.area",
            remedy='write area = "100 um2": currents are computed per area',
        )
    return Circuit(given.area, **{"load": 0.0, **elements})


# Wave forms ----------------------------------------------------------------------------------------------------------
def _waveform(given: WaveSettings | None, name: str, bias: float, until: float, directory: Path) -> Waveform:
    """Return a wave form that begins at `bias`."""
    key = f"{_KEY}.{name}"
    if given is None:
        return Waveform((0.0,), (bias,))
    _check_entries(given, key, name)
    start = bias if given.start is None else given.start
    try:
        return Waveform(*_points(given, key, name, start, until, directory))
    except CaseError as error:
        error.key = error.key or key
        raise


def _check_entries(given: WaveSettings, key: str, name: str) -> None:
    """Raise CaseError for entries that a kind of wave form does not have, and for missing ones."""
    for entry, value in given:
        if entry in ("kind", "start") or value is None or entry in _ENTRIES[given.kind]:
            continue
        raise CaseError(
            f"kind = {given.kind!r} has no {entry}",
            key=f"{key}.{entry}",
            remedy=f"leave it out; its entries are {', '.join(_ENTRIES[given.kind])}",
        )
    needed = (*_NEEDED[given.kind], *(("to",) if name == "voltage" and given.kind in ("step", "pulse") else ()))
    for entry in needed:
        if getattr(given, entry) is None:
            raise CaseError(f"{entry!r} of a {given.kind} is missing", key=f"{key}.{entry}", remedy="give it")
    if given.kind == "points" and (given.points is None) == (given.file is None):
        raise CaseError("a wave form of points", key=key, remedy="give either points or a file")
    if given.start is not None and (name == "voltage" or given.kind == "points"):
        begin = "a voltage begins at photodiode.bias" if name == "voltage" else "light begins at the first point"
        raise CaseError(begin, key=f"{key}.from", remedy="leave it out")


def _points(
    given: WaveSettings, key: str, name: str, start: float, until: float, directory: Path
) -> tuple[tuple[float, ...], tuple[float, ...], float, float]:
    """Return times, values, amplitude and frequency of a wave form."""
    at, rise = given.at or 0.0, given.rise or 0.0
    to = 1.0 if given.to is None else given.to
    if given.kind == "step":
        return (at, at + rise), (start, to), 0.0, 0.0
    if given.kind == "sine":
        return (at,), (start,), given.amplitude or 0.0, given.frequency or 0.0
    if given.kind == "pulse":
        fall = rise if given.fall is None else given.fall
        times = tuple(_pulses(at, (rise, given.width or 0.0, fall), given.period, until, key))
        corners = zip(times, (start, to, to, start) * (len(times) // 4), strict=True)
        # Where a pulse begins at the end of the one before, both have the same corner.
        times, values = zip(*(corner for corner, _ in groupby(corners)), strict=True)
        return times, values, 0.0, 0.0
    found = tuple(_read(given.file, key, directory)) if given.file is not None else given.points
    assert found is not None
    times, values = tuple(t for t, _ in found), tuple(v for _, v in found)
    if name == "voltage" and values[0] != start:
        return (times[0], *times), (start, *values), 0.0, 0.0
    return times, values, 0.0, 0.0


def _pulses(
    at: float, parts: tuple[float, float, float], period: float | None, until: float, key: str
) -> Iterator[float]:
    """Yield the times of the corners of pulses."""
    rise, width, fall = parts
    if period is not None and period < (rise + width + fall) * (1.0 - _TOUCHING):
        raise CaseError(
            f"a pulse every {period:g} s, but each lasts {rise + width + fall:g} s",
            key=f"{key}.period",
            remedy="make the period longer, or rise, width and fall shorter",
        )
    count = 1 if period is None else max(1, math.ceil((until - at) / period))
    if count > _PULSES:
        raise CaseError(f"{count:,} pulses", key=f"{key}.period", remedy=f"a run has up to {_PULSES:,} pulses")
    for k in range(count):
        begin = at + k * (period or 0.0)
        end = begin + rise + width + fall
        following = at + (k + 1) * period if period is not None else math.inf
        end = following if abs(following - end) <= _TOUCHING * end else end
        yield from (begin, min(begin + rise, end), min(begin + rise + width, end), end)


def _read(name: str, key: str, directory: Path) -> Iterator[tuple[float, float]]:
    """Yield the times and values of a file; a first line of words is skipped."""
    path = locate(name, directory)
    if not path.is_file():
        raise CaseError(
            f"there is no file {name!r}",
            key=f"{key}.file",
            where=str(directory),
            suggestion=nearest(name, directory),
            remedy="put it beside the case",
        )
    try:
        rows = [row for row in csv.reader(path.read_text(encoding="utf-8").splitlines()) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CaseError(f"{name} cannot be read: {error}", key=f"{key}.file", remedy="give a text file") from error
    for number, row in enumerate(rows, 1):
        try:
            time, value = map(float, row)
        except ValueError:
            if number == 1:
                continue
            raise CaseError(
                f"line {number} of {name} is {','.join(row)!r}",
                key=f"{key}.file",
                remedy="write the time in s and the value on each line: 1e-9,-5.0",
            ) from None
        yield time, value


# For people ----------------------------------------------------------------------------------------------------------
def _notes(device: Device, what: Transient) -> Iterator[tuple[str, str]]:
    low, high = what.voltage.extremes
    span = f"{low:g} V" if low == high else f"{low:g} to {high:g} V"
    circuit = what.drive
    parts = [
        f"{value:.4g} {unit}"
        for value, unit in (
            (circuit.resistance, "ohm cm2"),
            (circuit.inductance, "H cm2"),
            (circuit.capacitance, "F/cm2"),
        )
        if value
    ]
    yield "transient", f"{what.until:g} s from the steady state at {what.voltage.beginning:g} V; source {span}"
    if parts:
        yield "circuit", ", ".join(parts)
    first, largest, smallest = what.lengths
    yield "time steps", f"first {first:.3g} s, up to {largest:.3g} s, at least {smallest:.3g} s"
    yield "solved for", f"{3 * device.doping.size:,} unknowns twice a step, by newton"


def _drawings(device: Device, what: Transient) -> tuple[Drawing, ...]:
    """Return drawings of currents and voltages over time, and of the field and the carriers at the end."""
    spans = tuple(Span(layer.name, 1e4 * layer.start, 1e4 * layer.end) for layer in device.layers)
    point = device.middle if device.grid.ndim == 2 else None
    parts = {"conduction": "J_conduction", "displacement": "J_displacement"}
    found = [
        Drawing("Current density", {"total": "J"}, over="t", over_name="time", unit="A/cm2"),
        Drawing("Parts of the current", parts, over="t", over_name="time", unit="A/cm2"),
        Drawing("Voltage", {"device": "V", "source": "V_source"}, over="t", over_name="time", unit="V"),
        Drawing("Charge", {"charge": "charge"}, over="t", over_name="time", unit="C/cm2"),
    ]
    if what.light.extremes[1] > 0.0:
        found.append(Drawing("Light", {"light": "light"}, over="t", over_name="time", unit="1"))
    for title, names, unit, logarithmic in (
        ("Bands", dict(zip(LEVELS, BANDS, strict=True)), "eV", False),
        ("Field", {"field": "field" if point is None else f"field_{device.grid.axes[0]}"}, "V/cm", False),
        ("Carriers", {"electrons": "electrons", "holes": "holes"}, "1/cm3", True),
    ):
        found.append(
            Drawing(title, names, unit=unit, logarithmic=logarithmic, spans=spans, state=("t", "s"), point=point)
        )
    return tuple(found)
