"""Kernels of the five sub-cycles of the pointwise scheme: reset, phi, u, v and field.

The fields of an iteration have two slots, for the values before and after it. A sub-cycle sweeps along x; on one side
it reads values that it has already updated, on the other side values that it has not. At the end of a segment the
neighbour's value is that from before the iteration, in all sub-cycles, so a segment needs its neighbours' values only
once per iteration.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, cast
from minga.lang.kernel import Kernel
from minga.lang.math import exp, log
from minga.models.photodiode.pointwise.local import density_root, potential_change, spent
from minga.models.photodiode.solver.coefficient_fields import Pieces
from minga.models.photodiode.solver.physics import WEAKEST, filled, ionisation_coefficient
from minga.models.photodiode.structure.constants import CHARGE, REFERENCE_DENSITY
from minga.solve.bernoulli import bernoulli_pair

__all__ = [
    "Across",
    "changes",
    "continuity",
    "currents",
    "edge_field",
    "evenness",
    "made_at_nodes",
    "poisson",
    "ramp",
    "residual",
    "volts",
]

Across = Literal["exact", "block"]


@dataclass(frozen=True, slots=True)
class _Sides:
    """Segment membership of a node's neighbours: `first` and `last` mark the ends of segments."""

    first: CellReader
    last: CellReader

    def joined(self, offset: int) -> Node:
        """Return the condition that the neighbour belongs to the same segment."""
        flag = self.first if offset < 0 else self.last
        return flag[0] == 0


def _edge(item: CellReader, offset: int) -> Node:
    """Return the value of an edge field between a node and its neighbour."""
    return item[0] if offset < 0 else item[1]


@functools.cache
def poisson(direction: int, across: Across, again: bool, weight: float, synthetic: bool) -> Kernel:
    """Return the sub-cycle phi, which sets each node's potential so that its charge balances, neighbours fixed.

    Electron and hole densities follow as n exp(x) and p exp(-x), since their quasi-Fermi potentials are fixed. `steps`
    counts the Newton steps at each node.

    Parameters
    ----------
    direction
        Direction of the sweep along x, 1 or -1.
    across
        Coupling to blocks of other ranks.
    again
        Whether this is not the first such sweep of the iteration.
    weight
        Over-relaxation factor.
    synthetic
        Whether to spend the time of `labour` times as many Newton steps, and of `multiple` times more in `heavy` nodes.
        Results do not depend on it.
    """

    def phi(
        old: list[CellReader],
        new: list[CellReader],
        contact: CellReader,
        first: CellReader,
        last: CellReader,
        volume: CellReader,
        doping: CellReader,
        coupling: CellReader,
        steps: CellReader,
        heavy: CellReader,
        waste: CellReader,
        *,
        labour: Node,
        multiple: Node,
    ) -> None:
        sides = _Sides(first, last)
        present = new if again else old
        potential, electrons, holes = (item[0] for item in present)
        rate = coupling[0] + coupling[1]
        low = mg.where(sides.joined(-1), (new if again or direction > 0 else old)[0][-1], old[0][-1])
        high = mg.where(sides.joined(1), (new if again or direction < 0 else old)[0][1], old[0][1])
        excess = (
            coupling[0] * (potential - low)
            + coupling[1] * (potential - high)
            + volume[0] * (electrons - holes - doping[0])
        )
        free = contact[0] == 0
        # Contacts carry no equation; a trivial one keeps their loop short.
        rate, here_n, here_p = mg.where(free, rate, 1.0), volume[0] * electrons, volume[0] * holes
        x, rounds = potential_change(rate, mg.where(free, excess, 0.0), here_n, here_p)
        if synthetic:
            times = labour * mg.where(heavy[0] != 0, multiple, 1.0)
            more = mg.where(free, cast((times - 1.0) * cast(rounds, "f8") + 0.5, "i4"), 0)
            waste[0] = spent(rate, here_n, here_p, more)
            rounds = rounds + more
        x = mg.where(free, weight * x, 0.0) if weight != 1.0 else mg.where(free, x, 0.0)
        growth = exp(x)
        new[0][0] = potential + x
        new[1][0] = electrons * growth
        new[2][0] = holes / growth
        steps[0] = steps[0] + cast(mg.where(free, rounds, 0), "i8")

    return Kernel(phi, order={"x": direction}, across=across)


@dataclass(frozen=True, slots=True)
class _Carrier:
    """Fields of the state that belong to a carrier, and the sign of its potential energy."""

    name: str
    own: int
    other: int
    sign: int


_ELECTRONS = _Carrier("u", 1, 2, 1)
_HOLES = _Carrier("v", 2, 1, -1)


