"""Kernels of a time step: Fletcher's equations, restricted to the terms that a medium needs.

The equations are

    p_tt = vpx2 H2 p + vpz2 H1 q + vsz2 H1 (p - q)
    q_tt = vpn2 H2 p + vpz2 H1 q - vsz2 H2 (p - q)

H1 is the second derivative along the symmetry axis n, H2 the Laplacian minus H1; vpz is the P velocity along the axis,
vpx2 = vpz2 (1 + 2 epsilon), vpn2 = vpz2 (1 + 2 delta), vsz2 = vpz2 |epsilon - delta| / sigma.
Source: R. P. Fletcher, X. Du, P. J. Fowler, "Reverse time migration in tilted transversely isotropic (TTI) media",
Geophysics 74(6), 2009. If the density of an isotropic medium varies, the equation is p_tt = rho vp2 div(1 / rho grad p)
(`minga.models.waves.density`).

Time integration is leapfrog: next = 2 now - previous + dt2 * right side, written over the previous slot; for its
correction to fourth order see `minga.models.waves.injection`. Differences are scaled by the smallest spacing h, and dt2
/ h2 is a factor of vpz2: no intermediate value is much smaller than the waves, so that few are denormal numbers, which
slow processors down. Mixed derivatives are first derivatives of first derivatives, which are locals.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, Final, Literal

from minga.compile.explain import Kernel
from minga.lang.cell import local
from minga.lang.expr import flushed
from minga.lang.functions import abs as absolute
from minga.models.waves.density import Staggered
from minga.models.waves.stencils import Differences, total

__all__ = [
    "Coefficients",
    "Equations",
    "Form",
    "Kind",
    "correction_kernel",
    "forward_kernel",
    "increment_kernel",
    "product",
    "times",
    "total_of",
]

Form = Literal["fletcher", "selfadjoint"]
Kind = Literal["isotropic", "vertical", "tilted"]
MIXED: Final = ("yx", "yz", "xz")
"""Mixed derivatives: the axes of the inner and of the outer one."""
Z: Final = 0
"""Number of the axis z, which is the first one of every model."""
NAMES: Final = ("vp2", "epsilon", "delta", "nz", "ny", "nx", "rho")
"""Parameters of a medium, in the order in which kernels take those that are fields."""


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Parameters of the medium at a cell: numbers if uniform, otherwise values read; `vp2` includes `scale`."""

    vp2: Any
    epsilon: Any
    delta: Any
    n: tuple[Any, ...]
    rho: Any


