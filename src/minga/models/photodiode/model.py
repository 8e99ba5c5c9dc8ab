"""Model of a device and the problem to be solved for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from minga.engine.model import Model, Over
from minga.engine.program import Program
from minga.errors import CaseError
from minga.models.photodiode.pointwise.scheme import pointwise
from minga.models.photodiode.review import of_factors, review_of
from minga.models.photodiode.solver.analysis import analyses_of, check_analysis, tables_of_analyses
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.solver.collection import Collection
from minga.models.photodiode.solver.curves import biasing_of
from minga.models.photodiode.solver.failures import breakdown_words, explainer
from minga.models.photodiode.solver.linear import check_contacts, check_linear, factorised, hierarchies_of
from minga.models.photodiode.solver.observe import RENAMED_OBSERVABLES, Pictures, record_observables
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.illumination import Spectrum
from minga.models.photodiode.units import units_of
from minga.space.field import Field

__all__ = ["photodiode"]


def photodiode(device: Device, problem: Problem, spectrum: Spectrum | None = None) -> Model:
    """Return the Model of a device; each step of a run solves one voltage of `problem.bias`.

    Observables: V, J and J_lit (A/cm2), gain, C_quasistatic and C_quasistatic_lit (dQ/dV, F/cm2), uniformity, E_max
    (V/cm), M (the current divided by the current that remains without the pairs made by ionisation), iterations,
    E_<layer> (V/cm, in the middle of the layer), punch_through and breakdown (V); and those of `problem.mode`.

    Parameters
    ----------
    device
        The device.
    problem
        Voltages, physics and accuracy.
    spectrum
        Light whose quantum efficiencies are wanted, for mode "qe" only; each step of a run then stands for one of its
        wavelengths at one voltage, so that their number replaces `problem.repeats`.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    CaseError
        If the problem cannot be solved as stated.
    """
    if (spectrum is None) == (problem.mode == "qe"):
        raise CaseError(
            'mode = "qe" without a spectrum' if spectrum is None else f"a spectrum in mode {problem.mode!r}",
            key="photodiode.mode",
            remedy='give both: photodiode(device, Problem(..., mode="qe"), spectrum_of(...))',
        )
    if spectrum is not None:
        problem = replace(problem, repeats=len(spectrum.wavelengths))
    check_linear(problem.linear, device.grid, problem.scheme)
    check_analysis(device, problem)
    check_contacts(problem.linear, device, problem.scheme)
    if problem.scheme == "pointwise":
        return pointwise(device, problem)
    _check_spectrum(device, spectrum)
    coefficients = Coefficients(device)
    biasing = biasing_of(coefficients, problem)
    tracks, main, capacitance = biasing.tracks, biasing.main, biasing.capacitance
    step, observe = Program("step"), Program("observe")
    biasing.record(step)
    analyses = analyses_of(device, problem, main)
    for analysis in analyses:
        analysis.record(step)
    observables, columns = record_observables(observe, biasing)
    observables |= factorised(observe, [newton.lines for newton in biasing.newtons])
    for analysis in analyses:
        observables |= analysis.observed
    tables = {"iv": columns, **tables_of_analyses(problem, analyses)}
    pictures = [Pictures(track) for track in main]
    for item in pictures:
        item.record(step, biasing)
    own: tuple[Field, ...] = tuple(f for item in pictures for f in item.fields)
    collection = None if spectrum is None else Collection(biasing, spectrum)
    if collection is not None:
        collection.record(step)
        seen = collection.observe(observe, [layer.name for layer in device.layers])
        observables |= seen
        own = (*own, collection.probability)
        tables = {"qe": (*columns, *seen)}
    initial: dict[Any, Any] = dict(coefficients.values)
    return Model(
        name="photodiode",
        grid=device.grid,
        fields=(
            *own,
            *biasing.fields,
            *(item for analysis in analyses for item in analysis.fields),
            *(() if collection is None else collection.fields),
            *coefficients.fields,
        ),
        step=step,
        initial=initial,
        output=tuple(item.name for item in own),
        observe=observe,
        observables=observables,
        units=units_of(observables),
        registers=biasing.registers,
        parameters=_parameters(device, problem),
        steps=problem.steps,
        explain=explainer(biasing),
        over=Over(tracks[0].broken, breakdown_words(biasing)) if problem.ionisation else None,
        review=of_factors(observables, review_of(device, problem)),
        tables=tables,
        former={}
        if capacitance is None
        else {old: new for old, new in RENAMED_OBSERVABLES.items() if new in observables and old not in observables},
        hierarchies=tuple(item for newton in biasing.newtons for item in hierarchies_of(newton.lines)),
    )


def _check_spectrum(device: Device, spectrum: Spectrum | None) -> None:
    """Check that the light of a spectrum was computed for all axes of the device."""
    for item in () if spectrum is None else spectrum.illuminations:
        if item.nodes.shape != device.doping.shape:
            raise CaseError(
                f"a spectrum on {item.nodes.shape} nodes, and a device of {device.doping.shape}",
                key="spectrum",
                remedy="pass the meshes of the device to spectrum_of, `across` for two axes",
            )


def _parameters(device: Device, problem: Problem) -> dict[str, object]:
    return {
        "layers": {layer.name: layer.material for layer in device.layers},
        "bias": list(problem.bias), "current": list(problem.current), "curves": list(problem.curves),
        "ionisation": problem.ionisation,
        "gain": problem.gain, "scheme": problem.scheme, "statistics": device.statistics,
        "temperature": device.temperature, "emission": bool(device.emission), "tolerance": problem.tolerance,
    }  # fmt: skip