def _density(
    kind: _Carrier,
    state: list[Node],
    neighbour: Callable[[int], tuple[Node, Node]],
    theta: CellReader,
    mobile: CellReader,
    numbers: list[Node],
    source: Node,
) -> Node:
    """Return the density that balances a node's carriers; `neighbour` gives potential and density at an offset."""
    volume, intrinsic, rate_own, rate_other, radiative, auger_own, auger_other = numbers
    here = state[0] + theta[0]
    density, other = state[kind.own], state[kind.other]
    square = intrinsic * intrinsic
    lagged = volume * (radiative + auger_own * density + auger_other * other)
    out, inflow = lagged * other, source + lagged * square
    for offset in (-1, 1):
        phi, beside = neighbour(offset)
        rise = phi + theta[offset] - here
        inwards, outwards = bernoulli_pair(rise if kind.sign > 0 else -rise)
        conductance = _edge(mobile, offset)
        out = out + conductance * outwards
        inflow = inflow + conductance * inwards * beside
    across = rate_own * intrinsic + rate_other * (other + intrinsic)
    return density_root(out, inflow, volume * rate_own * rate_other, other, rate_own, across, square)


@functools.cache
def continuity(carrier: Literal["u", "v"], direction: int, across: Across, ionising: bool) -> Kernel:
    """Return the sub-cycle u (electrons) or v (holes), which balances each node's carriers with the neighbours fixed.

    Shockley-Read-Hall recombination at the node is treated implicitly; radiative and Auger rates use the previous
    densities, impact ionisation those of the previous iteration.
    """
    kind = _ELECTRONS if carrier == "u" else _HOLES

    def sweep(
        old: list[CellReader],
        new: list[CellReader],
        contact: CellReader,
        first: CellReader,
        last: CellReader,
        theta: CellReader,
        mobile: CellReader,
        numbers: list[CellReader],
        light: CellReader,
        made: list[CellReader],
        *,
        lit: Node,
    ) -> None:
        sides = _Sides(first, last)

        def neighbour(offset: int) -> tuple[Node, Node]:
            joined = sides.joined(offset)
            phi, density = (mg.where(joined, new[k][offset], old[k][offset]) for k in (0, kind.own))
            return phi, density

        source = numbers[0][0] * lit * light[0]
        if ionising:
            source = source + made[0][0]
        density = new[kind.own][0]
        found = _density(
            kind, [item[0] for item in new], neighbour, theta, mobile, [item[0] for item in numbers], source
        )
        new[kind.own][0] = mg.where(contact[0] == 0, found, density)

    return Kernel(sweep, order={"x": direction}, across=across, name=carrier)


# The sub-cycle field, on the edges between nodes ----------------------------------------------------------------------
def _fluxes(
    state: list[list[Node]], theta_n: CellReader, theta_p: CellReader, mobile_n: Node, mobile_p: Node
) -> tuple[Node, Node, Node]:
    """Return an edge's fluxes of electrons and holes over q, and a bound of their rounding; `state`: low, high."""
    (phi_low, n_low, p_low), (phi_high, n_high, p_high) = state
    rise_n = (phi_high + theta_n[0]) - (phi_low + theta_n[-1])
    rise_p = (phi_high + theta_p[0]) - (phi_low + theta_p[-1])
    ahead, back = bernoulli_pair(rise_n)
    into, away = n_high * ahead, n_low * back
    electrons, noise = mobile_n * (into - away), mobile_n * (into + away)
    ahead, back = bernoulli_pair(rise_p)
    into, away = p_low * ahead, p_high * back
    return electrons, mobile_p * (into - away), noise + mobile_p * (into + away)


def edge_field(pieces: tuple[Pieces, Pieces] | None) -> Kernel:
    """Return the sub-cycle field: the field on each edge, V/cm, and the pairs that ionisation in half of it generates.

    The first edge of a segment uses the values of its lower neighbour from before the iteration.
    """

    def field(
        old: list[CellReader],
        new: list[CellReader],
        first: CellReader,
        theta: list[CellReader],
        edges: list[CellReader],
        models: list[CellReader],
        strength: CellReader,
        made: list[CellReader],
    ) -> None:
        inner = first[0] == 0
        low = [mg.where(inner, b[-1], a[-1]) for a, b in zip(old, new, strict=True)]
        high = [item[0] for item in new]
        mobile_n, mobile_p, slope, half = (item[0] for item in edges)
        value = slope * (low[0] - high[0])
        strength[0] = value
        if pieces is None:
            return
        electrons, holes, _ = _fluxes([low, high], theta[0], theta[1], mobile_n, mobile_p)
        rest, size = list(models), mg.max(mg.abs(value), WEAKEST)
        total: Any = 0.0
        for template, flux in zip(pieces, (electrons, holes), strict=True):
            own = filled(template, rest, (0,))
            if own.a:
                total = total + ionisation_coefficient(own, size) * mg.abs(flux)
        made[0][0] = half * total

    return Kernel(field, name="field")


@functools.cache
def made_at_nodes() -> Kernel:
    """Return the kernel of the pairs that both edges of a node generate for it."""

    def gather(pairs: CellReader, made: CellReader) -> None:
        made[0] = pairs[0] + pairs[1]

    return Kernel(gather, name="pairs made")


