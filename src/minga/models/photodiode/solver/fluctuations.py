"""Noise of the current from that of all events in the device, each weighted with its effect on the terminals.

A pair that appears at a node changes the current by M = lambda_n - lambda_p charges, the collection of
`minga.models.photodiode.solver.collection`, and a carrier that crosses an edge by the difference of its lambda at both
ends, directly by the weight w of the edge in the current, and by the pairs that it generates on its way. Events of a
rate r are independent, and contribute 2 q^2 r times the square of their effect:

    light, generation and recombination    pairs per volume, M^2
    ionisation                             pairs of an edge, half of them at each end, M^2
    diffusion                              2 sqrt(r_low r_high), (lambda_high - lambda_low + w - pairs M)^2

where r_low and r_high are the rates of carriers that cross an edge from either end; their difference is the flux of
Scharfetter and Gummel. The pairs are the derivative of those of the edge by its flux: majority carriers that cross an
edge and return yield none, as ionisation depends on net fluxes. In equilibrium this is Nyquist's noise of the discrete
conductance, 4 kT G. The square root leaves out the noise of drift along edges on which the potential changes by much
more than kT/q.

The excess noise factor is that of the multiplication. Of the pairs that the light makes at a place, the part c is
collected without ionisation (`minga.models.photodiode.solver.primaries`), each with the gain M/c, so that they count
with M^2/c, and so do those that ionisation adds because of them: the change of its rates for a small change of the
light. The photocurrent without ionisation is the sum of g c, and F = sum of (g + more) M^2/|c| / (I0 Mbar^2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.engine.program import Program
from minga.lang.expr import as_node
from minga.models.photodiode.solver.biasing import Track
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.solver.small_signal import SmallSignal
from minga.models.photodiode.solver.transposed import Transposed
from minga.models.photodiode.structure.depletion import photocurrent_sign
from minga.models.photodiode.structure.device import Device
from minga.space.field import Field, Register

__all__ = ["Fluctuations"]

Floats = NDArray[np.float64]
LEAST = 1e-12
"""Collection of a pair without ionisation below which it adds no noise."""
SLIGHT = 1e-6
"""Difference of both quasi-Fermi potentials, kT/q, below which generation and recombination are equal."""


@dataclass(frozen=True, eq=False)
class Fluctuations:
    """Recorder of the noise of a curve.

    Attributes
    ----------
    signal
        The small signals about the solution.
    adjoint
        The adjoint of the current.
    """

    track: Track
    problem: Problem
    signal: SmallSignal
    adjoint: Transposed = field(init=False)

    def __post_init__(self) -> None:
        name = f"{self.track.name} noise "
        object.__setattr__(self, "adjoint", Transposed(self.track.equations, self.problem.linear, name))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields but those of the signal, for a Model."""
        return self.adjoint.fields

    def record(
        self, program: Program, collected: Field, gain: Register, excess: Register, share: Register, intensity: Register
    ) -> None:
        """Record gain and excess noise factor of the light, its collection, and the rate of all events, 1/cm2 s.

        `collected` is that of pairs without ionisation. Each event counts with the square of its effect. The
        signal has to be linearised, and answers to the light afterwards.
        """
        track, signal, equations = self.track, self.signal, self.track.equations
        c, state = equations.coefficients, track.state
        signal.factorise(program, as_node(0.0))
        signal.solve(program, signal.response)
        sign = photocurrent_sign(c.device) * c.device.direction
        light = 1.0 if track.curve == "lit" else 0.0
        self.adjoint.record(program, state.now, state.bias, light, sign)
        size = len(signal.currents) // len(equations.edges)
        edges = [
            item
            for edge in equations.edges
            for item in (edge.electrons.fermi_low, edge.electrons.fermi_high, edge.holes.fermi_low,
                         edge.holes.fermi_high, *(edge.pairs[k] for k in (0, 2, 5, 3, 6) if edge.pairs))
        ]  # fmt: skip
        pairs = 3  # the real part of those of an edge, see `edge_currents`
        responses = signal.currents[pairs::size] if equations.ionisation else ()
        program.call_global(
            _noise_of(c.device, sign, light, equations.ionisation),
            reads=[
                *self.adjoint.solution[1:], self.adjoint.weights, c.nodes.generation, c.nodes.volume, signal.net[2],
                signal.net[3], state.electron.now, state.hole.now, state.bias, collected, *edges, *responses,
            ],
            writes=[gain, excess, share, intensity],
        )  # fmt: skip


