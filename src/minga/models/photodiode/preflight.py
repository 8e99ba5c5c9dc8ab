"""Notes on a device before a run starts: its rows, built-in voltage and mesh resolution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.models.photodiode.boundary_notes import boundary_notes
from minga.models.photodiode.solver.linear import description_of
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.barrier import tunnelling_energy
from minga.models.photodiode.structure.constants import CHARGE
from minga.models.photodiode.structure.depletion import Depletion, built_in_voltage, column, debye_lengths
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.illumination import Illumination, Spectrum
from minga.models.photodiode.structure.optics import photon_flux
from minga.models.photodiode.structure.stack import LayerOf, Light

__all__ = ["drift_notes", "notes_of"]

Notes = Iterator[tuple[str, str]]
COARSE: Final = 1.01
"""Pairs generated over photons absorbed, beyond which a mesh is reported as too coarse for the light."""
FASTEST: Final = 1e7
"""Drift velocity, cm/s, beyond which mobilities without saturation are reported: about where those of materials are."""


def notes_of(device: Device, problem: Problem, spectrum: Spectrum | None = None) -> Notes:
    """Yield the notes as pairs of a label and its text."""
    yield from _layers(device)
    yield from _temperature(device, problem, spectrum)
    yield from _mesh(device)
    yield from boundary_notes(device)
    yield from _light(device, problem)
    yield from _spectrum(device, spectrum)
    if all(t.kind == "ohmic" for t in device.terminals):
        yield "built-in voltage", f"{built_in_voltage(device):.5f} V"
        yield from _depletion(device, problem)
    yield from _barriers(device)
    yield from _tunnelling(device)
    if (space := problem.dead_space) is not None:
        yield "dead space", f"electrons ionise after {space.electrons:g} eV, holes after {space.holes:g} eV"
    yield from _narrowing(device)
    yield from _solved(device, problem)
    if problem.frequencies:
        first, last = min(problem.frequencies), max(problem.frequencies)
        yield (
            "frequencies",
            f"{len(problem.frequencies)}, {first:g} to {last:g} Hz" if last > first else f"{first:g} Hz",
        )


def _layers(device: Device) -> Notes:
    """Yield the rows, depth, material and doping of each layer."""
    doping = column(device, device.doping)
    for layer in device.layers:
        inside = _inside(layer, doping)
        rows = f"rows {layer.first + 1}-{layer.last + 1}"
        depth = f"{1e4 * layer.start:.4g}-{1e4 * layer.end:.4g} um"
        yield f"layer {layer.name}", f"{rows}, {depth}, {layer.material}, {_doped(inside)}"


def _doped(values: Sequence[float] | np.ndarray) -> str:
    first, last = float(values[0]), float(values[-1])
    said = [f"{'p' if v < 0 else 'n'} {abs(v):.3g}" if v else "undoped" for v in (first, last)]
    return said[0] if np.isclose(first, last, rtol=1e-9, atol=0.0) else f"{said[0]} to {said[1]}"


def _temperature(device: Device, problem: Problem, spectrum: Spectrum | None) -> Notes:
    """Yield the quantities that keep their values at 300 K although the temperature is another one."""
    if device.temperature == 300.0:
        return
    kinds = {kind: of for kind, of in device.unheated.items() if kind != "ionisation" or problem.ionisation}
    if spectrum is not None:
        kinds["absorption"] = ()
    still = "; ".join(f"{kind} of {', '.join(of)}" if of else kind for kind, of in kinds.items())
    yield "temperature", f"{device.temperature:g} K" + (f"; values at 300 K used for: {still}" if still else "")


def _mesh(device: Device) -> Notes:
    """Yield the mesh spacing, and its ratio to the Debye length on either side of each boundary between layers."""
    lengths = device.lengths[0][1:-1]
    range_ = f"{1e7 * lengths.min():.3g} nm" + (
        "" if np.allclose(lengths, lengths[0]) else f" to {1e7 * lengths.max():.3g} nm"
    )
    across = f", {len(device.nodes[1])} columns" if len(device.nodes) > 1 else ""
    yield "mesh", f"{len(device.nodes[0]):,} nodes, {range_} apart{across}"
    debye = debye_lengths(device)
    ratios = [
        (float(lengths[min(node, lengths.size - 1)] / debye[node]), layer, node)
        for k, layer in enumerate(device.layers)
        for node, inner in ((layer.first + 1, k > 0), (layer.last - 1, k < len(device.layers) - 1))
        if inner and layer.last - layer.first > 1
    ]
    if not ratios:
        return
    ratio, layer, node = max(ratios, key=lambda item: item[0])
    said = (
        f"{1e7 * debye[node]:.3g} nm next to the boundary of {layer.name}, where nodes are {ratio:.2g} "
        "Debye lengths apart"
        if ratio <= 1
        else f"{1e7 * debye[node]:.3g} nm in {layer.name}, less than the spacing of its nodes: refine the mesh there"
    )
    yield "Debye length", said


def _light(device: Device, problem: Problem) -> Notes:
    current = CHARGE * float((device.generation * device.volumes).sum()) / _section(device)
    if device.light is None and current == 0.0:
        return
    names = [layer.name for layer in device.layers if _inside(layer, device.generation).any()]
    lit = "" if "lit" in problem.curves else "; no curve is lit"
    if device.light is None:
        yield "light", f"pairs of a table, in {', '.join(names)}: primary photocurrent {current:.4g} A/cm2{lit}"
        return
    lit += _coarse(device, device.light, current)
    entry = f"{device.light.wavelength:g} nm from {_side(device.light)}{_lit_part(device)}"
    yield "light", f"{entry}, absorbed in {', '.join(names)}: primary photocurrent {current:.4g} A/cm2{lit}"
    if device.illumination is not None:
        yield "optics", _optics(device, device.illumination)


def _inside(layer: LayerOf, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values at the nodes of a layer whose volumes lie in it as a whole, if there are any."""
    return (
        values[layer.first + 1 : layer.last] if layer.last > layer.first + 1 else values[layer.first : layer.last + 1]
    )