@functools.cache
def currents() -> Kernel:
    """Return the kernel of the current through each edge and its possible rounding error, A/cm2; 0 on outer edges."""

    def current(
        state: list[CellReader], theta: list[CellReader], mobile: list[CellReader], total: CellReader, noise: CellReader
    ) -> Reduced:
        low, high = [item[-1] for item in state], [item[0] for item in state]
        electrons, holes, size = _fluxes([low, high], theta[0], theta[1], mobile[0][0], mobile[1][0])
        total[0] = CHARGE * (electrons + holes)
        error = (CHARGE * 2.0**-52) * size
        noise[0] = error
        return mg.min(mg.where(mobile[0][0] > 0.0, error, float("inf")))

    return Kernel(current, name="current")


ROUNDINGS: Final = 8.0
"""Multiple of an edge's rounding error within which two currents count as equal."""


@functools.cache
def evenness() -> Kernel:
    """Return the kernel of the least and largest current over the edges with a rounding error of at most `noise`.

    `above` and `below` are the same reduced by possible rounding errors: the current is uniform if `above` <= `below`.
    """

    def range_of(total: CellReader, error: CellReader, mobile: CellReader, *, noise: Node) -> dict[str, Reduced]:
        counts = (mobile[0] > 0.0) & (error[0] <= noise)
        room, low, high = ROUNDINGS * error[0], float("-inf"), float("inf")
        return {
            "least": mg.min(mg.where(counts, total[0], high)),
            "largest": mg.max(mg.where(counts, total[0], low)),
            "below": mg.min(mg.where(counts, total[0] + room, high)),
            "above": mg.max(mg.where(counts, total[0] - room, low)),
        }

    return Kernel(range_of, name="evenness of the current")


# Tests and starts ----------------------------------------------------------------------------------------------------
@functools.cache
def changes(test: Literal["max", "paper"]) -> Kernel:
    """Return the kernel of an iteration's change: the largest of phi, ln n and ln p, or sums of phi, Fn and Fp."""

    def change(old: list[CellReader], new: list[CellReader]) -> Reduced | dict[str, Reduced]:
        potential = new[0][0] - old[0][0]
        electrons, holes = (log(b[0] / a[0]) for a, b in zip(old[1:], new[1:], strict=True))
        if test == "max":
            return mg.max(mg.max(mg.abs(potential), mg.max(mg.abs(electrons), mg.abs(holes))))
        return {"phi": mg.sum(potential), "u": mg.sum(potential - electrons), "v": mg.sum(potential + holes)}

    return Kernel(change, name=f"changes, {test}")


@functools.cache
def residual(ionising: bool) -> Kernel:
    """Return the kernel of the residual of the equations, with all neighbours at their present values.

    It is the larger of the largest Newton step of a potential, kT/q, and the largest change of ln n and ln p.
    """

    def left_over(
        state: list[CellReader],
        contact: CellReader,
        doping: CellReader,
        coupling: CellReader,
        theta: list[CellReader],
        mobile: list[CellReader],
        electron_numbers: list[CellReader],
        hole_numbers: list[CellReader],
        light: CellReader,
        made: list[CellReader],
        *,
        lit: Node,
    ) -> Reduced:
        phi, volume = state[0], electron_numbers[0][0]
        here = [item[0] for item in state]
        excess = (
            coupling[0] * (phi[0] - phi[-1])
            + coupling[1] * (phi[0] - phi[1])
            + volume * (here[1] - here[2] - doping[0])
        )
        worst = mg.abs(excess) / (coupling[0] + coupling[1] + volume * (here[1] + here[2]))
        source = volume * lit * light[0]
        if ionising:
            source = source + made[0][0]
        for number, (kind, numbers) in enumerate(((_ELECTRONS, electron_numbers), (_HOLES, hole_numbers))):
            own = state[kind.own]

            def beside(offset: int, own: CellReader = own) -> tuple[Node, Node]:
                return phi[offset], own[offset]

            values = [item[0] for item in numbers]
            found = _density(kind, here, beside, theta[number], mobile[number], values, source)
            worst = mg.max(worst, mg.abs(log(found / own[0])))
        return mg.max(mg.where(contact[0] == 0, worst, 0.0))

    return Kernel(left_over, name="residual")


@functools.cache
def ramp() -> Kernel:
    """Return the kernel of the initial guess at another voltage: each potential takes its share of the change."""

    def shift(potential: CellReader, share: CellReader, *, change: Node) -> None:
        potential[0] = potential[0] + change * share[0]

    return Kernel(shift, name="ramp")


@functools.cache
def volts() -> Kernel:
    """Return the kernel of potential and quasi-Fermi potentials in V, from a state and its voltage `bias` in kT/q."""

    def see(
        state: list[CellReader], theta: list[CellReader], out: list[CellReader], *, bias: Node, thermal: Node
    ) -> None:
        phi, electrons, holes = (item[0] for item in state)
        out[0][0] = thermal * phi
        out[1][0] = thermal * ((phi + theta[0][0]) - log(electrons / REFERENCE_DENSITY))
        out[2][0] = thermal * ((phi - bias) + theta[1][0] + log(holes / REFERENCE_DENSITY))

    return Kernel(see, name="volts")
