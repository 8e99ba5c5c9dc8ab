"""The work of a model's step for any layout: cells, memory, exchanges, and the positions of cuts."""

from __future__ import annotations

from dataclasses import dataclass, field

from minga.plan.work.weights import Weights
from minga.space.box import Box
from minga.space.layout import Layout

__all__ = ["Deep", "Extent", "HaloRound", "Work"]


@dataclass(frozen=True, slots=True)
class HaloRound:
    """A round of halo messages, which is done ``times`` times per step.

    Parameters
    ----------
    low, high
        Widths read below and above a block along each axis.
    bytes
        Bytes sent for each cell of the halo.
    corners
        True if diagonal neighbours send, too.
    times
        Number of rounds per step.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    bytes: int
    corners: bool = False
    times: int = 1


@dataclass(frozen=True, slots=True)
class Extent:
    """A part of the work, 0 to 1, that a block also does for ``low[a]`` and ``high[a]`` cells beyond its own."""

    part: float
    low: tuple[int, ...]
    high: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Deep:
    """The exchanges of ``steps`` steps with one exchange, and how far a block computes beyond its own cells.

    Cells in ``extents`` are computed by more than one rank; the parts of the extents add up to 1.
    """

    steps: int
    exchanges: tuple[HaloRound, ...]
    extents: tuple[Extent, ...]


@dataclass(frozen=True)
class Work:
    """A step of a model, as far as planning needs it.

    Parameters
    ----------
    name
        Name of the model.
    kernel
        Digest of the recorded step, for which speeds are measured.
    domain
        All cells of the grid that is cut.
    periodic
        For each axis, True if its ends are neighbours.
    granule
        For each axis, the number of which cuts are multiples.
    least
        For each axis, the minimum width of a block.
    cell_bytes
        Bytes per cell of all fields with all slots.
    exchanges
        Rounds of halo messages of a step.
    reductions
        Number of reductions (sums, maxima, ...) over all ranks per step.
    weights
        Relative costs of cells; None if all cells cost the same.
    deepest
        Maximum number of steps between two exchanges that this step allows.
    one_axis
        The only axis that may be cut; None for any.
    points
        Cells of the model per cell of the domain: 64 if the domain consists of words.
    moved
        Bytes that a step reads and writes per cell of the model; 0 if unknown.
    rank_bytes
        Additional bytes that every rank holds, whatever its cells.
    deep
        Work of 2, 3, ... steps with one exchange; beyond its length, widths are multiplied.
    swept
        Axes along which blocks wait for preceding blocks within a step.
    cuts
        For each axis, the only places where cuts may lie, None for anywhere; empty for anywhere along all axes.
    """

    name: str
    kernel: str
    domain: Box
    periodic: tuple[bool, ...]
    granule: tuple[int, ...]
    least: tuple[int, ...]
    cell_bytes: int
    exchanges: tuple[HaloRound, ...]
    reductions: int = 0
    weights: Weights | None = field(default=None)
    deepest: int = 1
    one_axis: int | None = None
    points: int = 1
    moved: float = 0.0
    rank_bytes: int = 0
    deep: tuple[Deep, ...] = ()
    swept: tuple[int, ...] = ()
    cuts: tuple[tuple[int, ...] | None, ...] = ()

    def aligned(self, layout: Layout) -> Layout:
        """Return the layout with its cuts moved to places where they may lie.

        Parameters
        ----------
        layout
            A layout of the domain.

        Returns
        -------
        Layout
            The layout with moved cuts.
        """
        return layout.cut_at(self.cuts)

    @property
    def rounds(self) -> int:
        """Number of rounds of halo messages in a step."""
        return sum(exchange.times for exchange in self.exchanges)

    def depth(self, steps: int) -> Deep:
        """Return the work of so many steps with one exchange.

        Parameters
        ----------
        steps
            The number of steps.

        Returns
        -------
        Deep
            Widths, bytes and extra cells.
        """
        own = Extent(1.0, (0,) * self.domain.ndim, (0,) * self.domain.ndim)
        if steps == 1:
            return Deep(1, self.exchanges, (own,))
        for known in self.deep:
            if known.steps == steps:
                return known
        if not self.exchanges:
            return Deep(steps, (), (own,))
        # All rounds of all steps are in one message: their widths add up, and all their bytes are sent.
        low, high = (tuple(map(sum, zip(*side))) for side in self._sides)
        message = HaloRound(
            tuple(steps * w for w in low),
            tuple(steps * w for w in high),
            max(e.bytes for e in self.exchanges),
            corners=True,
        )
        # The first step computes everything that the others will read, the last one only the block's own cells.
        extents = (
            Extent(1 / steps, tuple(left * w for w in low), tuple(left * w for w in high))
            for left in reversed(range(steps))
        )
        return Deep(steps, (message,), tuple(extents))

    @property
    def _sides(self) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        """Total widths of each exchange over all its rounds, below and above."""
        low = [tuple(e.times * width for width in e.low) for e in self.exchanges]
        return low, [tuple(e.times * width for width in e.high) for e in self.exchanges]
