"""What a step of a model asks of a machine, whatever the layout: cells, memory, exchanges, and where it may be cut."""

from __future__ import annotations

from dataclasses import dataclass, field

from minga.plan.work.weights import Weights
from minga.space.box import Box
from minga.space.layout import Layout

__all__ = ["Deep", "Exchange", "Extent", "Work"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """Rounds of halo messages, ``times`` a step: ``bytes`` for each cell of a halo so wide.

    ``low[a]`` and ``high[a]`` are the widths read below and above a block along axis ``a``; ``corners``: diagonal
    neighbours send too.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    bytes: int
    corners: bool = False
    times: int = 1


@dataclass(frozen=True, slots=True)
class Extent:
    """A part of the work, 0 to 1, that a block does for ``low[a]`` and ``high[a]`` cells beyond its own as well."""

    part: float
    low: tuple[int, ...]
    high: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Deep:
    """``steps`` steps with one exchange: what it sends, and how far beyond its own cells a block computes.

    What lies in ``extents`` is computed by more than one rank; their parts add up to 1.
    """

    steps: int
    exchanges: tuple[Exchange, ...]
    extents: tuple[Extent, ...]


@dataclass(frozen=True)
class Work:
    """A step of a model, as far as planning needs it.

    name        of the model
    kernel      digest of the recorded step: speeds are measured for it
    domain      all cells of the grid that is cut
    periodic    for each axis whether its ends are neighbours
    granule     for each axis, cuts lie at multiples of it
    cuts        for each axis the only places where cuts may lie, None: anywhere; empty: anywhere along all
    least       for each axis the narrowest block along it
    cell_bytes  bytes of all fields with all slots for each cell
    exchanges   rounds of halo messages a step
    reductions  sums, maxima and the like over all ranks a step
    weights     relative cost of cells where they differ; None: all alike
    deepest     most steps between two exchanges that this step allows
    one_axis    the only axis that may be cut; None: any
    points      cells of the model for each cell of the domain: 64 where the domain is one of words
    moved       bytes that a step reads and writes for each cell of the model; 0 where that is not known
    rank_bytes  bytes that every rank holds besides, whatever its cells
    deep        what 2, 3, ... steps with one exchange ask; where it is too short, widths are multiplied
    swept       axes along which blocks wait for the blocks before them within a step
    """

    name: str
    kernel: str
    domain: Box
    periodic: tuple[bool, ...]
    granule: tuple[int, ...]
    least: tuple[int, ...]
    cell_bytes: int
    exchanges: tuple[Exchange, ...]
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
        """The layout with its cuts at the places where they may lie."""
        return layout.cut_at(self.cuts)

    @property
    def rounds(self) -> int:
        """Rounds of halo messages in a step."""
        return sum(exchange.times for exchange in self.exchanges)

    def depth(self, steps: int) -> Deep:
        """What so many steps with one exchange ask of a rank."""
        own = Extent(1.0, (0,) * self.domain.ndim, (0,) * self.domain.ndim)
        if steps == 1:
            return Deep(1, self.exchanges, (own,))
        for known in self.deep:
            if known.steps == steps:
                return known
        if not self.exchanges:
            return Deep(steps, (), (own,))
        # All rounds of all steps in one message: their widths add up, and all their bytes travel.
        low, high = (tuple(map(sum, zip(*side))) for side in self._sides)
        message = Exchange(
            tuple(steps * w for w in low),
            tuple(steps * w for w in high),
            max(e.bytes for e in self.exchanges),
            corners=True,
        )
        # The first step computes all that the others will read, the last one its own cells.
        extents = (
            Extent(1 / steps, tuple(left * w for w in low), tuple(left * w for w in high))
            for left in reversed(range(steps))
        )
        return Deep(steps, (message,), tuple(extents))

    @property
    def _sides(self) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        """How far each exchange reaches in all its rounds, below and above."""
        low = [tuple(e.times * width for width in e.low) for e in self.exchanges]
        return low, [tuple(e.times * width for width in e.high) for e in self.exchanges]
