"""The numbers of a device as fields that kernels read: what depends on the place only, worked out once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.models.photodiode.solver.fermi import activity_of
from minga.models.photodiode.structure.constants import CHARGE, REFERENCE_DENSITY, VACUUM
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.ionisation import EdgeIonisation
from minga.space.field import Field

__all__ = [
    "ANODE",
    "CATHODE",
    "Coefficients",
    "EdgeNumbers",
    "Emission",
    "NodeNumbers",
    "Pieces",
    "Saturation",
    "neutral_potential",
    "on_edges",
]

Floats = NDArray[np.float64]

ANODE = 1
CATHODE = 2


@dataclass(frozen=True, slots=True)
class NodeNumbers:
    """At the nodes; units are cm and s.

    volume          times 1/cm3 gives 1/cm2 with one axis, 1/cm with two
    doping          donors minus acceptors, 1/cm3
    theta_n, theta_p   of Device
    intrinsic       nie, 1/cm3
    rate_n, rate_p  1/tau, 0 where there is no such recombination
    radiative, auger_n, auger_p   as in Device
    generation      by the light, 1/cm3 s
    contact         0, or ANODE or CATHODE
    neutral         potential without charge and without voltage, kT/q
    """

    volume: Any
    doping: Any
    theta_n: Any
    theta_p: Any
    intrinsic: Any
    rate_n: Any
    rate_p: Any
    radiative: Any
    auger_n: Any
    auger_p: Any
    generation: Any
    contact: Any
    neutral: Any


@dataclass(frozen=True, slots=True)
class EdgeNumbers:
    """On the edges across an axis, 0 on the outermost ones.

    coupling     eps Vt/(q h) times area: charge per kT/q of a difference, 1/cm2 (one axis)
    mobile_n, mobile_p   D/h times area, cm/s (one axis)
    slope        Vt/h: V/cm per kT/q of a difference
    half         half of the way between the nodes, cm
    """

    coupling: Any
    mobile_n: Any
    mobile_p: Any
    slope: Any
    half: Any


@dataclass(frozen=True, slots=True)
class Pieces:
    """Ionisation coefficients of one carrier on the edges across an axis: a E^power exp(-(b/E)^m) for E below `to`.

    An entry for each piece: a field, or a number that holds on all edges. The last piece has no end.
    """

    a: tuple[Any, ...]
    b: tuple[Any, ...]
    m: tuple[Any, ...]
    power: tuple[Any, ...]
    to: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Saturation:
    """Mobilities that fall with the field, mu / (1 + (ratio E)^exponent)^(1/exponent), of one carrier on the edges.

    ratio       mobility over saturation velocity, cm/V: a field
    exponent    a field, or a number that holds on all edges
    """

    ratio: Any
    exponent: Any


@dataclass(frozen=True, slots=True)
class Emission:
    """Thermionic emission of one carrier on the edges: D/h over its velocity, where the barrier's top is at the low
    node, and where it is at the high one; fields, 0 where nothing is emitted."""

    low: Any
    high: Any


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Fields of a device's numbers and their values.

    nodes       of NodeNumbers
    states      ln(Nc/Nref) and ln(Nv/Nref) at the nodes, for Fermi-Dirac statistics; empty for Boltzmann's
    edges       of EdgeNumbers, one for each axis
    ionising    for each axis the pieces of electrons and of holes
    saturation  for each axis what slows electrons and holes: Emission of both, if there is any, and Saturation of both,
                if mobilities depend on the field; None where there is neither
    values      by field
    """

    device: Device
    nodes: NodeNumbers = field(init=False)
    states: tuple[Field, ...] = field(init=False)
    edges: tuple[EdgeNumbers, ...] = field(init=False)
    ionising: tuple[tuple[Pieces, Pieces], ...] = field(init=False)
    saturation: tuple[tuple[Emission | Saturation, ...], ...] | None = field(init=False)
    values: dict[Field, NDArray[Any]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        device, axes = self.device, range(self.device.grid.ndim)
        put = object.__setattr__
        put(self, "nodes", NodeNumbers(**{k: self._keep(k, v) for k, v in _node_values(device).items()}))
        degenerate = device.statistics == "fermi-dirac"
        bands = (("ln Nc", device.nc), ("ln Nv", device.nv)) if degenerate else ()
        put(self, "states", tuple(self._keep(name, np.log(v / REFERENCE_DENSITY)) for name, v in bands))
        put(self, "edges", tuple(
            EdgeNumbers(**{k: self._keep(k, v, axis) for k, v in _edge_values(device, axis).items()}) for axis in axes
        ))  # fmt: skip
        put(self, "ionising", tuple(
            (self._pieces("electrons", device.ionisation_n[axis], axis),
             self._pieces("holes", device.ionisation_p[axis], axis))
            for axis in axes
        ))  # fmt: skip
        carriers = (
            ("electrons", device.mobility_n, device.velocity_n, device.exponent_n),
            ("holes", device.mobility_p, device.velocity_p, device.exponent_p),
        )
        slow = tuple((*self._emission(axis), *self._saturations(carriers, axis)) for axis in axes)
        put(self, "saturation", slow if slow[0] else None)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All of them, for a Model."""
        return tuple(self.values)

    def _keep(self, name: str, values: NDArray[Any], axis: int | None = None) -> Field:
        grid = self.device.grid
        place = "" if axis is None else f" across {grid.axes[axis]}"
        kind = "u1" if values.dtype == np.uint8 else "f8"
        made = Field(name + place, grid, kind, centre=() if axis is None else grid.axes[axis])
        self.values[made] = values
        return made

    def _number_or_field(self, name: str, values: Floats, counts: NDArray[np.bool_], axis: int) -> Any:
        """A number where all edges that count have the same."""
        found = np.unique(values[counts])
        return float(found[0]) if found.size == 1 else self._keep(name, values, axis)

    def _pieces(self, carrier: str, given: EdgeIonisation, axis: int) -> Pieces:
        counts = given.a[0] != 0.0
        if not counts.any():
            return Pieces((), (), (), (), ())
        last = given.pieces - 1

        def entries(name: str, values: Floats, count: int) -> tuple[Any, ...]:
            return tuple(
                self._number_or_field(f"{name} of {carrier} {k}", values[k], counts, axis) for k in range(count)
            )

        # `a` says where nothing ionises, so it is a field.
        a = tuple(self._keep(f"ionisation a of {carrier} {k}", given.a[k], axis) for k in range(given.pieces))
        return Pieces(
            a,
            entries("ionisation b", given.b, given.pieces),
            entries("ionisation m", given.m, given.pieces),
            entries("ionisation power", given.power, given.pieces),
            entries("ionisation to", given.to, last),
        )

    def _emission(self, axis: int) -> tuple[Emission, ...]:
        """Of electrons and of holes; nothing where it does not limit them."""
        device = self.device
        if not device.emission:
            return ()
        edges = _edge_values(device, axis)
        areas = np.where(device.areas[axis] > 0.0, device.areas[axis], 1.0)
        found = []
        for carrier, mobile, sides in (
            ("electrons", edges["mobile_n"], device.emission[axis][:2]),
            ("holes", edges["mobile_p"], device.emission[axis][2:]),
        ):
            names = (f"emission of {carrier} from the {end} node" for end in ("low", "high"))
            found.append(
                Emission(*(self._keep(n, mobile / areas * s, axis) for n, s in zip(names, sides, strict=True)))
            )
        return tuple(found)

    def _saturations(self, carriers: Sequence[tuple[str, Floats, Floats, Floats]], axis: int) -> tuple[Saturation, ...]:
        """Of electrons and of holes; nothing where mobilities do not depend on the field."""
        return tuple(self._saturation(*item, axis) for item in carriers) if self.device.field_mobility else ()

    def _saturation(self, carrier: str, mobility: Floats, velocity: Floats, exponent: Floats, axis: int) -> Saturation:
        ratio, power = (on_edges(values, axis) for values in (mobility / velocity, exponent))
        inside = self.device.areas[axis] > 0.0
        return Saturation(
            self._keep(f"mobility over velocity of {carrier}", ratio, axis),
            self._number_or_field(f"exponent of {carrier}", power, inside, axis),
        )


def on_edges(values: Floats, axis: int) -> Floats:
    """Means of the two nodes of each edge across an axis; on the outermost ones the value of their only node."""
    low = np.concatenate((np.take(values, [0], axis), values), axis)
    high = np.concatenate((values, np.take(values, [-1], axis)), axis)
    return 0.5 * (low + high)


def neutral_potential(device: Device) -> Floats:
    """kT/q: where holes - electrons + doping = 0 at every node by itself, without a voltage."""
    middle = -0.5 * (device.theta_n + device.theta_p)
    found: Floats = middle + np.arcsinh(device.doping / (2.0 * device.nie))
    if device.statistics == "boltzmann":
        return found
    # Where one carrier is degenerate the other counts for nothing, and in between Boltzmann's is right.
    levels = np.log(device.nc / REFERENCE_DENSITY), np.log(device.nv / REFERENCE_DENSITY)
    for _ in range(100):
        eta_n, eta_p = found + device.theta_n - levels[0], -found - device.theta_p - levels[1]
        n, p = (states * np.exp(eta + activity_of(eta)) for states, eta in ((device.nc, eta_n), (device.nv, eta_p)))
        change = (n - p - device.doping) / (n + p)
        found = found - np.clip(change, -0.5, 0.5)
        if float(np.abs(change).max()) < 1e-15:
            break
    return found


def _node_values(device: Device) -> dict[str, NDArray[Any]]:
    contact = np.zeros(device.grid.shape, np.uint8)
    contact[device.terminal("anode").nodes] = ANODE
    contact[device.terminal("cathode").nodes] = CATHODE
    return {
        "volume": device.volumes,
        "doping": device.doping,
        "theta_n": device.theta_n,
        "theta_p": device.theta_p,
        "intrinsic": device.nie,
        "rate_n": 1.0 / device.tau_n,
        "rate_p": 1.0 / device.tau_p,
        "radiative": device.radiative,
        "auger_n": device.auger_n,
        "auger_p": device.auger_p,
        "generation": device.generation,
        "contact": contact,
        "neutral": neutral_potential(device),
    }


def _edge_values(device: Device, axis: int) -> dict[str, Floats]:
    thermal, area = device.thermal_voltage, device.areas[axis]
    place = [1] * device.grid.ndim
    place[axis] = -1
    length = device.lengths[axis].reshape(place)
    inside = np.where(area > 0.0, 1.0, 0.0)
    return {
        "coupling": area * on_edges(device.permittivity, axis) * (VACUUM * thermal / CHARGE) / length,
        "mobile_n": area * on_edges(device.mobility_n, axis) * thermal / length,
        "mobile_p": area * on_edges(device.mobility_p, axis) * thermal / length,
        "slope": inside * thermal / length,
        "half": 0.5 * inside * length,
    }
