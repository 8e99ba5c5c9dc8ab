"""Content of a message: bytes, or an array whose type and shape precede its bytes in a head.

An array is sent in its own byte order; a receiver with a different order swaps the bytes ("receiver makes right"), so
that machines with equal byte order incur no cost. The head contains the number of axes, the length of the type's name,
the name (that of NumPy, such as ``<f8``) and the shape as 8-byte little-endian numbers, padded to a multiple of
:data:`minga.network.broadcast.datagram.HEAD_UNIT`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from minga.errors import RunError
from minga.network.broadcast.datagram import HEAD_UNIT

__all__ = ["Array", "ArrayType", "Bytes", "Into", "copied", "finish", "new_store", "pack_head", "target", "unpack_head"]

Array: TypeAlias = npt.NDArray[Any]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Into: TypeAlias = Array | memoryview | bytearray

LONGEST_HEAD = 31 * HEAD_UNIT  # the largest number of units that fits into the flags of a datagram


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Type (including byte order) and shape of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return self.dtype.itemsize * prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


def pack_head(value: object) -> tuple[bytes, memoryview]:
    """Return the head and the bytes of an array or a bytes-like object; the head of the latter is empty.

    The bytes are a view of ``value`` if it is contiguous (C order), otherwise a copy.

    Raises
    ------
    RunError
        If the type has no meaning on another machine, such as Python objects, or the head is too long.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        view = memoryview(value)
        return b"", memoryview(view.tobytes()) if not view.c_contiguous else _as_bytes(np.frombuffer(view, np.uint8))
    array = _array(value)
    dtype = array.dtype
    name = dtype.str.encode("ascii")
    head = struct.pack(f"<BB{len(name)}s{array.ndim}Q", array.ndim, len(name), name, *array.shape)
    head += bytes(-len(head) % HEAD_UNIT)
    if len(head) > LONGEST_HEAD:
        raise RunError(
            f"type and shape of a broadcast array must fit in {LONGEST_HEAD} bytes; {array.ndim} axes need {len(head)}",
            remedy="send array.reshape(-1)",
        )
    return head, _as_bytes(array.reshape(-1).view(np.uint8))


def copied(value: object) -> Array | bytes:
    """Return an equivalent copy of an argument of :func:`pack_head`; raise RunError as that function does."""
    return bytes(value) if isinstance(value, (bytes, bytearray, memoryview)) else _array(value).copy(order="C")


def unpack_head(head: bytes | bytearray | memoryview) -> ArrayType | None:
    """Return the type in a head written by :func:`pack_head`; None for an empty head, which stands for bytes.

    Raises
    ------
    RunError
        If the head is malformed.
    """
    data = bytes(head)
    if not data:
        return None
    try:
        axes, length = data[0], data[1]
        dtype = np.dtype(data[2 : 2 + length].decode("ascii"))
        shape = struct.unpack_from(f"<{axes}Q", data, 2 + length)
    except (ValueError, TypeError, SyntaxError, IndexError, struct.error) as error:
        raise _unreadable(data) from error
    if dtype.hasobject or dtype.fields is not None or dtype.itemsize == 0:
        raise _unreadable(data)
    return ArrayType(dtype, shape)


def target(into: Into | None) -> Bytes | None:
    """Return the bytes of a buffer into which a message can be written as it arrives; None if it must be copied later.

    Raises
    ------
    RunError
        If the buffer is not writable.
    """
    if into is None:
        return None
    if isinstance(into, np.ndarray):
        if not into.flags.writeable:
            raise _read_only()
        return into.reshape(-1).view(np.uint8) if into.flags.c_contiguous and into.dtype.itemsize else None
    view = memoryview(into)
    if view.readonly or not view.c_contiguous:
        raise _read_only()
    return np.frombuffer(view, np.uint8)


def new_store(nbytes: int) -> Bytes:
    """Allocate memory for a message of at most ``nbytes`` bytes."""
    return np.empty(nbytes, np.uint8)


def finish(data: Bytes, kind: ArrayType | None, into: Into | None) -> Array | bytes:
    """Return the value of a complete message.

    Parameters
    ----------
    data
        Bytes of the message; the memory of ``into`` itself if the message was written directly there.
    kind
        Type and shape from the head of the message; None for bytes.
    into
        Destination that the reader requested: an array is filled in its own byte order, a buffer in that of this
        machine.

    Returns
    -------
    numpy.ndarray or bytes
        ``into`` as an array if given, otherwise a new array or bytes.

    Raises
    ------
    RunError
        If the message does not fit ``into``.
    """
    if kind is not None and kind.nbytes != data.nbytes:
        raise RunError(
            f"a message announced {kind}, {kind.nbytes} bytes, but contained {data.nbytes}",
            remedy="run the same version of minga on all members",
        )
    if into is None:
        if kind is None:
            return data.tobytes()
        return _native(data.view(kind.dtype)).reshape(kind.shape)
    place = into if isinstance(into, np.ndarray) else np.frombuffer(into, np.uint8)
    if not _fits(data.nbytes, kind, place, typed=isinstance(into, np.ndarray)):
        found = f"{data.nbytes} bytes" if kind is None else str(kind)
        raise RunError(
            f"the message is {found}, but its destination is {place.dtype.name}{list(place.shape)}",
            remedy="pass an array of the same type and shape as the root's, or none to get a new one",
        )
    _fill(place, data, kind, typed=isinstance(into, np.ndarray))
    return place


def _fits(nbytes: int, kind: ArrayType | None, place: Array, *, typed: bool) -> bool:
    if kind is None or not typed:
        return place.nbytes == nbytes
    return place.shape == kind.shape and place.dtype.newbyteorder("=") == kind.dtype.newbyteorder("=")


def _fill(place: Array, data: Bytes, kind: ArrayType | None, *, typed: bool) -> None:
    """Store ``data`` in ``place``; nothing is moved if they are the same memory and the byte order is right."""
    here = place.flags.c_contiguous and bool(data.nbytes) and np.may_share_memory(place, data)
    if kind is None:
        if not here:
            place[...] = data.view(place.dtype).reshape(place.shape)
        return
    wanted = place.dtype if typed else kind.dtype.newbyteorder("=")
    values = data.view(kind.dtype)
    if here:
        if wanted != kind.dtype:
            values.byteswap(inplace=True)
        return
    place[...] = values.astype(wanted).view(place.dtype).reshape(place.shape)


def _native(values: Array) -> Array:
    if values.dtype.isnative:
        return values
    return values.byteswap(inplace=True).view(values.dtype.newbyteorder("="))


def _array(value: object) -> Array:
    """Return a value as an array whose meaning does not depend on the machine."""
    try:
        array = np.asarray(value, order="C")
    except ValueError as error:
        raise _meaningless(value) from error
    if array.dtype.hasobject or array.dtype.fields is not None or array.dtype.itemsize == 0:
        raise _meaningless(value)
    return array


def _as_bytes(array: Bytes) -> memoryview:
    return array.data


def _meaningless(value: object) -> RunError:
    found = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a value of type {type(value).__name__}"
    return RunError(
        f"a broadcast sends bytes, or arrays of numbers or fixed strings; found {found}",
        remedy="send its bytes: group.bcast(pickle.dumps(value))",
    )


def _unreadable(head: bytes) -> RunError:
    return RunError(
        f"the head of a message does not name a NumPy type: {head[:16]!r}",
        remedy="run the same versions of minga and NumPy on all members",
    )


def _read_only() -> RunError:
    return RunError(
        "a message can only be received into memory that is writable and contiguous",
        remedy="pass a writable array, or none to get a new one",
    )
