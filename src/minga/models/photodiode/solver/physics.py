"""The equations of a device and their derivatives, as kernels: what Newton's method asks for at a state.

A state is three fields: the potential phi, and the quasi-Fermi potentials of electrons and holes, in kT/q; that of
electrons counts from the cathode's, that of holes from the anode's, where they are majorities, so that the tiny
differences that carry large currents are not lost in a large number:

    n = Nref exp(phi + theta_n - electron),      p = Nref exp(hole + bias - phi - theta_p)

Fluxes through edges are Scharfetter and Gummel's, written so that they vanish exactly in equilibrium:

    Jn/q = -(Dn/h) n_high B(d) expm1(electron_high - electron_low),   d = (phi + theta_n)_high - (phi + theta_n)_low

With Fermi-Dirac statistics n is gamma times as much, and d has the difference of ln gamma in it, which is the
diffusion that degenerate carriers have more of.

Assembly goes in two kernels, over edges and over nodes, which write the blocks of `minga.solve.block_tridiagonal`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from minga.lang import functions as mg
from minga.lang.cell import CellReader
from minga.lang.derivative import derivative
from minga.lang.expr import Node, as_node, where
from minga.lang.kernel import Kernel
from minga.lang.math import exp, expm1, log, log1p
from minga.models.photodiode.solver.coefficients import EdgeNumbers, Emission, NodeNumbers, Pieces, Saturation
from minga.models.photodiode.solver.fermi import activity
from minga.models.photodiode.structure.constants import REFERENCE_DENSITY
from minga.solve.bernoulli import bernoulli_pair, relative_slope
from minga.solve.laplacian import step

__all__ = ["EdgeValues", "carriers", "edge_values", "emitted", "ionisation_coefficient", "recombination"]

Readers = Sequence[CellReader]

COUPLING = ((True, False, False), (True, True, False), (True, False, True))
"""Which unknowns of a neighbour enter an equation: potential, electrons, holes."""
IONISING = ((True, False, False), (True, True, True), (True, True, True))
"""The same with ionisation, where each carrier makes pairs of both."""
WEAKEST = 1e3
"""V/cm: below, nothing ionises."""


@dataclass(frozen=True, slots=True)
class Flux:
    """A flux through an edge from its low to its high node, over q, and its derivatives by both nodes' unknowns."""

    value: Any
    potential_low: Any
    potential_high: Any
    fermi_low: Any
    fermi_high: Any


@dataclass(frozen=True, slots=True)
class EdgeValues:
    """What the edges across an axis contribute; entries are fields, or what a kernel reads of them.

    electrons, holes   J/q, areas included
    pairs              that half an edge makes by ionisation, (alpha_n |Jn| + alpha_p |Jp|) h/2q, and its derivatives by
                       potential, electron and hole, each of the low and of the high node; empty without ionisation
    """

    electrons: Flux
    holes: Flux
    pairs: tuple[Any, ...] = ()

    @property
    def all(self) -> tuple[Any, ...]:
        """In a row, for lists of fields."""
        flux = tuple(getattr(part, item.name) for part in (self.electrons, self.holes) for item in fields(Flux))
        return *flux, *self.pairs

    @classmethod
    def of(cls, values: Sequence[Any]) -> EdgeValues:
        """From a row."""
        return cls(Flux(*values[:5]), Flux(*values[5:10]), tuple(values[10:]))


