"""A small model on two axes with two sources and three receivers, for every equation, boundary and order in time."""

from __future__ import annotations

from typing import Any

import numpy as np

from minga.models.waves import (
    Cpml,
    Faces,
    Free,
    Medium,
    PlaneSource,
    PointSource,
    Receivers,
    Ricker,
    Rigid,
    Shot,
    Sponge,
    prepare,
)
from minga.models.waves.model import Waves

SHAPE = (14, 17)
Z, X = np.meshgrid(*(np.arange(float(n)) for n in SHAPE), indexing="ij")
ENTRIES = {"vp": 2000 + 9 * Z + 4 * X, "epsilon": 0.2 + 0.002 * Z, "delta": 0.1 + 0.002 * X, "theta": 0.3 + 0.02 * X}
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
    "self-adjoint": (("vp", "theta"), {"boundary": Sponge(4), "form": "selfadjoint"}),
}  # fmt: skip


def prepared(physics: str, entries: dict[str, np.ndarray], dtype: str = "f8") -> Waves:
    wrt, options = PHYSICS[physics]
    known = ("vp",) if wrt == ("vp",) else ("vp", "epsilon", "delta") if physics == "vertical" else tuple(ENTRIES)
    first = prepare(
        SHAPE, 10.0, dt=6e-4, order=4, dtype=dtype, **options, medium=Medium(**{n: ENTRIES[n] for n in known})
    )
    medium = Medium(**{name: entries[name] for name in known})
    return prepare(SHAPE, 10.0, dt=6e-4, order=4, dtype=dtype, **options, medium=medium, extremes=first.extremes)
