"""A small model on two axes with two sources and three receivers, for every equation, boundary and order in time."""

from __future__ import annotations

from typing import Any

import numpy as np

from minga.models.waves import (
    Attenuation,
    Cpml,
    Faces,
    Free,
    Medium,
    PlaneSource,
    PointSource,
    Receivers,
    Release,
    Ricker,
    Rigid,
    Shot,
    Sponge,
    prepare,
)
from minga.models.waves.waves import Waves

SHAPE = (14, 17)
Z, X = np.meshgrid(*(np.arange(float(n)) for n in SHAPE), indexing="ij")
ENTRIES = {
    "vp": 2000 + 9 * Z + 4 * X, "epsilon": 0.2 + 0.002 * Z, "delta": 0.1 + 0.002 * X, "theta": 0.3 + 0.02 * X,
    "rho": 1.5 + 0.05 * Z - 0.03 * X,
}  # fmt: skip
SHOT = Shot(
    [PointSource((33.0, 52.0), Ricker(25.0)), PlaneSource("x", 100.0, Ricker(30.0))],
    Receivers([(22.0, 71.0), (80.0, 120.0), (15.0, 15.0)], every=3),
)
PHYSICS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "free": (("vp",), {"boundary": Faces(Sponge(4), z=(Free(), Sponge(4)))}),
    "matched": (("vp",), {"boundary": Faces(Cpml(5), z=(Free(), Cpml(5)), x=(Rigid(), Cpml(5)))}),
    "fourth": (("vp",), {"boundary": Faces(Free(), x=Rigid()), "time_order": 4}),
    "vertical": (("vp", "epsilon", "delta"), {"boundary": Cpml(4)}),
    "tilted": (("vp", "epsilon", "delta", "theta"), {"boundary": Sponge(4)}),
    "tilted, free, fourth": (
        ("vp", "epsilon", "delta", "theta"), {"boundary": Faces(Sponge(4), z=(Free(), Rigid())), "time_order": 4}
    ),
    "density": (("vp", "rho"), {"boundary": Faces(Sponge(4), z=(Free(), Sponge(4)))}),
    "density, matched": (
        ("vp", "rho"), {"boundary": Faces(Cpml(5), z=(Free(), Cpml(5)), x=(Rigid(), Cpml(5)))}
    ),
    "density, fourth": (("vp", "rho"), {"boundary": Faces(Rigid(), x=(Free(), Release())), "time_order": 4}),
    "density, attenuated": (("rho",), {"boundary": Faces(Sponge(4), x=Release()), "attenuation": Attenuation(30.0)}),
    "self-adjoint": (("vp", "theta"), {"boundary": Sponge(4), "form": "selfadjoint"}),
}  # fmt: skip


def prepared(physics: str, entries: dict[str, np.ndarray], dtype: str = "f8") -> Waves:
    wrt, options = PHYSICS[physics]
    known = ("vp", "epsilon", "delta", "theta")
    if physics == "vertical" or wrt[-1] in ("vp", "rho"):
        known = wrt if wrt != ("rho",) else ("vp", "rho")
    first, medium = (Medium(**{name: values[name] for name in known}) for values in (ENTRIES, entries))
    common: dict[str, Any] = {"dt": 6e-4, "order": 4, "dtype": dtype, **options}
    extremes = prepare(SHAPE, 10.0, medium=first, **common).extremes
    return prepare(SHAPE, 10.0, medium=medium, extremes=extremes, **common)
