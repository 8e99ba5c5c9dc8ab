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

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader
from minga.lang.kernel import Kernel
from minga.lang.math import exp, expm1
from minga.models.photodiode.solver.coefficient_fields import Pieces
from minga.models.photodiode.solver.coefficients import Coefficients
from minga.models.photodiode.solver.paths import Paths
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

__all__ = ["History"]

Readers = Sequence[CellReader]


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
