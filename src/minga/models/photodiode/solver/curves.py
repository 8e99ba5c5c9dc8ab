"""Curves of a problem: their solvers and their states, and the recorder of the way to the next voltage."""

from __future__ import annotations

from typing import Final

from minga.models.photodiode.solver.biasing import Biasing, Track
from minga.models.photodiode.solver.capacitance import Capacitance
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.solver.gummel import Gummel, rescue_of
from minga.models.photodiode.solver.newton import Newton
from minga.models.photodiode.solver.probes import middle_edge
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.solver.state import State
from minga.models.photodiode.structure.device import Device

__all__ = ["biasing_of"]

GUMMEL_TOLERANCE: Final = 1e-8
"""Tightest tolerance of the Gummel scheme, kT/q."""
GUMMEL_ROUNDS: Final = 10
"""Gummel iterations per allowed iteration of Newton's method."""


def biasing_of(coefficients: Coefficients, problem: Problem) -> Biasing:
    """Return the recorder of a problem's curves; with gain, those without ionisation come last."""
    device = coefficients.device
    names = {True: "newton", False: "newton without ionisation"}
    newtons = {
        on: Newton(
            coefficients, on, problem.tolerance, problem.limit, names[on], problem.linear,
            space=problem.dead_space if on else None,
        )
        for on in dict.fromkeys((problem.ionisation, problem.ionisation and not problem.gain))
    }  # fmt: skip
    gummels = {on: _gummel(newton, problem) for on, newton in newtons.items()}
    alone = problem.scheme == "gummel"
    tracks = tuple(
        Track(
            curve,
            on,
            gummels[on] if alone else newtons[on],
            State(device.grid, curve if on == problem.ionisation else f"{curve} alone"),
            None if alone else gummels[on],
        )
        for on in newtons
        for curve in problem.curves
    )
    main = tuple(track for track in tracks if track.ionisation == problem.ionisation)
    capacitance = Capacitance(main) if problem.quasistatic_capacitance else None
    return Biasing(coefficients, problem, tracks, _middle(device), capacitance)


def _gummel(newton: Newton, problem: Problem) -> Gummel:
    """Return the Gummel iteration, either as the scheme itself or as a fallback for Newton's method."""
    if problem.scheme != "gummel":
        return rescue_of(newton)
    # Densities carry fewer significant digits than differences of quasi-Fermi potentials.
    tolerance = max(problem.tolerance, GUMMEL_TOLERANCE)
    return Gummel(newton, tolerance, GUMMEL_ROUNDS * problem.limit, f"gummel of {newton.name}", steady=True)


def _middle(device: Device) -> int | None:
    """Return the edge in the middle of the layer in which light generates most pairs; None if there is none."""
    made = device.generation * device.volumes
    found = [(float(made[layer.first : layer.last + 1].sum()), layer) for layer in device.layers]
    best = max(found, key=lambda item: item[0], default=None)
    if best is None or best[0] == 0.0 or best[1].first == best[1].last:
        return None
    return middle_edge(best[1])
