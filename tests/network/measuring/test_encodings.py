"""Numbers between machines of different byte orders: every encoding brings them over, and refuses what is none."""

from __future__ import annotations

import pickle
import struct
import threading

import numpy as np
import pytest

from minga.errors import RunError
from minga.network.measuring.encodings import (
    ENCODINGS,
    Descriptor,
    Encoding,
    Order,
    Parcel,
    encoding_costs,
    foreign,
    own_order,
    xdr_type,
)
from minga.network.measuring.transports import tcp
from minga.network.measuring.transports.encoded import EncodedPinger, echo_encoded

TYPES = ("f8", "f4", "i8", "i4", "u2", "i1", "c16")
HERE, TOKEN = "127.0.0.1", bytes(16)


def send(values: np.ndarray, encoding: Encoding, sender: Order, receiver: Order) -> np.ndarray:
    there = Parcel(encoding, values.shape, values.dtype, sender)
    there.values[...] = values
    here = Parcel(encoding, values.shape, values.dtype, receiver)
    message = there.encode()
    assert len(message) == there.length == here.length
    here.room[:] = message
    return here.decode()


@pytest.mark.parametrize("encoding", ["translated", "xdr", "pickled"])
@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_arrive_whatever_the_byte_orders(encoding: Encoding, dtype: str) -> None:
    values = np.arange(-12, 12).reshape(2, 3, 4).astype(dtype) if dtype != "u2" else np.arange(24, dtype="u2")
    for sender in ("little", "big"):
        for receiver in ("little", "big"):
            came = send(values, encoding, sender, receiver)
            assert np.array_equal(came, values)
            assert came.dtype == np.dtype(dtype).newbyteorder("<" if receiver == "little" else ">")


def test_without_encoding_only_like_machines_understand_each_other() -> None:
    values = np.array([1.0, 2.5])
    assert np.array_equal(send(values, "none", "big", "big"), values)
    assert not np.array_equal(send(values, "none", "big", "little"), values)


def test_only_a_receiver_that_differs_translates() -> None:
    own = own_order()
    for sender, swapped in ((own, False), (foreign(own), True)):
        there, here = Parcel("translated", (3,), order=sender), Parcel("translated", (3,))
        there.values[:] = (1, 2, 3)
        here.room[:] = there.encode()
        before = bytes(here.room)
        came = here.decode()
        assert np.shares_memory(came, np.frombuffer(here.room, np.uint8))  # in place
        assert (bytes(here.room) != before) == swapped
        assert list(came) == [1, 2, 3]


def test_xdr_is_that_of_the_standard() -> None:
    parcel = Parcel("xdr", (2,), np.float64)
    parcel.values[:] = (1.5, -2.0)
    assert bytes(parcel.encode()) == struct.pack(">dd", 1.5, -2.0)
    small = Parcel("xdr", (2,), np.int16)
    small.values[:] = (-1, 7)
    assert bytes(small.encode()) == struct.pack(">ii", -1, 7)  # RFC 4506: no item shorter than four bytes
    with pytest.raises(RunError, match="XDR has no numbers like float16"):
        xdr_type(np.dtype("f2"))


def test_the_descriptor_on_the_wire() -> None:
    descriptor = Descriptor.of(np.zeros((3, 5), ">f4"))
    assert descriptor.packed() == b"mgna" + b"f" + bytes([4, 1, 2]) + struct.pack(">QQ", 3, 5)
    assert Descriptor.unpack(descriptor.packed() + bytes(60)) == descriptor
    with pytest.raises(RunError, match="only numbers"):
        Descriptor.of(np.array(["a"]))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"mgnaf",
        b"other" * 10,
        b"mgna" + b"f" + bytes([8, 0, 1]) + bytes(4),  # cut off
        b"mgna" + b"f" + bytes([3, 0, 1]) + struct.pack(">Q", 1) + bytes(3),  # no such number
        b"mgna" + b"O" + bytes([8, 0, 1]) + struct.pack(">Q", 1) + bytes(8),  # objects
        b"mgna" + b"f" + bytes([8, 2, 1]) + struct.pack(">Q", 1) + bytes(8),  # no byte order
        b"mgna" + b"f" + bytes([8, 0, 1]) + struct.pack(">Q", 1 << 60) + bytes(8),  # more than is there
        b"mgna" + b"f" + bytes([8, 0, 99]) + bytes(800),
    ],
)
def test_messages_that_are_none(message: bytes) -> None:
    with pytest.raises(RunError, match="cannot be decoded"):
        Descriptor.unpack(message)


class Evil:
    def __reduce__(self):
        return (print, ("owned",))


@pytest.mark.parametrize("thing", [Evil(), {"a": 1}, np.array([None])])
def test_a_pickle_holds_an_array_and_nothing_else(thing: object, capsys: pytest.CaptureFixture[str]) -> None:
    parcel = Parcel("pickled", (1,))
    parcel._in = bytearray(pickle.dumps(thing, 5))
    with pytest.raises(RunError, match="cannot be decoded"):
        parcel.decode()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_there_and_back_over_a_socket(encoding: Encoding) -> None:
    listener = tcp.listen(HERE, tcp.Options())
    port = listener.getsockname()[1]
    served: list[int] = []
    thread = threading.Thread(
        target=lambda: served.append(echo_encoded(tcp.accept(listener, TOKEN, tcp.Options(), 10.0))), daemon=True
    )
    thread.start()
    wire = tcp.connect(HERE, port, TOKEN, tcp.Options(), 10.0)
    pinger = EncodedPinger(wire, encoding, foreign(own_order()))
    for size in (8, 1000, 100_000):
        times = pinger.exchange(size, 3)
        assert len(times) == 3
        assert min(times) > 0
    pinger.close()
    thread.join(10)
    assert served == [9]


def test_what_encodings_cost_a_host() -> None:
    costs = encoding_costs([1000, 100_000], arena=1 << 20, seconds=0.02)
    assert [(cost.encoding, cost.bytes) for cost in costs] == [(e, n) for e in ENCODINGS for n in (1000, 100_000)]
    large = {cost.encoding: cost for cost in costs if cost.bytes == 100_000}
    for one in costs:
        assert min(one.encode, one.decode, one.cold_encode, one.cold_decode) > 0
    assert large["translated"].encode < large["xdr"].encode  # as nothing is done
