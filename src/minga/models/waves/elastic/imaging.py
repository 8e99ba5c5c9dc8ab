"""Images of elastic waves: reflected and converted waves, told apart by divergence and curl.

The adjoint waves of the data are the recorded waves back in the rock, if each velocity is divided by the density: the
matrix of a step is skew for the energy, which weighs velocities by it. With the velocity v and the strain of volume e
of the source's waves and this velocity w, images sum over time

    PP = div v  div w        PS = (grad e x n) . curl w

where n is the vertical. The product with n is the condition of Y. Duan, P. Sava, "Scalar imaging condition for elastic
reverse time migration", Geophysics 80(4), 2015: the curl of converted waves changes its sign with the side from which P
waves arrive, and so does this product, whence shots from both sides add up. Here e, the integral of div v over time, is
differentiated in place of div v, so that the derivative does not shift the phase of PS against PP. It is the sum of the
normal stresses over a modulus that counts as constant from cell to cell. Adjoint waves are 0 beyond the ends of the
grid: images are not right within half the order of the differences, in cells, of a free surface or a wall.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from minga.engine.program import Program
from minga.lang.cell import local
from minga.models.waves.elastic.kernels import Elasticity, Fields
from minga.models.waves.elastic.medium import coefficient
from minga.models.waves.image import Image
from minga.models.waves.stencils import total
from minga.space.field import Field

if TYPE_CHECKING:
    from minga.models.waves.elastic.waves import ElasticWaves

__all__ = ["IMAGES", "ElasticImage", "record_correlation"]

IMAGES: Final = ("pp", "ps", "light")
"""Names of the images and of their illumination."""


@dataclass(frozen=True, slots=True, eq=False)
class ElasticImage:
    """Images of one shot of elastic waves, or sums over several: ``a + b`` stacks them.

    Parameters
    ----------
    pp
        Image by P waves that are reflected as P waves: divergence of the source's velocity times that of the data's.
    ps
        Image by P waves that are reflected as S waves, with the sign that does not change with the side of the source.
        Both have the illumination by the divergence of the source's velocity.
    """

    pp: Image
    ps: Image

    def __add__(self, other: ElasticImage) -> ElasticImage:
        return ElasticImage(self.pp + other.pp, self.ps + other.ps)

    def normalised(self, least: float = 1e-3) -> ElasticImage:
        """Return the images over their illumination, as `Image.normalised` does.

        Parameters
        ----------
        least
            Part of the largest illumination that is added to it.

        Returns
        -------
        ElasticImage
            The images.
        """
        return ElasticImage(self.pp.normalised(least), self.ps.normalised(least))

    def filtered(self) -> ElasticImage:
        """Return minus the Laplacian of the images, as `Image.filtered` does.

        Returns
        -------
        ElasticImage
            The images.
        """
        return ElasticImage(self.pp.filtered(), self.ps.filtered())


def record_correlation(
    seed: Program, waves: ElasticWaves, of: Mapping[Field, Field], images: Mapping[str, Field]
) -> None:
    """Record that a state is added to the images and their illumination.

    Parameters
    ----------
    seed
        The Program to record into.
    waves
        The waves.
    of
        The adjoint of each field.
    images
        Fields by the names of `IMAGES`.
    """
    equations, named = waves.elasticity, waves.named
    moving = equations.named("velocity")
    coefficients = [name for name in ("lambda", "mu", *map(coefficient, moving)) if name in named]
    fields = {c.name: named[c.name] for c in (*moving, *equations.named("normal"))}
    fields |= {_adjoint(c.name): of[named[c.name]] for c in moving}
    fields |= {name: named[name] for name in coefficients} | dict(images)
    widths = waves.domain.spacing

    def act(given: Fields) -> None:
        _correlate(equations, given, waves.dt, widths)

    seed.apply(equations.kernel("elastic_image", [*fields], act), [*fields.values()])


def _correlate(equations: Elasticity, fields: Fields, dt: float, widths: tuple[float, ...]) -> None:
    here, rate = equations.here, 1.0 / dt
    axes = range(len(equations.axes))
    moving = {axis: equations.velocity(axis) for axis in axes}
    back = {
        axis: local(equations.coefficient(coefficient(c), fields) * fields[_adjoint(c.name)][here])
        for axis, c in moving.items()
    }
    source = rate * total(equations.difference(fields[c.name], c, axis) for axis, c in moving.items())
    data = rate * total(equations.difference(back[axis], c, axis) for axis, c in moving.items())
    modulus, shear = (equations.coefficient(name, fields) for name in ("lambda", "mu"))
    strain = 1.0 / (float(len(axes)) * modulus + 2.0 * shear)
    stress = local(total(fields[c.name][here] for c in equations.named("normal")))
    turned = strain * total(
        _centred(stress, axis, widths) * _averaged(_curl(equations, back, axis, rate), axis, len(axes))
        for axis in axes[1:]
    )
    for name, more in zip(IMAGES, (source * data, turned, source * source), strict=True):
        fields[name][here] = fields[name][here] + more


def _adjoint(name: str) -> str:
    return f"{name}_adjoint"


def _centred(u: Any, axis: int, widths: tuple[float, ...]) -> Any:
    """Return the derivative along an axis at the cells."""
    above, below = (_at(len(widths), {axis: step}) for step in (1, -1))
    return (0.5 / widths[axis]) * (u[above] - u[below])


def _curl(equations: Elasticity, back: Mapping[int, Any], axis: int, rate: float) -> Any:
    """Return the component of the curl across z and an axis, at the edges half a cell above the cells along both."""
    along, across = (equations.difference(back[a], equations.velocity(a), b) for a, b in ((0, axis), (axis, 0)))
    return local(rate * (along - across))


def _averaged(curl: Any, axis: int, ndim: int) -> Any:
    """Return the mean of the values at the four edges around a cell, in the plane of z and an axis."""
    return 0.25 * total(curl[_at(ndim, {0: z, axis: x})] for z in (0, -1) for x in (0, -1))


def _at(ndim: int, offsets: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(offsets.get(axis, 0) for axis in range(ndim))
