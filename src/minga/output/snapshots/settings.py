"""What is kept of a run, and how it gets to the disk: the choices of the table ``[output]`` as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from minga.errors import CaseError

__all__ = ["Codec", "Policy", "SnapshotSettings"]

Codec = Literal["none", "blosc", "zfp"]
Policy = Literal["block", "drop", "raise"]

_MIB: Final = 1 << 20
_RAW_CHUNK, _PACKED_CHUNK = 1024 * _MIB, 32 * _MIB
_LARGE: Final = 4 * _MIB
"""Bytes of a frame from which its files are brought to the disk at once where ``durable`` is ``"auto"``."""


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """How frames are kept. Nothing of it changes a result.

    every     steps from one frame to the next; None: the first and the last only
    fields    names of the fields; None: the model's output
    region    half-open ranges of cells by axis name, (low, high); axes left out are kept whole
    decimate  every n-th point along all axes, or by axis name, counted from the region's low end
    codec     "none", "blosc" (lossless, zstd with byte shuffle) or "zfp" (fixed accuracy)
    accuracy  of zfp: largest error, as a part of the frame's largest magnitude
    buffers   frames in memory on their way to the disk, on all ranks together
    policy    on a full queue: "block" the solver, "drop" the frame, or "raise" an error
    durable   fsync every frame before it becomes visible; "auto": frames of 4 MiB and more
    direct    write past the page cache (O_DIRECT) where the file system can; "auto": where `durable` applies
    writers   so many of the last ranks own no cells and only write; 0: ranks that compute write as well
    chunk     largest chunk in bytes; None: 1 GiB uncompressed (so nearly always the frame), 32 MiB compressed
    """

    every: int | None = None
    fields: tuple[str, ...] | None = None
    region: Mapping[str, tuple[int, int]] | None = None
    decimate: int | Mapping[str, int] = 1
    codec: Codec = "none"
    accuracy: float = 1e-4
    buffers: int = 3
    policy: Policy = "block"
    durable: bool | Literal["auto"] = "auto"
    direct: bool | Literal["auto"] = "auto"
    writers: int = 0
    chunk: int | None = None

    def __post_init__(self) -> None:
        if self.buffers < 2:
            raise CaseError(
                f"expected 2 buffers or more, found {self.buffers}",
                key="output.buffers",
                remedy="one is filled while another is written; give 3",
            )
        if self.writers < 0:
            raise CaseError(f"expected 0 writers or more, found {self.writers}", key="output.writers")

    @property
    def chunk_bytes(self) -> int:
        """Largest chunk."""
        if self.chunk is not None:
            return self.chunk
        return _RAW_CHUNK if self.codec == "none" else _PACKED_CHUNK

    def lasting(self, frame_bytes: int) -> bool:
        """Whether frames of so many bytes are brought to the disk one by one."""
        return frame_bytes >= _LARGE if self.durable == "auto" else self.durable

    def past_the_cache(self, frame_bytes: int) -> bool:
        """Whether files of frames of so many bytes are to be written with O_DIRECT."""
        return self.lasting(frame_bytes) if self.direct == "auto" else self.direct
