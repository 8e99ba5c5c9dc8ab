"""Drawings of a device for pictures and reports: curves over the voltage, and profiles at the last voltage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from minga.engine.drawing import Drawing, Span
from minga.engine.model import Model
from minga.engine.presentation import FieldStyle
from minga.models.photodiode.bands import BANDS
from minga.models.photodiode.solver.problem import Curve, suffix
from minga.models.photodiode.structure.device import Device

__all__ = ["LEVELS", "drawings_of", "styles_of"]

LEVELS = ("Ec", "Ev", "Fn", "Fp")
"""Labels of the bands, in the order of `BANDS`."""


_SPECTRA = (
    ("Conductance", "G", "f", "S/cm2", True),
    ("Capacitance", "C", "f", "F/cm2", False),
    ("Impedance, Nyquist", "Z_im_negative", "Z_re", "-Im Z, ohm cm2", False),
    ("Response", "H", "f", "|H| over its value at 0 Hz, dB", False),
    ("Response with load", "H_load", "f", "|H| over its value at 0 Hz, dB", False),
    ("Phase of the response", "H_phase", "f", "rad", False),
)
"""Title, quantity, horizontal quantity, unit, and whether the vertical axis is logarithmic."""
_AMPLITUDES = ("H", "H_load")
"""Quantities that are drawn in dB."""


_NOISE = (("Excess noise factor", "F", "F"), ("Noise-equivalent power", "NEP", "NEP, W/Hz^0.5"))
"""Title, quantity and label of noise over the voltage."""


def drawings_of(model: Model, device: Device, curves: Sequence[Curve]) -> tuple[Drawing, ...]:
    """Return drawings over the voltage or the wavelength, and of bands, field, carriers and collection over depth."""
    over = _over_wavelength(device) if "QE" in model.observables else _over_voltage(set(model.observables), curves)
    return tuple(d for d in (*over, *_profiles(model, device, curves)) if d.lines)


def styles_of(model: Model, device: Device) -> dict[str, FieldStyle]:
    """Return the styles of fields with two axes: densities vary by powers of ten, fields by direction."""
    styles = {"1/cm3": FieldStyle(logarithmic=True), "V/cm": FieldStyle(signed=True)}
    if device.grid.ndim == 1:
        return {}
    return {name: styles[unit] for name in model.output if (unit := model.field(name).unit) in styles}


def _over_voltage(seen: Set[str], curves: Sequence[Curve]) -> Iterator[Drawing]:
    lines: dict[str, str] = {curve: f"J{suffix(curve)}" for curve in curves if f"J{suffix(curve)}" in seen}
    yield Drawing("Current density", lines, over="V", unit="|J|, A/cm2", logarithmic=True)
    if "gain" in seen:
        yield Drawing("Gain", {"gain": "gain"}, over="V", unit="M", logarithmic=True)
    for title, name, unit in _NOISE:
        lines = {c: f"{name}{suffix(c)}" for c in curves if f"{name}{suffix(c)}" in seen}
        yield Drawing(title, lines, over="V", unit=unit, logarithmic=name == "NEP")
    lines = {c: f"C_quasistatic{suffix(c)}" for c in curves if f"C_quasistatic{suffix(c)}" in seen}
    yield Drawing("Quasi-static capacitance", lines, over="V", unit="F/cm2")
    yield from _spectra(seen, curves)


def _over_wavelength(device: Device) -> Iterator[Drawing]:
    lines = {"quantum efficiency": "QE", "absorbed": "A", "reflected": "R"}
    yield Drawing("Quantum efficiency", lines, over="wavelength", unit="fraction of the photons")
    yield Drawing("Responsivity", {"responsivity": "responsivity"}, over="wavelength", unit="A/W")
    layers = {layer.name: f"A_{layer.name}" for layer in device.layers}
    yield Drawing("Absorbed light", layers, over="wavelength", unit="fraction of the photons")


def _profiles(model: Model, device: Device, curves: Sequence[Curve]) -> Iterator[Drawing]:
    spans = tuple(Span(layer.name, 1e4 * layer.start, 1e4 * layer.end) for layer in device.layers)
    fields = {item.name for item in model.fields}
    state: Curve = "lit" if "lit" in curves else "dark"
    end = suffix(state)
    point = device.middle if device.grid.ndim == 2 else None
    field = "field" if device.grid.ndim == 1 else f"field_{device.grid.axes[0]}"
    profiles: tuple[tuple[str, dict[str, str], str, bool], ...] = (
        ("Bands", {label: f"{name}{end}" for label, name in zip(LEVELS, BANDS)}, "eV", False),
        ("Field", {curve: f"{field}{suffix(curve)}" for curve in curves}, "V/cm", False),
        ("Carriers", {"electrons": f"electrons{end}", "holes": f"holes{end}"}, "1/cm3", True),
        ("Collection", {"collection": "collection"}, "charges per pair", False),
    )
    for title, names, unit, logarithmic in profiles:
        if fields.issuperset(names.values()):
            words = title if title in ("Field", "Collection") else f"{title}, {state}"
            at = ("V", "V") if "V" in model.observables else None
            yield Drawing(words, names, unit=unit, logarithmic=logarithmic, spans=spans, state=at, point=point)


def _spectra(seen: Set[str], curves: Sequence[Curve]) -> Iterator[Drawing]:
    """Yield drawings of small-signal quantities over frequency or, with a single frequency, over V."""
    for title, name, over, unit, logarithmic in _SPECTRA:
        lines: dict[str, str] = {c: f"{name}{suffix(c)}" for c in curves if f"{name}{suffix(c)}" in seen}
        if over == "f" and "f" not in seen:
            yield Drawing(title, lines, over="V", unit=unit, logarithmic=logarithmic, decibels=name in _AMPLITUDES)
        elif over == "f":
            yield Drawing(
                title, lines, over="f", unit=unit, logarithmic=logarithmic, state=("V", "V"), logarithmic_over=True,
                over_name="frequency", decibels=name in _AMPLITUDES,
            )  # fmt: skip
        else:
            for curve in curves:
                if curve in lines:
                    horizontal = f"{over}{suffix(curve)}"
                    yield Drawing(
                        f"{title}, {curve}",
                        {curve: lines[curve]},
                        over=horizontal,
                        unit=unit,
                        state=("V", "V"),
                        ordered=True,
                        equal=True,
                        over_name="Re Z",
                    )
