"""Transfer of large messages to a machine with little memory.

Run as ``python -m minga.studies.tinetti.memory ROLE ADDRESS PORT ENCODING BYTES ROUNDS``. The receiver listens on
ADDRESS; the sender prints a line of JSON with the seconds until each message is decoded.

Encodings differ in the memory that the receiver needs: "inplace" receives into the array itself; "xdr" and "pickled"
receive the encoded message, and then hold the array in addition.
"""

from __future__ import annotations

import json
import pickle
import socket
import sys
import time
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["ENCODINGS", "main"]

ENCODINGS: Final = ("inplace", "xdr", "pickled")
_DOUBLE: Final = 8
_PATIENCE: Final = 20.0
_LENGTH: Final = 8
_DONE: Final = b"!"

Floats = NDArray[np.float64]


def encoded(values: Floats, encoding: str) -> bytes | memoryview:
    """Return the encoded message."""
    if encoding == "pickled":
        return pickle.dumps(values, protocol=5)
    return values.astype(">f8").tobytes() if encoding == "xdr" else values.data.cast("B")


def receive(wire: socket.socket, length: int, target: Floats, encoding: str) -> Floats:
    """Receive a message of ``length`` bytes and return its array, which is ``target`` for "inplace"."""
    if encoding == "inplace":
        _fill(wire, target.data.cast("B")[:length])
        return target
    message = bytearray(length)
    _fill(wire, memoryview(message))
    if encoding == "pickled":
        found: Floats = pickle.loads(message)
        return found
    return np.frombuffer(message, ">f8").astype(np.float64)


def _fill(wire: socket.socket, memory: memoryview) -> None:
    have = 0
    while have < len(memory):
        count = wire.recv_into(memory[have:])
        if count == 0:
            raise EOFError("the other end is gone")
        have += count


def receiver(address: str, port: int, encoding: str, size: int, rounds: int) -> int:
    """Receive messages; return 1 if their values are wrong."""
    target = np.empty(size // _DOUBLE if encoding == "inplace" else 0)
    with socket.create_server((address, port)) as listener:
        listener.settimeout(_PATIENCE)
        wire, _ = listener.accept()
    with wire:
        wire.settimeout(_PATIENCE)
        for _ in range(rounds):
            head = bytearray(_LENGTH)
            _fill(wire, memoryview(head))
            values = receive(wire, int.from_bytes(head, "big"), target, encoding)
            if values[-1] != len(values) - 1:
                return 1
            del values
            wire.sendall(_DONE)
    return 0


def sender(address: str, port: int, encoding: str, size: int, rounds: int) -> int:
    """Send messages; return 1 if the other end is gone."""
    values = np.arange(size // _DOUBLE, dtype=np.float64)
    seconds = []
    try:
        with _connected(address, port) as wire:
            for _ in range(rounds):
                began = time.perf_counter()
                message = encoded(values, encoding)
                wire.sendall(len(message).to_bytes(_LENGTH, "big"))
                wire.sendall(message)
                _fill(wire, memoryview(bytearray(1)))
                seconds.append(time.perf_counter() - began)
    except (OSError, EOFError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        print(json.dumps(seconds), flush=True)
    return 0


def _connected(address: str, port: int) -> socket.socket:
    """Return a connection as soon as the receiver listens."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            wire = socket.create_connection((address, port), timeout=_PATIENCE)
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            wire.settimeout(_PATIENCE)
            return wire


def main(arguments: Sequence[str]) -> int:
    """Run one end and return the exit status."""
    role, address, port, encoding, size, rounds = arguments
    end = receiver if role == "receiver" else sender
    return end(address, int(port), encoding, int(size), int(rounds))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