# Densities -----------------------------------------------------------------------------------------------------------
@functools.cache
def carriers(ndim: int) -> Kernel:
    """Densities of electrons and holes, 1/cm3, from a state.

    states      as in Coefficients; empty for Boltzmann statistics
    activities  where they are not: ln gamma of electrons and holes, and d ln n / d eta of each (see `fermi`)
    """
    here = (0,) * ndim

    def densities(
        state: Readers, theta_n: CellReader, theta_p: CellReader, states: Readers, n: CellReader, p: CellReader,
        activities: Readers, *, bias: Node,
    ) -> None:  # fmt: skip
        potential, electron, hole = (item[here] for item in state)
        levels = [potential + theta_n[here] - electron, (hole - theta_p[here]) + (bias - potential)]
        for k, band in enumerate(states):
            eta = levels[k] - band[here]
            behind = activity(eta)
            activities[k][here] = behind
            activities[2 + k][here] = 1.0 + derivative(behind, eta)
            levels[k] = levels[k] + behind
        n[here] = REFERENCE_DENSITY * exp(levels[0])
        p[here] = REFERENCE_DENSITY * exp(levels[1])

    return Kernel(densities, name="carrier densities")


# Edges ---------------------------------------------------------------------------------------------------------------
def scharfetter_gummel(mobile: Node, low: Node, high: Node, drift: Node, fermi: Node, sign: int) -> Flux:
    """Flux of electrons (sign +1) or holes (-1) over q.

    low, high   densities at the nodes
    drift       difference of phi + theta, high - low
    fermi       that of the quasi-Fermi potentials
    """
    ahead, back = bernoulli_pair(drift)
    if sign < 0:
        ahead, back = back, ahead
    # Both are what the flux is made of, and its derivatives by the quasi-Fermi potentials.
    from_high, from_low = mobile * high * ahead, mobile * low * back
    if sign > 0:
        value = where(fermi <= 0.0, -from_high * expm1(fermi), from_low * expm1(-fermi))
        slope = value * relative_slope(drift, back)
        low_slope, high_slope = -slope, value + slope
    else:
        value = where(fermi <= 0.0, -from_low * expm1(fermi), from_high * expm1(-fermi))
        slope = value * relative_slope(drift, ahead)
        low_slope, high_slope = -(value + slope), slope
    return Flux(value, low_slope, high_slope, from_low, -from_high)


def ionisation_coefficient(pieces: Pieces, strength: Node) -> Node:
    """alpha in 1/cm at a field in V/cm (above `WEAKEST`); entries of `pieces` are nodes or numbers."""
    count = len(pieces.a)

    def chosen(entries: tuple[Any, ...]) -> Any:
        value = entries[-1]
        if all(isinstance(item, float) for item in entries) and len(set(entries)) == 1:
            return value
        for k in reversed(range(count - 1)):
            value = where(strength < pieces.to[k], entries[k], value)
        return value

    a, b, m, power = (chosen(entries) for entries in (pieces.a, pieces.b, pieces.m, pieces.power))
    ratio = b / strength
    alpha: Node = a * exp(-_to_the(ratio, m))
    return alpha if isinstance(power, float) and power == 0.0 else alpha * _to_the(strength, power)


def _to_the(value: Node, exponent: Any) -> Node:
    """value ** exponent for value > 0, without a logarithm where the exponent is 0, 1 or 2 everywhere."""
    if isinstance(exponent, float) and exponent in (0.0, 1.0, 2.0):
        return {0.0: as_node(1.0), 1.0: value, 2.0: value * value}[exponent]
    general = exp(exponent * log(value))
    if isinstance(exponent, float):
        return general
    # Exact where it can be.
    return where(exponent == 1.0, value, where(exponent == 2.0, value * value, where(exponent == 0.0, 1.0, general)))


def saturated(saturation: Saturation, strength: Node) -> Node:
    """What a field leaves of a mobility, 1 / (1 + (ratio E)^exponent)^(1/exponent)."""
    reduced, exponent = saturation.ratio * strength, saturation.exponent
    if isinstance(exponent, float) and exponent == 1.0:
        return as_node(1.0 / (1.0 + reduced))
    safe = where(reduced > 0.0, reduced, 1.0)
    return where(reduced > 0.0, exp(-log1p(_to_the(safe, exponent)) / exponent), 1.0)


