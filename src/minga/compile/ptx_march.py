"""A march through the planes of a box: the data that a block of threads keeps while it steps along the first axis.

A block owns a tile of the other axes, one cell per thread, and moves from plane to plane. Fields that are read at
several offsets, and locals, flow through it as streams. With each plane, one plane of every stream arrives, as far
ahead as it is read (`lead`). A thread keeps the values of its own column that will still be read in a queue of
registers; planes that are read at offsets across the march, or in the margins of a tile, are in a ring in shared
memory. Thus every element of a field is loaded once per tile, and every local is computed once per cell (and again in
the margins).

Everything is derived from the graph. P. Micikevicius, "3D finite difference computation on GPUs using CUDA", GPGPU-2,
2009, describes such a march for one field without locals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final, Literal, cast

from minga.compile.ptx_frame import BLOCK, WARP, Offsets
from minga.compile.ptx_locals import inline_locals, read_at_offsets
from minga.lang.expr import Node
from minga.lang.graph import KernelGraph, topological
from minga.lang.types import DType, is_float, itemsize

MOST_BYTES: Final = 47 << 10
"""Bytes of shared memory of a block. Together with the memory of eight reductions, this is what a block may use without
asking the driver for more."""
_REDUCTION: Final = 16 * BLOCK // WARP
"""Bytes of shared memory that a reduction needs at most (for argmax and argmin, not for a sum of floats)."""
MOST_QUEUED: Final = 60
"""Registers of a thread for queues and the plane that is being loaded; with all others, 128 are not exceeded."""
MOST_HELD: Final = 70
"""Registers of a thread for these and for values of other fields that it reads before it needs them."""
SLAB: Final = 64
"""Number of planes of a march over which the cost of its first planes, which only fill queues and rings, is spread."""
_TILES: Final[dict[int, tuple[Offsets, ...]]] = {
    2: ((BLOCK,),),
    3: tuple((BLOCK // width, width) for width in (32, 64, 128)),
}

Source = tuple[Literal["field", "local"], int]
Reach = tuple[Offsets, Offsets]
"""Margins of a tile in which something is needed, before and after it, along each axis across the march."""


@dataclass(frozen=True, slots=True)
class Use:
    """One read of a stream.

    plane      plane of the read, relative to the plane whose cells are stored
    place      offset of the read across the march
    own        True if only cells of the tile read it, not those of margins
    low, high  region that is read for a tile (of one plane), along each axis
    around     margins that threads access around the tile; each has one cell of the tile, whether needed or not
    """

    plane: int
    place: Offsets
    own: bool
    low: Offsets
    high: Offsets
    around: Reach

    @property
    def column(self) -> bool:
        """True if only the thread that owns the column needs the value."""
        return self.own and not any(self.place)


@dataclass(frozen=True, slots=True)
class Stream:
    """A field or local that is kept during the march.

    low, high  margins in which it is needed around a block's slab and tile, along each axis
    around     margins that a ring keeps around the tile; they always include the tile
    queue      number of values of its own column that a thread keeps: planes lead - queue + 1 .. lead
    ring       number of planes that can be read in shared memory: newest - ring + 1 .. newest
    stage      locals of a stage are computed from fields and from locals of earlier stages
    late       steps from a plane's arrival to its storage in the ring; elements of margins are not loaded earlier
    before     number of planes before the first stored one from which on the ring is read
    slots      number of planes that shared memory holds
    start      first byte of these planes
    """

    source: Source
    dtype: DType
    low: Offsets
    high: Offsets
    around: Reach
    queue: int
    ring: int
    stage: int
    late: int = 0
    before: int = 0
    slots: int = 0
    start: int = 0

    @property
    def lead(self) -> int:
        """Number of planes that it is ahead of the plane whose cells are stored."""
        return self.high[0]

    @property
    def span(self) -> int:
        """Number of planes that must arrive before the first cell can be stored."""
        return self.high[0] - self.low[0]

    @property
    def newest(self) -> int:
        """The newest plane in the ring."""
        return self.lead - self.late

    @property
    def ring_span(self) -> int:
        """Number of planes that must be stored in the ring before the first cell can be stored."""
        return self.newest + self.before

    @property
    def number(self) -> int:
        """Number of the field's parameter or of the local."""
        return self.source[1]

    @property
    def is_field(self) -> bool:
        """True for a field, False for a local."""
        return self.source[0] == "field"

    @property
    def reach(self) -> Reach:
        """Margins in which it is needed across the march."""
        return self.low[1:], self.high[1:]

    def shape(self, tile: Offsets) -> Offsets:
        """Return the shape of a plane with its margins."""
        return tuple(n + b - a for n, a, b in zip(tile, *self.around, strict=True))

    def frame(self, tile: Offsets) -> int:
        """Return the number of cells of the margins, if they are kept."""
        return prod(self.shape(tile)) - prod(tile) if self.ring else 0

    def rounds(self, tile: Offsets) -> int:
        """Return the number of passes in which the threads of a block process the cells of the margins."""
        return -(-self.frame(tile) // BLOCK)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A plane of a field at given offsets across the march, whose address all threads of a block share.

    `plane` is relative to the plane whose cells are stored.
    """

    param: int
    plane: int
    offsets: Offsets


@dataclass(frozen=True, slots=True)
class March:
    """A kernel's march.

    tile      shape of a block's tile along all axes but the first
    streams   fields and locals that are kept
    pointers  planes of fields that are loaded from or stored to
    stages    number of stages in the computation of a plane
    start     first byte of the pointers in shared memory, after the rings
    work      operations per cell
    """

    tile: Offsets
    streams: tuple[Stream, ...]
    pointers: tuple[Pointer, ...]
    stages: int
    start: int
    work: float

    @property
    def words(self) -> int:
        """64-bit words of shared memory for rings and pointers.

        Each pointer takes two alternating addresses and the bytes to the next plane.
        """
        return self.start // 8 + 3 * len(self.pointers)

    @property
    def bytes(self) -> int:
        """Bytes of shared memory for rings and pointers."""
        return 8 * self.words

    @property
    def span(self) -> int:
        """Number of planes that arrive before the first plane can be stored."""
        return max(stream.span for stream in self.streams)

    def meets(self, stage: int) -> bool:
        """Return True if the block's threads synchronise after a stage; always after the first, for the pointers."""
        return stage == 0 or any(stream.ring and stream.stage == stage for stream in self.streams)

    @property
    def registers(self) -> int:
        """Registers of a thread for its queues and for the plane that is being loaded."""
        return sum(words(s.dtype) * (s.queue + (1 + s.rounds(self.tile) if s.is_field else 0)) for s in self.streams)


def march_of(graph: KernelGraph) -> March | None:
    """Return the march with the least work; None for kernels with nothing to keep, or with too much of it.

    As with tiles, kernels with sums of floats cannot have one, since the cells of a run have an order.
    """
    summed = any(item.kind == "sum" and is_float(item.value.dtype) for item in graph.reductions)
    if graph.order is not None or graph.ndim not in _TILES or summed:
        return None
    graph = inline_locals(graph, read_at_offsets(graph))
    uses = _uses(graph)
    if not uses:
        return None
    found = [_march(graph, uses, tile) for tile in _TILES[graph.ndim]]
    return min((march for march in found if march is not None), key=lambda march: march.work, default=None)


# Streams -------------------------------------------------------------------------------------------------------------
def reads_of(graph: KernelGraph, roots: Sequence[Node]) -> list[tuple[Source, Offsets]]:
    """Return the reads by `roots` of locals, and of fields that could be streams: with all axes, without strides."""
    found: list[tuple[Source, Offsets]] = []
    for node in topological(roots):
        if node.op == "local":
            number, offsets = cast(tuple[int, Offsets], node.data)
            found.append((("local", number), offsets))
        elif node.op == "read":
            param, strides, offsets = cast(tuple[int, Offsets, Offsets], node.data)
            if spans(graph, strides):
                found.append((("field", param), offsets))
    return found


def spans(graph: KernelGraph, strides: Offsets) -> bool:
    """Return True if a field has all axes and is accessed without strides."""
    return strides == (1,) * graph.ndim


def results(graph: KernelGraph) -> list[Node]:
    """Return the values that are computed for each cell."""
    return [*(store.value for store in graph.stores), *(item.value for item in graph.reductions)]


def _uses(graph: KernelGraph) -> dict[Source, list[Use]]:
    """Return the reads of each stream.

    Fields that are read at a single offset, as all written fields are, are not worth being streams.
    """
    uses: dict[Source, list[Use]] = {}
    own = (0,) * graph.ndim
    _collect(graph, uses, results(graph), own, own, (own[1:], own[1:]))
    for number in reversed(range(len(graph.locals))):
        if mine := uses.get(("local", number)):
            _collect(graph, uses, [graph.locals[number]], *extent(mine))
    few = [source for source, found in uses.items() if source[0] == "field" and not _pays(found)]
    for source in few:
        del uses[source]
    return uses


def extent(uses: Sequence[Use]) -> tuple[Offsets, Offsets, Reach]:
    """Return the region that includes all reads, along each axis, and the margins that threads access."""
    low, high = _lowest([use.low for use in uses]), _highest([use.high for use in uses])
    return low, high, (_lowest([use.around[0] for use in uses]), _highest([use.around[1] for use in uses]))


def _lowest(places: Sequence[Offsets]) -> Offsets:
    return tuple(map(min, zip(*places, strict=True)))


def _highest(places: Sequence[Offsets]) -> Offsets:
    return tuple(map(max, zip(*places, strict=True)))


def _collect(
    graph: KernelGraph,
    uses: dict[Source, list[Use]],
    roots: Sequence[Node],
    low: Offsets,
    high: Offsets,
    around: Reach,
) -> None:
    """Add the reads by `roots`, which are needed from `low` to `high` and computed at all cells `around` the tile."""
    none = (0,) * (graph.ndim - 1)
    inside = not any(low[1:]) and not any(high[1:])
    for source, offsets in reads_of(graph, roots):
        first, last = (tuple(a + o for a, o in zip(end, offsets, strict=True)) for end in (low, high))
        before, after = (tuple(a + o for a, o in zip(end, offsets[1:], strict=True)) for end in around)
        accessed = _lowest([before, none]), _highest([after, none])
        uses.setdefault(source, []).append(Use(high[0] + offsets[0], offsets[1:], inside, first, last, accessed))


def _pays(uses: Sequence[Use]) -> bool:
    """Return True if a field should be kept, which is so if it is read at more than one offset."""
    return len({(use.plane, use.place) for use in uses}) > 1


def words(dtype: DType) -> int:
    """Return the number of registers of a value."""
    return -(-itemsize(dtype) // 4)


# Storage of values ---------------------------------------------------------------------------------------------------
def _march(graph: KernelGraph, uses: dict[Source, list[Use]], tile: Offsets) -> March | None:
    """Return the march with this tile, or None if it needs too much shared memory.

    As many columns as possible are kept in registers.
    """
    streams = {source: _stream(graph, source, found) for source, found in uses.items()}
    while True:
        march = _placed(graph, uses, tile, streams)
        if march.registers <= MOST_QUEUED:
            room = MOST_BYTES - _REDUCTION * max(0, len(graph.reductions) - 8)
            return march if march.bytes <= room and len(march.pointers) <= BLOCK else None
        long = [s for s in march.streams if s.queue > 1]
        if not long:
            return None
        chosen = max(long, key=lambda s: (words(s.dtype) * s.queue / _columns(uses[s.source]), s.is_field))
        ring = chosen.lead - min(use.plane for use in uses[chosen.source]) + 1
        before = max(-use.low[0] for use in uses[chosen.source])
        streams[chosen.source] = replace(streams[chosen.source], queue=0, ring=ring, late=0, before=before)


def _stream(graph: KernelGraph, source: Source, uses: Sequence[Use]) -> Stream:
    low, high, around = extent(uses)
    node = graph.params[source[1]] if source[0] == "field" else graph.locals[source[1]]
    across = [use.plane for use in uses if not use.column]
    column = [use.plane for use in uses if use.column]
    ring = high[0] - min(across) + 1 if across else 0
    queue = high[0] - min(column) + 1 if column else 0
    if queue > 1 and ring >= queue and _columns(uses) == 1:
        queue = 0
    late = high[0] - max(across) if across else 0
    if source[0] == "local" or late >= queue:
        late = 0
    before = max((-use.low[0] for use in uses if not use.column), default=0)
    return Stream(source, node.dtype, low, high, around, queue, ring - late, 0, late, before)


def _columns(uses: Sequence[Use]) -> int:
    """Return the number of values of its own column that a thread reads (at least 1)."""
    return max(1, len({use.plane for use in uses if use.column}))


def _placed(graph: KernelGraph, uses: dict[Source, list[Use]], tile: Offsets, streams: dict[Source, Stream]) -> March:
    """Return the march with the streams' stages and their places in shared memory."""
    staged: dict[Source, Stream] = {}
    for source, stream in sorted(streams.items()):
        stage = 0 if stream.is_field else 1
        if not stream.is_field:
            for read, _ in reads_of(graph, [graph.locals[source[1]]]):
                if read[0] == "local":
                    stage = max(stage, staged[read].stage + (1 if staged[read].ring else 0))
        staged[source] = replace(stream, stage=stage)
    start, placed = 0, []
    for stream in staged.values():
        # A plane that arrives before the block's threads have synchronised must not replace one still being read.
        slots = stream.ring + (1 if stream.ring and stream.stage == 0 else 0)
        placed.append(replace(stream, slots=slots, start=start))
        start = -(-(start + slots * prod(stream.shape(tile)) * itemsize(stream.dtype)) // 16) * 16
    stages = max(stream.stage for stream in placed) + 1
    march = March(tile, tuple(placed), _pointers(graph, staged), stages, start, 0.0)
    return replace(march, work=_work(graph, uses, march))


def _pointers(graph: KernelGraph, streams: dict[Source, Stream]) -> tuple[Pointer, ...]:
    """Return the planes that are loaded from or stored to: next planes of streams, accessed ones of other fields."""
    found: dict[Pointer, None] = {}
    readers = [(results(graph), 0)]
    for stream in streams.values():
        if stream.is_field:
            for plane in (stream.lead, stream.newest) if stream.ring else (stream.lead,):
                found[Pointer(stream.number, plane + 1, (0,) * (graph.ndim - 1))] = None
        else:
            readers.append(([graph.locals[stream.number]], stream.lead))
    for roots, lead in readers:
        for source, offsets in reads_of(graph, roots):
            if source[0] == "field" and source not in streams:
                found[Pointer(source[1], lead + offsets[0], offsets[1:])] = None
    for store in graph.stores:
        if spans(graph, store.strides):
            found[Pointer(store.param, store.offsets[0], store.offsets[1:])] = None
    return tuple(found)


# Cost ----------------------------------------------------------------------------------------------------------------
LOAD: Final = 8
"""Number of operations that take as long as bringing one element close to the block."""
BARRIER: Final = 12
"""Number of operations that take as long as waiting for the block's other threads."""


def operations(roots: Sequence[Node]) -> int:
    """Return the number of instructions that compute `roots`.

    Each read and each operation counts as one; those of loops count once per expected iteration.
    """
    return sum(map(_instructions, topological(roots)))


def _instructions(node: Node) -> int:
    if node.op == "iterate":
        return int(node.data.expected) * sum(map(_instructions, node.data.nodes()))
    return int(node.op not in ("const", "scalar", "state", "captured", "iterated"))


def _work(graph: KernelGraph, uses: dict[Source, list[Use]], march: March) -> float:
    """Return the operations per cell, including margins, queues and rings, and the planes before the first one."""
    early, streams = 0.0, {stream.source: stream for stream in march.streams}
    for stream in march.streams:
        turns = 1 + stream.rounds(march.tile)
        early += turns * (1 if stream.ring else 0) + max(0, stream.queue - 1)
        if stream.is_field:
            early += LOAD * (1 + stream.frame(march.tile) / BLOCK)
        else:
            definition = [graph.locals[stream.number]]
            early += turns * (operations(definition) - _kept(graph, definition, streams))
    early += BARRIER * sum(march.meets(stage) for stage in range(march.stages))
    roots = results(graph)
    direct = {n.data for n in topological(roots) if n.op == "read"}
    direct = {data for data in direct if ("field", cast(tuple[int, Offsets, Offsets], data)[0]) not in streams}
    late = operations(roots) - _kept(graph, roots, streams) + (LOAD - 1) * len(direct)
    return early * (1 + march.span / SLAB) + late


def _kept(graph: KernelGraph, roots: Sequence[Node], streams: dict[Source, Stream]) -> int:
    """Return the number of reads that need no instruction, as their values are in registers."""
    return sum(
        1 for source, offsets in reads_of(graph, roots)
        if source in streams and not any(offsets[1:]) and streams[source].queue > 1
    )  # fmt: skip
