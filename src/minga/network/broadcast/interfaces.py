"""Interfaces of this machine, and the network that all members of a group share.

Interfaces are read with system calls and from ``/proc/net``, which show the network namespace of this process. IPv4 is
preferred, since it has subnet broadcasts; where not all members have it, IPv6 is used.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from minga.errors import CaseError

__all__ = ["Interface", "Shared", "interfaces", "machine", "shared_network"]

_FLAGS, _ADDRESS, _BROADCAST, _MASK, _MTU = 0x8913, 0x8915, 0x8919, 0x891B, 0x8921
_UP, _HAS_BROADCAST, _LOOPBACK = 1, 2, 8
_ADDRESSES_6: Final = Path("/proc/self/net/if_inet6")
_SCOPES: Final = (0x00, 0x10)  # global and loopback; those of a link need the name of an interface
_UNUSABLE: Final = 0x08 | 0x20 | 0x40  # in use elsewhere, deprecated, not yet confirmed


@dataclass(frozen=True, slots=True)
class Interface:
    """An address of a network interface that is up.

    ``mask`` is the number of bits of the network for IPv6. ``broadcast`` is None if the network has no such address.
    ``mtu`` is in bytes.
    """

    name: str
    address: str
    mask: str
    broadcast: str | None
    mtu: int
    loopback: bool
    wireless: bool

    @property
    def version(self) -> int:
        """Version of IP, 4 or 6."""
        return 6 if ":" in self.address else 4

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """Subnet of the interface."""
        return ipaddress.ip_network(f"{self.address}/{self.mask}", strict=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the interface as JSON-serialisable data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Shared:
    """Network on which all members have an interface, with these interfaces in the order of the members."""

    interfaces: tuple[Interface, ...]
    direct: bool
    """True for one subnet; otherwise members reach each other through routers, and nothing can be broadcast."""

    @property
    def wireless(self) -> bool:
        """True if the interface of any member is wireless."""
        return any(one.wireless for one in self.interfaces)

    @property
    def version(self) -> int:
        """Version of IP, 4 or 6."""
        return max(one.version for one in self.interfaces)

    @property
    def mtu(self) -> int:
        """Bytes of the largest IP packet that all members can receive."""
        return min(one.mtu for one in self.interfaces)

    @property
    def broadcast(self) -> str | None:
        """Broadcast address of the subnet; None if there is none."""
        found = {one.broadcast for one in self.interfaces}
        return found.pop() if self.direct and len(found) == 1 else None


def interfaces() -> list[Interface]:
    """Return the addresses of interfaces that are up: IPv4 first, wired before wireless, loopback last."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            address, flags = _ask(probe, _ADDRESS, name), _ask(probe, _FLAGS, name)
            mask, mtu = _ask(probe, _MASK, name), _ask(probe, _MTU, name)
            if address is None or flags is None or mask is None or mtu is None:
                continue
            bits = struct.unpack_from("@H", flags)[0]
            if not bits & _UP:
                continue
            brd = _ask(probe, _BROADCAST, name) if bits & _HAS_BROADCAST else None
            found.append(
                Interface(
                    name,
                    socket.inet_ntoa(address[4:8]),
                    socket.inet_ntoa(mask[4:8]),
                    None if brd is None or not any(brd[4:8]) else socket.inet_ntoa(brd[4:8]),
                    struct.unpack_from("@i", mtu)[0],
                    bool(bits & _LOOPBACK),
                    _wireless(name),
                )
            )
    found += _interfaces_6()
    return sorted(found, key=lambda one: (one.version, one.loopback, one.wireless))


def _interfaces_6() -> list[Interface]:
    """Return the IPv6 addresses that other machines can use without naming an interface, and the loopback's."""
    found = []
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = _ADDRESSES_6.read_text().splitlines()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for line in lines:
            digits, _, length, scope, flags, name = line.split()
            state, mtu = _ask(probe, _FLAGS, name), _ask(probe, _MTU, name)
            if int(scope, 16) not in _SCOPES or int(flags, 16) & _UNUSABLE or state is None or mtu is None:
                continue
            bits = struct.unpack_from("@H", state)[0]
            if bits & _UP:
                address = str(ipaddress.IPv6Address(bytes.fromhex(digits)))
                size = struct.unpack_from("@i", mtu)[0]
                loopback = bool(bits & _LOOPBACK)
                found.append(Interface(name, address, str(int(length, 16)), None, size, loopback, _wireless(name)))
    return found


