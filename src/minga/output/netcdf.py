"""Writing NetCDF files of the classic formats, without a library.

Source: "NetCDF Classic Format Specifications" (Unidata NetCDF Users Guide, appendix), formats CDF-2 (64-bit offsets)
and CDF-5 (64-bit sizes), which is used only if CDF-2 cannot represent a type or a size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from minga.output.directory import appearing

__all__ = ["NetcdfVariable", "write_netcdf"]

_DIMENSION, _VARIABLE, _ATTRIBUTE = 10, 11, 12
_CHAR: Final = 2
_TYPES: Final = {"int8": 1, "int16": 3, "int32": 4, "float32": 5, "float64": 6}
_TYPES_5: Final = {"uint8": 7, "uint16": 8, "uint32": 9, "int64": 10, "uint64": 11}
_MOST_2: Final = (1 << 31) - 4
"""Most bytes of a variable in CDF-2."""


@dataclass(frozen=True, slots=True)
class NetcdfVariable:
    """A variable: its dimensions, and a function that returns its values in parts, in order along the first axis."""

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    attributes: Mapping[str, Any]
    parts: Callable[[], Iterable[NDArray[Any]]]

    @property
    def stored(self) -> np.dtype[Any]:
        """Type in the file: bytes of the classic formats are signed, and an attribute marks them as unsigned."""
        return np.dtype("i1") if self.dtype.name in ("bool", "uint8") else self.dtype

    @property
    def nbytes(self) -> int:
        """Size of the values in bytes."""
        return math.prod(self.shape) * self.stored.itemsize

    @property
    def described(self) -> dict[str, Any]:
        """Attributes, including those that state the meaning of bytes."""
        extra = {"bool": {"dtype": "bool"}, "uint8": {"_Unsigned": "true"}}.get(self.dtype.name, {})
        return {**self.attributes, **extra}


class _Sink(Protocol):
    def write(self, data: bytes, /) -> int: ...


def write_netcdf(path: Path, variables: Sequence[NetcdfVariable], attributes: Mapping[str, Any]) -> None:
    """Write variables with their dimensions to a file, which appears only when it is complete.

    Parameters
    ----------
    path
        The file to write.
    variables
        The variables.
    attributes
        Attributes of the file. Text and numbers are written; other values are left out.

    Raises
    ------
    RunError
        If the disk fails.
    """
    wide = any(v.stored.name in _TYPES_5 or v.nbytes > _MOST_2 for v in variables)
    header = _Header(wide)
    with appearing(path) as temporary, temporary.open("wb") as stream:
        stream.write(header.of(variables, attributes))
        for variable in variables:
            _write_values(stream, variable)


def _write_values(stream: _Sink, variable: NetcdfVariable) -> None:
    stored = variable.stored.newbyteorder(">")
    for part in variable.parts():
        array = np.ascontiguousarray(part)
        stream.write((array.view("i1") if array.dtype.name in ("bool", "uint8") else array).astype(stored).tobytes())
    stream.write(b"\0" * (-variable.nbytes % 4))


@dataclass(frozen=True, slots=True)
class _Header:
    """Encoder of the header; with `wide` in the format CDF-5, whose counts have 8 bytes."""

    wide: bool

    def of(self, variables: Sequence[NetcdfVariable], attributes: Mapping[str, Any]) -> bytes:
        dims = {
            name: length for variable in variables for name, length in zip(variable.dims, variable.shape, strict=True)
        }
        head = b"CDF\x05" if self.wide else b"CDF\x02"
        head += self.count(0) + self.list(_DIMENSION, [self.name(n) + self.count(k) for n, k in dims.items()])
        head += self.attributes(attributes)
        order = {name: number for number, name in enumerate(dims)}
        at = len(head) + len(self.variables(variables, order, 0))
        return head + self.variables(variables, order, at)

    def variables(self, variables: Sequence[NetcdfVariable], order: Mapping[str, int], at: int) -> bytes:
        """Encode the list of variables, whose values begin at byte `at`."""
        entries = []
        for variable in variables:
            size = variable.nbytes + -variable.nbytes % 4
            kind = (_TYPES | _TYPES_5)[variable.stored.name]
            entries.append(
                self.name(variable.name)
                + self.count(len(variable.dims))
                + b"".join(self.count(order[name]) for name in variable.dims)
                + self.attributes(variable.described)
                + _int4(kind)
                + self.count(size)
                + at.to_bytes(8, "big")
            )
            at += size
        return self.list(_VARIABLE, entries)

    def attributes(self, attributes: Mapping[str, Any]) -> bytes:
        entries = []
        for name, value in attributes.items():
            if isinstance(value, str):
                text = value.encode()
                entries.append(self.name(name) + _int4(_CHAR) + self.count(len(text)) + _padded(text))
            elif isinstance(value, int | float):
                small = isinstance(value, int) and abs(value) < 1 << 31
                number = np.array(value, ">i4" if small else ">f8")
                entries.append(self.name(name) + _int4(4 if small else 6) + self.count(1) + number.tobytes())
        return self.list(_ATTRIBUTE, entries)

    def list(self, tag: int, entries: Sequence[bytes]) -> bytes:
        return (_int4(tag) if entries else _int4(0)) + self.count(len(entries)) + b"".join(entries)

    def name(self, name: str) -> bytes:
        text = name.encode()
        return self.count(len(text)) + _padded(text)

    def count(self, number: int) -> bytes:
        return number.to_bytes(8 if self.wide else 4, "big")


def _int4(number: int) -> bytes:
    return number.to_bytes(4, "big")


def _padded(text: bytes) -> bytes:
    return text + b"\0" * (-len(text) % 4)
