"""Turn off IPv6, and the offloading of segmentation and checksums to a network card, since virtual links have none.

    python offloads.py NAMESPACE:INTERFACE,INTERFACE ...

If segmentation is offloaded, 64 KiB cross a virtual link as one frame, which a token bucket of 1600 bytes drops. If
checksums are offloaded, a hub in user space forwards frames that the receiver rejects. IPv6 announces its addresses,
which would be counted as traffic. Only the standard library is needed. This module runs as a program, because entering
a namespace changes the process.
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
"""Commands ETHTOOL_STXCSUM, _STSO, _SGSO and _SGRO of linux/ethtool.h.

Without checksum offload the kernel turns off UDP segmentation too.
"""


def main(arguments: Sequence[str]) -> int:
    """Turn them off for all given interfaces; return the exit status."""
    libc = ctypes.CDLL(None, use_errno=True)
    for argument in arguments:
        namespace, _, devices = argument.partition(":")
        with Path(f"/run/netns/{namespace}").open("rb") as file:
            if libc.setns(file.fileno(), _CLONE_NEWNET):
                code = ctypes.get_errno()
                raise OSError(code, f"entering the network namespace {namespace}: {os.strerror(code)}")
        for scope in ("all", "default"):
            with contextlib.suppress(OSError):  # this kernel has no IPv6
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
