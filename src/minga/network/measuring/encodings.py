"""Encodings of the numbers in a message for machines with different byte orders.

There are four: ``none`` sends the memory as it is, so both ends must have the same order. ``translated`` puts a
descriptor before it, so that only a receiver that differs translates (*receiver makes right*, F. Tinetti, thesis,
Appendix C, §C.7: it must be the receiver, because a broadcast has many of them). ``xdr`` uses the single representation
of XDR (RFC 4506, PVM's default), which both ends translate. ``pickled`` is Python's pickle, which careless programs
send.
"""

from __future__ import annotations

import io
import math
import pickle
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from minga.errors import RunError

__all__ = ["ENCODINGS", "Cost", "Descriptor", "Encoding", "Order", "Parcel", "encoding_costs", "foreign"]

Encoding = Literal["none", "translated", "xdr", "pickled"]
Order = Literal["little", "big"]

ENCODINGS: Final[tuple[Encoding, ...]] = ("none", "translated", "xdr", "pickled")
BUFFERED: Final[tuple[Encoding, ...]] = ("xdr", "pickled")
"""Encodings that need memory for a second copy of the message."""

_HEAD: Final = struct.Struct("!4scBBB")
_MARK: Final = b"mgna"
_KINDS: Final = "biufc"
_MARKS: Final[dict[Order, str]] = {"little": "<", "big": ">"}
_MOST_AXES = 32


def own_order() -> Order:
    """Return the byte order of this machine."""
    return "little" if sys.byteorder == "little" else "big"


