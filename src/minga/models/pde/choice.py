"""The integrator of a model, the length of its steps, and what users should know of both before the start."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from typing import Any, Final

from minga.compile.portable import functions
from minga.engine.engine import Engine
from minga.errors import MingaError, ProgramError, RunError, shown
from minga.models.pde.sides import sides
from minga.models.pde.system import System
from minga.solve.ill_posed import backward_rate
from minga.solve.integrators import INTEGRATORS, Integrator, Recorded, integrator
from minga.solve.integrators.imex import LIMIT
from minga.solve.jacobian import differences
from minga.solve.rates import Rates
from minga.solve.split import split
from minga.solve.stability import Bounds, largest_rates, resolved_step, stable_step
from minga.space.field import TIME, Field

__all__ = ["Choice", "choose", "explainer"]

_SAFETY: Final = 0.9
_MOST_CELLS: Final = 1 << 22
"""Cells of the largest grid on which the stable step is looked for, since every rank does so on the whole grid."""
_IMPLICIT: Final = 150.0
"""Steps of an explicit method of three stages that take as long as one of an implicit method."""
_ROUNDING: Final = 1.0 + 1e-9


@dataclass(frozen=True, slots=True)
class Choice:
    """An integrator and its steps.

    Attributes
    ----------
    method
        The integrator.
    dt
        Length of its steps; None if the method chooses all of them.
    notes
        Facts that users should know before the start.
    warnings
        Sentences on what makes results doubtful.
    """

    method: Integrator
    dt: float | None
    notes: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...] = ()


def choose(
    name: str,
    dt: float | None,
    system: System,
    rates: Rates | None,
    fields: Sequence[Field],
    values: Mapping[str, Any],
    tolerance: float = 1e-6,
) -> Choice:
    """Return the integrator, the length of its steps, and what users should know of both.

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
    tolerance
        The largest error of steps that methods choose.

    Returns
    -------
    Choice
        The integrator, the length of steps, notes and warnings.

    Raises
    ------
    ProgramError
        If there is no such integrator, or `dt` is not a length and none is known.
    """
    if dt is not None and not (isinstance(dt, int | float) and 0 < dt < math.inf):
        raise ProgramError(
            f"dt={shown(dt)} is not the length of a step", remedy="give a positive number, such as dt=0.01"
        )
    linearised = _Linearised(rates, fields, values)
    name, reason = _automatic(linearised, dt, bool(system.noise), tolerance) if name == "auto" else (name, "")
    method = integrator(name)
    if dt is not None:
        method = method.with_given_steps()
    because = f" (automatic: {reason})" if reason else ""
    if method.adaptive:
        chosen = f"{name}, which chooses its steps{because}"
        return Choice(method, dt, (("integrator", chosen),), tuple(_ill_posed(linearised, False)))
    limit, resolved = linearised.limit(method), linearised.resolved(method)
    given = dt
    if dt is None:
        dt = _default_step(method, limit, resolved, fields)
    notes = [("integrator", f"{name}, dt = {dt:g}{because}")]
    if method.split and rates is not None and rates.prepare is None:
        notes += zip(("implicit", "explicit"), sides(system, rates, fields), strict=True)
    warnings = [*_ill_posed(linearised, True)]
    if limit is not None and math.isfinite(limit):
        said = f"{limit:.3g} at the start" + (" for the explicit part" if method.split else "")
        long = dt > limit * _ROUNDING
        notes.append(("stable step", said + (f": dt = {dt:g} may be too long" if long else "")))
        if long:
            warnings.append(_too_long(linearised, method, dt, said))
    elif limit is None and (growing := linearised.amplified(method, dt)):
        notes.append(("stable step", f"none: {growing}"))
        warnings.append(f"dt = {dt:g}: {growing}; use {_instead(method)}")
    if given is None and limit is not None and resolved < _SAFETY * limit:
        notes.append(("resolved step", f"{resolved:.3g}: uniform states turn or grow by about 0.3 within it at most"))
    return Choice(method, dt, tuple(notes), tuple(warnings))


def _too_long(linearised: _Linearised, method: Integrator, dt: float, limit: str) -> str:
    """Return the warning for a step that is longer than the stable one."""
    if linearised.turns(method, dt):
        return (
            f"dt = {dt:g} may be too long: oscillations grow with every step of {method.name}, by less than 0.1 % a "
            f"radian up to {limit}; give a shorter dt, or use {_instead(method)}"
        )
    return (
        f"dt = {dt:g} may be too long: {method.name} is stable up to {limit}. Results may grow without bound; give a "
        "shorter dt, or leave it out"
    )


def _instead(method: Integrator) -> str:
    return "ars443" if method.split else "rk4, ssprk3 or bs3"


def _ill_posed(linearised: _Linearised, known: bool) -> Iterator[str]:
    """Yield the warning that the shortest waves grow fastest, if that is found without another kernel or `known`."""
    rate = linearised.backwards(known)
    if rate:
        yield (
            f"the shortest waves of the grid grow fastest, at a rate of {rate:.3g} at the start: something diffuses "
            "backwards (the equation is ill-posed: check the sign of its highest even derivative), or the grid is too "
            "coarse for the derivative that damps them"
        )


def _default_step(method: Integrator, limit: float | None, resolved: float, fields: Sequence[Field]) -> float:
    """Return a step that is safely stable and resolves what turns; raise ProgramError if none is known."""
    if limit is None or not math.isfinite(limit):
        raise ProgramError(
            f"no stable step of {method.name!r} is known for these equations on {fields[0].grid.size} cells",
            remedy="give dt=, or another integrator: bs3, dp5 and tr-bdf2 choose their steps",
        )
    step = min(_SAFETY * limit, resolved)
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
        found = self._of(method)
        return None if found is None or self._resonates(method) else stable_step(method, found)

    def turns(self, method: Integrator, dt: float) -> bool:
        """Return whether steps of a length are too long only because oscillations of uniform states grow."""
        found = self._of(method)
        limit = None if found is None else stable_step(method, replace(found, turning=0.0))
        return limit is not None and dt <= limit * _ROUNDING

    def resolved(self, method: Integrator) -> float:
        """Return a step in which uniform states turn and grow little; infinite if nothing is known of them."""
        found = self._of(method)
        return math.inf if found is None else resolved_step(method, found)

    def _of(self, method: Integrator) -> Bounds | None:
        """Return the bounds that limit a method: what turns and grows counts whole where only a part is explicit."""
        if not method.split:
            return self.bounds()
        rest = self.bounds("rest")
        if rest is None or not rest.total:
            return rest
        whole = self.bounds()
        return rest if whole is None else replace(rest, turning=whole.turning, growing=whole.growing)

    def _resonates(self, method: Integrator) -> bool:
        """Return whether undamped waves of the linear part grow beside what turns in the rest."""
        if not method.split or method.waves or not self.separable:
            return False
        linear, found = self.bounds("linear"), self._of(method)
        return linear is not None and linear.ratio == math.inf and found is not None and found.turning > 0.0

    def amplified(self, method: Integrator, dt: float) -> str:
        """Return what grows with every step of a method that has no stable one; empty if that hardly matters."""
        if self._resonates(method):
            return f"waves of the implicit part grow with every step of {method.name} beside explicit oscillations"
        found = None if method.split else self.bounds()
        if found is None or found.ratio < math.inf or dt * found.total <= method.swing:
            return ""
        return f"waves grow with every step of {method.name}, whatever its length"

    def backwards(self, known: bool) -> float:
        """Return how fast the shortest waves grow if these grow fastest, 0 if not, of all equations if `known`."""
        if known or "all" in self._known:
            found = self.bounds()
            return 0.0 if found is None else found.backwards
        return 0.0 if self.rates is None else backward_rate(self.rates, self.fields)

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


def _automatic(linearised: _Linearised, dt: float | None, noise: bool, tolerance: float) -> tuple[str, str]:
    """Return the name of the integrator that suits the rates at the start, and the reason."""
    if noise:
        return "euler-maruyama", "there is noise"
    if dt is None:
        return _choosing(linearised, tolerance)
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


def _choosing(linearised: _Linearised, tolerance: float) -> tuple[str, str]:
    """Return the method of those that choose their steps that needs less work, and the reason.

    The slowest rate is that of the rest of the rates beside the linear part, or of diffusion across the whole grid.
    Within its time explicit steps are as many as stability asks for, and implicit ones as many as the accuracy of
    second order asks for.
    """
    explicit = INTEGRATORS["bs3"]
    implicit_steps = 1.0 / functions.cbrt(tolerance)
    longest = max(linearised.fields[0].grid.shape)
    across = (0.5 * math.pi / longest) * (0.5 * math.pi / longest)
    if across * explicit.real * implicit_steps * _IMPLICIT > 1.0:
        return "bs3", f"rates on {longest} cells along an axis are not stiff"
    if linearised.rates is not None and linearised.rates.prepare is not None:
        return "bs3", "integrals have no derivative by cells, which linear systems need"
    if not linearised.solvable:
        return "bs3", "linear systems need fields of f8 and conditions that can be linearised"
    found = linearised.bounds()
    if found is None:
        return "bs3", "bounds of the rates are not known"
    if not found.even:
        return "bs3", "nothing diffuses"
    rest = linearised.bounds("rest") if linearised.separable else None
    ratio = found.even / max(across * found.even, 0.0 if rest is None else rest.total)
    steps, cost = ratio / explicit.real, implicit_steps * _IMPLICIT
    said = f"{steps:.2g} explicit steps in the time of the slowest rate, where implicit ones take as long as {cost:.2g}"
    return ("tr-bdf2" if steps > cost else "bs3"), said


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
