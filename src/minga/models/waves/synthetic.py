"""Synthetic media defined by formulas: layers, a salt body below sediments, a fold and thrust belt.

Each is a function of position alone, so that any box of any size can be evaluated by itself, with the same bits on
every machine. Velocities are typical of the rocks. The symmetry axis is normal to the layers (tilted transverse
isotropy by deposition), so that theta is the dip of the layers, and phi the direction towards which the normal leans.
Densities are those of water, or follow from the velocity: rho = 310 vp^(1/4) in SI units (G. H. F. Gardner,
L. W. Gardner, A. R. Gregory, "Formation velocity and density", Geophysics 39(6), 1974).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.errors import CaseError, suggest
from minga.models.waves.domain import axes_of
from minga.models.waves.noise import Floats, arctan, arctan2, lattice, noise, ripple
from minga.space.box import Box

__all__ = ["KINDS", "QUANTITIES", "Layer", "Synthetic", "synthetic"]

QUANTITIES: Final = ("vp", "epsilon", "delta", "theta", "phi")
"""Quantities of a medium: P velocity along the axis (m/s), Thomsen's parameters, dip and azimuth of the axis."""

KINDS: Final = {
    "layered": "flat or dipping layers, each with a velocity of its own",
    "salt": "water, sediments that grow faster with depth, and a smooth random body of salt",
    "thrust": "folded layers, cut and pushed over each other along a dipping fault",
}
"""Kinds of media and their descriptions."""

Formula = Callable[[Floats, Floats, Floats], dict[str, Floats]]

_WATER, _SALT = 1500.0, 4480.0


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of a layered medium.

    Attributes
    ----------
    top
        Depth of its top at the middle of the model, m.
    vp
        Velocity at its top, m/s.
    gradient
        Increase of the velocity with depth, 1/s.
    epsilon, delta
        Thomsen's parameters.
    """

    top: float
    vp: float
    gradient: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0


_LAYERS: Final = (
    Layer(0.0, 1500.0),
    Layer(0.15, 1900.0, 0.3, 0.05, 0.02),
    Layer(0.35, 2400.0, 0.3, 0.12, 0.05),
    Layer(0.55, 2900.0, 0.2, 0.20, 0.08),
    Layer(0.75, 3600.0, 0.1, 0.10, 0.06),
)
"""Default layers; their tops are fractions of the model's depth."""


