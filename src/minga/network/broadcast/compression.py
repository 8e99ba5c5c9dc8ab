"""Compression of pieces, where the network is slower than the compressor.

Zstandard comes from numcodecs, which Zarr requires; zlib is Python's.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from minga.errors import RunError
from minga.network.broadcast.keys import Buffer

__all__ = ["COMPRESSIONS", "Compressor", "decode"]

COMPRESSIONS: Final = ("auto", "off", "zstd", "zlib")
"""Settings of compression; ``auto`` decides for each piece."""
_RAW, _ZLIB, _ZSTD = 0, 1, 2
_SAMPLE: Final = 1 << 17
_MARGIN: Final = 1.5
"""Factor by which compressing must be faster than the network, so that pieces never wait for it."""
_WORTH: Final = 0.9
"""Largest ratio of compressed to original bytes that is worth the work."""
_LEVEL: Final = {"auto": 1, "zstd": 3}


@dataclass
class Compressor:
    """Compressor of consecutive pieces with a setting of :data:`COMPRESSIONS`."""

    setting: str = "auto"
    clock: Callable[[], float] = field(default=time.perf_counter)

    def encode(self, data: bytearray, rate: float | None) -> tuple[int, Buffer]:
        """Return the number of an encoding, and the encoded piece.

        Parameters
        ----------
        data
            The piece.
        rate
            Bytes per second that the network carries, as far as known.
        """
        if self.setting == "off" or not data or (self.setting == "auto" and not self._worthwhile(data, rate)):
            return _RAW, data
        if self.setting == "zlib":
            kind, packed = _ZLIB, zlib.compress(data, 1)
        else:
            kind, packed = _ZSTD, _zstd(data, _LEVEL[self.setting])
        return (kind, packed) if len(packed) < len(data) else (_RAW, data)

    def _worthwhile(self, data: bytearray, rate: float | None) -> bool:
        """Judge by a sample from the middle; without a known rate, nothing is compressed."""
        if rate is None:
            return False
        begin = max(0, (len(data) - _SAMPLE) // 2)
        sample = data[begin : begin + _SAMPLE]
        _zstd(bytes(64), 1)  # loads the library
        start = self.clock()
        packed = _zstd(sample, _LEVEL["auto"])
        seconds = max(self.clock() - start, 1e-9)
        return len(packed) < _WORTH * len(sample) and len(sample) / seconds > _MARGIN * rate


def decode(kind: int, packed: Buffer, length: int) -> Buffer:
    """Return the ``length`` bytes of a piece.

    Raises
    ------
    RunError
        If the encoding is unknown, or the bytes are not a piece of this length.
    """
    if kind == _RAW and len(packed) == length:
        return packed
    data: Buffer = b""
    try:
        if kind == _ZLIB:
            data = zlib.decompressobj().decompress(packed, length)
        elif kind == _ZSTD:
            from numcodecs import zstd

            data = bytearray(length)
            zstd.decompress(packed, data)
    except (zlib.error, RuntimeError, ValueError):
        data = b""
    if len(data) != length:
        raise RunError(
            "a piece of the file cannot be decompressed", remedy="run the same versions of minga on all hosts"
        )
    return data


def _zstd(data: bytes | bytearray, level: int) -> bytes:
    from numcodecs import zstd

    packed: bytes = zstd.compress(data, level)
    return packed
