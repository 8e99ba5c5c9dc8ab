"""Review of a run's gains: those of the currents against those of the profile, whose sums along edges are exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from minga.engine.diagnostics import Finding
from minga.models.photodiode.solver.noise import noise_method
from minga.models.photodiode.solver.problem import Problem, suffix
from minga.models.photodiode.structure.device import Device

__all__ = ["APART", "review_of"]

APART: Final = 0.02
"""Relative difference of both gains from which on a finding is due."""

Review = Callable[[Mapping[str, Any], Mapping[str, Any]], Finding | None]


def review_of(device: Device, problem: Problem) -> Review | None:
    """Return the function that reviews the last gains of a run, if it computes both."""
    if problem.mode != "noise" or not (problem.gain and problem.ionisation):
        return None
    if noise_method(problem, device.grid) != "profile":
        return None
    names = tuple(f"M_local{suffix(curve)}" for curve in problem.curves)

    def review(first: Mapping[str, Any], last: Mapping[str, Any]) -> Finding | None:
        gain = float(last["gain"])
        for name in names:
            local = float(last[name])
            if gain > 0.0 and abs(local / gain - 1.0) > APART:
                return Finding(
                    f"at {float(last['V']):g} V the gain of the currents is {gain:.4g}, but that of the profile of the "
                    f"field, {name}, is {local:.4g}: the mesh is too coarse for gain and F so close to breakdown, or "
                    "the light changes the field; refine [photodiode.mesh], or lower the light",
                    {"gain": f"{gain:.6g}", name: f"{local:.6g}"},
                )
        return None

    return review