def foreign(order: Order) -> Order:
    """Return the opposite byte order."""
    return "big" if order == "little" else "little"


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Descriptor before an array: NumPy's letter for the kind, bytes of an item, byte order, and shape."""

    kind: str
    item: int
    order: Order
    shape: tuple[int, ...]

    @classmethod
    def of(cls, array: NDArray[Any]) -> Descriptor:
        """Return the descriptor of an array in memory; raise RunError if its items are not numbers."""
        dtype = array.dtype
        if dtype.kind not in _KINDS:
            raise RunError(f"{dtype} cannot be sent: only numbers have a byte order", remedy="send an array of numbers")
        return cls(dtype.kind, dtype.itemsize, _order_of(dtype), array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy type with the sender's byte order."""
        return np.dtype(f"{_MARKS[self.order]}{self.kind}{self.item}")

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.item

    @property
    def length(self) -> int:
        """Bytes of the descriptor itself, a multiple of 8."""
        return _HEAD.size + 8 * len(self.shape)

    def packed(self) -> bytes:
        """Return the descriptor as sent: big-endian, whatever the order of the array."""
        head = _HEAD.pack(_MARK, self.kind.encode(), self.item, self.order == "big", len(self.shape))
        return head + struct.pack(f"!{len(self.shape)}Q", *self.shape)

    @classmethod
    def unpack(cls, message: memoryview | bytes) -> Descriptor:
        """Return the descriptor of a message; raise RunError if there is none or it does not match the message."""
        if len(message) < _HEAD.size:
            raise _broken("it is too short")
        mark, kind, item, big, axes = _HEAD.unpack_from(message)
        letter = kind.decode("latin-1")
        if mark != _MARK or letter not in _KINDS or big > 1 or axes > _MOST_AXES:
            raise _broken("it does not begin with a descriptor")
        if len(message) < _HEAD.size + 8 * axes:
            raise _broken("it is too short")
        found = cls(letter, item, "big" if big else "little", struct.unpack_from(f"!{axes}Q", message, _HEAD.size))
        try:
            size = found.dtype.itemsize
        except TypeError as error:
            raise _broken(f"there is no type {letter}{item}") from error
        if size != item or found.nbytes != len(message) - found.length:
            raise _broken(f"it announces {found.shape} items of {item} bytes, but has {len(message)} bytes")
        return found


class Parcel:
    """One end of a message of a given size: an array to send, memory for the one to receive, and their encoding.

    ``order`` is the byte order of this end's memory; if it is not that of the machine, this end emulates a foreign
    machine. All memory is allocated here, so :meth:`encode` and :meth:`decode` cost only what the encoding costs.
    """

    def __init__(
        self, encoding: Encoding, shape: Sequence[int], dtype: DTypeLike = np.float64, order: Order | None = None
    ) -> None:
        self.encoding = encoding
        self.native = np.dtype(dtype).newbyteorder(order or own_order())
        descriptor = Descriptor.of(np.empty(0, self.native))
        descriptor = Descriptor(descriptor.kind, descriptor.item, descriptor.order, tuple(shape))
        head = descriptor.packed() if encoding == "translated" else b""
        self._out = bytearray(head) + bytearray(descriptor.nbytes)
        self.values: NDArray[Any] = np.ndarray(tuple(shape), self.native, self._out, len(head))
        """Array that this end sends, to be filled by the caller."""
        self.values[...] = 1
        self._in = bytearray(len(self.encode()))

    @property
    def length(self) -> int:
        """Bytes on the wire."""
        return len(self._in)

    @property
    def room(self) -> memoryview:
        """Memory into which the other end's message must be received."""
        return memoryview(self._in)

    def encode(self) -> memoryview:
        """Return the encoded message, which is the array's own memory if no conversion is needed."""
        match self.encoding:
            case "xdr":
                return self.values.astype(xdr_type(self.native)).reshape(-1).view(np.uint8).data
            case "pickled":
                return memoryview(pickle.dumps(self.values, 5))
        return memoryview(self._out)

    def decode(self) -> NDArray[Any]:
        """Return the array in :attr:`room` in this end's byte order, decoded in place if the encoding permits.

        Raises
        ------
        RunError
            If the message is not valid in this encoding.
        """
        match self.encoding:
            case "none":
                return np.ndarray(self.values.shape, self.native, self._in)
            case "xdr":
                return np.ndarray(self.values.shape, xdr_type(self.native), self._in).astype(self.native)
            case "pickled":
                return self._unpickled()
        descriptor = Descriptor.unpack(self.room)
        array = np.ndarray(descriptor.shape, descriptor.dtype, self._in, descriptor.length)
        if descriptor.order == _order_of(self.native) or descriptor.item == 1:
            return array
        return array.byteswap(inplace=True).view(array.dtype.newbyteorder())

    def _unpickled(self) -> NDArray[Any]:
        try:
            array = _Unpickler(io.BytesIO(self._in)).load()
        except (pickle.UnpicklingError, EOFError, AttributeError, IndexError, TypeError, ValueError) as error:
            raise _broken(str(error)) from error
        if not isinstance(array, np.ndarray):
            raise _broken(f"it contains a {type(array).__name__}")
        if array.dtype.kind not in _KINDS:
            raise _broken(f"it contains {array.dtype}")
        return array.astype(self.native, copy=False)


class _Unpickler(pickle.Unpickler):
    """Unpickler that creates nothing but arrays, whoever wrote its input."""

    _ALLOWED: Final = {"_frombuffer", "_reconstruct", "ndarray", "dtype"}

    def find_class(self, module: str, name: str) -> Any:
        """Return a class or function that arrays consist of; raise UnpicklingError for any other."""
        if module.partition(".")[0] == "numpy" and name in self._ALLOWED:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not part of an array")


def xdr_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the XDR type of numbers: big-endian, integers of at least four bytes; raise RunError if there is none."""
    kind, size = ("u" if dtype.kind == "b" else dtype.kind), dtype.itemsize
    size = max(size, 4) if kind in "iu" else size
    if (kind in "iuf" and size in (4, 8)) or (kind == "c" and size in (8, 16)):
        return np.dtype(f">{kind}{size}")
    raise RunError(f"XDR has no numbers like {dtype}", remedy="send float32 or float64")


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds that one encoding takes on one host for a message of ``bytes`` bytes, without transmission.

    The ``cold`` times are for buffers that are not in a cache.
    """

    encoding: Encoding
    bytes: int
    encode: float
    decode: float
    cold_encode: float
    cold_decode: float


def encoding_costs(sizes: Sequence[int], arena: int, seconds: float = 0.3) -> list[Cost]:
    """Measure the cost of each encoding on this host: medians for float64 from a host of the other byte order.

    Parameters
    ----------
    sizes
        Message sizes in bytes.
    arena
        Bytes through which buffers are rotated, more than the last-level cache holds.
    seconds
        Time for all measurements together.
    """
    each = seconds / (4 * len(ENCODINGS) * max(1, len(sizes)))
    evict = np.ones(arena // 8)
    return [_cost(encoding, size, evict, each) for encoding in ENCODINGS for size in sizes]


def _cost(encoding: Encoding, size: int, evict: NDArray[np.float64], seconds: float) -> Cost:
    count = max(1, size // 8)
    foreigner = Parcel(encoding, (count,), order=foreign(own_order()))
    warm = _filled(foreigner)
    near = [_timed([warm], method, seconds) for method in ("encode", "decode")]
    copies = max(3, min(16, evict.nbytes // (2 * warm.length)))
    many = [warm, *(_filled(foreigner) for _ in range(copies - 1))]
    if 2 * copies * warm.length >= evict.nbytes:
        evict = evict[:0]  # the copies alone exceed the cache
    far = [_timed(many, method, seconds, evict) for method in ("encode", "decode")]
    return Cost(encoding, 8 * count, near[0], near[1], far[0], far[1])


def _filled(sender: Parcel) -> Parcel:
    """Return a parcel of this host that contains the message of another one."""
    mine = Parcel(sender.encoding, sender.values.shape)
    mine.room[:] = sender.encode()
    return mine


def _timed(parcels: Sequence[Parcel], method: str, seconds: float, evict: NDArray[np.float64] | None = None) -> float:
    """Return the median seconds of a call, using the parcels in turn; ``evict`` is read before each round."""
    times: list[float] = []
    before = perf_counter()
    while len(times) < 3 or (perf_counter() - before < seconds and len(times) < 2000):
        if evict is not None and evict.size:
            evict.sum()
        for parcel in parcels:
            call = getattr(parcel, method)
            start = perf_counter()
            call()
            times.append(perf_counter() - start)
    return float(np.median(times))


def _order_of(dtype: np.dtype[Any]) -> Order:
    mark = dtype.byteorder
    return own_order() if mark in "=|" else "little" if mark == "<" else "big"


def _broken(why: str) -> RunError:
    return RunError(
        f"a message cannot be decoded: {why}", remedy="use the same encoding and version of minga at both ends"
    )