@dataclass(frozen=True, slots=True)
class Equations:
    """Choice of the equations and their differences.

    Attributes
    ----------
    kind
        "isotropic" (p alone), "vertical" (the axis is z) or "tilted".
    form
        "fletcher": the coefficients of H1 stand before the derivatives; "selfadjoint": H1 u = div(n (n . grad u))
        (Y. Zhang, H. Zhang, G. Zhang, "A stable TTI reverse time migration and its implementation", Geophysics 76(3),
        2011).
    axes
        Names of the grid's axes: "zyx", "zx" or "z".
    differences
        Differences in space.
    sigma
        vpz2 |epsilon - delta| / vsz2; None if vsz is 0.
    scale
        dt2 / h2, where h is the length by which the differences are scaled.
    constants
        Entries of NAMES that are uniform, with their values.
    staggered
        Differences of an isotropic medium whose density varies; None: the density drops out.
    """

    kind: Kind
    form: Form
    axes: str
    differences: Differences
    sigma: float | None
    scale: float
    constants: tuple[tuple[str, float], ...]
    staggered: Staggered | None = None

    @property
    def waves(self) -> tuple[str, ...]:
        """Names of the wave fields."""
        return ("p",) if self.kind == "isotropic" else ("p", "q")

    @property
    def needed(self) -> tuple[str, ...]:
        """Entries of NAMES that occur in these equations."""
        return {
            "isotropic": NAMES[:1] if self.staggered is None else (NAMES[0], NAMES[-1]),
            "vertical": NAMES[:3],
            "tilted": (*NAMES[:3], *(f"n{axis}" for axis in self.axes)),
        }[self.kind]

    @property
    def stored(self) -> tuple[str, ...]:
        """Entries of `needed` that vary, and are therefore fields."""
        known = dict(self.constants)
        return tuple(name for name in self.needed if name not in known)

    def coefficients(self, read: Callable[[int], Any]) -> Coefficients:
        """Return the parameters of the medium; `read(k)` yields the value of stored field number k."""
        values: dict[str, Any] = dict(self.constants)
        values |= {name: read(k) for k, name in enumerate(self.stored)}
        axis = [values.get(f"n{name}", 1.0 if name == "z" else 0.0) for name in self.axes]
        return Coefficients(
            values["vp2"] * self.scale, values.get("epsilon", 0.0), values.get("delta", 0.0), (*axis,),
            values.get("rho", 1.0),
        )  # fmt: skip

    @property
    def order(self) -> range:
        """Numbers of the axes in the order in which derivatives are summed: x, y, z."""
        return range(len(self.axes) - 1, -1, -1)

    @property
    def mixed(self) -> list[tuple[int, int]]:
        """Numbers of the axes of the inner and of the outer derivative of each mixed one."""
        return [(self.axes.index(a), self.axes.index(b)) for a, b in MIXED if a in self.axes and b in self.axes]

    def laplacian(self, u: Any) -> Any:
        """Return the Laplacian of u, times h2."""
        return total(self.differences.d2(u, axis) for axis in self.order)

    def spread(self, u: Any, medium: Sequence[Any]) -> Any:
        """Return the Laplacian of u or, if the density varies, div(1 / rho grad u); times h2."""
        if self.staggered is None:
            return self.laplacian(u)
        return self.staggered.operator(u, medium[self.stored.index("rho")])

    def derivatives(self, u: Any, c: Coefficients) -> tuple[Any, Any]:
        """Return H1 u and H2 u, times h2."""
        d = self.differences
        if self.kind == "vertical":
            x, *others = self.order[:-1]
            return _apart(d, d.d2(u, Z)), total([d.d2(u, x), *(_apart(d, d.d2(u, axis)) for axis in others)])
        straight = {axis: _apart(d, d.d2(u, axis)) for axis in self.order}
        laplacian = total(straight.values())
        h1 = self.divergence(u, c) if self.form == "selfadjoint" else self._along(u, c, straight)
        return h1, laplacian - h1

    def _along(self, u: Any, c: Coefficients, straight: dict[int, Any]) -> Any:
        """Return (n . grad)^2 u with the coefficients before the derivatives."""
        d = self.differences
        terms = [times(c.n[axis] * c.n[axis], straight[axis]) for axis in self.order]
        locals_: dict[int, Any] = {}
        for inner, outer in self.mixed:
            weight = product(2.0, c.n[inner], c.n[outer])
            if not _zero(weight):
                if inner not in locals_:
                    locals_[inner] = local(d.d1(u, inner))
                mixed = d.d1(locals_[inner], outer)
                terms.append(times(weight, _apart(d, mixed) if outer == Z else mixed))
        return total_of(terms)

    def divergence(self, u: Any, c: Coefficients) -> Any:
        """Return div(n (n . grad u)), an operator that is self-adjoint for any n."""
        d = self.differences
        slope = total_of([times(c.n[axis], d.d1(u, axis)) for axis in self.order])
        flux = {axis: local(c.n[axis] * slope) for axis in self.order if not _zero(c.n[axis])}
        return total(d.d1(flux[axis], axis) for axis in flux)

    def right_sides(self, c: Coefficients, p: tuple[Any, Any], q: tuple[Any, Any]) -> tuple[Any, Any]:
        """Return the right sides for p and q, from H1 and H2 of each."""
        (h1p, h2p), (h1q, h2q) = p, q
        along = h1q
        right_p, right_q = (1.0 + 2.0 * c.epsilon) * h2p + along, (1.0 + 2.0 * c.delta) * h2p + along
        shear = self.shear(c)
        if not _zero(shear):
            right_p, right_q = right_p + shear * (h1p - h1q), right_q - shear * (h2p - h2q)
        return c.vp2 * right_p, c.vp2 * right_q

    def shear(self, c: Coefficients) -> Any:
        """Return vsz2 / vpz2."""
        if self.sigma is None:
            return 0.0
        return _absolute(c.epsilon - c.delta) * (1.0 / self.sigma)


def forward_kernel(equations: Equations, *, damped: bool = False) -> Kernel:
    """Return a time step with lists as arguments: waves, previous waves, and stored medium parameters, if any.

    If it is damped, the last list has the profiles of a sponge (`minga.models.waves.sponge`).
    """
    return _remembered(_forward_kernel, str(equations), equations, damped)


def _forward_kernel(equations: Equations, damped: bool) -> Kernel:
    here = equations.differences.here

    def advance(waves: Sequence[Any], before: Sequence[Any], medium: Sequence[Any], profiles: Sequence[Any]) -> None:
        factor = _factor(profiles)
        for now, old, right in zip(waves, before, _applied(equations, waves, medium), strict=True):
            old[here] = flushed(times(factor, 2.0 * now[here] - times(factor, old[here]) + right))

    def fletcher(waves: Any, before: Any, medium: Any) -> None:
        advance(waves, before, medium, ())

    def fletcher_constant(waves: Any, before: Any) -> None:
        advance(waves, before, (), ())

    def fletcher_damped(waves: Any, before: Any, medium: Any, profiles: Any) -> None:
        advance(waves, before, medium, profiles)

    def fletcher_damped_constant(waves: Any, before: Any, profiles: Any) -> None:
        advance(waves, before, (), profiles)

    kernels = (fletcher_constant, fletcher), (fletcher_damped_constant, fletcher_damped)
    return Kernel(kernels[damped][bool(equations.stored)])


