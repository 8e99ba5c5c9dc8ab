"""Reliable, authenticated broadcast to a closed group of machines, over UDP on a local network.

Programs use :class:`Group`. It is built on a protocol that does no I/O (`endpoint`, which consists of `root` and
`member`) and a thin driver that connects the protocol to sockets (`driver`). Names are imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minga.network.broadcast.driver import Driver
    from minga.network.broadcast.endpoint import Endpoint
    from minga.network.broadcast.group import Group
    from minga.network.broadcast.keys import Session
    from minga.network.broadcast.lost import MembersLost
    from minga.network.broadcast.member import Aborted, Message
    from minga.network.broadcast.options import BroadcastOptions
    from minga.network.broadcast.secret import make_key_file, read_key
    from minga.network.broadcast.sockets import Sockets

__all__ = [
    "Aborted",
    "BroadcastOptions",
    "Driver",
    "Endpoint",
    "Group",
    "MembersLost",
    "Message",
    "Session",
    "Sockets",
    "make_key_file",
    "read_key",
]

_HOME = {
    "Aborted": "member",
    "Driver": "driver",
    "Endpoint": "endpoint",
    "Group": "group",
    "MembersLost": "lost",
    "Message": "member",
    "Session": "keys",
    "BroadcastOptions": "options",
    "Sockets": "sockets",
    "make_key_file": "secret",
    "read_key": "secret",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
