"""The current of a solution, and what else is read off it before it is accepted."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, where
from minga.lang.kernel import Kernel
from minga.models.photodiode.solver.coefficients import ANODE, CATHODE, Coefficients
from minga.models.photodiode.solver.physics import EdgeValues, Flux
from minga.models.photodiode.structure.constants import CHARGE
from minga.solve.laplacian import step
from minga.space.boundary import fixed
from minga.space.box import Box
from minga.space.field import Field, Register, Slot

__all__ = ["Seen", "Terminal", "inner_edges"]

Readers = Sequence[CellReader]

ULP: Final = 2.0**-52
LOGARITHM: Final = 50.0
"""Of a density over another, at most."""
QUIET: Final = 1e-30
"""1/cm2 s: stands for the round-off of a flux that has none."""


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Registers of a solution.

    current      A/cm2
    uniformity   (largest - smallest)/|current| over all planes across x
    inverse      1 less the share of ionisation's pairs in what both carriers carry: 1/M
    strongest    V/cm, largest field
    """

    current: Register = field(default_factory=lambda: Register("seen current"))
    uniformity: Register = field(default_factory=lambda: Register("seen uniformity"))
    inverse: Register = field(default_factory=lambda: Register("seen inverse"))
    strongest: Register = field(default_factory=lambda: Register("seen field"))


@dataclass(frozen=True, eq=False)
class Terminal:
    """Records what is seen of a solution.

    Every plane across x carries the same current, but not with the same round-off: where many carriers move little, the
    small differences of their quasi-Fermi potentials are known to fewer digits. So the current is the mean over planes,
    weighted with the inverse square of each one's round-off.

    Where contacts do not lie on opposite ends of x, it is that of both contacts, weighted likewise.

    sums   of two axes: current, round-off and what both carriers carry of a plane, from its first edge on
    """

    coefficients: Coefficients
    sums: tuple[Field, ...] = field(init=False)

    def __post_init__(self) -> None:
        grid = self.coefficients.device.grid
        names = ("current", "round-off", "carried") if grid.ndim > 1 else ()
        made = tuple(Field(f"sum of {name}", grid, centre="x", boundary=fixed(0.0)) for name in names)
        object.__setattr__(self, "sums", made)

    @property
    def _opposite(self) -> bool:
        """Whether all current goes through every plane across x."""
        nodes = [self.coefficients.device.terminal(name).nodes for name in ("anode", "cathode")]
        return not nodes[0][1:].any() and not nodes[1][:-1].any()

    def record(self, program: Program, state: Sequence[Slot], edges: Sequence[EdgeValues], *, by_density: bool) -> Seen:
        """Record it. `by_density`: quasi-Fermi potentials were worked out from densities, which costs digits."""
        seen, c = Seen(), self.coefficients
        device = c.device
        ndim, ionising = device.grid.ndim, bool(edges[0].pairs)
        found: Any
        values, inner = list(edges[0].all), inner_edges(device.grid.shape, 0)
        if not self._opposite:
            found = program.apply(
                contacts(ndim, by_density), list(state), [v for edge in edges for v in edge.all], c.nodes.contact
            )
        elif ndim == 1:
            found = program.apply(planes(by_density), list(state), values, region=inner)
        else:
            program.apply(running(by_density), list(state), values, self.sums, region=inner)
            last = device.grid.shape[1]
            whole = Box((inner.lo[0], last - 1), (inner.hi[0], last))
            found = program.apply(totals, self.sums, region=whole)
        pairs: Any = 0.0
        strongest: Any = 0.0
        for axis, edge in enumerate(edges):
            own = inner_edges(device.grid.shape, axis)
            more: Any = program.apply(
                strengths(ndim, axis, ionising), state[0], c.edges[axis].slope, edge.pairs[:1], region=own
            )
            pairs = pairs + more.pairs
            strongest = mg.max(strongest, more.strongest)
        width = float(device.areas[0][1].sum())
        if not self._opposite:
            found = _of_contacts(found)
        flux = found.weighted / found.weight
        size = mg.abs(as_node(flux))
        program.let(seen.current, (CHARGE / width) * flux)
        program.let(seen.uniformity, where(size > 0.0, (found.most - found.least) / size, 0.0))
        # Of what both carriers carry: where light and bias cancel, the current says nothing of multiplication.
        program.let(seen.inverse, where(found.carried > 0.0, 1.0 - 2.0 * pairs / found.carried, 1.0))
        program.let(seen.strongest, strongest)
        return seen


def _of_contacts(found: Any) -> Any:
    """What `over_planes` says, of two contacts."""
    currents, noises = (found.anode, -found.cathode), (found.anode_noise + QUIET, found.cathode_noise + QUIET)
    weights = [1.0 / (noise * noise) for noise in noises]
    return SimpleNamespace(
        weighted=weights[0] * currents[0] + weights[1] * currents[1],
        weight=weights[0] + weights[1],
        least=mg.min(*currents),
        most=mg.max(*currents),
        carried=mg.max(mg.abs(currents[0]), mg.abs(currents[1])),
    )