def _side(light: Light) -> str:
    return f"the {light.side}'s side" if light.side in ("anode", "cathode") else f"the {light.side}"


def _spectrum(device: Device, spectrum: Spectrum | None) -> Notes:
    """Yield the wavelengths of quantum efficiencies, and where the light goes at the one that is absorbed most."""
    if spectrum is None:
        return
    absorbed = [sum(item.layers) for item in spectrum.illuminations]
    best = int(np.argmax(absorbed))
    count, first, last = len(absorbed), min(spectrum.wavelengths), max(spectrum.wavelengths)
    yield "wavelengths", f"{count}, {first:g} to {last:g} nm" if count > 1 else f"{first:g} nm"
    yield f"at {spectrum.wavelengths[best]:g} nm", _optics(device, spectrum.illuminations[best])


def _coarse(device: Device, light: Light, current: float) -> str:
    """Return a warning if the volumes of nodes are too large for the light, which is absorbed at their middle.

    With two axes, the column that absorbs most is the limit.
    """
    flux = photon_flux(light.power, light.wavelength) if light.flux is None else light.flux
    absorbed = (
        CHARGE * flux * device.lit_section * (1.0 - portable.exp(-float(np.max(_heights(device) @ device.absorption))))
    )
    if device.illumination is not None or current < COARSE * absorbed:
        return ""
    return f", {100 * (current / absorbed - 1):.2g} % too large: refine the mesh where the light enters"


def _optics(device: Device, light: Illumination) -> str:
    """Return where the light goes, in per cent."""
    films = [(f"coating {k + 1}", share) for k, share in enumerate(light.coatings)]
    layers = [(layer.name, share) for layer, share in zip(device.layers, light.layers, strict=True)]
    parts = [*films, *layers, ("the substrate", light.substrate)]
    absorbed = [f"{100 * share:.3g} % in {name}" for name, share in parts if share > 0.0]
    return (
        f"{100 * light.reflected:.3g} % reflected, {100 * light.transmitted:.3g} % transmitted, "
        f"absorbed: {', '.join(absorbed)}"
    )


def _lit_part(device: Device) -> str:
    """Return the area of light on a part of a side, or on another side."""
    if device.lit_section == 1.0:
        return ""
    return f", on {100 * device.lit_section:.4g} % of the area of the device"


def _section(device: Device) -> float:
    """Return the cross section to which currents refer: 1 with one axis, cm or cm2 with two."""
    return float(device.areas[0][1].sum())


def _heights(device: Device) -> np.ndarray:
    return device.volumes if device.volumes.ndim == 1 else device.volumes[:, 0] / device.areas[0][1, 0]


def _barriers(device: Device) -> Notes:
    """Yield E00 of the Schottky contacts through which carriers tunnel."""
    for terminal in device.terminals:
        if terminal.tunnelling_mass is None:
            continue
        row, columns = (place[0] for place in (np.nonzero(terminal.nodes)[0], np.nonzero(terminal.nodes)[-1]))
        inner = 1 if row == 0 else int(row) - 1
        node = (inner,) if device.doping.ndim == 1 else (inner, int(columns))
        density = abs(float(device.doping[node]))
        energy = 1e3 * tunnelling_energy(density, terminal.tunnelling_mass, float(device.permittivity[node]))
        kind = "tunnel through" if energy > 500.0 * device.thermal_voltage else "are mostly emitted over"
        yield (
            f"barrier at {terminal.name}",
            f"E00 {energy:.3g} meV beside kT {1e3 * device.thermal_voltage:.3g} meV: carriers {kind} the barrier",
        )


