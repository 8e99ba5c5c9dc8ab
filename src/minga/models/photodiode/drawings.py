"""Drawings of a device for pictures and reports: curves over the voltage, and profiles at the last voltage."""

from __future__ import annotations

from collections.abc import Sequence

from minga.engine.drawing import Drawing, Span
from minga.engine.model import Model
from minga.models.photodiode.bands import BANDS
from minga.models.photodiode.solver.problem import Curve, suffix
from minga.models.photodiode.structure.device import Device

__all__ = ["LEVELS", "drawings_of"]

LEVELS = ("Ec", "Ev", "Fn", "Fp")
"""Labels of the bands, in the order of `BANDS`."""


def drawings_of(model: Model, device: Device, curves: Sequence[Curve]) -> tuple[Drawing, ...]:
    """Return drawings of current, gain and capacitance over V, and of bands, field and carriers over depth."""
    spans = tuple(Span(layer.name, 1e4 * layer.start, 1e4 * layer.end) for layer in device.layers)
    seen, fields = set(model.observables), {item.name for item in model.fields}
    found = []
    lines: dict[str, str] = {curve: f"J{suffix(curve)}" for curve in curves if f"J{suffix(curve)}" in seen}
    found.append(Drawing("Current density", lines, over="V", unit="|J|, A/cm2", logarithmic=True))
    if "gain" in seen:
        found.append(Drawing("Gain", {"gain": "gain"}, over="V", unit="M"))
    lines = {c: f"C_quasistatic{suffix(c)}" for c in curves if f"C_quasistatic{suffix(c)}" in seen}
    found.append(Drawing("Quasi-static capacitance", lines, over="V", unit="F/cm2"))
    state: Curve = "lit" if "lit" in curves else "dark"
    end = suffix(state)
    field = "field" if device.grid.ndim == 1 else f"field_{device.grid.axes[0]}"
    profiles: tuple[tuple[str, dict[str, str], str, bool], ...] = (
        ("Bands", {label: f"{name}{end}" for label, name in zip(LEVELS, BANDS)}, "eV", False),
        ("Field", {curve: f"{field}{suffix(curve)}" for curve in curves}, "V/cm", False),
        ("Carriers", {"electrons": f"electrons{end}", "holes": f"holes{end}"}, "1/cm3", True),
    )
    for title, names, unit, logarithmic in profiles:
        if fields.issuperset(names.values()):
            words = title if title == "Field" else f"{title}, {state}"
            at = ("V", "V") if "V" in seen else None
            found.append(Drawing(words, names, unit=unit, logarithmic=logarithmic, spans=spans, state=at))
    return tuple(d for d in found if d.lines)
