"""Review of a run: gains near breakdown, those of the currents against those of the profile, and the linear solver."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from minga.engine.diagnostics import Finding
from minga.models.photodiode.solver.noise import noise_method
from minga.models.photodiode.solver.problem import Problem, suffix
from minga.models.photodiode.structure.device import Device

__all__ = ["APART", "STEEP", "of_factors", "of_gains", "of_search", "review_of"]

APART: Final = 0.02
"""Relative difference of both gains from which on a finding is due."""
STEEP: Final = 50.0
"""Gain from which on an error of the ionisation by 0.001 changes it by 5 % and more."""
CHANGED: Final = {
    "iv": "it",
    "cv": "it and the admittance",
    "ac": "it, the admittance and the response to light",
    "qe": "it and QE",
    "noise": "gain and F",
    "transient": "it and the times of response",
}
"""Results that an error of the ionisation changes, by mode."""

Review = Callable[[Mapping[str, Any], Mapping[str, Any]], Finding | None]


def review_of(device: Device, problem: Problem) -> Review | None:
    """Return the function that reviews the last gains of a run with ionisation; None: they are no result of it."""
    if not problem.ionisation or problem.scheme == "pointwise":
        return None
    if problem.mode == "noise":
        return _of_noise(device, problem)
    # Where currents are imposed, they determine the gain.
    if problem.current:
        return None
    return of_gains(("gain",) if problem.gain else tuple(f"M{suffix(curve)}" for curve in problem.curves), problem.mode)


def of_gains(names: Sequence[str], mode: str) -> Review:
    """Return the review of gains, the observables `names`; a run that reached breakdown gives its voltage instead."""

    def review(first: Mapping[str, Any], last: Mapping[str, Any]) -> Finding | None:
        steep = next((name for name in names if float(last[name]) > STEEP), None)
        if steep is None or math.isfinite(float(last.get("breakdown", math.nan))):
            return None
        return _steep(float(last["V"]), steep, float(last[steep]), mode)

    return review


def of_search(further: Review | None) -> Review:
    """Return the review of a search for breakdown: a search that ends without one says so."""

    def review(first: Mapping[str, Any], last: Mapping[str, Any]) -> Finding | None:
        if math.isnan(float(last.get("breakdown", math.nan))):
            bias = float(last["V"])
            return Finding(
                f"no breakdown up to {bias:g} V, the end of the search; write [photodiode.breakdown] to = {2 * bias:g} "
                "to continue",
                {"breakdown": "nan"},
            )
        return None if further is None else further(first, last)

    return review


def of_factors(observables: Collection[str], further: Review | None) -> Review | None:
    """Return the review of the linear solver, if the observables are about it, and a further one where it is well."""
    if "factorised" not in observables:
        return further

    def review(first: Mapping[str, Any], last: Mapping[str, Any]) -> Finding | None:
        if float(last.get("factorised", 0.0)) > 0.0:
            return Finding(
                "the iterations of krylov did not solve a linear system, and sparse factors on rank 0 solved it and "
                'all after it; write photodiode.linear = "sparse", which saves the attempt',
                {"factorised": "1"},
            )
        return None if further is None else further(first, last)

    return review


def _of_noise(device: Device, problem: Problem) -> Review:
    """Return the review of gain and noise by the profile of the field or the adjoint of the current."""
    both = problem.gain and noise_method(problem, device.grid) == "profile"
    names = tuple(f"M_local{suffix(curve)}" for curve in problem.curves)

    def review(first: Mapping[str, Any], last: Mapping[str, Any]) -> Finding | None:
        bias = float(last["V"])
        for name in names:
            local = float(last[name])
            if both and abs(local - float(last["gain"])) > APART * abs(local):
                return _apart(bias, name, local, float(last["gain"]))
            if local > STEEP:
                return _steep(bias, name, local, problem.mode)
        return None

    return review


def _apart(bias: float, name: str, local: float, gain: float) -> Finding:
    return Finding(
        f"at {bias:g} V the gain of the currents is {gain:.4g}, but that of the profile of the field, {name}, is "
        f"{local:.4g}: the mesh is too coarse for gain and F so close to breakdown, or the light changes the field; "
        "refine [photodiode.mesh], or lower the light",
        {"gain": f"{gain:.6g}", name: f"{local:.6g}"},
    )


def _steep(bias: float, name: str, local: float, mode: str) -> Finding:
    known = "gain" if name == "gain" else f"gain {name}"
    return Finding(
        f"at {bias:g} V the {known} is {local:.4g}: so close to breakdown, an error of the ionisation by 0.001 "
        f"changes {CHANGED[mode]} by {0.1 * local:.2g} %; compare with a finer [photodiode.mesh]",
        {name: f"{local:.6g}"},
    )