def _narrowing(device: Device) -> Notes:
    """Yield the materials whose gap dopants narrow, and by how much; and those of which that is unknown."""
    if device.narrowing is None:
        return
    values = column(device, device.narrowing)
    layers = [(layer.material, values[layer.first : layer.last + 1].max()) for layer in device.layers]
    known = {name: max(v for other, v in layers if other == name) for name, _ in layers}
    said = [f"up to {1e3 * v:.3g} meV in {name}" if v else f"unknown of {name}" for name, v in known.items()]
    yield "gap narrowing", ", ".join(said)


def _tunnelling(device: Device) -> Notes:
    """Yield the sets of band-to-band tunnelling in use."""
    if device.tunnelling is not None and device.tunnelling.names:
        yield "tunnelling", "from band to band by " + ", ".join(f"{s} in {m}" for m, s in device.tunnelling.names)


def _depletion(device: Device, problem: Problem) -> Notes:
    """Yield fields, depletion widths and breakdown in the depletion approximation."""
    depletion = Depletion.of(device)
    lowest = min(problem.bias, default=0.0)
    if depletion is None or lowest > 0:
        return
    fields = depletion.field_at(lowest)
    place = int(np.argmax(fields))
    doping = np.abs(column(device, device.doping))
    node = place if doping[place] < doping[place + 1] else place + 1
    name = next(layer.name for layer in device.layers if layer.first <= node <= layer.last)
    depleted = np.flatnonzero(fields > 0)
    reach = device.nodes[0][depleted[[0, -1]] + [0, 1]] * 1e4
    depth = f"{reach[0]:.3g} to {reach[1]:.3g} um"
    yield "field", f"up to about {fields.max():.3g} V/cm at {lowest:g} V, in {name}; depleted from {depth}"
    for number in _absorbers(device):
        at = depletion.reaches(number, strength=problem.punch_through)
        if at is not None and at < 0:
            yield "punch-through", f"the field reaches {device.layers[number].name} at about {at:.3g} V"
    if problem.ionisation:
        found = depletion.breakdown()
        beyond = ", which the run exceeds" if found is not None and lowest < found else ""
        if found is not None:
            yield "breakdown", f"at about {found:.3g} V, where the ionisation integral is 1{beyond}"


def drift_notes(device: Device, bias: float) -> Notes:
    """Yield the drift velocity at a bias if it is too high for carriers, because mobilities ignore the field.

    Parameters
    ----------
    device
        The device.
    bias
        Bias of the strongest field, V.

    Yields
    ------
    tuple of two str
        The label and the text of the note.
    """
    depletion = Depletion.of(device) if all(t.kind == "ohmic" for t in device.terminals) else None
    if device.field_mobility or depletion is None or bias > 0:
        return
    fields = depletion.field_at(bias)
    names = {"electrons": device.mobility_n, "holes": device.mobility_p}
    fastest = {}
    for name, mobility in names.items():
        along = column(device, mobility)
        fastest[name] = float((fields * np.minimum(along[:-1], along[1:])).max())
    name = max(fastest, key=lambda each: fastest[each])
    if fastest[name] > FASTEST:
        yield "drift", _too_fast(name, fastest[name], bias)


def _too_fast(name: str, velocity: float, bias: float) -> str:
    return (
        f"up to {velocity:.2g} cm/s of {name} at {bias:g} V, as mobilities do not depend on the field: "
        'responses are too fast; mobility = "field" or "doping-field" has velocities that saturate'
    )


def _absorbers(device: Device) -> list[int]:
    """Return the numbers of the absorbing layers, in devices of several materials; of contact layers if no other is."""
    if len({layer.material for layer in device.layers}) == 1:
        return []
    found = [k for k, layer in enumerate(device.layers) if _inside(layer, device.absorption).any()]
    return [k for k in found if 0 < k < len(device.layers) - 1] or found


def _solved(device: Device, problem: Problem) -> Notes:
    steps, unit = (problem.bias, "V") if problem.bias else (problem.current, "A/cm2")
    span = f"{steps[0]:g} to {steps[-1]:g} {unit}" if len(steps) > 1 else f"{steps[0]:g} {unit}"
    what = "voltage" if problem.bias else "current"
    solutions = len(steps) * len(problem.curves) * (2 if problem.gain else 1)
    count = f"{len(steps)} {what}{'s' if len(steps) > 1 else ''}, {span}, {' and '.join(problem.curves)}"
    unknowns = f"{solutions} solutions of {3 * device.doping.size:,} unknowns by {problem.scheme}"
    yield "solved for", f"{count}: {unknowns}"
    if device.grid.ndim == 2 and problem.scheme == "newton":
        yield "linear systems", description_of(problem.linear, device)
