"""Reading NetCDF files of the classic formats, without a library: memory-mapped variables with their attributes.

Source: "NetCDF Classic Format Specifications" (Unidata NetCDF Users Guide, appendix): CDF-1, CDF-2 and CDF-5. Variables
with a record dimension, whose values are not contiguous, are left out.

SciPy reads only CDF-1 and CDF-2. This reader is needed for 64-bit integers and variables beyond 2 GiB, which `minga
export` writes as CDF-5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError

__all__ = ["ClassicVariable", "is_classic", "read_classic"]

_TYPES: Final = {
    1: "i1",
    2: "S1",
    3: ">i2",
    4: ">i4",
    5: ">f4",
    6: ">f8",
    7: "u1",
    8: ">u2",
    9: ">u4",
    10: ">i8",
    11: ">u8",
}
_HEADER: Final = 1 << 22
"""Most bytes of a header."""


@dataclass(frozen=True, slots=True)
class ClassicVariable:
    """A variable: the names of its dimensions, its values mapped from the file, and its attributes."""

    dims: tuple[str, ...]
    values: NDArray[Any]
    attributes: dict[str, Any]


def is_classic(path: Path) -> bool:
    """Return True if a file begins with the signature of a classic format; other NetCDF files are HDF5."""
    with path.open("rb") as stream:
        start = stream.read(4)
    return start[:3] == b"CDF" and start[3:] in (b"\x01", b"\x02", b"\x05")


def read_classic(path: Path) -> dict[str, ClassicVariable]:
    """Return the variables of a file by name; their values are read from disk when they are accessed.

    Raises
    ------
    CaseError
        If the file is damaged.
    """
    with path.open("rb") as stream:
        header = _Header(stream.read(_HEADER))
    try:
        return header.variables(path)
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        raise CaseError(f"{path.name} is a damaged or truncated NetCDF file: {error}") from error


class _Header:
    """Sequential reader of a header."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 4
        self._long = data[3] == 5
        self._offsets = 4 if data[3] == 1 else 8

    def variables(self, path: Path) -> dict[str, ClassicVariable]:
        self._count()  # records
        dims = [(self._name(), self._count()) for _ in range(self._list())]
        self._attributes()
        found = {}
        for _ in range(self._list()):
            name = self._name()
            own = [dims[self._count()] for _ in range(self._count())]
            attributes = self._attributes()
            dtype = np.dtype(_TYPES[self._number(4)])
            self._count()  # size in bytes, which follows from the dimensions
            begin = self._number(self._offsets)
            shape = tuple(length for _, length in own)
            if math.prod(shape) == 0:
                continue
            if path.stat().st_size < begin + math.prod(shape) * dtype.itemsize:
                raise ValueError(f"the values of {name} lie beyond the end of the file")
            values = np.memmap(path, dtype, mode="r", offset=begin, shape=shape)
            found[name] = ClassicVariable(tuple(word for word, _ in own), values, attributes)
        return found

    def _number(self, size: int) -> int:
        word = self._data[self._at : self._at + size]
        if len(word) < size:
            raise ValueError("the header is not complete")
        self._at += size
        return int.from_bytes(word, "big")

    def _count(self) -> int:
        return self._number(8 if self._long else 4)

    def _list(self) -> int:
        self._number(4)  # tag of the list
        return self._count()

    def _bytes(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise ValueError("the header is not complete")
        self._at += -(-size // 4) * 4
        return found

    def _name(self) -> str:
        return self._bytes(self._count()).decode("utf-8", "replace")

    def _attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(self._list()):
            name = self._name()
            dtype = np.dtype(_TYPES[self._number(4)])
            data = self._bytes(self._count() * dtype.itemsize)
            found[name] = data.decode("utf-8", "replace") if dtype.kind == "S" else np.frombuffer(data, dtype).tolist()
        return found
