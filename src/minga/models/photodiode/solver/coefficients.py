"""Coefficients of a device as fields for kernels: everything that depends on position only, computed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.models.photodiode.solver.coefficient_fields import (
    EdgeCoefficients,
    Emission,
    NodeCoefficients,
    Pieces,
    Saturation,
)
from minga.models.photodiode.solver.coefficient_values import POTENTIAL, edge_values, node_values, on_edges
from minga.models.photodiode.solver.node_models import (
    BandTunnelling,
    TrapTunnelling,
    gradient_weights,
    surface_values,
)
from minga.models.photodiode.structure.barrier import Barrier, Heights, barriers_of
from minga.models.photodiode.structure.constants import REFERENCE_DENSITY
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.ionisation import EdgeIonisation
from minga.space.field import Field

__all__ = ["Coefficients"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Fields of a device's coefficients, and their values.

    Attributes
    ----------
    varied
        True if other devices of the same structure will provide values: then no coefficient is a number in kernels.
    nodes
        Fields of NodeCoefficients.
    states
        ln(Nc/Nref) and ln(Nv/Nref) at the nodes, for Fermi-Dirac statistics; empty for Boltzmann statistics.
    edges
        Fields of EdgeCoefficients, one set per axis.
    ionising
        For each axis the pieces of electrons and of holes.
    saturation
        For each axis the limits of the flux of electrons and holes: Emission of both, if considered, and Saturation of
        both, if mobilities depend on the field; None if there are neither.
    tunnelling
        Models of tunnelling in use.
    gradients
        With them, weights of squares of differences to both neighbours along each axis in the mean square of a
        gradient, (V/cm)^2.
    surface
        Velocities of recombination of electrons and holes at surfaces times area over volume, 1/s, and the carrier that
        a contact does not hold (1 electrons, 2 holes); empty without surfaces.
    dopants
        Fields of NodeDopants if dopants may be neutral, else empty.
    barriers
        Schottky contacts whose barriers depend on the field.
    free
        The unknown that a contact does not hold: the level of electrons (1) or holes (2), the potential (`POTENTIAL`);
        empty if contacts hold all.
    held
        Not 0 where a contact holds all unknowns.
    values
        Values by field.
    """

    device: Device
    varied: bool = False
    nodes: NodeCoefficients = field(init=False)
    states: tuple[Field, ...] = field(init=False)
    edges: tuple[EdgeCoefficients, ...] = field(init=False)
    ionising: tuple[tuple[Pieces, Pieces], ...] = field(init=False)
    saturation: tuple[tuple[Emission | Saturation, ...], ...] | None = field(init=False)
    tunnelling: tuple[BandTunnelling | TrapTunnelling, ...] = field(init=False)
    gradients: tuple[Field, ...] = field(init=False)
    surface: tuple[Field, ...] = field(init=False)
    dopants: tuple[Field, ...] = field(init=False)
    barriers: tuple[Barrier, ...] = field(init=False)
    free: tuple[Field, ...] = field(init=False)
    held: Field = field(init=False)
    values: dict[Field, NDArray[Any]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        device, axes = self.device, range(self.device.grid.ndim)
        put = object.__setattr__
        put(self, "nodes", NodeCoefficients(**{k: self._keep(k, v) for k, v in node_values(device).items()}))
        degenerate = device.statistics == "fermi-dirac"
        bands = (("ln Nc", device.nc), ("ln Nv", device.nv)) if degenerate else ()
        put(self, "states", tuple(self._keep(name, portable.log(v / REFERENCE_DENSITY)) for name, v in bands))
        put(self, "edges", tuple(
            EdgeCoefficients(**{k: self._keep(k, v, axis) for k, v in edge_values(device, axis).items()})
            for axis in axes
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
        put(self, "tunnelling", tuple(self._tunnelling()))
        edges = [edge_values(device, axis) for axis in axes] if self.tunnelling else []
        sides = [
            pair for axis, own in enumerate(edges) for pair in gradient_weights(device, axis, own["half"], own["slope"])
        ]
        put(self, "surface", tuple(self._keep(*item) for item in surface_values(device)))
        given = () if device.dopants is None else fields(device.dopants)
        put(self, "dopants", tuple(self._keep(item.name, getattr(device.dopants, item.name)) for item in given))
        put(self, "barriers", tuple(map(self._barrier, barriers_of(device))))
        free = np.zeros(device.grid.shape, np.uint8) if device.surface is None else device.surface.free.copy()
        for barrier in self.barriers:
            free[device.terminal(barrier.terminal).nodes] = POTENTIAL
        put(self, "free", (self._keep("unknown that a contact does not hold", free),) if free.any() else ())
        held = self.nodes.contact
        put(
            self, "held", self._keep("held", np.where(free > 0, np.uint8(0), self.values[held])) if free.any() else held
        )
        put(self, "gradients", tuple(self._keep(*item) for item in sides))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return tuple(self.values)

    @property
    def tunnelling_fields(self) -> list[Field]:
        """Fields of the models of tunnelling, in their order."""
        entries = [getattr(model, name) for model in self.tunnelling for name in model.__dataclass_fields__]
        return [item for item in entries if isinstance(item, Field)]

    def _keep(self, name: str, values: NDArray[Any], axis: int | None = None) -> Field:
        grid = self.device.grid
        place = "" if axis is None else f" across {grid.axes[axis]}"
        kind = "u1" if values.dtype == np.uint8 else "f8"
        made = Field(name + place, grid, kind, centre=() if axis is None else grid.axes[axis])
        self.values[made] = values
        return made

    def _number_or_field(self, name: str, values: Floats, counts: NDArray[np.bool_], axis: int | None = None) -> Any:
        """Return a number if all relevant edges or nodes share the same value, otherwise a field."""
        found = np.unique(values[counts])
        return self._keep(name, values, axis) if self.varied or found.size > 1 else float(found[0])

    def _pieces(self, carrier: str, given: EdgeIonisation, axis: int) -> Pieces:
        counts = given.a[0] != 0.0
        if not counts.any():
            return Pieces((), (), (), (), ())
        last = given.pieces - 1

        def entries(name: str, values: Floats, count: int) -> tuple[Any, ...]:
            return tuple(
                self._number_or_field(f"{name} of {carrier} {k}", values[k], counts, axis) for k in range(count)
            )

        # `a` marks the edges without ionisation, so it is a field.
        a = tuple(self._keep(f"ionisation a of {carrier} {k}", given.a[k], axis) for k in range(given.pieces))
        return Pieces(
            a,
            entries("ionisation b", given.b, given.pieces),
            entries("ionisation m", given.m, given.pieces),
            entries("ionisation power", given.power, given.pieces),
            entries("ionisation to", given.to, last),
        )

    def _tunnelling(self) -> Iterator[BandTunnelling | TrapTunnelling]:
        device = self.device
        given = device.tunnelling
        if given is None:
            return
        bands = (("ln Nc/nie", device.nc), ("ln Nv/nie", device.nv))
        logs = [self._keep(name, portable.log(states / device.nie)) for name, states in bands]
        if given.band is not None:
            a, b, power = given.band
            yield BandTunnelling(
                self._keep("tunnelling a", a),
                self._number_or_field("tunnelling b", b, a > 0.0),
                self._number_or_field("tunnelling power", power, a > 0.0),
                *logs,
            )
        if given.trap is not None:
            yield TrapTunnelling(*map(self._keep, ("trap depth", "trap field"), given.trap), *logs)

    def _barrier(self, barrier: Barrier) -> Barrier:
        """Return a barrier with fields as its heights, if they vary."""
        if not self.varied:
            return barrier

        def kept(name: str, value: float) -> Field:
            return self._keep(f"{name} of {barrier.terminal}", np.full(self.device.grid.shape, value))

        own = barrier.heights
        electrons, holes = (
            tuple(kept(f"{what} of {carrier}", value) for what, value in zip(("barrier", "field"), side, strict=False))
            for carrier, side in (("electrons", own.electrons), ("holes", own.holes))
        )
        image = kept("image force", own.image) if own.image else own.image
        return replace(barrier, heights=Heights(kept("slope", own.slope), image, electrons, holes))

    def _emission(self, axis: int) -> tuple[Emission, ...]:
        """Return the emission of electrons and of holes; empty if emission does not limit them."""
        device = self.device
        if not device.emission:
            return ()
        edges = edge_values(device, axis)
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
        """Return the saturation of electrons and of holes; empty if mobilities do not depend on the field."""
        return tuple(self._saturation(*item, axis) for item in carriers) if self.device.field_mobility else ()

    def _saturation(self, carrier: str, mobility: Floats, velocity: Floats, exponent: Floats, axis: int) -> Saturation:
        ratio, power = (on_edges(values, axis) for values in (mobility / velocity, exponent))
        inside = self.device.areas[axis] > 0.0
        return Saturation(
            self._keep(f"mobility over velocity of {carrier}", ratio, axis),
            self._number_or_field(f"exponent of {carrier}", power, inside, axis),
        )
