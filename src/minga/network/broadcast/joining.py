"""Formation of a group: who the members are, which network they share, and which broadcast route it supports.

First, all members exchange their addresses and a nonce; the session is a hash of all nonces, so datagrams of other
sessions are never accepted. Then multicast is tried, and after it the subnet broadcast: each member sends a full-size
datagram, sealed for this session, to the group, and all compare which members they heard. A route is chosen if every
member heard every other; if neither works, the members connect to form a chain. On wireless networks neither is tried,
because access points send both at their lowest rate and without acknowledgement (RFC 9119).
"""

from __future__ import annotations

import hashlib
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from minga.errors import CaseError, LaunchError, MingaError, RunError
from minga.network.broadcast.chain import Chain, Costs
from minga.network.broadcast.datagram import LONGER_IN_6, UDP_AND_IP, Kind, payload_for
from minga.network.broadcast.driver import Driver
from minga.network.broadcast.endpoint import Endpoint
from minga.network.broadcast.interfaces import Shared, interfaces, machine, shared_network
from minga.network.broadcast.keys import Keys, Session
from minga.network.broadcast.link import listen
from minga.network.broadcast.options import DEAD_TIMEOUT, BroadcastOptions, batch_for, window_for
from minga.network.broadcast.rendezvous import Rendezvous
from minga.network.broadcast.ring import Ring
from minga.network.broadcast.sockets import Sockets

__all__ = ["ROUTES", "GroupOptions", "Joined", "RouteName", "join"]

RouteName = Literal["multicast", "broadcast", "chain"]
ROUTES: Final[tuple[RouteName, ...]] = ("multicast", "broadcast", "chain")
"""All routes, starting with the one that loads the network least."""

_VERSION: Final = 1
_ROUNDS: Final = 4
_HOPELESS: Final = 2
"""Rounds after which a route is abandoned if no member has heard anything."""
_LONGEST_WINDOW: Final = 1024
_LARGEST_BATCH: Final = 44
_LONGEST_PACKET: Final = 9000
"""Limit of IP packets in bytes; larger ones, which a loopback accepts, leave no window in usual receive buffers."""
_FIRST_PORT, _PORTS = 20_480, 12_000
"""Range of the groups' ports, below those that systems assign automatically."""
_CONNECT: Final = 10.0
Opened = TypeVar("Opened")


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """Options of a member. ``route``, ``rate``, ``on_loss`` and ``dead_timeout`` must be the same for all members.

    ``address`` is an address of this member, the name of its interface, or the network to use, ``10.0.0.0/24``.
    ``rate`` is in bits per second on the wire; None determines it while sending. ``dead_timeout`` is in seconds.
    """

    address: str | None = None
    route: str = "auto"
    rate: float | None = None
    on_loss: str = "raise"
    dead_timeout: float = DEAD_TIMEOUT

    def __post_init__(self) -> None:
        if self.route not in ("auto", *ROUTES):
            raise CaseError(
                f"there is no route {self.route!r}", key="route", remedy=f"choose auto, {', '.join(ROUTES)}"
            )
        if self.rate is not None and not 1e3 <= self.rate <= 1e12:
            raise CaseError(f"invalid rate {self.rate} bit/s", key="rate", remedy="give bits per second: rate=100e6")
        if self.on_loss not in ("raise", "exclude"):
            raise CaseError(f"invalid value {self.on_loss!r}", key="on_loss", remedy='choose "raise" or "exclude"')
        if not 0.1 <= self.dead_timeout <= 3600:
            raise CaseError(f"invalid value {self.dead_timeout}", key="dead_timeout", remedy="give 0.1 to 3600 seconds")

    def common(self) -> list[Any]:
        """Return the options that must be the same for all members."""
        return [self.route, self.rate, self.on_loss, self.dead_timeout]


@dataclass(slots=True)
class Joined:
    """Result of forming a group. ``rejected_routes`` gives the reason why each better route was not chosen."""

    route: RouteName
    transport: Driver | Chain
    names: tuple[str, ...]
    rejected_routes: dict[str, str]


def join(meeting: Rendezvous, key: bytes, wishes: GroupOptions) -> Joined:
    """Become a member of a group; collective over the meeting.

    Raises
    ------
    CaseError
        If the options of the members differ, or a member lacks the requested interface.
    RunError
        If the requested route does not work; the message names the members that did not hear others.
    LaunchError
        If the members run different versions of the protocol, or not even a chain can be set up.
    """
    places = _introduce(meeting, wishes)
    names = _names(places)
    ident = hashlib.sha256(b"minga session" + b"".join(bytes.fromhex(place["nonce"]) for place in places)).digest()
    network = shared_network(places, [place["address"] for place in places])
    rejected_routes: dict[str, str] = {}
    for route in _candidates(wishes, network, rejected_routes):
        if route == "chain":
            return Joined(
                route, _chain(meeting, key, wishes, places, network, ident[:8], names), names, rejected_routes
            )
        found = _datagrams(meeting, key, wishes, places, network, ident, names, route)
        if not isinstance(found, str):
            return Joined(route, found, names, rejected_routes)
        rejected_routes[route] = found
    way, why = next(reversed(rejected_routes.items()))
    raise RunError(f"{way} does not work here: {why}", remedy='choose route="auto", which then uses a chain')


