"""Environment of a measurement: interface, kernel settings, library, variables, load, and byte counters.

All is read with system calls and from ``/proc``, which show the network namespace of this process; ``/sys`` may show
another one.
"""

from __future__ import annotations

import array
import fcntl
import ipaddress
import os
import platform
import re
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from minga.network.measuring.caches import last_cache
from minga.plan.machine.resources import total_memory

__all__ = ["common_address", "counters", "environment", "identity", "interfaces", "mpi_library"]

_ADDRESS, _MASK, _FLAGS, _MTU, _ETHTOOL = 0x8915, 0x891B, 0x8913, 0x8921, 0x8946
_UP, _LOOPBACK = 1, 8
_OFFLOADS: Final = {"tx-checksum": 0x16, "tso": 0x1E, "gso": 0x23, "gro": 0x2B}
_SETTINGS: Final = (
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_rmem",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_slow_start_after_idle",
)
_VARIABLES: Final = re.compile(r"^(MPICH_|MPIR_CVAR_|UCX_|FI_|OMPI_MCA_|PRTE_MCA_|I_MPI_|OMP_NUM_THREADS$)")
_PRIVATE: Final = re.compile(r"KEY|TOKEN|SECRET|PASS|URI|COOKIE", re.IGNORECASE)


def identity() -> dict[str, Any]:
    """Return the identity of this process and host, its software and its clocks, for comparing hosts."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        own = version("minga")
    except PackageNotFoundError:
        own = "unknown"
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "minga": own,
        "python": platform.python_version(),
        "mpi": mpi_library(),
        "cores": len(os.sched_getaffinity(0)),
        "order": sys.byteorder,
        "memory": total_memory(),
        "last_cache": last_cache(),
        "interfaces": interfaces(),
        "clocks": clocks(),
    }


def clocks() -> dict[str, float]:
    """Return the seconds of the time of day, of the monotonic clock, and of a monotonic clock that includes sleep."""
    return {"day": time.time(), "steady": time.monotonic(), "awake": time.clock_gettime(time.CLOCK_BOOTTIME)}


def mpi_library() -> str | None:
    """Return name and version of the MPI library that mpi4py finds, without starting MPI; None if there is none."""
    try:
        import mpi4py

        mpi4py.rc.initialize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        return None
    name, version = MPI.get_vendor()
    return f"{name} {'.'.join(str(part) for part in version)}"


def interfaces() -> list[dict[str, Any]]:
    """Return the interfaces that are up and have an IPv4 address, the loopback last."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            address, mask = _ask(probe, _ADDRESS, name), _ask(probe, _MASK, name)
            flags, mtu = _ask(probe, _FLAGS, name), _ask(probe, _MTU, name)
            if address is None or mask is None or flags is None or mtu is None:
                continue
            bits = struct.unpack_from("@H", flags)[0]
            if bits & _UP:
                found.append(
                    {
                        "name": name,
                        "address": socket.inet_ntoa(address[4:8]),
                        "mask": socket.inet_ntoa(mask[4:8]),
                        "mtu": struct.unpack_from("@i", mtu)[0],
                        "loopback": bool(bits & _LOOPBACK),
                        **_hardware(probe, name),
                    }
                )
    return sorted(found, key=lambda one: bool(one["loopback"]))


def common_address(
    sender: Sequence[Mapping[str, Any]], receiver: Sequence[Mapping[str, Any]], only: str | None = None
) -> str | None:
    """Return an address of the receiver on a network to which both have an interface; None if there is none.

    ``only`` is the name of the interface to use. Loopback interfaces are ignored.
    """
    for mine in sender:
        network = ipaddress.ip_network(f"{mine['address']}/{mine['mask']}", strict=False)
        for other in receiver:
            if only is not None and only not in (mine["name"], other["name"]):
                continue
            if other["loopback"] or mine["loopback"]:
                continue
            if ipaddress.ip_address(other["address"]) in network:
                return str(other["address"])
    return None


def environment(address: str | None = None) -> dict[str, Any]:
    """Return the environment on which a measurement towards ``address`` depends."""
    name = _route(address)
    own = next((one for one in interfaces() if one["address"] == name or one["name"] == name), None)
    return {
        "kernel": platform.release(),
        "interface": own,
        "settings": {key: _text(Path("/proc/sys", *key.split("."))) for key in _SETTINGS},
        "governor": _text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        "load": os.getloadavg()[0],
        "variables": {
            key: value
            for key, value in sorted(os.environ.items())
            if _VARIABLES.match(key) and not _PRIVATE.search(key)
        },
    }


def counters(name: str) -> dict[str, int] | None:
    """Return bytes and packets received and sent by an interface of this network namespace; None if it is absent."""
    for line in (_text(Path("/proc/self/net/dev")) or "").splitlines():
        label, _, rest = line.partition(":")
        if label.strip() == name:
            numbers = [int(word) for word in rest.split()]
            return {
                "received_bytes": numbers[0],
                "received_packets": numbers[1],
                "sent_bytes": numbers[8],
                "sent_packets": numbers[9],
                "dropped": numbers[3] + numbers[11],
            }
    return None


def _route(address: str | None) -> str | None:
    """Return the address of this machine on the route to another."""
    if address is None:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])


def _hardware(probe: socket.socket, name: str) -> dict[str, Any]:
    """Return speed in bits per second, duplex and offloads, as far as the driver reports them."""
    settings = _ethtool(probe, name, struct.pack("@I", 1) + bytes(40))  # ETHTOOL_GSET
    speed, duplex = None, None
    if settings is not None:
        low, kind = struct.unpack_from("@HB", settings, 12)
        megabits = low | struct.unpack_from("@H", settings, 28)[0] << 16
        speed = megabits * 1_000_000 if 0 < megabits < 0xFFFF_FFFF else None
        duplex = {0: "half", 1: "full"}.get(kind)
    offloads = {}
    for feature, command in _OFFLOADS.items():
        answer = _ethtool(probe, name, struct.pack("@II", command, 0))
        if answer is not None:
            offloads[feature] = bool(struct.unpack_from("@I", answer, 4)[0])
    wireless = name in (_text(Path("/proc/self/net/wireless")) or "")
    return {"speed": speed, "duplex": duplex, "offloads": offloads, "wireless": wireless}


def _ethtool(probe: socket.socket, name: str, command: bytes) -> bytes | None:
    data = array.array("B", command)
    request = struct.pack("@16sP16x", name.encode(), data.buffer_info()[0])
    try:
        fcntl.ioctl(probe, _ETHTOOL, request)
    except OSError:
        return None
    return data.tobytes()


def _ask(probe: socket.socket, what: int, name: str) -> bytes | None:
    try:
        return fcntl.ioctl(probe, what, struct.pack("@16s24x", name.encode()))[16:]
    except OSError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
