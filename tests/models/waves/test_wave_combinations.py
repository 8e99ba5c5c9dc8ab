"""Every combination of equation, boundary, order in time, attenuation and receivers is exact, or refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from minga.errors import CaseError
from minga.models.waves import (
    Attenuation,
    Cpml,
    Faces,
    Free,
    Medium,
    Periodic,
    PointSource,
    Receivers,
    Release,
    Ricker,
    Rigid,
    Shot,
    Sponge,
    linearised_shots,
    prepare,
    shot_born,
    shot_traces,
)
from minga.models.waves.medium import Floats
from minga.models.waves.waves import Waves

SHAPE, SAMPLES = (12, 16), 8
Z, X = np.meshgrid(*(np.arange(float(n)) for n in SHAPE), indexing="ij")
ENTRIES: dict[str, Floats] = {
    "vp": 2000 + 9 * Z + 4 * X, "rho": 1500 + 50 * Z - 30 * X, "epsilon": 0.2 + 0.002 * Z, "delta": 0.1 + 0.002 * X,
    "theta": 0.3 + 0.02 * X,
}  # fmt: skip
EQUATIONS: dict[str, tuple[str, ...]] = {
    "isotropic": ("vp",), "density": ("vp", "rho"), "vertical": ("vp", "epsilon", "delta"),
    "tilted": ("vp", "epsilon", "delta", "theta"), "selfadjoint": ("vp", "epsilon", "delta", "theta"),
}  # fmt: skip
BOUNDARIES: dict[str, Any] = {
    "sponge": Sponge(4), "free": Faces(Sponge(4), z=(Free(), Sponge(4))), "matched": Cpml(4),
    "matched, free": Faces(Cpml(4), z=(Free(), Cpml(4))), "experimental": Cpml(4, experimental=True),
    "walls": Faces(Release(), z=(Release(), Rigid())), "periodic": Faces(Release(), x=Periodic()),
}  # fmt: skip
COMBINATIONS = [*itertools.product(EQUATIONS, BOUNDARIES, (2, 4), (False, True), (("p",), ("p", "vz", "vx")))]


def reason(equations: str, boundary: str, order: int, lossy: bool, record: tuple[str, ...]) -> str | None:
    """Return a part of the message that refuses a combination; None for those that are computed."""
    tilted = equations in ("tilted", "selfadjoint")
    if tilted and boundary in ("matched", "matched, free"):
        return "not known to be stable"
    if equations == "selfadjoint" and boundary in ("experimental", "free", "walls"):
        return "selfadjoint|need the form"
    if lossy and boundary == "experimental":
        return "attenuation with"
    if record != ("p",) and boundary == "periodic" and equations != "vertical":
        return r"within \d cells of the periodic ends of x"  # slopes between cells; none is so far inside
    return "velocit" if record != ("p",) and equations not in ("isotropic", "density") else None


def prepared(equations: str, boundary: str, order: int, lossy: bool, entries: dict[str, Floats]) -> Waves:
    options: dict[str, Any] = {
        "dt": 6e-4, "order": 4, "dtype": "f8", "boundary": BOUNDARIES[boundary], "time_order": order,
        "form": "selfadjoint" if equations == "selfadjoint" else "fletcher",
        "attenuation": Attenuation(20.0 + Z) if lossy else None,
    }  # fmt: skip
    first, medium = (Medium(**{name: values[name] for name in EQUATIONS[equations]}) for values in (ENTRIES, entries))
    extremes = prepare(SHAPE, 10.0, medium=first, **options).extremes
    return prepare(SHAPE, 10.0, medium=medium, extremes=extremes, **options)


@pytest.mark.slow
@pytest.mark.parametrize(("equations", "boundary", "order", "lossy", "record"), COMBINATIONS)
def test_it_is_exact_or_refused(equations: str, boundary: str, order: int, lossy: bool, record: Any) -> None:
    """Born modelling and gradients are transposes, and the remainder of a Taylor polynomial is of second order."""
    kind = equations, boundary, order, lossy
    shot = Shot(
        [PointSource((43.0, 72.0), Ricker(30.0, 0.01))], Receivers([(52.0, 81.0), (70.0, 68.0)], every=3),
        np.zeros((SAMPLES, 2 * len(record))), record,
    )  # fmt: skip
    if (said := reason(*kind, record)) is not None:
        with pytest.raises(CaseError, match=said):
            shot_traces(prepared(*kind, ENTRIES), shot, SAMPLES)
        return
    waves, wrt = prepared(*kind, ENTRIES), EQUATIONS[equations]
    if record != ("p",):  # which depends on rho at the receivers
        wrt = ("vp",)
    jacobian, rng = linearised_shots([waves], [shot], wrt), np.random.default_rng(1)
    x, y = rng.standard_normal(jacobian.shape[1]), rng.standard_normal(jacobian.shape[0])
    there, back = jacobian.matvec(x), jacobian.rmatvec(y)
    assert abs(there @ y - x @ back) < 1e-12 * np.linalg.norm(there) * np.linalg.norm(y) != 0
    scale = {"vp": 30.0, "rho": 20.0}
    change = {name: scale.get(name, 0.01) * rng.standard_normal(SHAPE) for name in wrt}
    born, before = shot_born(waves, shot, change, SAMPLES), shot_traces(waves, shot, SAMPLES)

    def rest(h: float) -> float:
        changed = prepared(*kind, ENTRIES | {name: ENTRIES[name] + h * change[name] for name in wrt})
        return float(np.linalg.norm(shot_traces(changed, shot, SAMPLES) - before - h * born))

    sizes = [0.1 / 2**k for k in range(4)]
    assert np.polyfit(np.log(sizes), np.log([rest(h) for h in sizes]), 1)[0] == pytest.approx(2.0, abs=0.02)
