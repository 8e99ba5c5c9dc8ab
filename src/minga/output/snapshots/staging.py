"""Transfer of a frame from the blocks of all ranks to the chunks of the ranks that write, together for all fields.

Blocks and chunks are boxes of kept indices; their common parts are copied, between ranks in one message for each pair.
On a rank that only sends, the messages leave while the next steps are computed; they are awaited before the next frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Channel, Envelope
from minga.engine.copy_out import Pending
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.output.cells import blocks_of_cells, layout_of_cells
from minga.output.snapshots.chunks import Chunk
from minga.output.snapshots.selection import Selection
from minga.space.box import Box
from minga.space.boxes import Ints, intersect_pairs
from minga.space.layout import Layout
from minga.space.ownership import Ownership
from minga.space.transfer import Copy, RankTransfer, for_rank

__all__ = ["Staging", "arrays_of"]

Array = NDArray[Any]

TAG: Final = 32749
"""Tag of the messages of frames; tags of Programs count up from 1."""
_LINE: Final = 64


def arrays_of(chunks: Sequence[Chunk], buffer: NDArray[np.uint8]) -> list[Array]:
    """Return the arrays of chunks that lie one after the other in a buffer, each starting on a new page."""
    arrays, at = [], 0
    for chunk in chunks:
        arrays.append(buffer[at : at + chunk.nbytes].view(chunk.variable.dtype).reshape(chunk.shape))
        at += chunk.padded
    return arrays


@dataclass(frozen=True, slots=True)
class _Part:
    """Copy in a message: the number of its field, a box of kept indices and its chunk, and its position in bytes."""

    field: int
    copy: Copy
    at: int


@dataclass(slots=True)
class _Plan:
    """Transfer of all fields on the present layouts, and its messages. Parts are by peer."""

    layouts: tuple[Layout, ...]
    local: list[list[Copy]]
    sends: dict[int, list[_Part]]
    receives: dict[int, list[_Part]]
    outgoing: dict[int, NDArray[np.uint8]]
    incoming: dict[int, NDArray[np.uint8]]
    channel: Channel
    under_way: bool = False


class Staging:
    """Transfer of the present values of fields to chunks; made alike on all ranks.

    Parameters
    ----------
    model
        The model.
    kept
        Kept points of each field.
    chunks
        Chunks of each field.
    writers
        For each field the rank of each chunk.
    """

    def __init__(
        self, model: Model, kept: Sequence[Selection], chunks: Sequence[Sequence[Chunk]], writers: Sequence[Ints]
    ) -> None:
        self._model, self._kept, self._chunks, self._writers = model, tuple(kept), tuple(chunks), tuple(writers)
        self._plan: _Plan | None = None

    @property
    def message_bytes(self) -> int:
        """Memory of the messages of this rank."""
        plan = self._plan
        return 0 if plan is None else sum(b.nbytes for b in (*plan.outgoing.values(), *plan.incoming.values()))

    def mine(self, rank: int) -> list[Chunk]:
        """Return the chunks that a rank writes, in order."""
        pairs = zip(self._chunks, self._writers, strict=True)
        return [chunk for chunks, owners in pairs for chunk, owner in zip(chunks, owners.tolist()) if owner == rank]

    def settle(self) -> None:
        """Return when the messages that this rank has sent have left."""
        if self._plan is not None and self._plan.under_way:
            self._plan.channel.wait()
            self._plan.under_way = False

    def close(self) -> None:
        """Release the messages, which must have left."""
        if self._plan is not None and not self._plan.under_way:
            self._plan.channel.close()
            self._plan = None

    def fill(self, engine: Engine, arrays: Sequence[Array]) -> list[Pending]:
        """Bring the present values into `arrays`, those of this rank's chunks; collective.

        They are there once the returned copies have been waited for.
        """
        self.settle()
        plan = self._planned(engine)
        places = self._places(engine.comm.rank, arrays)
        pending: list[Pending] = []
        for number, kept in enumerate(self._kept):
            copies = plan.local[number]
            if copies and self._copies_whole(kept):
                pending += self._copied_out(engine, number, places)
                copies = []
            out = [part for parts in plan.sends.values() for part in parts if part.field == number]
            if not copies and not out:
                continue
            targets = [(copy, places[number, copy.target], self._chunks[number][copy.target].box) for copy in copies]
            targets += [
                (part.copy, self._in_message(part, plan.outgoing[peer]), part.copy.source_box)
                for peer, parts in plan.sends.items()
                for part in parts
                if part.field == number
            ]
            for box, values in self._pieces(engine, kept):
                _scatter(kept, box, values, targets)
        if plan.outgoing or plan.incoming:
            plan.channel.start()
            plan.under_way = True
        if plan.incoming:
            self.settle()
            for peer, parts in plan.receives.items():
                for part in parts:
                    chunk = self._chunks[part.field][part.copy.target]
                    place = places[part.field, part.copy.target]
                    place[part.copy.source_box.slices(chunk.box.lo)] = self._in_message(part, plan.incoming[peer])
        return pending

    def _places(self, rank: int, arrays: Sequence[Array]) -> dict[tuple[int, int], Array]:
        """Return the arrays of this rank's chunks by field and number."""
        keys = [
            (field, number)
            for field, owners in enumerate(self._writers)
            for number, owner in enumerate(owners.tolist())
            if owner == rank
        ]
        return dict(zip(keys, arrays, strict=True))

    def _copies_whole(self, kept: Selection) -> bool:
        """Return whether an engine can copy boxes of the field as they are stored."""
        return set(kept.every) <= {1} and kept.field.name not in self._model.packed and not kept.field.replicated

    def _copied_out(self, engine: Engine, number: int, places: Mapping[tuple[int, int], Array]) -> Iterator[Pending]:
        """Have the engine copy this rank's own part of its chunks."""
        kept = self._kept[number]
        for (field, at), array in places.items():
            if field == number:
                box = self._chunks[number][at].box
                yield engine.copy_out(kept.field, box.shift(kept.box.lo), array[: box.shape[0]])

    def _pieces(self, engine: Engine, kept: Selection) -> Iterator[tuple[Box, Array]]:
        """Yield this rank's part of a field; a field that every rank holds belongs to rank 0."""
        if engine.comm.rank == 0 or not kept.field.replicated:
            yield from blocks_of_cells(engine, self._model, kept.field.name)

    def _in_message(self, part: _Part, message: NDArray[np.uint8]) -> Array:
        """Return the place of a part in a message, as an array of its box."""
        box, dtype = part.copy.source_box, np.dtype(self._kept[part.field].field.dtype)
        return message[part.at : part.at + box.size * dtype.itemsize].view(dtype).reshape(box.shape)

    def _planned(self, engine: Engine) -> _Plan:
        """Return the plan for the present layouts; the last one if nothing moved."""
        layouts = tuple(self._layout(engine, kept) for kept in self._kept)
        if self._plan is not None and all(a is b for a, b in zip(self._plan.layouts, layouts, strict=True)):
            return self._plan
        self.close()
        rank = engine.comm.rank
        transfers = [self._transfer(engine, number) for number in range(len(self._kept))]
        sends, receives = self._parts(transfers, "sends"), self._parts(transfers, "receives")
        outgoing, incoming = self._messages(sends), self._messages(receives)
        channel = engine.comm.channel(
            [Envelope(peer, message, len(sends[peer])) for peer, message in outgoing.items()],
            [Envelope(peer, message) for peer, message in incoming.items()],
            TAG,
        )
        local = [list(transfer.local) for transfer in transfers]
        assert all(transfer.rank == rank for transfer in transfers)
        self._plan = _Plan(layouts, local, sends, receives, outgoing, incoming, channel)
        return self._plan

    def _layout(self, engine: Engine, kept: Selection) -> Layout:
        """Return the layout of a field's owners: it is another object when they change."""
        packed = self._model.packed.get(kept.field.name)
        for field in (kept.field,) if packed is None else packed.planes:
            engine.storage.stored(field)  # all ranks hold the same fields, including those in which nothing was set
        return engine.storage.layout(kept.field.grid if packed is None else packed.words)

    def _transfer(self, engine: Engine, number: int) -> RankTransfer:
        """Return this rank's part in bringing one field from its blocks to the chunks."""
        kept, owners, rank = self._kept[number], self._writers[number], engine.comm.rank
        lo, hi, source_owner = _sources(engine, self._model, kept)
        boxes = [chunk.box for chunk in self._chunks[number]]
        low, high = np.array([box.lo for box in boxes]), np.array([box.hi for box in boxes])
        from_mine = _copies(lo, hi, low, high, np.flatnonzero(source_owner == rank), np.arange(len(boxes)))
        to_mine = _copies(lo, hi, low, high, np.flatnonzero(source_owner != rank), np.flatnonzero(owners == rank))
        return for_rank([*from_mine, *to_mine], source_owner, owners, rank)

    def _parts(self, transfers: Sequence[RankTransfer], side: str) -> dict[int, list[_Part]]:
        """Return the copies of the messages to (or from) each peer, all fields in one message."""
        parts: dict[int, list[_Part]] = {}
        ends: dict[int, int] = {}
        for number, transfer in enumerate(transfers):
            size = np.dtype(self._kept[number].field.dtype).itemsize
            for message in getattr(transfer, side):
                for copy in message.copies:
                    at = ends.get(message.peer, 0)
                    parts.setdefault(message.peer, []).append(_Part(number, copy, at))
                    ends[message.peer] = at + -(-copy.source_box.size * size // _LINE) * _LINE
        return parts

    def _messages(self, parts: Mapping[int, Sequence[_Part]]) -> dict[int, NDArray[np.uint8]]:
        return {peer: np.empty(self._end(several[-1]), np.uint8) for peer, several in sorted(parts.items())}

    def _end(self, part: _Part) -> int:
        size = np.dtype(self._kept[part.field].field.dtype).itemsize
        return part.at + -(-part.copy.source_box.size * size // _LINE) * _LINE


def _sources(engine: Engine, model: Model, kept: Selection) -> tuple[Ints, Ints, Ints]:
    """Return the boxes of kept indices that all blocks own, and their ranks; some are empty."""
    field = kept.field
    if field.replicated:
        lo, hi = np.array([field.bounds.lo]), np.array([field.bounds.hi])
        return *kept.bounds(lo, hi), np.zeros(1, np.int64)
    layout = layout_of_cells(engine, model, field.grid)
    if field.name not in model.packed:
        layout = engine.storage.layout(field.grid)
    owned = Ownership.of(field.grid, layout, field.centre, None, field.on)
    lo, hi = owned.bounds(np.arange(len(layout)))
    return *kept.bounds(lo, hi), layout.owner


def _copies(lo: Ints, hi: Ints, low: Ints, high: Ints, blocks: Ints, chunks: Ints) -> list[Copy]:
    """Return copies of the common parts of some blocks and some chunks."""
    if not len(blocks) or not len(chunks):
        return []
    i, j, part_lo, part_hi = intersect_pairs(lo[blocks], hi[blocks], low[chunks], high[chunks])
    nowhere = (0,) * lo.shape[1]
    return [
        Copy(source, target, Box(tuple(first), tuple(last)), nowhere)
        for source, target, first, last in zip(
            blocks[i].tolist(), chunks[j].tolist(), part_lo.tolist(), part_hi.tolist(), strict=True
        )
    ]


def _scatter(kept: Selection, box: Box, values: Array, targets: Sequence[tuple[Copy, Array, Box]]) -> None:
    """Copy the kept points of a piece of a field to their places; a target's array begins at its box's low end."""
    mine = kept.indices(box)
    for copy, array, around in targets:
        part = mine & copy.source_box
        if not part.empty:
            array[part.slices(around.lo)] = values[kept.slices(part, box.lo)]
