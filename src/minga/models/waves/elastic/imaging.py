"""Images of elastic waves: reflected and converted waves, told apart by divergence and curl.

The adjoint waves of the data are the recorded waves back in the rock, if each velocity is divided by the density: the
matrix of a step is skew for the energy, which weighs velocities by it. Adjoint stresses are the strains of the same
waves, those of the displacement u whose rate is the velocity w. With the velocity v and the strain of volume e of the
source's waves, images sum over time

    PP = div v  div w        PS = grad e . curl curl u  mu / rho

The acceleration of the source's P waves is grad e times the square of their speed, that of the data's S waves minus
mu / rho curl curl u. PS is thus minus the scalar product of vectors of P waves and of S waves: Q. Du et al.,
"Vector-based elastic reverse time migration based on scalar imaging condition", Geophysics 82(2), 2017. If a P wave
arrives at an angle a to the normal of a reflector, and an S wave leaves at an angle b, the product is sin(a + b) times
their amplitudes. This factor and the amplitude of the S wave change their signs with the side from which the P wave
arrives, so that shots add up, and no normal enters, whatever the dip. The scalar condition of Y. Duan, P. Sava,
Geophysics 80(4), 2015, the sum of (grad e x n) . curl w, needs the normal n of the reflector.

The strain e is the sum of the normal stresses over a modulus that counts as constant from cell to cell. Adjoint waves
are 0 beyond the ends of the grid: images are not right within half the order of the differences, in cells, of a free
surface or a wall.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from minga.engine.program import Program
from minga.lang.cell import local
from minga.models.waves.elastic.kernels import Elasticity, Fields
from minga.models.waves.elastic.layout import Component
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
        Image by P waves that are reflected as S waves, minus the product of the vectors of both waves: its sign does
        not change with the side of the source along a reflector of any dip. Both images have the illumination by the
        divergence of the source's velocity.
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
    fields |= {_adjoint(c.name): of[named[c.name]] for c in equations.components.values()}
    fields |= {name: named[name] for name in coefficients} | dict(images)

    def act(given: Fields) -> None:
        _correlate(equations, given, waves.dt)

    seed.apply(equations.kernel("elastic_image", [*fields], act), [*fields.values()])


def _correlate(equations: Elasticity, fields: Fields, dt: float) -> None:
    here, rate = equations.here, 1.0 / dt
    moving = {c.axes[0]: c for c in equations.named("velocity")}
    back = {
        axis: local(equations.coefficient(coefficient(c), fields) * fields[_adjoint(c.name)][here])
        for axis, c in moving.items()
    }
    source = rate * total(equations.difference(fields[c.name], c, axis) for axis, c in moving.items())
    data = rate * total(equations.difference(back[axis], c, axis) for axis, c in moving.items())
    modulus, shear = (equations.coefficient(name, fields) for name in ("lambda", "mu"))
    strain = 1.0 / (float(len(moving)) * modulus + 2.0 * shear)
    products = [local(_gradient(equations, fields, c) * _double_curl(equations, fields, c)) for c in moving.values()]
    turned = (
        rate
        * rate
        * shear
        * strain
        * total(
            0.5 * (product[here] + product[_below(axis, len(here))])
            for axis, product in zip(moving, products, strict=True)
        )
    )
    for name, more in zip(IMAGES, (source * data, turned, source * source), strict=True):
        fields[name][here] = fields[name][here] + more


def _adjoint(name: str) -> str:
    return f"{name}_adjoint"


def _gradient(equations: Elasticity, fields: Fields, velocity: Component) -> Any:
    """Return the sum of the normal stresses, differentiated along the axis of a velocity, at its places."""
    return total(equations.difference(fields[c.name], c, velocity.axes[0]) for c in equations.named("normal"))


def _double_curl(equations: Elasticity, fields: Fields, velocity: Component) -> Any:
    """Return a component of curl curl u over the density, from the strains of u, at the places of a velocity."""
    (axis,) = velocity.axes
    terms = []
    for other in range(len(equations.axes)):
        if other != axis:
            sheared, along = equations.stress(axis, other), equations.stress(other, other)
            terms.append(2.0 * equations.difference(fields[_adjoint(along.name)], along, axis))
            terms.append(-equations.difference(fields[_adjoint(sheared.name)], sheared, other))
    return equations.coefficient(coefficient(velocity), fields) * total(terms)


def _below(axis: int, ndim: int) -> tuple[int, ...]:
    return tuple(-1 if a == axis else 0 for a in range(ndim))