def increment_kernel(equations: Equations) -> Kernel:
    """Return the application of the right side: waves, increments that it writes, and stored medium parameters."""
    return _remembered(_increment_kernel, str(equations), equations, False)


def _increment_kernel(equations: Equations, damped: bool) -> Kernel:
    here = equations.differences.here

    def increase(waves: Sequence[Any], increments: Sequence[Any], medium: Sequence[Any]) -> None:
        for increment, right in zip(increments, _applied(equations, waves, medium), strict=True):
            increment[here] = right

    def fletcher_increment(waves: Any, increments: Any, medium: Any) -> None:
        increase(waves, increments, medium)

    def fletcher_increment_constant(waves: Any, increments: Any) -> None:
        increase(waves, increments, ())

    return Kernel(fletcher_increment if equations.stored else fletcher_increment_constant)


def correction_kernel(equations: Equations, *, damped: bool = False) -> Kernel:
    """Return the rest of a step of fourth order: waves, previous waves, increments, and stored medium parameters.

    If it is damped, the last list has the profiles of a sponge.
    """
    return _remembered(_correction_kernel, str(equations), equations, damped)


def _correction_kernel(equations: Equations, damped: bool) -> Kernel:
    here = equations.differences.here

    def correct(
        waves: Sequence[Any], before: Sequence[Any], increments: Sequence[Any], medium: Sequence[Any],
        profiles: Sequence[Any],
    ) -> None:  # fmt: skip
        factor = _factor(profiles)
        rights = _applied(equations, increments, medium)
        for now, old, increment, right in zip(waves, before, increments, rights, strict=True):
            added = increment[here] + right * (1.0 / 12.0)
            old[here] = flushed(times(factor, 2.0 * now[here] - times(factor, old[here]) + added))

    def fletcher_correction(waves: Any, before: Any, increments: Any, medium: Any) -> None:
        correct(waves, before, increments, medium, ())

    def fletcher_correction_constant(waves: Any, before: Any, increments: Any) -> None:
        correct(waves, before, increments, (), ())

    def fletcher_correction_damped(waves: Any, before: Any, increments: Any, medium: Any, profiles: Any) -> None:
        correct(waves, before, increments, medium, profiles)

    def fletcher_correction_damped_constant(waves: Any, before: Any, increments: Any, profiles: Any) -> None:
        correct(waves, before, increments, (), profiles)

    kernels = (
        (fletcher_correction_constant, fletcher_correction),
        (fletcher_correction_damped_constant, fletcher_correction_damped),
    )
    return Kernel(kernels[damped][bool(equations.stored)])


@lru_cache(maxsize=64)
def _remembered(make: Callable[[Equations, bool], Kernel], text: str, equations: Equations, damped: bool) -> Kernel:
    """Return a kernel, the same one for equal equations: a survey's shots need not trace and arrange theirs again.

    The text of the equations tells -0.0 from 0.0.
    """
    return make(equations, damped)


def _factor(profiles: Sequence[Any]) -> Any:
    """Return the product of the profiles of a sponge; the number 1 without any."""
    return reduce(operator.mul, [profile[0] for profile in profiles]) if profiles else 1.0


def _applied(equations: Equations, waves: Sequence[Any], medium: Sequence[Any]) -> list[Any]:
    """Return dt2 times the right sides of the equations for some waves."""
    here = equations.differences.here
    c = equations.coefficients(lambda k: medium[k][here])
    if equations.kind == "isotropic":
        (u,) = waves
        right = equations.spread(u, medium)
        return [times(c.rho, c.vp2) * right]
    p, q = (equations.derivatives(u, c) for u in waves)
    return list(equations.right_sides(c, p, q))


def _apart(differences: Differences, value: Any) -> Any:
    """Return the value, computed in a loop of its own, or together with others that use the same inputs.

    A single loop for all terms would access more rows at once than a processor has address registers; moreover, second
    derivatives share most of their loads with the inner derivatives of mixed ones. The split makes TTI steps a third
    and VTI steps a quarter faster, with identical bits.
    """
    return local(value)[differences.here]


def times(weight: Any, value: Any) -> Any:
    """Return a product; None if the weight is the number 0."""
    return None if _zero(weight) else value if _one(weight) else weight * value


def total_of(terms: Sequence[Any]) -> Any:
    """Return the sum of the terms that are not None."""
    return total(term for term in terms if term is not None)


def product(number: float, a: Any, b: Any) -> Any:
    """Return number * a * b; the number 0 if a or b is."""
    return 0.0 if _zero(a) or _zero(b) else number * a * b


def _zero(value: Any) -> bool:
    return isinstance(value, float) and value == 0.0


def _one(value: Any) -> bool:
    return isinstance(value, float) and value == 1.0


def _absolute(value: Any) -> Any:
    return abs(value) if isinstance(value, float) else absolute(value)
