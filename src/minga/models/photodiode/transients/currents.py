"""Recorder of the currents that pass a device in a step in time, and of its terminals' current."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.expr import Node, as_node
from minga.models.photodiode.solver.newton import Newton
from minga.models.photodiode.structure.constants import CHARGE
from minga.models.photodiode.transients.increments import kept
from minga.models.photodiode.transients.passing import fallen, flows, gathered, moved, responses
from minga.models.photodiode.transients.terminals import Weighting, weighting
from minga.space.field import Field

__all__ = ["Currents"]


@dataclass(frozen=True, eq=False)
class Currents:
    """Recorder of currents, with the fields that it needs.

    Attributes
    ----------
    weighting
        Weights of the edges and contacts in the current of the terminals; `weight` and `share` are their fields.
    flow
        Flux of charge through the edges along each axis at the beginning of a step, the inner point and the end, over
        q: 1/cm2 s with one axis.
    through
        Charge that passed these edges in an accepted step, over q.
    """

    newton: Newton
    weighting: Weighting = field(init=False)
    weight: tuple[Field, ...] = field(init=False)
    share: Field = field(init=False)
    flow: tuple[tuple[Field, ...], ...] = field(init=False)
    through: tuple[Field, ...] = field(init=False)

    def __post_init__(self) -> None:
        device, put = self.newton.coefficients.device, object.__setattr__
        grid = device.grid

        def declare(what: str) -> tuple[Field, ...]:
            return tuple(Field(f"{what} across {axis}", grid, centre=axis) for axis in grid.axes)

        put(self, "weighting", weighting(device))
        put(self, "weight", declare("weight of edges"))
        put(self, "share", Field("weight of contacts", grid))
        put(self, "flow", tuple(declare(f"transient flow {k}") for k in range(3)))
        put(self, "through", declare("transient charge"))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return *self.weight, self.share, *(item for part in self.flow for item in part), *self.through

    @property
    def values(self) -> dict[Field, Any]:
        """Initial values of the constant fields."""
        return {**dict(zip(self.weight, self.weighting.edges, strict=True)), self.share: self.weighting.contacts}

    @property
    def capacitance(self) -> float:
        """Capacitance of the device without carriers, F/cm2."""
        return self.weighting.capacitance

    @property
    def _density(self) -> float:
        """Current density of a carrier a second through the device, A/cm2."""
        return CHARGE / float(self.newton.coefficients.device.areas[0][1].sum())

    def conducted(self, program: Program) -> Node:
        """Record the currents of the edges in the last evaluated state; return the terminals' conduction, A/cm2."""
        newton, total = self.newton, as_node(0.0)
        for axis, (edges, weight, out) in enumerate(zip(newton.edges, self.weight, self.flow[2], strict=True)):
            found: Any = program.apply(flows, edges.all, weight, out, region=newton.inner(axis))
            total = total + found
        return self._density * total

    def responses(self, program: Program, change: Sequence[Field]) -> Node:
        """Record the change of the terminals' conduction current due to corrections, A/cm2."""
        newton, total = self.newton, as_node(0.0)
        for axis, (edges, weight) in enumerate(zip(newton.edges, self.weight, strict=True)):
            made = responses(len(newton.edges), axis)
            found: Any = program.apply(made, edges.all, weight, list(change), region=newton.inner(axis))
            total = total + found
        return self._density * total

    def drop(self, program: Program, potential: Field) -> Any:
        """Record the drop of a potential between the contacts."""
        return program.apply(fallen, potential, self.share)

    def keep(self, program: Program, time: int) -> None:
        """Record that the last evaluated currents are those at the beginning (0) or the inner point (1)."""
        for item, other in zip(self.flow[2], self.flow[time], strict=True):
            program.apply(kept, [item], [other])

    def passed(self, program: Program, potential: Field, outer: Any, own: Any) -> SimpleNamespace:
        """Record the charge that passed in a step, C/cm2: `mean`, and `least` and `most` of planes or contacts.

        Parameters
        ----------
        program
            The Program.
        potential
            Increments of the potential in the step, kT/q.
        outer, own
            Weights of the currents at the first two times and at the last one, s.
        """
        newton, ndim, total = self.newton, len(self.weight), as_node(0.0)
        found: Any = None
        for axis, (edge, weight, out) in enumerate(
            zip(newton.coefficients.edges, self.weight, self.through, strict=True)
        ):
            found = program.apply(
                moved(ndim, axis), *(part[axis] for part in self.flow), edge.coupling, weight, potential, out,
                outer=outer, own=own, region=newton.inner(axis),
            )  # fmt: skip
            total = total + found.mean
        least, most = found.least, found.most
        if ndim > 1:
            ends: Any = program.apply(gathered, self.through, newton.coefficients.nodes.contact)
            least, most = mg.min(ends.anode, -ends.cathode), mg.max(ends.anode, -ends.cathode)
        mean, least, most = (self._density * item for item in (total, least, most))
        return SimpleNamespace(mean=mean, least=least, most=most)
