"""A small elastic model on two axes with all kinds of sources and of receivers, for several boundaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minga.models.waves import Cpml, Faces, Free, Periodic, Receivers, Release, Ricker, Rigid, Shot, Sponge
from minga.models.waves.elastic import ElasticMedium, ElasticWaves, Explosion, Force, Moment, prepare_elastic

SHAPE = (14, 17)
WRT = ("vp", "vs", "rho")
Z, X = np.meshgrid(*(np.arange(float(n)) for n in SHAPE), indexing="ij")
SOLID = {"vp": 2500 + 9 * Z + 4 * X, "vs": 1300 + 5 * Z + 6 * X, "rho": 2000 + 7 * Z - 3 * X}
SEA = {**SOLID, "vs": np.where(Z < 5, 0.0, SOLID["vs"])}
SOURCES = [
    Explosion((63.0, 82.0), Ricker(25.0, amplitude=1e3)),
    Force((44.0, 61.0), (1.0, 0.5), Ricker(30.0, amplitude=1e5)),
    Moment((70.0, 72.0), ((0.0, 1.0), (1.0, 0.3)), Ricker(20.0, amplitude=1e5)),
]
RECORD = ("p", "vz", "vx", "szz", "sxx", "sxz")
SHOT = Shot(SOURCES, Receivers([(42.0, 71.0), (80.0, 120.0), (65.0, 45.0)], every=3), record=RECORD)
DATA = Shot(SOURCES, SHOT.receivers, np.zeros((16, 18)), RECORD)
BOUNDARIES = {
    "free": Faces(Sponge(4), z=(Free(), Sponge(4))),
    "matched": Faces(Cpml(4), z=(Free(), Cpml(4))),
    "periodic": Faces(Release(), x=Periodic(), z=(Free(), Cpml(4))),
    "rigid": Rigid(),
}


def waves_in(boundary: str, entries: Mapping[str, Any], dtype: str = "f8", **options: Any) -> ElasticWaves:
    """Waves whose layers do not depend on the medium."""
    medium = ElasticMedium(**entries)
    speeds = prepare_elastic(SHAPE, 10.0, dt=8e-4, medium=ElasticMedium(**SOLID)).speeds
    ends = BOUNDARIES[boundary]
    return prepare_elastic(
        SHAPE, 10.0, dt=8e-4, medium=medium, order=4, boundary=ends, dtype=dtype, speeds=speeds, **options
    )