@dataclass(frozen=True, slots=True)
class Synthetic:
    """A medium defined by formulas: a value per cell of any box for each of its quantities, f4; angles in radians.

    Attributes
    ----------
    kind
        One of KINDS.
    shape, spacing
        Cells, and distances between them in m, along z, y, x, along z, x, or along z.
    of
        Function of z, y, x in m that returns all quantities.
    zero
        Quantities that are 0 everywhere.
    has_density
        Whether it has a density.
    """

    kind: str
    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    of: Formula
    zero: frozenset[str] = frozenset()
    has_density: bool = False

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the quantities."""
        return (*QUANTITIES, "rho") if self.has_density else QUANTITIES

    def values(self, box: Box) -> dict[str, NDArray[np.float32]]:
        """Return all quantities of a box of cells; cell 0 lies at 0 m.

        Without an axis y, they are those of the section y = 0, and theta is the angle between z and the projection of
        the axis of symmetry onto the section, positive towards x.
        """
        names = axes_of(len(self.shape))
        places = {
            name: (np.arange(low, high, dtype="f8") * step).reshape([-1 if name == other else 1 for other in names])
            for name, low, high, step in zip(names, box.lo, box.hi, self.spacing, strict=True)
        }
        found = self.of(*(places.get(name, np.zeros((1,) * len(names))) for name in "zyx"))
        if "y" not in names:
            theta, phi = found["theta"], found["phi"]
            across = portable.sin(theta) * portable.cos(phi)
            found = found | {"theta": arctan2(across, portable.cos(theta)), "phi": np.zeros(())}
        if self.has_density:
            found = found | {"rho": _density(found["vp"])}
        return {name: np.broadcast_to(found[name], box.shape).astype("f4") for name in self.quantities}


def _density(vp: Floats) -> Floats:
    return np.where(vp <= _WATER, 1000.0, 310.0 * np.sqrt(np.sqrt(vp)))


def synthetic(
    kind: str,
    shape: Sequence[int],
    spacing: Sequence[float],
    *,
    seed: int = 1,
    layers: Sequence[Layer] = (),
    dip: float = 0.0,
    azimuth: float = 0.0,
    anisotropy: float = 1.0,
    density: bool = False,
) -> Synthetic:
    """Return a synthetic medium.

    Parameters
    ----------
    kind
        One of KINDS.
    shape, spacing
        Cells, and distances between them in m, along z (down), y, x, along z, x, or along z.
    seed
        Integer that selects one of the random media; given layers do not depend on it.
    layers, dip, azimuth
        For ``"layered"``: the layers from the top down, by default five; their dip and its direction in degrees.
    anisotropy
        Factor of epsilon and delta: 0 makes the medium isotropic.
    density
        Whether the medium, which must then be isotropic, has a density that follows from the velocity.

    Raises
    ------
    CaseError
        If an argument is invalid.
    """
    if kind not in KINDS:
        raise CaseError(
            f"there is no synthetic medium {kind!r}; there are {', '.join(KINDS)}", suggestion=suggest(kind, KINDS)
        )
    if not 0 <= seed < 2**63:
        raise CaseError(f"seed: expected a whole number of 0 or more, found {seed}", key="seed")
    if not 0 <= anisotropy <= 2:
        raise CaseError(f"anisotropy: expected a factor from 0 to 2, found {anisotropy}", key="anisotropy")
    if abs(dip) > 60:
        raise CaseError(f"dip: expected at most 60 degrees, found {dip}", key="dip")
    names = axes_of(len(shape))
    if names == "z" and kind != "layered":
        raise CaseError(
            f"the medium {kind!r} has two or three axes", key="synthetic", remedy='choose "layered" for a model along z'
        )
    along = {name: n * step for name, n, step in zip(names, shape, spacing, strict=True)}
    lengths = [along.get(name, 0.0) for name in "zyx"]
    if kind == "layered":
        made = _layered(lengths, layers or [_scaled(layer, lengths[0]) for layer in _LAYERS], dip, azimuth)
    else:
        made = {"salt": _salt, "thrust": _thrust}[kind](lengths, seed)

    zero = _zero(kind, layers, dip, anisotropy)
    if density and "epsilon" not in zero:
        raise CaseError(
            "a density in an anisotropic medium", key="density", remedy="make the medium isotropic: anisotropy = 0.0"
        )

    def of(z: Floats, y: Floats, x: Floats) -> dict[str, Floats]:
        values = made(z, y, x)
        scaled = {name: values[name] * anisotropy for name in ("epsilon", "delta")}
        return values | scaled | dict.fromkeys(zero, np.zeros(()))

    flat = frozenset(() if "y" in names else ("phi",))
    return Synthetic(kind, tuple(map(int, shape)), tuple(map(float, spacing)), of, zero | flat, density)


def _zero(kind: str, layers: Sequence[Layer], dip: float, anisotropy: float) -> frozenset[str]:
    """Return quantities that are 0 everywhere: the axis of an isotropic medium, or of one with flat layers, is z."""
    plain = all(layer.epsilon == 0 and layer.delta == 0 for layer in layers) if layers else False
    if anisotropy == 0 or (kind == "layered" and plain):
        return frozenset(("epsilon", "delta", "theta", "phi"))
    return frozenset(("theta", "phi") if kind == "layered" and dip == 0 else ())


def _scaled(layer: Layer, depth: float) -> Layer:
    return Layer(layer.top * depth, layer.vp, layer.gradient, layer.epsilon, layer.delta)


def _layered(lengths: Sequence[float], layers: Sequence[Layer], dip: float, azimuth: float) -> Formula:
    tops = [layer.top for layer in layers]
    if tops != sorted(set(tops)) or not all(math.isfinite(top) for top in tops):
        raise CaseError(f"depths: expected the layers' tops from the top down, found {tops}", key="depths")
    for layer in layers:
        if not (math.isfinite(layer.vp) and layer.vp > 0):
            raise CaseError(f"velocities: expected m/s above 0, found {layer.vp}", key="velocities")
    slope = portable.tan(math.radians(dip))
    to_x, to_y = slope * portable.cos(math.radians(azimuth)), slope * portable.sin(math.radians(azimuth))
    middle_y, middle_x = lengths[1] / 2, lengths[2] / 2

    def of(z: Floats, y: Floats, x: Floats) -> dict[str, Floats]:
        # Layers rise in the direction of the azimuth; pointing downwards, their normal leans that way, too.
        depth = z + to_x * (x - middle_x) + to_y * (y - middle_y)
        number = np.searchsorted(np.array(tops[1:]), depth, side="right")

        def take(name: str) -> Floats:
            values: Floats = np.array([getattr(layer, name) for layer in layers])[number]
            return values

        below = np.maximum(depth - np.maximum(take("top"), 0.0), 0.0)
        tilted = (take("epsilon") != 0) | (take("delta") != 0)
        return {
            "vp": take("vp") + take("gradient") * below,
            "epsilon": take("epsilon"),
            "delta": take("delta"),
            "theta": np.where(tilted, math.radians(abs(dip)), 0.0),
            "phi": np.where(tilted, math.radians(azimuth if dip >= 0 else azimuth + 180.0), 0.0),
        }

    return of


def _salt(lengths: Sequence[float], seed: int) -> Formula:
    depth, wide_y, wide_x = lengths
    size = min(depth, max(wide_y, wide_x))
    centre = (0.55 * depth, _near(seed, 1, wide_y), _near(seed, 2, wide_x))
    radii = (0.22 * depth, 0.30 * max(wide_y, size / 2), 0.26 * max(wide_x, size / 2))

    def sea_floor(y: Floats, x: Floats) -> Floats:
        return depth * (0.10 + 0.02 * noise(seed + 11, y / size * 2.0, x / size * 2.0))

    def uplift(y: Floats, x: Floats) -> Floats:
        """Return the distance by which sediments were lifted above and beside the body, m."""
        away = ((y - centre[1]) / radii[1]) ** 2 + ((x - centre[2]) / radii[2]) ** 2
        return 0.13 * depth / (1.0 + away) ** 2 + 0.03 * depth * noise(seed + 12, y / size * 1.5, x / size * 1.5)

    def of(z: Floats, y: Floats, x: Floats) -> dict[str, Floats]:
        floor = sea_floor(y, x)
        buried = np.minimum(np.maximum(z - floor, 0.0) / (0.3 * depth), 1.0)  # the uplift vanishes at the sea floor
        age = z - floor + buried * uplift(y, x)
        values = _sediments(seed, age, depth)
        dip, lean = _normal(lambda b, a: -uplift(b, a), y, x, size, buried)
        rough = 0.35 * noise(seed + 13, z / size * 4.0, y / size * 4.0, x / size * 4.0)
        rough = rough + 0.15 * noise(seed + 14, z / size * 9.0, y / size * 9.0, x / size * 9.0)
        inside = sum(((p - c) / r) ** 2 for p, c, r in zip((z, y, x), centre, radii)) < 1.0 + rough
        water, salt = z < floor, inside & (z > floor + 0.05 * depth)
        plain = water | salt
        return {
            "vp": np.where(water, _WATER, np.where(salt, _SALT, values["vp"])),
            "epsilon": np.where(plain, 0.0, values["epsilon"]),
            "delta": np.where(plain, 0.0, values["delta"]),
            "theta": np.where(plain, 0.0, dip),
            "phi": np.where(plain, 0.0, lean),
        }

    return of


def _thrust(lengths: Sequence[float], seed: int) -> Formula:
    depth, wide_y, wide_x = lengths
    size = min(depth, max(wide_y, wide_x))
    waves = 1.3 / max(wide_x, 1e-9)

    def fold(y: Floats, x: Floats) -> Floats:
        bend = 0.12 * noise(seed + 21, y / size * 1.5)  # axes of folds are not straight
        return 0.11 * depth * ripple(x * waves + bend) + 0.03 * depth * noise(seed + 22, y / size * 2.0, x / size * 2.0)

    def of(z: Floats, y: Floats, x: Floats) -> dict[str, Floats]:
        surface = 0.30 * depth + 0.9 * (x - 0.35 * wide_x) + 0.05 * depth * noise(seed + 23, y / size * 2.0)
        above = z < surface
        push, throw = np.where(above, 0.16 * wide_x, 0.0), np.where(above, 0.10 * depth, 0.0)
        age = z + fold(y, x - push) + throw + 0.12 * depth
        values = _sediments(seed, age, depth, 2200.0)
        dip, lean = _normal(lambda b, a: -fold(b, a - push), y, x, size, np.ones(()))
        return {"vp": values["vp"], "epsilon": values["epsilon"], "delta": values["delta"], "theta": dip, "phi": lean}

    return of


def _near(seed: int, number: int, length: float) -> float:
    """Return a random position near the middle of a length."""
    return length * (0.5 + 0.08 * float(lattice(seed + 10, np.asarray(number))))


def _sediments(seed: int, age: Floats, depth: float, surface: float = 1650.0) -> dict[str, Floats]:
    """Return beds by depth of burial: velocity increases by compaction, and beds differ in velocity and anisotropy."""
    bed = np.floor(age / (depth / 14.0)).astype(np.int64)
    harder, shale = lattice(seed + 31, bed), 0.5 + 0.5 * lattice(seed + 32, bed)
    epsilon = 0.22 * shale
    return {
        "vp": surface + 1900.0 * np.maximum(age, 0.0) / depth + 170.0 * harder,
        "epsilon": epsilon,
        "delta": epsilon * (0.35 + 0.2 * lattice(seed + 33, bed)),
    }


def _normal(
    depth_of: Callable[[Floats, Floats], Floats], y: Floats, x: Floats, size: float, part: Floats
) -> tuple[Floats, Floats]:
    """Return dip and azimuth of the normal of a horizon z = depth_of(y, x), whose slope is weighted by `part`."""
    step = size * 1e-3
    down_x = (depth_of(y, x + step) - depth_of(y, x - step)) / (2.0 * step) * part
    down_y = (depth_of(y + step, x) - depth_of(y - step, x)) / (2.0 * step) * part
    # z points down: the normal (nz, ny, nx) = (1, -dz/dy, -dz/dx).
    return arctan(np.sqrt(down_x * down_x + down_y * down_y)), arctan2(-down_y, -down_x)
