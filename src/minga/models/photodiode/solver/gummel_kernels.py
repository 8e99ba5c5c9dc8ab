"""Kernels of Gummel's iteration: charges for the potential, fluxes, balances of carriers, and levels from densities."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, where
from minga.lang.kernel import Kernel
from minga.lang.math import exp, log
from minga.models.photodiode.solver.coefficient_fields import EdgeCoefficients, Emission, NodeCoefficients, Saturation
from minga.models.photodiode.solver.densities import neutral_dopants
from minga.models.photodiode.solver.newton import clipped
from minga.models.photodiode.solver.node_models import BandTunnelling, TrapTunnelling
from minga.models.photodiode.solver.physics import emitted, filled, saturated
from minga.models.photodiode.solver.terminal import LOGARITHM, ULP
from minga.models.photodiode.solver.tunnelling import local_models
from minga.models.photodiode.structure.constants import REFERENCE_DENSITY
from minga.solve.bernoulli import bernoulli_pair
from minga.solve.laplacian import step

__all__ = ["balance", "flows", "held_pairs", "level", "moved_potential", "poisson"]

Readers = Sequence[CellReader]

HELD: Final = 1e60
"""Stands for a loss rate so fast that it fixes the value at a contact."""
STEADY: Final = 1.0
"""Multiple of their estimated rounding error by which pairs must change to be updated."""


@functools.cache
def poisson(ndim: int) -> Kernel:
    """Return the kernel of right side and loss for Newton's correction of the potential, quasi-Fermi potentials fixed.

    `activities` are those of `carriers`; `dopants` those of Coefficients, or empty.
    """
    here = (0,) * ndim

    def charges(
        phi: CellReader, n: CellReader, p: CellReader, activities: Readers, numbers: Readers,
        dopants: Readers, couplings: Readers, rest: CellReader, right: CellReader,
    ) -> None:  # fmt: skip
        node = NodeCoefficients(*(item[here] for item in numbers))
        free = node.contact == 0
        slopes = activities[2:]
        bound = neutral_dopants(dopants, here, n[here], p[here], [item[here] for item in activities[:2]])
        charge = node.volume * (p[here] - n[here] + (node.doping - bound[0] if dopants else node.doping))
        for axis, coupling in enumerate(couplings):
            above, below = step(ndim, axis, 1), step(ndim, axis, -1)
            charge = charge + (coupling[above] * (phi[above] - phi[here]) - coupling[here] * (phi[here] - phi[below]))
        right[here] = where(free, charge, 0.0)
        answer = slopes[0][here] * n[here] + slopes[1][here] * p[here] if slopes else n[here] + p[here]
        if dopants:
            answer = answer + (bound[1] + bound[2])
        rest[here] = where(free, node.volume * answer, HELD)

    return Kernel(charges, name="charges for the potential")


@functools.cache
def moved_potential(ndim: int) -> Kernel:
    """Return the kernel that adds the clipped correction to the potential; it yields the largest one and its place."""
    here = (0,) * ndim

    def move(correction: CellReader, phi: CellReader) -> dict[str, Reduced]:
        size = mg.abs(correction[here])
        phi[here] = phi[here] + clipped(correction[here])
        return {"largest": mg.max(size), "place": mg.argmax(size)}

    return Kernel(move, name="correction of the potential")


def flows(ndim: int, axis: int, carrier: int, slow: Sequence[Emission | Saturation]) -> Kernel:
    """Return the kernel of the fluxes through the inner edges along an axis, per unit density.

    `up` is per density of the low node, and `down` per density of the high node. `slow` has the limits of the carrier,
    and `models` their fields; `behind` is ln gamma of the carrier for Fermi-Dirac statistics, and empty for Boltzmann
    statistics.
    """
    high, low = (0,) * ndim, step(ndim, axis, -1)
    sign = 1 if carrier == 1 else -1

    def exchange(
        phi: CellReader, theta: CellReader, behind: Readers, models: Readers, numbers: Readers, up: CellReader,
        down: CellReader,
    ) -> None:  # fmt: skip
        own = EdgeCoefficients(*(item[high] for item in numbers))
        drift = (phi[high] + theta[high]) - (phi[low] + theta[low])
        if behind:
            drift = drift + sign * (behind[0][high] - behind[0][low])
        ahead, back = bernoulli_pair(drift)
        rest = list(models)
        parts = [filled(template, rest, high) for template in slow]
        kept: Any = 1.0
        for part in parts:
            if isinstance(part, Saturation):
                kept = saturated(part, mg.abs(phi[high] - phi[low]) * own.slope)
        mobile = (own.mobile_n if carrier == 1 else own.mobile_p) * kept
        for part in parts:
            if isinstance(part, Emission):
                mobile = mobile * emitted(part, drift, sign, kept)[0]
        up[high] = mobile * (back if carrier == 1 else ahead)
        down[high] = mobile * (ahead if carrier == 1 else back)

    return Kernel(exchange, name=f"flows of carrier {carrier} across axis {axis}")


@functools.cache
def held_pairs(ndim: int, axis: int) -> Kernel:
    """Return the kernel that updates the pairs of an edge if they are `fresh` or differ by more than rounding."""
    high, low = (0,) * ndim, step(ndim, axis, -1)

    def hold(state: Readers, pairs: Readers, made: CellReader, *, fresh: Node) -> None:
        found, _, by_n_low, by_p_low, _, by_n_high, by_p_high = (item[high] for item in pairs)
        potential, electron, hole = (mg.max(mg.abs(item[low]), mg.abs(item[high])) for item in state)
        by_electrons = mg.abs(by_n_low) + mg.abs(by_n_high)
        by_holes = mg.abs(by_p_low) + mg.abs(by_p_high)
        known = potential + LOGARITHM
        noise = ULP * (by_electrons * (electron + known) + by_holes * (hole + known))
        differs = mg.abs(found - made[high]) > STEADY * noise
        made[high] = where((fresh != 0) | differs, found, made[high])

    return Kernel(hold, name=f"pairs held across axis {axis}")


def balance(ndim: int, carrier: int, tunnelling: Sequence[BandTunnelling | TrapTunnelling]) -> Kernel:
    """Return the kernel of generation and loss rate of a carrier at the nodes; contacts keep their values.

    `behind` has both ln gamma for Fermi-Dirac statistics, and is empty for Boltzmann statistics; `pairs` are those
    generated by ionisation on the edges along each axis, and empty without it. `state`, `models` and `weights` are for
    tunnelling, and empty without it.
    """
    here = (0,) * ndim

    def balances(
        n: CellReader, p: CellReader, behind: Readers, numbers: Readers, pairs: Readers, state: Readers,
        models: Readers, weights: Readers, surface: Readers, rest: CellReader, right: CellReader, *, light: Node,
    ) -> None:  # fmt: skip
        node = NodeCoefficients(*(item[here] for item in numbers))
        local = local_models(node, tunnelling, models, weights, surface, state, ndim)
        own, other = (n[here], p[here]) if carrier == 1 else (p[here], n[here])
        rate = local.rate(n[here], p[here])
        squared = node.intrinsic * node.intrinsic
        if behind:
            squared = squared * exp(behind[0][here] + behind[1][here])
        made = node.generation * light + squared * rate
        lost: Any = rate
        for item in local.exchanges(n[here], p[here]):
            made, lost = made + squared * item.rate * item.emission, lost + item.rate * item.capture
        amount = node.volume * made
        for axis, made_there in enumerate(pairs):
            amount = amount + made_there[here] + made_there[step(ndim, axis, 1)]
        held = local.held(carrier)
        rest[here] = where(held, HELD, node.volume * lost * other)
        right[here] = where(held, HELD * own, amount)

    return Kernel(balances, name=f"balance of carrier {carrier}")


@functools.cache
def level(ndim: int, carrier: int) -> Kernel:
    """Return the kernel that stores a density and its quasi-Fermi potential; it yields the largest change.

    `behind` is ln gamma for Fermi-Dirac statistics, the one that the density was found with, so that a level without
    a current stays constant however degenerate the carriers are; empty for Boltzmann statistics. `free` is the carrier
    that a contact does not hold, or empty.
    """
    here = (0,) * ndim

    def levels(
        found: CellReader, phi: CellReader, theta: CellReader, behind: Readers, contact: CellReader, free: Readers,
        fermi: CellReader, density: CellReader, *, bias: Node,
    ) -> Reduced:  # fmt: skip
        psi = phi[here] + theta[here]
        if behind:
            psi = psi + behind[0][here] if carrier == 1 else psi - behind[0][here]
        logarithm = log(found[here] / REFERENCE_DENSITY)
        new = psi - logarithm if carrier == 1 else (psi - bias) + logarithm
        held = contact[here] != 0
        kept = where(held & (free[0][here] != carrier) if free else held, fermi[here], new)
        change = mg.abs(kept - fermi[here])
        fermi[here] = kept
        density[here] = found[here]
        return mg.max(change)

    return Kernel(levels, name=f"level of carrier {carrier}")
