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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader
from minga.lang.kernel import Kernel
from minga.lang.math import exp, expm1
from minga.models.photodiode.recurrence import weights_of
from minga.models.photodiode.solver.coefficient_fields import Pieces
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.solver.physics import (
    WEAKEST,
    EdgeValues,
    fields_of,
    filled,
    ionisation_coefficient,
)
from minga.models.photodiode.solver.terminal import inner_edges
from minga.models.photodiode.solver.thresholds import DeadSpace
from minga.space.field import Field, Register, Slot

__all__ = ["LEAST", "History", "Paths", "Starts", "ionised", "totals"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Readers = Sequence[CellReader]

SLIGHT: Final = 1e-3
"""Energy in eV at which a carrier has entered the field."""
_ROOM: Final = 1e-9
"""Relative difference up to which energies may differ by rounding."""
LEAST: Final = 1e-3
"""Field in V/cm below which the energy that carriers gain is that of this field: nothing in neutral layers."""


@dataclass(frozen=True, eq=False)
class History:
    """Recorder of coefficients with dead space on the edges of a device with one axis.

    Attributes
    ----------
    pieces
        Coefficients of electrons and holes, `a` times the share of the pairs with dead space.
    step
        Slope of the potential, V/cm.
    carriers
        What is known of electrons and of holes.
    longest, place
        Largest dead space over the mean free path of local coefficients, and its edge.
    """

    coefficients: Coefficients
    space: DeadSpace
    pieces: tuple[Pieces, Pieces] = field(init=False)
    step: Field = field(init=False)
    carriers: tuple[_Carrier, _Carrier] = field(init=False)
    longest: Register = field(default_factory=lambda: Register("longest dead space"))
    place: Register = field(default_factory=lambda: Register("edge of the longest dead space", "i8"))

    def __post_init__(self) -> None:
        grid = self.coefficients.device.grid
        object.__setattr__(self, "pieces", tuple(
            replace(own, a=tuple(Field(f"{item.name} with dead space", grid, centre="x") for item in own.a))
            for own in self.coefficients.ionising[0]
        ))  # fmt: skip
        object.__setattr__(self, "step", Field("slope of the potential", grid, centre="x"))
        object.__setattr__(self, "carriers", tuple(
            _Carrier(*(Field(f"{what} of {which}", grid, centre="x") for what in ("rate", "depth", "left", "whole")))
            for which in ("electrons", "holes")
        ))  # fmt: skip

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return *self._shared, self.step, *(item for own in self.carriers for item in own.all)

    @property
    def _shared(self) -> tuple[Field, ...]:
        return tuple(item for own in self.pieces for item in own.a)

    def record(self, program: Program, state: Sequence[Slot], edges: EdgeValues) -> None:
        """Record the coefficients for a state and the fluxes of its edges."""
        own = self.coefficients
        inner = inner_edges(own.device.grid.shape, 0)
        rates, depths = ([getattr(one, what) for one in self.carriers] for what in ("rate", "depth"))
        models = [item for part in own.ionising[0] for item in fields_of(part)]
        program.apply(
            _rates(own.ionising[0]), state[0], own.edges[0].slope, models, [self.step, *rates], region=inner
        )  # fmt: skip
        half, paths = own.edges[0].half, self.paths
        program.call_global(paths.depths, reads=[half, self.step, *rates], writes=[*depths, self.longest, self.place])
        for one in self.carriers:
            program.apply(_PASSED, one.depth, one.left, one.whole, region=inner)
        given = [item for part in own.ionising[0] for item in part.a]
        program.call_global(
            paths.shares,
            reads=[half, edges.electrons.value, edges.holes.value, self.step, *self.known, *given],
            writes=self._shared,
        )

    @property
    def known(self) -> list[Field]:
        """Fields of both carriers that their ionisation follows from."""
        return [item for one in self.carriers for item in one.all]

    @property
    def paths(self) -> Paths:
        """The functions of whole fields."""
        device = self.coefficients.device
        electrons, holes = (own[0].a[0][1:-1] != 0.0 for own in (device.ionisation_n, device.ionisation_p))
        return Paths((electrons, holes), len(self.coefficients.ionising[0][0].a), self.space)


@dataclass(frozen=True, slots=True, eq=False)
class _Carrier:
    """Fields on the edges for one kind of carriers.

    rate    ionisation coefficient of the local model
    depth   mean number of ionisations by a carrier that passes
    left    probability that it does not ionise
    whole   probability that it does
    """

    rate: Field
    depth: Field
    left: Field
    whole: Field

    @property
    def all(self) -> tuple[Field, ...]:
        return self.rate, self.depth, self.left, self.whole


def _rates(pieces: tuple[Pieces, Pieces]) -> Kernel:
    """Return the kernel of the slope of the potential, and of the coefficients of the local model."""

    def rates(potential: CellReader, slope: CellReader, models: Readers, out: Readers) -> None:
        step = (potential[0] - potential[-1]) * slope[0]
        strength = mg.max(mg.abs(step), WEAKEST)
        rest = list(models)
        out[0][0] = step
        for item, own in zip(out[1:], pieces, strict=True):
            known = filled(own, rest, (0,))
            item[0] = ionisation_coefficient(known, strength) if known.a else strength * 0.0

    return Kernel(rates, name="ionisation coefficients")


def _passed(depth: CellReader, left: CellReader, whole: CellReader) -> None:
    left[0] = exp(-depth[0])
    whole[0] = -expm1(-depth[0])


_PASSED: Final = Kernel(_passed, name="ionisation on edges")


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """The functions of whole fields that a Program calls.

    ionising    edges between nodes with coefficients of electrons and of holes
    pieces      number of pieces of the coefficient of electrons
    space       threshold energies
    """

    ionising: tuple[Bools, Bools]
    pieces: int
    space: DeadSpace

    def depths(self, half: Floats, step: Floats, *rates: Floats) -> tuple[Floats | float, ...]:
        """Return the depths of both carriers, the longest dead space in mean free paths, and its edge."""
        slope = step[1:-1]
        longest = np.zeros(slope.size)
        found: list[Floats] = []
        for k, (threshold, local) in enumerate(zip(self.thresholds, rates, strict=True)):
            depth = np.zeros(local.size)
            if threshold > 0.0:
                rate, free = self.space.beyond(local[1:-1], np.maximum(np.abs(slope), WEAKEST), threshold)
                longest = np.maximum(longest, free)
                for part, lengths, strength in self.stretches(k, slope, half):
                    depth[1:-1][part] = _depth(rate[part], lengths, strength, threshold)
            found.append(depth)
        worst = int(np.argmax(longest))
        return *found, float(longest[worst]), worst

    def shares(
        self, half: Floats, electrons: Floats, holes: Floats, step: Floats, *others: Floats
    ) -> tuple[Floats, ...]:
        """Return the coefficients `a` of both carriers, times the shares of the pairs with dead space.

        `others` are the known fields of both carriers, then their coefficients of the local model.
        """
        slope, known, given = step[1:-1], others[:8], others[8:]
        found: list[Floats] = []
        for k, (flux, threshold) in enumerate(zip((electrons, holes), self.thresholds, strict=True)):
            local, *passing = (item[1:-1] for item in known[4 * k : 4 * k + 4])
            share = np.ones(slope.size)
            if threshold > 0.0:
                share[self.ionising[k]] = 0.0
                size = np.abs(flux[1:-1])
                for part, lengths, strength in self.stretches(k, slope, half):
                    events = _events([item[part] for item in passing], lengths, strength, size[part], threshold)
                    plain = local[part] * lengths * size[part]
                    share[part] = np.where(plain > 0.0, events / np.where(plain > 0.0, plain, 1.0), 0.0)
            own = given[self.pieces :] if k else given[: self.pieces]
            found += [np.concatenate((one[:1], one[1:-1] * share, one[-1:])) for one in own]
        return tuple(found)

    @property
    def thresholds(self) -> tuple[float, float]:
        """Threshold energies of electrons and holes, eV."""
        return self.space.electrons, self.space.holes

    def stretches(self, k: int, slope: Floats, half: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
        """Yield the stretches of carrier `k`, with the lengths of their edges and the field on them.

        `half` has half the length of each edge, the outer ones included.
        """
        gained, edges = np.maximum(np.abs(slope), LEAST), 2.0 * half[1:-1]
        toward = -slope if k else slope
        for part in _stretches(self.ionising[k], toward, gained * edges, self.thresholds[k]):
            yield part, edges[part], gained[part]


def _stretches(ionising: Bools, slope: Floats, energy: Floats, threshold: float) -> Iterator[slice]:
    """Yield stretches of edges with coefficients through which carriers move one way, in the order they pass them.

    Carriers move to larger x where `slope` is positive. Stretches on which they gain less than the threshold energy are
    left out; there are many in neutral layers.
    """
    kind = np.where(ionising, np.where(slope >= 0.0, 1, -1), 0)
    ends = np.concatenate(([0], np.flatnonzero(np.diff(kind)) + 1, [kind.size]))
    enough = np.add.reduceat(energy, ends[:-1]) > threshold * (1.0 - _ROOM)
    for k in np.flatnonzero(enough & (kind[ends[:-1]] != 0)):
        low, high = int(ends[k]), int(ends[k + 1])
        yield slice(low, high) if kind[low] > 0 else slice(high - 1, low - 1 if low else None, -1)


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
    depth = _depth(rate, lengths, strength, threshold)
    return _events([depth, portable.exp(-depth), -portable.expm1(-depth)], lengths, strength, flux, threshold)


def _depth(rate: Floats, lengths: Floats, strength: Floats, threshold: float) -> Floats:
    """Return the mean number of ionisations on each edge by a carrier that passes it, 0 before the threshold energy."""
    energy = np.cumsum(strength * lengths)
    found: Floats = rate * lengths * np.clip((energy - threshold) / (strength * lengths), 0.0, 1.0)
    return found


def _events(passing: Sequence[Floats], lengths: Floats, strength: Floats, flux: Floats, threshold: float) -> Floats:
    """Return the pairs on each edge as `ionised`; `passing` are depth, left and whole of `_Carrier`."""
    depth, left, whole = passing
    if not depth.any():
        return np.zeros(lengths.size)
    found: Floats = np.diff(np.array(totals(depth, left, whole, Starts.of(lengths, strength, flux, threshold))[0]))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Starts:
    """Starts of the carriers that gain the threshold energy up to the end of each edge.

    nodes, energy    places of the nodes, cm, and energy gained up to them, eV
    middles          places at which fluxes are known: the ends and the middles of edges
    begun            where the carriers began: in an edge of number `edge`, after a `share` of it
    start            place from which on carriers count
    passed           flux there
    """

    nodes: Floats
    energy: Floats
    middles: Floats
    begun: Floats
    edge: NDArray[np.int64]
    share: Floats
    start: float
    passed: Floats

    @classmethod
    def of(cls, lengths: Floats, strength: Floats, flux: Floats, threshold: float) -> Starts:
        """Return the starts on a stretch."""
        nodes, energy = (np.concatenate(([0.0], np.cumsum(part))) for part in (lengths, strength * lengths))
        middles = np.concatenate((nodes[:1], 0.5 * (nodes[1:] + nodes[:-1]), nodes[-1:]))
        begun = np.interp(energy[1:] - threshold, energy, nodes)
        edge = np.minimum(np.searchsorted(nodes, begun, side="right") - 1, np.arange(lengths.size))
        share = (begun - nodes[edge]) / lengths[edge]
        # Carriers come from where the field begins: those in a neutral layer before it may flow back to a contact.
        start = float(np.interp(min(SLIGHT, threshold), energy, nodes))
        passed = np.interp(np.maximum(begun, start), middles, np.concatenate((flux[:1], flux, flux[-1:])))
        return cls(nodes, energy, middles, begun, edge, share, start, passed)


def totals(depth: Floats, left: Floats, whole: Floats, starts: Starts) -> tuple[list[float], list[float]]:
    """Return the ionisations Q up to each node, and J(x*) + Q(x*) at the end of each edge."""
    late, early = weights_of(depth, left, whole)
    # On the edges before `begin` nothing ionises.
    begin = int(np.argmax(depth > 0.0))
    known = (left, early, late, starts.edge, starts.share, starts.passed)
    steps = zip(*(item[begin:].tolist() for item in known), strict=True)
    total, source = [0.0] * (begin + 1), float(starts.passed[max(begin - 1, 0)])
    sources = [source] * begin
    for k, (stays, first, last, j, part, through) in enumerate(steps, begin):
        # dQ/dx = a (S - Q) with a linear S = J(x*) + Q(x*); where x* is on the same edge, Q(x*) depends on its end.
        now, rest = total[k], total[k] * stays + first * source
        if j < k:
            source = through + total[j] + part * (total[j + 1] - total[j])
            end = rest + last * source
        else:
            end = (rest + last * (through + now * (1.0 - part))) / (1.0 - last * part)
            source = through + now + part * (end - now)
        total.append(max(end, now))
        sources.append(source)
    return total, sources