def _noise_of(device: Device, sign: float, brightness: float, ionising: bool) -> Callable[..., tuple[float, ...]]:
    """Return the function of fields that a Program calls."""
    ndim = device.grid.ndim
    held = np.any([item.nodes for item in device.terminals], axis=0)
    width = float(device.areas[0][1].sum())

    def noise(
        electrons: Floats, holes: Floats, weights: Floats, generation: Floats, volume: Floats, by_hole: Floats,
        net: Floats, fn: Floats, fp: Floats, bias: float, alone: Floats, *rest: Floats,
    ) -> tuple[float, ...]:  # fmt: skip
        electrons, holes = (np.where(held, 0.0, item) for item in (electrons, holes))
        size = 9 if ionising else 4
        edges = [rest[axis * size : (axis + 1) * size] for axis in range(ndim)]
        charges = electrons - holes
        square = charges**2
        lit = generation * volume
        current, single = _sum(lit * charges), _sum(lit * alone)
        size_alone = np.abs(alone)
        counted = np.where(size_alone > LEAST, square / np.maximum(size_alone, LEAST), 0.0)
        more = _at_nodes(rest[ndim * size :]) if ionising else np.zeros(net.shape)
        gain = current / single if single != 0.0 else math.nan
        excess = _sum((lit + more) * counted) * abs(single) / current**2 if current != 0.0 else math.nan
        split = (fp - fn) + float(bias)
        far = np.abs(split) > SLIGHT
        ratio = 1.0 + 2.0 / portable.expm1(np.where(far, split, 1.0))
        both = np.where(far, (net + brightness * lit) * ratio, 2.0 * by_hole)
        events = np.where(held, 0.0, both + brightness * lit)
        if ionising:
            events = events + _at_nodes([edge[4] for edge in edges])
        total = _sum(events * square)
        for axis, edge in enumerate(edges):
            direct = sign * weights if axis == 0 else 0.0
            for k, level in enumerate((electrons, holes)):
                low, high = edge[2 * k : 2 * k + 2]
                effect = _risen(level, axis) + direct
                if ionising:
                    effect = effect - _pairs_per_charge(low, high, *edge[5 + 2 * k : 7 + 2 * k]) * _ends(charges, axis)
                hops = 2.0 * np.sqrt(np.maximum(-low * high, 0.0))
                total += _sum(hops * effect**2)
        return gain, excess, single / _sum(lit), total / width

    return noise


def _sum(values: Floats) -> float:
    return math.fsum(values.ravel().tolist())


def _at_nodes(pairs: Sequence[Floats]) -> Floats:
    """Return the pairs of both edges along each axis at every node."""
    found: Any = 0.0
    for axis, item in enumerate(pairs):
        count = item.shape[axis]
        found = found + np.take(item, range(1, count), axis) + np.take(item, range(count - 1), axis)
    return np.asarray(found)


def _pairs_per_charge(low: Floats, high: Floats, pairs_low: Floats, pairs_high: Floats) -> Floats:
    """Return the change of the pairs in half an edge for that of its flux, from the derivatives of both by a level."""
    here = np.abs(low) >= np.abs(high)
    flux, pairs = np.where(here, low, high), np.where(here, pairs_low, pairs_high)
    return np.where(flux != 0.0, pairs / np.where(flux != 0.0, flux, 1.0), 0.0)


def _ends(values: Floats, axis: int) -> Floats:
    """Return the sums of the values at both ends of the edges along an axis; 0 on the outermost edges."""
    count = values.shape[axis]
    sums = np.take(values, range(1, count), axis) + np.take(values, range(count - 1), axis)
    return np.pad(sums, [(int(k == axis), int(k == axis)) for k in range(values.ndim)])


def _risen(level: Floats, axis: int) -> Floats:
    """Return the differences along an axis on its edges, high minus low; 0 on the outermost ones."""
    wide = [(int(k == axis), int(k == axis)) for k in range(level.ndim)]
    return np.pad(np.diff(level, axis=axis), wide)