def inner_edges(shape: Sequence[int], axis: int) -> Box:
    """The edges across an axis that lie between two nodes."""
    return Box(tuple(int(k == axis) for k in range(len(shape))), tuple(shape))


# Kernels -------------------------------------------------------------------------------------------------------------
def carried_with_noise(values: EdgeValues, state: Readers, axis: int, by_density: bool) -> tuple[Node, Node, Node]:
    """Flux of charge through an edge across an axis, its round-off, and what both carriers carry."""
    ndim = len(state[0].axes)
    high, low = (0,) * ndim, step(ndim, axis, -1)
    potential, electron, hole = (mg.max(mg.abs(item[low]), mg.abs(item[high])) for item in state)

    electrons, holes = values.electrons, values.holes
    around = round_off(electrons, electron, potential, by_density) + round_off(holes, hole, potential, by_density)
    carried = mg.abs(electrons.value) + mg.abs(holes.value)
    # The largest of all planes is looked for, which is not to be round-off.
    return electrons.value + holes.value, around, carried - around if by_density else carried


def round_off(flux: Flux, level: Node, potential: Node, by_density: bool) -> Node:
    """Of a flux between nodes whose quasi-Fermi potential and potential are up to `level` and `potential`, kT/q."""
    carried = mg.max(mg.abs(flux.fermi_low), mg.abs(flux.fermi_high))
    known = level + potential + LOGARITHM if by_density else level
    return ULP * (carried * known + mg.abs(flux.value) * (1.0 + potential))


def over_planes(total: Node, around: Node, carried: Node) -> dict[str, Reduced]:
    """What is asked of all planes."""
    quiet = around + QUIET
    weight = 1.0 / (quiet * quiet)
    return {
        "weighted": mg.sum(weight * total),
        "weight": mg.sum(weight),
        "least": mg.min(total),
        "most": mg.max(total),
        "carried": mg.max(carried),
    }


@functools.cache
def planes(by_density: bool) -> Kernel:
    """Of one axis, where an edge is a plane."""

    def current(state: Readers, edges: Readers) -> dict[str, Reduced]:
        values = EdgeValues.of([item[0] for item in edges])
        return over_planes(*carried_with_noise(values, state, 0, by_density))

    return Kernel(current, name="terminal current")


@functools.cache
def running(by_density: bool) -> Kernel:
    """Of two axes: sums over the edges of a plane, one after the other."""

    def add(state: Readers, edges: Readers, sums: Readers) -> None:
        values = EdgeValues.of([item[0, 0] for item in edges])
        for item, value in zip(sums, carried_with_noise(values, state, 0, by_density), strict=True):
            item[0, 0] = item[0, -1] + value

    return Kernel(add, order={1: 1}, name="running sums of a plane")


@functools.cache
def contacts(ndim: int, by_density: bool) -> Kernel:
    """Of any contacts: what leaves their nodes through all edges, and its round-off."""
    here = (0,) * ndim

    def leaving(state: Readers, edges: Readers, contact: CellReader) -> dict[str, Reduced]:
        size = len(edges) // ndim
        total: Any = 0.0
        noise: Any = 0.0
        potential, electron, hole = (mg.abs(item[here]) for item in state)
        for axis in range(ndim):
            for side, sign in ((step(ndim, axis, 1), 1.0), (here, -1.0)):
                values = EdgeValues.of([item[side] for item in edges[axis * size : (axis + 1) * size]])
                electrons, holes = values.electrons, values.holes
                total = total + sign * (electrons.value + holes.value)
                for flux, level in ((electrons, electron), (holes, hole)):
                    noise = noise + round_off(flux, level, potential, by_density)
        kind = contact[here]
        return {
            name + what: mg.sum(where(kind == number, value, 0.0))
            for name, number in (("anode", ANODE), ("cathode", CATHODE))
            for what, value in (("", total), ("_noise", noise))
        }

    return Kernel(leaving, name="currents of contacts")


def _totals(sums: Readers) -> dict[str, Reduced]:
    return over_planes(*(item[0, 0] for item in sums))


totals = Kernel(_totals, name="totals of planes")


@functools.cache
def strengths(ndim: int, axis: int, ionising: bool) -> Kernel:
    """The strongest field on edges across an axis, V/cm, and half of the pairs that are made there."""
    high, low = (0,) * ndim, step(ndim, axis, -1)

    def look(potential: CellReader, slope: CellReader, pairs: Readers) -> dict[str, Reduced]:
        strength = mg.abs(potential[high] - potential[low]) * slope[high]
        return {"strongest": mg.max(strength), "pairs": mg.sum(pairs[0][high] if ionising else strength * 0.0)}

    return Kernel(look, name=f"fields across axis {axis}")
