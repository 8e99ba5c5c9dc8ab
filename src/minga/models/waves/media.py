"""Quantities of a medium from names, formulas and files, in SI units and radians.

A quantity is a number or a function of a box (z, y, x) of cells. Files and formulas are evaluated only for the boxes
that are needed, so that no process ever holds more than its own part of a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.waves.media_files import Volume
from minga.models.waves.medium import Medium, Quantity, sampled_boxes, slabs
from minga.models.waves.synthetic import Synthetic
from minga.space.box import Box

__all__ = ["NAMED", "from_volume", "is_zero", "named_medium", "of_synthetic", "only_value"]

NAMED: Final = {
    "iso": (3000.0, 0.0, 0.0, 0.0, 0.0),
    "vti": (3000.0, 0.24, 0.10, 0.0, 0.0),
    "tti": (3000.0, 0.24, 0.10, math.pi / 4, 1.0),
}
"""Test media of the public Fletcher codes: vp (m/s), epsilon, delta, theta, phi (radians)."""

_SLOWEST, _FASTEST = 100.0, 20000.0
"""Bounds of P velocities, m/s; rocks have 300 to 8500, so that only wrong units lie outside the bounds."""
_HEAVY = 20.0
"""Bound of densities, kg/m3: those of rocks in g/cm3 and of gases lie below it."""


def named_medium(name: str, ndim: int = 3) -> Medium:
    """Return one of the homogeneous test media in NAMED; its axis has no azimuth in models without y."""
    vp, epsilon, delta, theta, phi = NAMED[name]
    return Medium(vp, epsilon, delta, theta, phi if ndim == 3 else 0.0)


def of_synthetic(formulas: Synthetic) -> Medium:
    """Return a medium defined by formulas; results common to several quantities are computed once per box."""
    last: list[tuple[Box, Mapping[str, NDArray[np.float32]]]] = []

    def take(name: str) -> Callable[[Box], NDArray[np.float64]]:
        def of(box: Box) -> NDArray[np.float64]:
            kept = last[0] if last else None  # read once: another thread may store its own box here meanwhile
            if kept is None or kept[0] != box:
                kept = (box, formulas.values(box))
                last[:] = [kept]
            return kept[1][name].astype("f8")

        return of

    return Medium(**{name: 0.0 if name in formulas.zero else take(name) for name in formulas.quantities})


def from_volume(name: str, volume: Volume, unit: str | None, angles: str | None, key: str) -> Quantity:
    """Return a quantity of a file in SI units and radians; CaseError for an unknown or contradictory unit."""
    scale = _scale(name, volume.unit, unit, angles, key)
    if name in ("vp", "vs"):
        return lambda box: _checked(volume.values(box) * scale, box, volume.path.name, key)
    if name == "rho" and volume.unit is None and unit is None:
        _check_heavy(volume, key)
    return lambda box: volume.values(box) * scale


def is_zero(quantity: Quantity, shape: tuple[int, ...], sample: bool = False) -> bool:
    """Return whether a quantity is 0 in all cells, or in a sample of them; stop at the first that is not."""
    if callable(quantity):
        return not any(np.any(quantity(box)) for box in sampled_boxes(shape, sample))
    return not np.any(quantity)


def only_value(quantity: Quantity, shape: tuple[int, ...], sample: bool = False) -> float | None:
    """Return the value of a quantity that is equal in all cells, or in a sample of them; None if there are others."""
    if not callable(quantity):
        return float(quantity) if np.ndim(quantity) == 0 else None
    found: set[float] = set()
    for box in sampled_boxes(shape, sample):
        values = quantity(box)
        found |= {float(values.min()), float(values.max())}
        if len(found) > 1:
            return None
    return found.pop()


def _scale(name: str, said: str | None, unit: str | None, angles: str | None, key: str) -> float:
    """Return the factor of a file's values; `said` is the file's unit, `unit` and `angles` are the case's."""
    if name in ("vp", "vs"):
        known = {"m/s": 1.0, "m s-1": 1.0, "km/s": 1e3, "km s-1": 1e3}
        default: str | None = "m/s"
    elif name in ("theta", "phi"):
        known = {"degree": 1, "degrees": 1, "deg": 1, "radian": 2, "radians": 2, "rad": 2}
        known = {word: math.pi / 180 if number == 1 else 1.0 for word, number in known.items()}
        default, unit = None, unit or angles
    elif name == "rho":
        known = dict.fromkeys(("kg/m3", "kg m-3", "g/l"), 1.0)
        known |= dict.fromkeys(("g/cm3", "g cm-3", "g/cc", "g/ml", "t/m3", "t m-3", "kg/l", "kg/dm3"), 1e3)
        default = "kg/m3"
    else:
        known, default = {"1": 1.0, "": 1.0}, "1"
    for source, word in (("the file", said), ("the case", unit)):
        if word is not None and _plain(word) not in known:
            raise CaseError(f"the unit of {name} is {word!r} in {source}, expected {', '.join(known)}", key=key)
    if said is not None and unit is not None and known[_plain(said)] != known[_plain(unit)]:
        raise CaseError(
            f"the file says that {name} is in {said}, the case says {unit}", key=key, remedy="make them agree"
        )
    word = said if said is not None else unit if unit is not None else default
    if word is None:
        raise CaseError(
            f"neither the file nor the case states the unit of {name}",
            key=key,
            remedy='add angles = "degree" or "radian"',
        )
    return known[_plain(word)]


def _plain(unit: str) -> str:
    """Return a unit in the one spelling that tables have: "kg m-3" for "kg m**-3", "kg.m^-3" and others."""
    for sign, other in (
        ("**", ""),
        ("^", ""),
        ("\N{SUPERSCRIPT THREE}", "3"),
        *((dot, " ") for dot in ".*\N{MIDDLE DOT}"),
    ):
        unit = unit.replace(sign, other)
    return " ".join(unit.lower().split())


def _check_heavy(volume: Volume, key: str) -> None:
    """Raise CaseError for densities of a file without a unit that are those of no rock or liquid, but of gases."""
    most = 0.0
    for box in slabs(volume.cells):
        most = max(most, float(volume.values(box).max()))
        if not most < _HEAVY:
            return
    if most > 0:
        raise CaseError(
            f"{volume.path.name}: the largest density is {most:.6g} kg/m3, not that of a rock",
            key=key,
            remedy='if it is in g/cm3, add unit = "g/cm3"; for gases, unit = "kg/m3"',
        )


def _checked(values: NDArray[np.float64], box: Box, file: str, key: str) -> NDArray[np.float64]:
    """Return velocities that rocks can have; CaseError for others, which have another unit or are damaged.

    Values that are not finite or not positive are reported when the whole medium is inspected.
    """
    most = values.max() if values.size else np.nan
    if 0 < most < _SLOWEST:
        remedy = 'if it is in km/s, add unit = "km/s"' if most < 20 else "give velocities in m/s"
    elif most > _FASTEST:
        remedy = "give velocities in m/s"
    else:
        return values
    at = np.unravel_index(int(np.argmax(values)), values.shape)
    cell = tuple(int(i) + low for i, low in zip(at, box.lo))
    raise CaseError(
        f"{file}: {most:.6g} m/s in cell {cell} (z, y, x) is not a plausible velocity of a rock", key=key, remedy=remedy
    )
