"""Encoding of the bytes of a chunk, and Zarr's name for it.

``blosc`` is lossless. ``zfp`` keeps every value within a tolerance, which is a share of the largest magnitude in the
frame's chunk; zfp's header carries it, so that every chunk decodes by itself (P. Lindstrom, "Fixed-Rate Compressed
Floating-Point Arrays", IEEE TVCG 20, 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.options import OutputSettings
from minga.output.snapshots.selection import selections_of
from minga.space.field import Field

__all__ = ["Encode", "check_snapshots", "codecs_entry", "encoder"]

Encode = Callable[[NDArray[Any]], bytes]

_BLOSC: Final = {"cname": "zstd", "clevel": 1, "shuffle": "shuffle", "blocksize": 0}
_FIXED_ACCURACY: Final = 4
_MOST_BLOSC: Final = (1 << 31) - 17
"""Largest number of bytes that Blosc compresses at once."""


def encoder(settings: OutputSettings, dtype: np.dtype[Any], key: str = "output.codec") -> Encode | None:
    """Return the function from the array of a chunk to the bytes of its file; None if these are the array's own.

    Raises
    ------
    CaseError
        If a library is missing, or the type of the values cannot be stored this way.
    """
    if settings.codec == "blosc":
        return _blosc(dtype)
    if settings.codec == "zfp":
        return _zfp(settings.accuracy, dtype, key)
    return None


def check_snapshots(fields: Sequence[Field], settings: OutputSettings) -> None:
    """Raise CaseError if frames of these fields cannot be kept as requested."""
    selections_of(fields, settings)
    for field in fields:
        encoder(settings, np.dtype(field.dtype))


def codecs_entry(settings: OutputSettings, dtype: np.dtype[Any]) -> list[dict[str, Any]]:
    """Return the entry ``codecs`` of an array's metadata."""
    if settings.codec == "zfp":
        return [{"name": "numcodecs.zfpy", "configuration": {"mode": _FIXED_ACCURACY, "tolerance": settings.accuracy}}]
    plain: dict[str, Any] = {"name": "bytes"}
    if dtype.itemsize > 1:
        plain["configuration"] = {"endian": "little"}
    if settings.codec == "blosc":
        return [plain, {"name": "blosc", "configuration": {"typesize": dtype.itemsize, **_BLOSC}}]
    return [plain]


def _blosc(dtype: np.dtype[Any]) -> Encode:
    from numcodecs.blosc import SHUFFLE, Blosc

    codec = Blosc(cname="zstd", clevel=1, shuffle=SHUFFLE)

    def encode(values: NDArray[Any]) -> bytes:
        if values.nbytes > _MOST_BLOSC:
            raise CaseError(
                f"a chunk of {values.nbytes} bytes is larger than Blosc takes",
                key="output.chunk",
                remedy="leave output.chunk out: chunks then have 32 MiB at most",
            )
        return bytes(codec.encode(values))

    return encode


def _zfp(accuracy: float, dtype: np.dtype[Any], key: str) -> Encode:
    if dtype not in (np.float32, np.float64):
        raise CaseError(f"zfp is for values of type f4 and f8, found {dtype}", key=key, remedy='write codec = "blosc"')
    zfpy = _zfpy(key)

    def encode(values: NDArray[Any]) -> bytes:
        largest = float(np.max(np.abs(values), initial=0.0))
        # For zeros alone every tolerance is exact; zfp does not support values that are not finite.
        if not np.isfinite(largest):
            raise CaseError(
                "zfp cannot store values that are not finite", key=key, remedy='write codec = "blosc" to inspect them'
            )
        tolerance = accuracy * largest if largest else 1.0
        compressed: bytes = zfpy.compress_numpy(values, tolerance=tolerance, write_header=True)
        return compressed

    return encode


def _zfpy(key: str) -> Any:
    """Return the library, which Zarr must be able to use as well, to read."""
    try:
        import zfpy
        from numcodecs.zfpy import ZFPY  # noqa: F401
    except Exception as error:  # zfpy 1.0.1.post0 makes numcodecs 0.16 raise a ValueError
        raise CaseError(
            f"zfp needs the library zfpy, and Zarr to know it: {error}",
            key=key,
            remedy="install it with: pip install 'zfpy==1.0.1' (1.0.1.post0 breaks numcodecs 0.16), or write "
            'codec = "blosc"',
        ) from error
    return zfpy
