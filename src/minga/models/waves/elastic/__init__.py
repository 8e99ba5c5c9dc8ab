"""Elastic waves in isotropic media, by staggered differences of velocities and stresses.

Names are imported when they are first used::

    from minga.models.waves.elastic import ElasticMedium, elastic

    model = elastic((100, 100), 10.0, dt=1e-3, medium=ElasticMedium(vp=3000.0, vs=1700.0, rho=2200.0))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from minga.models.waves.elastic.imaging import ElasticImage
    from minga.models.waves.elastic.medium import ElasticMedium
    from minga.models.waves.elastic.model import elastic
    from minga.models.waves.elastic.sources import Explosion, Force, Moment
    from minga.models.waves.elastic.stepping import elastic_stepping
    from minga.models.waves.elastic.waves import ElasticWaves, prepare_elastic

__all__ = [
    "ElasticImage",
    "ElasticMedium",
    "ElasticWaves",
    "Explosion",
    "Force",
    "Moment",
    "elastic",
    "elastic_stepping",
    "prepare_elastic",
]

__getattr__, __dir__ = attach(__name__, __file__)
