"""Impact ionisation with dead space: a carrier ionises only after it has gained a threshold energy since its birth.

A carrier begins anew where it is born, and where it has ionised. With Q the ionisations by carriers of one kind up to a
place, and J their flux, those that may ionise at x are those that passed x*, from where they gain the threshold energy
up to x, but for those that have ionised since:

    dQ/dx = a(x) (J(x*) - (Q(x) - Q(x*)))

This is the flux form of the recurrences of Hayat, Saleh and Teich (IEEE Trans. Electron Devices 39, 546 (1992)); with a
uniform field and flux it yields J/(1/a + d). Carriers enter each stretch of edges with coefficients without energy, and
drift. On an edge the fluxes of Scharfetter and Gummel ionise with `a` times the share of these pairs among those of the
local model, at the same state: a converged solution satisfies the equation above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.engine.program import Program
from minga.models.photodiode.dead_space import event_weights
from minga.models.photodiode.solver.coefficient_fields import Pieces
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.solver.physics import WEAKEST, EdgeValues
from minga.models.photodiode.solver.thresholds import DeadSpace
from minga.models.photodiode.structure.ionisation import EdgeIonisation
from minga.space.field import Field, Register, Slot

__all__ = ["LONGEST_SPACE", "History", "ionised"]

Floats = NDArray[np.float64]

LONGEST_SPACE: Final = 0.9
"""Largest dead space over the mean free path of local coefficients that a solution may have."""
SLIGHT: Final = 1e-3
"""Energy in eV at which a carrier has entered the field."""
LEAST: Final = 1e-3
"""Field in V/cm below which the energy that carriers gain is that of this field: nothing in neutral layers."""


@dataclass(frozen=True, eq=False)
class History:
    """Recorder of coefficients with dead space on the edges of a device with one axis.

    Attributes
    ----------
    pieces
        Coefficients of electrons and holes, `a` times the share of the pairs with dead space.
    longest, place
        Largest dead space over the mean free path of local coefficients, and its edge.
    """

    coefficients: Coefficients
    space: DeadSpace
    pieces: tuple[Pieces, Pieces] = field(init=False)
    longest: Register = field(default_factory=lambda: Register("longest dead space"))
    place: Register = field(default_factory=lambda: Register("edge of the longest dead space", "i8"))

    def __post_init__(self) -> None:
        grid = self.coefficients.device.grid
        object.__setattr__(self, "pieces", tuple(
            replace(own, a=tuple(Field(f"{item.name} with dead space", grid, centre="x") for item in own.a))
            for own in self.coefficients.ionising[0]
        ))  # fmt: skip

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return tuple(item for own in self.pieces for item in own.a)

    def record(self, program: Program, state: Sequence[Slot], edges: EdgeValues) -> None:
        """Record the coefficients for a state and the fluxes of its edges."""
        device = self.coefficients.device
        both = (device.ionisation_n[0], device.ionisation_p[0])
        program.call_global(
            _shares(both, device.lengths[0][1:-1], device.thermal_voltage, self.space),
            reads=[state[0], edges.electrons.value, edges.holes.value],
            writes=[*self.fields, self.longest, self.place],
        )


def _shares(
    both: tuple[EdgeIonisation, EdgeIonisation], lengths: Floats, thermal: float, space: DeadSpace
) -> Callable[..., tuple[Floats | float, ...]]:
    """Return the function of a state that a Program calls."""

    def shares(potential: Floats, electrons: Floats, holes: Floats) -> tuple[Floats | float, ...]:
        slope = np.diff(potential) * (thermal / lengths)
        strength = np.maximum(np.abs(slope), WEAKEST)
        found: list[Floats | float] = []
        gained = np.maximum(np.abs(slope), LEAST)
        longest = np.zeros(lengths.size)
        for own, flux, threshold, sign in ((both[0], electrons, space.electrons, 1), (both[1], holes, space.holes, -1)):
            if not own.a[0].any():
                continue
            local = own.at(np.concatenate((strength[:1], strength, strength[-1:])))[1:-1]
            rate, share = local, np.ones(lengths.size)
            if threshold > 0.0:
                free = local * threshold / strength if space.local else np.zeros(lengths.size)
                longest = np.maximum(longest, free)
                rate = local / (1.0 - np.minimum(free, LONGEST_SPACE))
                size = np.abs(flux[1:-1])
                for part in _stretches(own.a[0][1:-1] != 0.0, sign * slope):
                    events = ionised(rate[part], lengths[part], gained[part], size[part], threshold)
                    plain = local[part] * lengths[part] * size[part]
                    share[part] = np.where(plain > 0.0, events / np.where(plain > 0.0, plain, 1.0), 0.0)
            found += [np.concatenate((one[:1], one[1:-1] * share, one[-1:])) for one in own.a]
        worst = int(np.argmax(longest))
        return *found, float(longest[worst]), worst

    return shares


def _stretches(ionising: NDArray[np.bool_], slope: Floats) -> Iterator[slice]:
    """Yield stretches of edges with coefficients through which carriers move one way, in the order they pass them.

    Carriers move to larger x where `slope` is positive.
    """
    kind = np.where(ionising, np.where(slope >= 0.0, 1, -1), 0)
    ends = np.flatnonzero(np.diff(kind)) + 1
    for low, high in zip([0, *ends.tolist()], [*ends.tolist(), kind.size], strict=True):
        if kind[low] > 0:
            yield slice(low, high)
        elif kind[low] < 0:
            yield slice(high - 1, low - 1 if low else None, -1)


def ionised(rate: Floats, lengths: Floats, strength: Floats, flux: Floats, threshold: float) -> Floats:
    """Return the pairs that carriers generate on each edge, per unit of time and area of the flux.

    Parameters
    ----------
    rate
        Ionisation coefficient of carriers beyond their dead space, 1/cm, on edges in the order they are passed.
    lengths, strength
        Lengths of the edges, cm, and field on them, V/cm, positive.
    flux
        Flux of the carriers on the edges.
    threshold
        Energy to gain before each ionisation, eV.

    Returns
    -------
    NDArray
        The pairs, f8 of the shape of `rate`.
    """
    nodes, energy = (np.concatenate(([0.0], np.cumsum(part))) for part in (lengths, strength * lengths))
    if not energy[-1] > threshold:
        return np.zeros(lengths.size)
    middles = np.concatenate((nodes[:1], 0.5 * (nodes[1:] + nodes[:-1]), nodes[-1:]))
    # Where each carrier that gains the threshold energy up to the end of an edge began: its edge, and share of that.
    begun = np.interp(energy[1:] - threshold, energy, nodes)
    edge = np.minimum(np.searchsorted(nodes, begun, side="right") - 1, np.arange(lengths.size))
    share = (begun - nodes[edge]) / lengths[edge]
    # Carriers come from where the field begins: those in a neutral layer before it may flow back to a contact.
    start = np.interp(min(SLIGHT, threshold), energy, nodes)
    passed = np.interp(np.maximum(begun, start), middles, np.concatenate((flux[:1], flux, flux[-1:])))
    depth = rate * lengths * np.clip((energy[1:] - threshold) / (strength * lengths), 0.0, 1.0)
    late, early = event_weights(depth)
    steps = zip(*(item.tolist() for item in (portable.exp(-depth), early, late, edge, share, passed)), strict=True)
    total, source = [0.0], float(passed[0])
    for k, (left, first, last, j, part, through) in enumerate(steps):
        # dQ/dx = a (S - Q) with a linear S = J(x*) + Q(x*); where x* is on the same edge, Q(x*) depends on its end.
        now, rest = total[k], total[k] * left + first * source
        if j < k:
            source = through + total[j] + part * (total[j + 1] - total[j])
            end = rest + last * source
        else:
            end = (rest + last * (through + now * (1.0 - part))) / (1.0 - last * part)
            source = through + now + part * (end - now)
        total.append(max(end, now))
    found: Floats = np.diff(np.array(total))
    return found
