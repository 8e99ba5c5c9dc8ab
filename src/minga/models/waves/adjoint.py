"""Adjoint of a time step: the transpose of the operator of the right side, with coefficients inside the derivatives.

With u = (p, q), a step is next = 2 u - previous + A u. Fletcher's A is not self-adjoint; with a = vp2 and
s = vsz2 / vpz2 its transpose is

    (A' v)_p = H2'(a (1 + 2 epsilon) v_p + a (1 + 2 delta - s) v_q) + H1'(a s v_p)
    (A' v)_q = H1'(a (1 - s) v_p + a v_q) + H2'(a s v_q)

where H1' g is the sum of D_i D_j (n_i n_j g), and H2' is the Laplacian minus H1'. Where the density varies, A' v is
div(1 / rho grad(rho vp2 v)). Waves are 0 beyond the ends of the
grid, so these are exact transposes up to the last cell. Boundaries are those of the forward step: pressure release and
random boundaries (whose layers are part of the medium) have their exact adjoint here.

A migration with any other operator does not give the gradient of the data misfit: M. Louboutin, P. Witte,
F. J. Herrmann, "Effects of wrong adjoints for RTM in TTI media", SEG 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang.cell import local
from minga.lang.kernel import Kernel
from minga.models.waves.kernels import Coefficients, Equations, Z, product, times, total_of
from minga.models.waves.stencils import total
from minga.models.waves.waves import Waves
from minga.space.boundary import fixed
from minga.space.field import Field

__all__ = ["adjoint_fields", "adjoint_kernel", "record_adjoint_step"]


def adjoint_fields(waves: Waves) -> tuple[Field, ...]:
    """Return fields for the adjoint waves of a model, named like its waves with "_adjoint" appended.

    Parameters
    ----------
    waves
        The waves.

    Returns
    -------
    tuple of Field
        The fields.
    """
    return tuple(
        Field(f"{f.name}_adjoint", f.grid, f.dtype, slots=2, boundary=fixed(0.0), description=f"adjoint of {f.name}")
        for f in waves.fields
    )


def record_adjoint_step(step: Program, waves: Waves, fields: Sequence[Field]) -> None:
    """Record a step of the adjoint waves; the result becomes the present wave, as in a step backwards in time.

    Parameters
    ----------
    step
        The Program to record into.
    waves
        The waves.
    fields
        The fields of `adjoint_fields`.
    """
    waves.check_second_order("the adjoint step is", "prepare the waves with time_order=2")
    if any(any(pair) for pair in waves.domain.mirrors):
        raise CaseError(
            "the adjoint step does not support free surfaces and rigid walls",
            key="fletcher.boundary",
            remedy="prepare the waves with Random() or Release()",
        )
    medium = [list(waves.medium)] if waves.medium else []
    step.apply(adjoint_kernel(waves.equations), list(fields), [f.previous for f in fields], *medium)
    step.rotate(*fields)


def adjoint_kernel(equations: Equations) -> Kernel:
    """Return the step with the transposed operator; arguments as in `minga.models.waves.kernels.forward_kernel`."""
    here = equations.differences.here

    def advance(waves: Sequence[Any], before: Sequence[Any], medium: Sequence[Any]) -> None:
        c = equations.coefficients(lambda k: medium[k][here])
        for now, old, right in zip(waves, before, _right_sides(equations, c, waves, medium), strict=True):
            old[here] = 2.0 * now[here] - old[here] + right

    def fletcher_adjoint(waves: Any, before: Any, medium: Any) -> None:
        advance(waves, before, medium)

    def fletcher_adjoint_constant(waves: Any, before: Any) -> None:
        advance(waves, before, ())

    return Kernel(fletcher_adjoint if equations.stored else fletcher_adjoint_constant)


def _right_sides(equations: Equations, c: Coefficients, waves: Sequence[Any], medium: Sequence[Any]) -> list[Any]:
    here = equations.differences.here
    if equations.kind == "isotropic":
        return [equations.spread(local(times(c.rho, c.vp2) * waves[0][here]), medium)]
    a, b = (u[here] for u in waves)
    shear = equations.shear(c)
    along_p, across_p = shear * a, (1.0 + 2.0 * c.epsilon) * a + (1.0 + 2.0 * c.delta - shear) * b
    along_q, across_q = (1.0 - shear) * a + b, shear * b
    return [
        _transposed(equations, c, c.vp2 * along, c.vp2 * across)
        for along, across in ((along_p, across_p), (along_q, across_q))
    ]


def _transposed(equations: Equations, c: Coefficients, along: Any, across: Any) -> Any:
    """Return H1'(along) + H2'(across)."""
    d = equations.differences
    if equations.kind == "vertical":
        outer = local(across)
        return total([*(d.d2(outer, axis) for axis in equations.order[:-1]), d.d2(local(along), Z)])
    rest = along - across
    if equations.form == "selfadjoint":
        return _divergence(equations, c, local(rest), local(across))
    terms = [d.d2(local(total_of([across, times(c.n[axis] * c.n[axis], rest)])), axis) for axis in equations.order]
    inner: dict[int, list[Any]] = {}
    for first, second in equations.mixed:
        weight = product(2.0, c.n[first], c.n[second])
        if (weighted := times(weight, rest)) is not None:
            inner.setdefault(second, []).append(d.d1(local(weighted), first))
    terms += [d.d1(local(total(parts)), axis) for axis, parts in inner.items()]
    return total(terms)


def _divergence(equations: Equations, c: Coefficients, rest: Any, across: Any) -> Any:
    return equations.laplacian(across) + equations.divergence(rest, c)
