"""Review of a run's gains: their sensitivity near breakdown, and those of the currents against those of the profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from minga.engine.diagnostics import Finding
from minga.models.photodiode.solver.noise import noise_method
from minga.models.photodiode.solver.problem import Problem, suffix
from minga.models.photodiode.structure.device import Device

__all__ = ["APART", "STEEP", "review_of"]

APART: Final = 0.02
"""Relative difference of both gains from which on a finding is due."""
STEEP: Final = 50.0
"""Gain from which on an error of the ionisation by 0.001 changes it by 5 % and more."""

Review = Callable[[Mapping[str, Any], Mapping[str, Any]], Finding | None]


def review_of(device: Device, problem: Problem) -> Review | None:
    """Return the function that reviews the last gains of a run with noise and ionisation."""
    if problem.mode != "noise" or not problem.ionisation:
        return None
    both = problem.gain and noise_method(problem, device.grid) == "profile"
    names = tuple(f"M_local{suffix(curve)}" for curve in problem.curves)

    def review(first: Mapping[str, Any], last: Mapping[str, Any]) -> Finding | None:
        bias = float(last["V"])
        for name in names:
            local = float(last[name])
            if both and abs(local - float(last["gain"])) > APART * abs(local):
                return _apart(bias, name, local, float(last["gain"]))
            if local > STEEP:
                return _steep(bias, name, local)
        return None

    return review


def _apart(bias: float, name: str, local: float, gain: float) -> Finding:
    return Finding(
        f"at {bias:g} V the gain of the currents is {gain:.4g}, but that of the profile of the field, {name}, is "
        f"{local:.4g}: the mesh is too coarse for gain and F so close to breakdown, or the light changes the field; "
        "refine [photodiode.mesh], or lower the light",
        {"gain": f"{gain:.6g}", name: f"{local:.6g}"},
    )


def _steep(bias: float, name: str, local: float) -> Finding:
    return Finding(
        f"at {bias:g} V the gain {name} is {local:.4g}: so close to breakdown, an error of the ionisation by 0.001 "
        f"changes gain and F by {0.1 * local:.2g} %; compare them with those of a finer [photodiode.mesh]",
        {name: f"{local:.6g}"},
    )