def _introduce(meeting: Rendezvous, wishes: GroupOptions) -> list[dict[str, Any]]:
    own = {
        "version": _VERSION,
        "host": socket.gethostname(),
        "machine": machine(),
        "interfaces": [one.as_dict() for one in interfaces()],
        "nonce": secrets.token_hex(16),
        "address": wishes.address,
        "wishes": wishes.common(),
    }
    places: list[dict[str, Any]] = meeting.exchange(own)
    for number, place in enumerate(places):
        if place["version"] != _VERSION:
            raise LaunchError(
                f"member {number} on {place['host']} speaks version {place['version']} of the protocol, this one "
                f"version {_VERSION}",
                remedy="install the same version of minga on all machines",
            )
        if place["wishes"] != places[0]["wishes"]:
            raise CaseError(
                f"member {number} on {place['host']} asks for {place['wishes']}, member 0 for {places[0]['wishes']} "
                "(route, rate, on_loss, dead_timeout)",
                remedy="use the same options at all members",
            )
    return places


def _names(places: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    hosts = [str(place["host"]) for place in places]
    return tuple(host if hosts.count(host) == 1 else f"{number} on {host}" for number, host in enumerate(hosts))


def _candidates(wishes: GroupOptions, network: Shared, rejected_routes: dict[str, str]) -> list[RouteName]:
    if wishes.route != "auto":
        return [route for route in ROUTES if route == wishes.route]
    if len(network.interfaces) == 1:
        return ["chain"]
    if not network.direct or network.wireless:
        why = "a member is on a wireless network" if network.wireless else "the members share no subnet"
        rejected_routes |= {"multicast": why, "broadcast": why}
        return ["chain"]
    return list(ROUTES)


def _together(meeting: Rendezvous, action: Callable[[], Opened]) -> tuple[Opened | None, str]:
    """Perform an action that must succeed at all members; return its result and the errors of all members."""
    done, trouble = None, ""
    try:
        done = action()
    except (OSError, MingaError) as error:
        trouble = error.message if isinstance(error, MingaError) else str(error)
    said = meeting.exchange(trouble)
    return done, "; ".join(f"member {number}: {text}" for number, text in enumerate(said) if text)


# Datagrams ------------------------------------------------------------------------------------------------------------
def _datagrams(
    meeting: Rendezvous,
    key: bytes,
    wishes: GroupOptions,
    places: Sequence[Mapping[str, Any]],
    network: Shared,
    ident: bytes,
    names: Sequence[str],
    route: RouteName,
) -> Driver | str:
    """Return a driver for datagrams to an address over which all members hear each other, or why there is none."""
    address = _multicast(ident, network.version) if route == "multicast" else network.broadcast
    if address is None:
        return "the network has no broadcast address"
    group = (address, _FIRST_PORT + int.from_bytes(ident[10:14]) % _PORTS)
    machines = [place["machine"] for place in places]
    kind: Literal["multicast", "broadcast"] = "multicast" if route == "multicast" else "broadcast"

    def open_sockets() -> Sockets:
        own = network.interfaces[meeting.rank]
        loop = len(set(machines)) < len(machines)
        return Sockets.open((own.address, 0), group=group, route=kind, loop=loop, interface=own.name)

    sockets, trouble = _together(meeting, open_sockets)
    if trouble or sockets is None:
        if sockets is not None:
            sockets.close()
        return trouble
    try:
        said = meeting.exchange([*sockets.address, sockets.granted])
        more = LONGER_IN_6 if network.version == 6 else 0
        session = Session(ident[:8], key, meeting.size, payload_for(min(network.mtu, _LONGEST_PACKET) - more))
        deaf = _probe(meeting, sockets, session, group)
    except BaseException:
        sockets.close()
        raise
    if deaf:
        sockets.close()
        return _deafness(deaf, names)
    window = min(_LONGEST_WINDOW, *(window_for(granted, session.payload) for _, _, granted in said))
    on_loss: Literal["raise", "exclude"] = "exclude" if wishes.on_loss == "exclude" else "raise"
    settings = BroadcastOptions(
        window=window,
        rate=wishes.rate,
        batch=min(_LARGEST_BATCH, batch_for(session.payload)),
        on_loss=on_loss,
        dead_timeout=wishes.dead_timeout,
        headers=UDP_AND_IP + more,
    )
    endpoint = Endpoint(session, meeting.rank, settings)
    return Driver(sockets, endpoint, [(host, port) for host, port, _ in said], group)


def _multicast(ident: bytes, version: int) -> str:
    """Return the session's address for multicasts: one that is not assigned to anything else, within the site."""
    if version == 6:
        return f"ff15::{ident[8:10].hex()}:{ident[14:16].hex()}"
    return f"239.255.{ident[8]}.{ident[9]}"


def _probe(meeting: Rendezvous, sockets: Sockets, session: Session, group: tuple[str, int]) -> dict[int, list[int]]:
    """Greet all members and listen; return, for each member that does not hear all others, those it does not hear."""
    keys = Keys(session)
    everybody = set(range(meeting.size)) - {meeting.rank}
    heard: set[int] = set()
    # The datagram has full size, because a path that carries only small ones would be useless.
    hello = keys.seal(Kind.HELLO, meeting.rank, payload=bytes(session.payload))
    unheard = set(range(meeting.size))
    deaf: dict[int, list[int]] = {}
    for attempt in range(_ROUNDS):
        if meeting.rank in unheard:
            _say(sockets, group, hello)
        pause = (0.15 + 0.003 * meeting.size) * 2 ** min(attempt, 2)
        _hear(sockets, keys, heard, everybody, time.monotonic() + pause)
        lists = meeting.exchange(sorted(heard))
        deaf = {}
        for number, known in enumerate(lists):
            missing = sorted(set(range(meeting.size)) - {number} - set(known))
            if missing:
                deaf[number] = missing
        unheard = {number for missing in deaf.values() for number in missing}
        if not deaf or (attempt + 1 >= _HOPELESS and not any(lists)):
            break
    return deaf


def _say(sockets: Sockets, group: tuple[str, int], hello: bytes) -> None:
    try:
        sockets.send(group, [hello])
    except (OSError, RunError):
        return  # then no member hears it, which is what the probe detects


def _hear(sockets: Sockets, keys: Keys, heard: set[int], everybody: set[int], deadline: float) -> None:
    while heard < everybody and (left := deadline - time.monotonic()) > 0:
        sockets.wait(left)
        for arrival in sockets.receive():
            found = keys.open(arrival.data) if arrival.by_group else None
            if found is not None and found.kind == Kind.HELLO and found.sender in everybody:
                heard.add(found.sender)


def _deafness(deaf: Mapping[int, Sequence[int]], names: Sequence[str]) -> str:
    if len(deaf) == len(names) and all(len(missing) == len(names) - 1 for missing in deaf.values()):
        return "no member heard any other"
    said = [
        f"{names[number]} did not hear {', '.join(names[one] for one in missing)}" for number, missing in deaf.items()
    ]
    return "; ".join(said[:4]) + ("; ..." if len(said) > 4 else "")


# The chain ------------------------------------------------------------------------------------------------------------
def _chain(
    meeting: Rendezvous,
    key: bytes,
    wishes: GroupOptions,
    places: Sequence[Mapping[str, Any]],
    network: Shared,
    session: bytes,
    names: Sequence[str],
) -> Chain:
    own = meeting.rank
    address = network.interfaces[own].address
    listener, trouble = _together(meeting, lambda: listen(address))
    if trouble or listener is None:
        if listener is not None:
            listener.close()
        raise LaunchError(f"no chain can be set up: {trouble}", remedy="check the addresses of these machines")
    try:
        said = [(str(host), int(port)) for host, port in meeting.exchange([address, listener.getsockname()[1]])]
        costs = Costs(beta=8 / wishes.rate) if wishes.rate else Costs()
        chain = Chain(own, meeting.size, costs)
        order = _order([str(place["machine"]) for place in places])
        patience, around = wishes.dead_timeout, wishes.on_loss == "exclude"
        ring = Ring(chain, listener, own, order, said, key, session, patience=patience, around=around)
    except BaseException:
        listener.close()
        raise
    chain.start(ring)
    there = chain.connect(min(_CONNECT, patience))
    ready = meeting.exchange([there, ring.neighbour(1) if there else order[(order.index(own) + 1) % len(order)]])
    if missing := [(number, entry[1]) for number, entry in enumerate(ready) if not entry[0]]:
        ring.close()
        pairs = ", ".join(f"{names[one]} and {names[other]} (at {said[other][0]})" for one, other in missing[:4])
        raise LaunchError(
            f"members cannot reach each other by TCP: {pairs}",
            remedy="allow these machines to reach each other on all ports (firewall), or give the correct addresses",
        )
    return chain


def _order(machines: Sequence[str]) -> list[int]:
    """Return the ring order of the members: those of one machine are adjacent, so that a message enters it once."""
    first = {name: number for number, name in reversed(list(enumerate(machines)))}
    return sorted(range(len(machines)), key=lambda number: (first[machines[number]], number))
