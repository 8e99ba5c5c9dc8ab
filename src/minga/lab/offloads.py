"""Turn off what a network card would do for the kernel: segments and checksums that no card is there to make. And IPv6.

    python offloads.py NAMESPACE:INTERFACE,INTERFACE ...

With segmentation left to the card, 64 KiB cross a virtual link as one frame, and a token bucket of 1600 bytes drops it.
With checksums left to the card, a hub in user space forwards frames that the receiver refuses. IPv6 announces its
addresses, which would be counted as traffic. Only the standard library is needed. Runs as a program, since entering a
namespace changes the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]

_SIOCETHTOOL = 0x8946
_CLONE_NEWNET = 0x40000000
_SETTINGS = {"checksums": 0x17, "TCP segmentation": 0x1F, "segmentation": 0x24, "joining": 0x2C}
"""ETHTOOL_STXCSUM, STSO, SGSO, SGRO of linux/ethtool.h. Without checksums the kernel drops UDP segmentation too."""


def main(arguments: Sequence[str]) -> int:
    """Turn them off at all the interfaces; the exit status."""
    libc = ctypes.CDLL(None, use_errno=True)
    for argument in arguments:
        namespace, _, devices = argument.partition(":")
        with Path(f"/run/netns/{namespace}").open("rb") as file:
            if libc.setns(file.fileno(), _CLONE_NEWNET):
                code = ctypes.get_errno()
                raise OSError(code, f"entering the network namespace {namespace}: {os.strerror(code)}")
        for scope in ("all", "default"):
            with contextlib.suppress(OSError):  # a kernel without it
                Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            for device in devices.split(","):
                _turn_off(any_socket, device)
    return 0


def _turn_off(any_socket: socket.socket, device: str) -> None:
    for name, command in _SETTINGS.items():
        value = ctypes.create_string_buffer(struct.pack("II", command, 0))
        request = struct.pack("16sP", device.encode(), ctypes.addressof(value)).ljust(40, b"\0")
        try:
            fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
        except OSError as error:
            raise OSError(error.errno, f"turning off {name} of {device}: {error.strerror}") from error


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as problem:
        sys.exit(str(problem))
