"""Derivatives of ionisation with dead space by the fluxes and fields that it follows from, for adjoints.

Newton's matrix takes the share of the pairs with dead space for constant. Its exact derivatives couple every edge with
all that carriers passed before. They enter the adjoint as changes of its right side, which an iteration finds: it
converges as fast as Newton's method does, whose error is the same coupling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader
from minga.lang.derivative import derivative
from minga.lang.kernel import Kernel
from minga.models.photodiode.solver.assembly import ELECTRONS, HOLES, POTENTIAL
from minga.models.photodiode.solver.coefficient_fields import Pieces
from minga.models.photodiode.solver.history import History
from minga.models.photodiode.solver.history_derivatives import pulled
from minga.models.photodiode.solver.physics import WEAKEST, EdgeValues, fields_of, filled, ionisation_coefficient
from minga.models.photodiode.solver.terminal import inner_edges
from minga.space.field import Field, Register, Slot

__all__ = ["MOST_ROUNDS", "STEADY", "HistoryAdjoint"]

Readers = Sequence[CellReader]
Floats = NDArray[np.float64]

STEADY: Final = 1e-13
"""Change of the adjoint of the pairs, relative to the largest, from which on it is known."""
MOST_ROUNDS: Final = 400
"""Largest number of rounds; Newton's method gives up long before."""


@dataclass(frozen=True, eq=False)
class HistoryAdjoint:
    """Recorder of the contribution of the history of carriers to the right side of an adjoint.

    Attributes
    ----------
    history
        The ionisation with dead space.
    effects
        Change of the current over q for a pair at each node.
    pairs
        The same for a pair on each edge.
    slopes
        Derivatives of the coefficients of both carriers by the field, 1/V.
    weights
        What a change of the flux of electrons, of holes, and of the slope of the potential on each edge adds.
    change
        Change of `pairs` in the last round, relative to the largest; NaN if the iteration diverged.
    """

    history: History
    name: str = ""
    effects: Field = field(init=False)
    pairs: Field = field(init=False)
    slopes: tuple[Field, ...] = field(init=False)
    weights: tuple[Field, ...] = field(init=False)
    change: Register = field(init=False)

    def __post_init__(self) -> None:
        grid, name, put = self.history.coefficients.device.grid, self.name, object.__setattr__
        put(self, "effects", Field(f"{name}effect of pairs", grid))
        put(self, "pairs", Field(f"{name}effect of pairs on edges", grid, centre="x"))
        for item, quantities in (("slopes", ("electrons", "holes")), ("weights", ("electrons", "holes", "slope"))):
            put(self, item, tuple(Field(f"{name}history {item} of {what}", grid, centre="x") for what in quantities))
        put(self, "change", Register(f"{name}change of the history's adjoint"))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return self.effects, self.pairs, *self.slopes, *self.weights

    def begin(self, program: Program, state: Sequence[Slot]) -> None:
        """Record the derivatives at a state that was evaluated, and an adjoint that is not known yet."""
        own = self.history.coefficients
        models = [item for part in own.ionising[0] for item in fields_of(part)]
        program.apply(
            _rate_slopes(own.ionising[0]), state[0], own.edges[0].slope, models, self.slopes,
            region=inner_edges(own.device.grid.shape, 0),
        )  # fmt: skip
        program.apply(_CLEARED, [self.pairs, *self.weights])
        program.let(self.change, 1.0)

    def correct(self, program: Program, edges: EdgeValues, right: Sequence[Field]) -> None:
        """Record the subtraction of the contribution from a right side."""
        slope = self.history.coefficients.edges[0].slope
        program.apply(_SUBTRACTED, list(edges.all), slope, self.weights, right)

    def update(self, program: Program, edges: EdgeValues) -> None:
        """Record the contribution for `effects`, and its change."""
        history, half = self.history, self.history.coefficients.edges[0].half
        paths = history.paths

        def update(effects: Floats, before: Floats, *others: Floats) -> tuple[Floats | float, ...]:
            wanted = np.concatenate(([0.0], 0.5 * (effects[1:] + effects[:-1]), [0.0]))
            size = float(np.abs(wanted).max())
            moved = float(np.abs(wanted - before).max()) / size if size > 0.0 else 0.0
            return wanted, moved, *pulled(paths, wanted, *others)

        program.call_global(
            update,
            reads=[
                self.effects, self.pairs, half, edges.electrons.value, edges.holes.value, history.step,
                *history.known, *self.slopes,
            ],
            writes=[self.pairs, self.change, *self.weights],
        )  # fmt: skip


# Kernels -------------------------------------------------------------------------------------------------------------
def _rate_slopes(pieces: tuple[Pieces, Pieces]) -> Kernel:
    """Return the kernel of the derivatives of the coefficients by the field."""

    def slopes(potential: CellReader, slope: CellReader, models: Readers, out: Readers) -> None:
        strength = mg.max(mg.abs(potential[0] - potential[-1]) * slope[0], WEAKEST)
        rest = list(models)
        for item, own in zip(out, pieces, strict=True):
            known = filled(own, rest, (0,))
            item[0] = derivative(ionisation_coefficient(known, strength), strength) if known.a else strength * 0.0

    return Kernel(slopes, name="derivatives of ionisation coefficients")


def _cleared(items: Readers) -> None:
    for item in items:
        item[0] = 0.0


def _subtracted(edges: Readers, slope: CellReader, weights: Readers, right: Readers) -> None:
    up, down = (EdgeValues.of([item[at] for item in edges]) for at in (1, 0))
    high, low = ([item[at] for item in weights] for at in (1, 0))
    right[POTENTIAL][0] = right[POTENTIAL][0] - (
        (high[0] * up.electrons.potential_low + high[1] * up.holes.potential_low - high[2] * slope[1])
        + (low[0] * down.electrons.potential_high + low[1] * down.holes.potential_high + low[2] * slope[0])
    )
    right[ELECTRONS][0] = right[ELECTRONS][0] - (high[0] * up.electrons.fermi_low + low[0] * down.electrons.fermi_high)
    right[HOLES][0] = right[HOLES][0] - (high[1] * up.holes.fermi_low + low[1] * down.holes.fermi_high)


_CLEARED: Final = Kernel(_cleared, name="no contribution of the history")
_SUBTRACTED: Final = Kernel(_subtracted, name="contribution of the history")