def emitted(emission: Emission, drift: Node, sign: int, kept: Any) -> tuple[Node, Node]:
    """What thermionic emission leaves of a flux of electrons (sign +1) or holes (-1), and its derivative by the drift.

    Drift and diffusion between the nodes and emission over the barrier carry the same flux one after the other. In
    densities at the barrier's top both are proportional to the difference of exp(quasi-Fermi potentials), so that
    1 / (1 + B(d) (D/h)/v) is left of what drift and diffusion would carry alone.

    kept   what the field leaves of the mobility
    """
    ahead, back = bernoulli_pair(drift)
    weights = (back, -back * relative_slope(-drift, ahead)), (ahead, ahead * relative_slope(drift, back))
    (low, low_slope), (high, high_slope) = weights if sign > 0 else weights[::-1]
    left = 1.0 / (1.0 + kept * (emission.low * low + emission.high * high))
    return left, -left * left * kept * (emission.low * low_slope + emission.high * high_slope)


def degenerate(flux: Flux, low: Node, high: Node) -> Flux:
    """A flux whose drift has differences of ln gamma in it, with its derivatives. `low`, `high`: d ln n / d eta.

    Densities and drift answer to the potential less by these factors, and to quasi-Fermi potentials by what is missing.
    """
    return Flux(
        flux.value,
        low * flux.potential_low,
        high * flux.potential_high,
        flux.fermi_low + (1.0 - low) * flux.potential_low,
        flux.fermi_high + (1.0 - high) * flux.potential_high,
    )


def slowed(flux: Flux, factor: Node, by_potential: Node) -> Flux:
    """A flux of carriers whose mobility is `factor` times as large, with its derivative by phi_high - phi_low."""
    change = flux.value * by_potential
    return Flux(
        flux.value * factor,
        flux.potential_low * factor - change,
        flux.potential_high * factor + change,
        flux.fermi_low * factor,
        flux.fermi_high * factor,
    )


def pairs_made(
    pieces: tuple[Pieces, Pieces], strength: Node, toward: Node, half: Node, electrons: Flux, holes: Flux
) -> tuple[Node, ...]:
    """What `EdgeValues.pairs` holds. `toward`: derivative of the field's strength by phi_high - phi_low."""
    total: Any = 0.0
    by_field: Any = 0.0
    by: dict[str, Any] = {}
    for name, flux, own in (("n", electrons, pieces[0]), ("p", holes, pieces[1])):
        if not own.a:
            continue
        alpha = half * ionisation_coefficient(own, strength)
        size = mg.abs(flux.value)
        total = total + alpha * size
        by_field = by_field + derivative(alpha, strength) * size
        signed = where(flux.value < 0.0, -alpha, alpha)
        by["low"] = by.get("low", 0.0) + signed * flux.potential_low
        by["high"] = by.get("high", 0.0) + signed * flux.potential_high
        by[f"{name} low"], by[f"{name} high"] = signed * flux.fermi_low, signed * flux.fermi_high
    change = by_field * toward
    found = (total, by["low"] - change, by.get("n low", 0.0), by.get("p low", 0.0), by["high"] + change,
             by.get("n high", 0.0), by.get("p high", 0.0))  # fmt: skip
    return tuple(half * 0.0 if isinstance(item, float) else item for item in found)


def filled(template: Any, readers: list[CellReader], place: tuple[int, ...]) -> Any:
    """Pieces, Emission or Saturation with what a kernel reads of their fields, taken from the front of `readers`."""

    def one(item: Any) -> Any:
        if isinstance(item, tuple):
            return tuple(map(one, item))
        return item if isinstance(item, float) else readers.pop(0)[place]

    return type(template)(*(one(getattr(template, item.name)) for item in fields(template)))


def fields_of(template: Any) -> list[Any]:
    """The fields among the entries of Pieces, Emission or Saturation, in the order of `filled`."""
    entries = [getattr(template, item.name) for item in fields(template)]
    flat = [item for entry in entries for item in (entry if isinstance(entry, tuple) else (entry,))]
    return [item for item in flat if not isinstance(item, float)]