def machine() -> str:
    """Return an identifier of this machine and network namespace; members with the same one share their loopback."""
    boot, namespace = "", ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with contextlib.suppress(OSError):
        namespace = str(os.stat("/proc/self/ns/net").st_ino)  # noqa: PTH116  (no path: a link of the kernel)
    return f"{boot or socket.gethostname()}/{namespace}"


def shared_network(places: Sequence[Mapping[str, Any]], wanted: Sequence[str | None]) -> Shared:
    """Return the network to use; all members find the same one.

    Parameters
    ----------
    places
        ``machine`` and ``interfaces`` (:meth:`Interface.as_dict`) of each member.
    wanted
        Request of each member's user: its own address, a network ``10.0.0.0/24``, the name of an interface, or None.

    Raises
    ------
    CaseError
        If a member has no suitable interface; the message gives the member's number.
    """
    offered = [_asked(place, text, number) for number, (place, text) in enumerate(zip(places, wanted, strict=True))]
    alone = len({place["machine"] for place in places}) == 1
    # If all members are on one machine, their datagrams stay within it.
    for mine in sorted(offered[0], key=lambda one: not one.loopback) if alone else offered[0]:
        chosen = [next((one for one in others if one.network == mine.network), None) for others in offered]
        if None in chosen or (mine.loopback and not alone):
            continue
        found = [one for one in chosen if one is not None]
        # Container bridges have the same address on every machine and do not connect the machines.
        addresses = {(place["machine"], one.address) for place, one in zip(places, found, strict=True)}
        if len({address for _, address in addresses}) == len(addresses):
            return Shared(tuple(found), True)
    # Routers connect members of one version of IP.
    either = [[_routed(others, version) for others in offered] for version in (4, 6)]
    routed = next((ones for ones in either if None not in ones), either[0])
    for number, (place, one) in enumerate(zip(places, routed, strict=True)):
        if one is None:
            raise CaseError(
                f"member {number} on {place.get('host', '?')} has no interface that others can reach",
                remedy="bring its network up, or name one of its addresses",
            )
    return Shared(tuple(one for one in routed if one is not None), False)


def _routed(offered: Sequence[Interface], version: int) -> Interface | None:
    return next((one for one in offered if not one.loopback and one.version == version), None)


def _asked(place: Mapping[str, Any], text: str | None, number: int) -> list[Interface]:
    """Return the interfaces of a member that its user permits."""
    there = [Interface(**entry) for entry in place["interfaces"]]
    if text is None:
        return there
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        fitting = [one for one in there if one.name == text]
    else:
        fitting = [one for one in there if ipaddress.ip_address(one.address) in network]
    if not fitting:
        known = ", ".join(f"{one.name} {one.address}" for one in there) or "none"
        raise CaseError(
            f"member {number} on {place.get('host', '?')} has no interface {text!r}; it has {known}",
            remedy="give an address of this member, the name of an interface, or a network such as 10.0.0.0/24",
        )
    return fitting


_WIRELESS: Final = Path("/proc/self/net/wireless")


def _wireless(name: str) -> bool:
    # /sys may show the interfaces of another namespace, so both sources are consulted.
    with contextlib.suppress(OSError):
        lines = _WIRELESS.read_text().splitlines()
        if any(line.partition(":")[0].strip() == name for line in lines):
            return True
    return Path("/sys/class/net", name, "wireless").exists()


def _ask(probe: socket.socket, what: int, name: str) -> bytes | None:
    try:
        return fcntl.ioctl(probe, what, struct.pack("@16s24x", name.encode()))[16:]
    except OSError:
        return None
