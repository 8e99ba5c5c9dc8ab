"""Fields in a GPU's memory: checking that they fit, moving them back there, and copying them out."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from minga.engine.copy_out import DONE, Pending, Together
from minga.engine.device import Device
from minga.engine.device_kernels import helper_launch
from minga.engine.helpers import BoxAddress, Copy, copy_args
from minga.engine.reach import Reach
from minga.engine.storage import BlockArrays, Storage
from minga.errors import LayoutError
from minga.space.box import Box
from minga.space.field import Field, Slot
from minga.space.ownership import Ownership

__all__ = ["DeviceFields"]

_KEPT_FREE = 64 << 20
"""Bytes that kernels, streams and the driver may need in addition to the fields."""
_NAMED = 8
"""Maximum number of fields listed in a message about memory, largest first."""


@dataclass(slots=True)
class DeviceFields:
    """The fields of an engine on a device."""

    device: Device
    storage: Storage

    def check_room(self, wanted: Mapping[Slot, Reach]) -> None:
        """Raise LayoutError, listing the largest fields, if a Program's fields do not fit into the device's memory."""
        halos: dict[Field, Reach] = {}
        for slot, reach in wanted.items():
            known = halos.get(slot.field)
            halos[slot.field] = reach if known is None else known.union(reach)
        need, fresh, given_up = {}, 0, 0
        for item, halo in halos.items():
            stored = self.storage.fields.get(item)
            if stored is not None and stored.halo.covers(Reach(halo.lo, halo.hi, True)):
                continue
            wide = halo if stored is None else stored.halo.union(halo)
            need[item] = field_bytes(self.storage, item, wide)
            fresh += need[item]
            given_up += field_bytes(self.storage, item, stored.halo) if stored is not None else 0
        free, total = self.device.memory
        free += given_up
        if fresh + _KEPT_FREE <= free:
            return
        for item, stored in self.storage.fields.items():
            need.setdefault(item, field_bytes(self.storage, item, stored.halo))
        raise LayoutError(
            f"the fields do not fit into the memory of {self.device.name}: {_size(fresh)} more are needed and "
            f"{_size(max(0, free))} of {_size(total)} are free\n{_table(need)}",
            remedy="use more GPUs, a smaller grid, f4 in place of f8, or run on the processor",
        )

    def send_back(self) -> None:
        """Move everything that Python may have accessed to the device at once."""
        for item in self.storage.seen:
            stored = self.storage.fields.get(item)
            for block in stored.blocks.values() if stored is not None else ():
                for array in block.arrays:
                    self.device.prefetch(array)
        self.storage.seen.clear()

    def carry(self, old: BlockArrays, new: BlockArrays) -> None:
        """Copy the common cells of a block's arrays to wider ones on the device, for all slots."""
        box = old.box & new.box
        if box.empty:
            return
        copies = []
        for slot, (source, target) in enumerate(zip(old.arrays, new.arrays, strict=True)):
            self.device.prefetch(source)
            whence, whither = (
                BoxAddress(int(block.table.ctypes.data) + 8 * slot, _offset(block, box), array.strides)
                for block, array in ((old, source), (new, target))
            )
            copies.append(Copy(whence, whither, box.shape, source.itemsize))
        args = self._words(copy_args(copies))
        grid, threads = helper_launch("copy_boxes", args)
        self.device.launch(self.device.helper("copy_boxes"), grid, threads, int(args.ctypes.data))
        self.device.synchronise()

    def copy_out(self, slot: Slot, box: Box, target: np.ndarray) -> Pending:
        """Copy this rank's cells of a box, concurrently with computing."""
        parts = []
        for block in self.storage.stored(slot.field).blocks.values():
            part = block.owned & box
            if not part.empty:
                parts.append(self._copy(block, slot, part, target[part.slices(box.lo)]))
        return Together(parts) if parts else DONE

    def _copy(self, block: BlockArrays, slot: Slot, part: Box, target: np.ndarray) -> Pending:
        size = np.dtype(slot.field.dtype).itemsize
        strides = [size]
        for length in reversed(part.shape[1:]):
            strides.insert(0, strides[0] * length)
        dense = target if target.flags.c_contiguous else None
        memory, keep = self.device.staged(part.size * size)
        array = block.arrays[0]
        word = self._words(np.array([memory], np.int64))
        source = BoxAddress(int(block.table.ctypes.data) + 8 * slot.index, _offset(block, part), array.strides)
        into = BoxAddress(int(word.ctypes.data), 0, tuple(strides))
        args = self._words(copy_args([Copy(source, into, part.shape, size)]))
        grid, threads = helper_launch("copy_boxes", args)
        self.device.launch(self.device.helper("copy_boxes"), grid, threads, int(args.ctypes.data))
        landing = self.device.pinned(part.size * size) if dense is None else dense.reshape(-1).view(np.uint8)
        pending = self.device.copy_staged(memory, landing, (keep, word, args, target))
        if dense is not None:
            return pending
        return _Scattered(pending, landing.view(target.dtype).reshape(part.shape), target)

    def _words(self, values: np.ndarray) -> np.ndarray:
        memory = self.device.pinned(values.nbytes).view(np.int64)
        memory[:] = values
        return memory


def _offset(block: BlockArrays, box: Box) -> int:
    """Return the bytes from a block's first element to the first element of a box."""
    strides = block.arrays[0].strides
    return sum((b - o) * s for b, o, s in zip(box.lo, block.box.lo, strides, strict=True))


class _Scattered:
    """A copy that is scattered to its target on arrival, only once: afterwards the target belongs to someone else."""

    def __init__(self, pending: Pending, landing: np.ndarray, target: np.ndarray) -> None:
        self._pending = pending
        self._places: tuple[np.ndarray, np.ndarray] | None = (target, landing)
        self._lock = threading.Lock()

    def done(self) -> bool:
        """Return True if the copy has arrived; it is then in the target."""
        if not self._pending.done():
            return False
        self.wait()
        return True

    def wait(self) -> None:
        """Wait for the copy and put it into the target."""
        self._pending.wait()
        with self._lock:
            if self._places is not None:
                target, landing = self._places
                target[...] = landing
                self._places = None


def field_bytes(storage: Storage, item: Field, halo: Reach) -> int:
    """Return the bytes of a field with a halo on this rank, without padding."""
    size: int = np.dtype(item.dtype).itemsize * item.slots
    if item.replicated:
        return item.bounds.size * size
    layout = storage.layout(item.grid)
    ownership = Ownership.of(item.grid, layout, item.centre, None, item.on)
    return sum(ownership.stored(block, halo.lo, halo.hi).size for block in layout.blocks_of(storage.rank)) * size


def _table(need: Mapping[Field, int]) -> str:
    """Return a table of the largest fields, one per line."""
    largest = sorted(need.items(), key=lambda pair: -pair[1])
    lines = [f"  {item.name}: {_size(count)}{_slots(item)}" for item, count in largest[:_NAMED]]
    if len(largest) > _NAMED:
        lines.append(f"  {len(largest) - _NAMED} others: {_size(sum(count for _, count in largest[_NAMED:]))}")
    return "\n".join([*lines, f"  all fields: {_size(sum(need.values()))}"])


def _slots(item: Field) -> str:
    return f" ({item.slots} slots)" if item.slots > 1 else ""


def _size(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