def edge_values(
    ndim: int, axis: int, pieces: tuple[Pieces, Pieces] | None, slow: tuple[Emission | Saturation, ...] | None
) -> Kernel:
    """Fluxes through the inner edges across an axis, pairs they make, and derivatives: `EdgeValues` into fields.

    slow   what limits them, as in `Coefficients.saturation`
    """
    high, low = (0,) * ndim, step(ndim, axis, -1)

    def edges(
        state: Readers, n: CellReader, p: CellReader, theta_n: CellReader, theta_p: CellReader, activities: Readers,
        numbers: Readers, models: Readers, out: Readers,
    ) -> None:  # fmt: skip
        own = EdgeNumbers(*(item[high] for item in numbers))
        potential, electron, hole = (item[high] - item[low] for item in state)
        drift_n, drift_p = ((state[0][high] + t[high]) - (state[0][low] + t[low]) for t in (theta_n, theta_p))
        if activities:
            drift_n = drift_n + (activities[0][high] - activities[0][low])
            drift_p = drift_p - (activities[1][high] - activities[1][low])
        electrons = scharfetter_gummel(own.mobile_n, n[low], n[high], drift_n, electron, 1)
        holes = scharfetter_gummel(own.mobile_p, p[low], p[high], drift_p, hole, -1)
        field = mg.abs(potential) * own.slope
        toward = where(potential < 0.0, -own.slope, own.slope)
        rest = list(models)
        parts = [filled(template, rest, high) for template in slow or ()]
        emission = [part for part in parts if isinstance(part, Emission)]
        saturation = [part for part in parts if isinstance(part, Saturation)]
        slowed_down = []
        for k, (flux, drift, sign) in enumerate(((electrons, drift_n, 1), (holes, drift_p, -1))):
            kept = saturated(saturation[k], field) if saturation else None
            left: Any = 1.0
            if emission:
                left, by_drift = emitted(emission[k], drift, sign, 1.0 if kept is None else kept)
                flux = slowed(flux, left, by_drift)
            if activities:
                flux = degenerate(flux, activities[2 + k][low], activities[2 + k][high])
            if kept is not None:
                by_field = derivative(kept, field) * toward
                flux = slowed(flux, kept, by_field * left if emission else by_field)
            slowed_down.append(flux)
        electrons, holes = slowed_down
        pairs: tuple[Node, ...] = ()
        if pieces is not None:
            strength = mg.max(field, WEAKEST)
            own_pieces = (filled(pieces[0], rest, high), filled(pieces[1], rest, high))
            pairs = pairs_made(own_pieces, strength, toward, own.half, electrons, holes)
        for field_of, value in zip(out, EdgeValues(electrons, holes, pairs).all, strict=True):
            field_of[high] = value

    return Kernel(edges, name=f"edges across axis {axis}")


# Nodes ---------------------------------------------------------------------------------------------------------------
def recombination(node: NodeNumbers, n: Node, p: Node, split: Node, behind: Node | None = None) -> Node:
    """R in 1/cm3 s, with the split of the quasi-Fermi potentials in kT/q, and the sum of both ln gamma (None: 0)."""
    squared = node.intrinsic * node.intrinsic
    if behind is not None:
        squared = squared * exp(behind)
    return as_node(squared * expm1(split) * recombination_rate(node, n, p))


def recombination_rate(node: NodeNumbers, n: Node, p: Node) -> Node:
    """R over n p - nie^2, in cm3/s."""
    traps = node.rate_n * (n + node.intrinsic) + node.rate_p * (p + node.intrinsic)
    # 1 / (tau_p (n + n1) + tau_n (p + p1)), also where lifetimes are infinite.
    shockley = node.rate_n * node.rate_p / where(traps > 0.0, traps, 1.0)
    return as_node(shockley + node.radiative + node.auger_n * n + node.auger_p * p)
