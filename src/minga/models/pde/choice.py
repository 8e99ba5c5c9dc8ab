"""The integrator of a model, the length of its steps, and what users should know of both before the start."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Any, Final

from minga.engine.engine import Engine
from minga.errors import MingaError, ProgramError, RunError, shown
from minga.models.pde.sides import sides
from minga.models.pde.system import System
from minga.solve.integrators import INTEGRATORS, Integrator, Recorded, integrator
from minga.solve.integrators.imex import LIMIT
from minga.solve.jacobian import differences
from minga.solve.rates import Rates
from minga.solve.split import split
from minga.solve.stability import Bounds, largest_rates, stable_step
from minga.space.field import TIME, Field

__all__ = ["choose", "explainer"]

Notes = tuple[tuple[str, str], ...]

_SAFETY: Final = 0.9
_MOST_CELLS: Final = 1 << 22
"""Cells of the largest grid on which the stable step is looked for, since every rank does so on the whole grid."""
_STIFF: Final = 1e4
"""Ratio of the fastest to the slowest rate from which an implicit method that chooses its steps needs less work."""


def choose(
    name: str,
    dt: float | None,
    system: System,
    rates: Rates | None,
    fields: Sequence[Field],
    values: Mapping[str, Any],
) -> tuple[Integrator, float | None, Notes]:
    """Return the integrator, the length of its steps, and notes on both.

    Parameters
    ----------
    name
        Name of the integrator, or "auto".
    dt
        Length of steps, if it is given.
    system
        The equations.
    rates
        Their rates of change; None if derivatives are spectral, of which nothing is known before the start.
    fields
        The fields.
    values
        Initial values by field.

    Returns
    -------
    tuple
        The integrator, the length of steps (None if the method chooses all of them), and the notes.

    Raises
    ------
    ProgramError
        If there is no such integrator, or `dt` is not a length and none is known.
    """
    if dt is not None and not (isinstance(dt, int | float) and 0 < dt < math.inf):
        raise ProgramError(f"dt={shown(dt)}", remedy="give a positive number, such as dt=0.01")
    linearised = _Linearised(rates, fields, values)
    name, reason = _automatic(linearised, dt, bool(system.noise)) if name == "auto" else (name, "")
    method = integrator(name)
    if dt is not None:
        method = method.with_given_steps()
    because = f" (automatic: {reason})" if reason else ""
    if method.adaptive:
        return method, dt, (("integrator", f"{name}, which chooses its steps{because}"),)
    limit = linearised.limit(method)
    if dt is None:
        dt = _default_step(method, limit, fields)
    notes = [("integrator", f"{name}, dt = {dt:g}{because}")]
    if method.split and rates is not None and rates.prepare is None:
        notes += zip(("implicit", "explicit"), sides(system, rates, fields), strict=True)
    if limit is not None and math.isfinite(limit):
        said = f"{limit:.3g} at the start" + (" for the explicit part" if method.split else "")
        notes.append(("stable step", said + (f": dt = {dt:g} may be too long" if dt > 2.0 * limit else "")))
    return method, dt, tuple(notes)


def _default_step(method: Integrator, limit: float | None, fields: Sequence[Field]) -> float:
    """Return a step that is safely stable; raise ProgramError if none is known."""
    if limit is None or not math.isfinite(limit):
        raise ProgramError(
            f"no stable step of {method.name!r} is known for these equations on {fields[0].grid.size} cells",
            remedy="give dt=, or another integrator: bs3, dp5 and tr-bdf2 choose their steps",
        )
    step = _SAFETY * limit
    unit = Decimal(10) ** (Decimal(step).adjusted() - 1)
    return float(Decimal(step).quantize(unit, rounding=ROUND_FLOOR))


class _Linearised:
    """Bounds of the rates at the initial values, each computed when it is first needed."""

    def __init__(self, rates: Rates | None, fields: Sequence[Field], values: Mapping[str, Any]) -> None:
        self.rates, self.fields, self.values = rates, fields, values
        self._known: dict[str, Bounds | None] = {}

    def bounds(self, part: str = "all") -> Bounds | None:
        """Return bounds of the eigenvalues of all rates, or of the "linear" part or the "rest"; None if unknown."""
        if part not in self._known:
            self._known[part] = self._bounds(part)
        return self._known[part]

    def _bounds(self, part: str) -> Bounds | None:
        if self.fields[0].grid.size > _MOST_CELLS or self.rates is None:
            return None
        rates = self.rates if part == "all" else split(self.rates)[part == "rest"]
        return largest_rates(rates, self.fields, self.values)

    def limit(self, method: Integrator) -> float | None:
        """Return the longest stable step of a method; None if it is unknown."""
        found = self.bounds("rest" if method.split else "all")
        return None if found is None else stable_step(method, found)

    @property
    def solvable(self) -> bool:
        """True if linear systems of changes of the fields can be solved."""
        if self.rates is None or self.rates.prepare is not None:
            return False
        try:
            differences(self.fields, "change")
        except MingaError:
            return False
        return True

    @property
    def separable(self) -> bool:
        """True if a linear part reads neighbouring cells."""
        try:
            return self.bounds("linear") is not None
        except ProgramError:
            return False


def _automatic(linearised: _Linearised, dt: float | None, noise: bool) -> tuple[str, str]:
    """Return the name of the integrator that suits the rates at the start, and the reason."""
    if noise:
        return "euler-maruyama", "there is noise"
    if dt is None:
        return _choosing(linearised)
    limit = linearised.limit(INTEGRATORS["rk4"])
    if limit is None:
        return "rk4", "the stable step is not known"
    if dt <= limit:
        return "rk4", f"explicit steps are stable up to {limit:.3g}"
    if not linearised.solvable:
        return "rk4", "linear systems need fields of f8 and conditions that can be linearised"
    if linearised.separable:
        part = linearised.limit(INTEGRATORS["ars443"])
        if part is not None and dt <= part:
            said = f"up to {part:.3g}" if math.isfinite(part) else "of any length"
            return "ars443", f"explicit steps are stable up to {limit:.3g}, with an implicit linear part {said}"
    return "tr-bdf2", f"explicit steps are stable up to {limit:.3g}"


def _choosing(linearised: _Linearised) -> tuple[str, str]:
    """Return the method of those that choose their steps, and the reason: the ratio of the fastest to the slowest rate.

    The slowest is that of the rest of the rates beside the linear part, or of diffusion across the whole grid.
    """
    longest = max(linearised.fields[0].grid.shape)
    across = (0.5 * math.pi / longest) * (0.5 * math.pi / longest)
    if across * _STIFF > 1.0:
        return "bs3", f"rates on {longest} cells along an axis are not stiff"
    found = linearised.bounds()
    if found is None or not found.even or not linearised.solvable:
        return "bs3", "linear systems, or bounds of the rates, are not known" if found is None else "nothing diffuses"
    rest = linearised.bounds("rest") if linearised.separable else None
    ratio = found.even / max(across * found.even, 0.0 if rest is None else rest.total)
    return ("tr-bdf2" if ratio > _STIFF else "bs3"), f"stiffness ratio {ratio:.2g}, implicit from {_STIFF:.2g}"


def explainer(method: Integrator, recorded: Recorded) -> Callable[[Engine], RunError | None] | None:
    """Return the function that explains why a step failed; None for methods whose steps cannot.

    Parameters
    ----------
    method
        The integrator.
    recorded
        Its workspace.

    Returns
    -------
    callable or None
        A function of the engine, as `minga.Model` takes it.
    """
    wish = recorded.wish
    if wish is None and not recorded.failure and not recorded.solutions:
        return None

    def explain(engine: Engine) -> RunError | None:
        time = f"{method.name}: at time {float(engine.read(TIME)):.9g}"
        for each in recorded.solutions:
            count, residual = int(engine.read(each.iterations)), float(engine.read(each.residual))
            if not math.isfinite(residual):
                return RunError(
                    f"{time} values became infinite", remedy="give a shorter dt: the explicit part limits it"
                )
            if count >= LIMIT:
                left = math.sqrt(residual / float(engine.read(each.reference)))
                return RunError(
                    f"{time} the linear system of a stage is not solved after {count} iterations: {left:.2g} of the "
                    "residual is left",
                    remedy="give a shorter dt; growing waves of the linear part must not double within a step",
                )
        if recorded.solutions:
            return None
        if wish is None:
            return RunError(
                f"{time} {recorded.failure}",
                remedy="give a shorter dt, or leave dt out: the method then chooses its steps",
            )
        return RunError(
            f"{time} even a step of {float(engine.read(wish)):.3g} has too large an error",
            remedy="look at the last frames: does the solution become infinite, is the tolerance below rounding, or is "
            "a field zero but for rounding? Such a field needs absolute=, an error that steps may always have",
        )

    return explain
