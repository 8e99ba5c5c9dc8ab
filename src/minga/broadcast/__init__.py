"""Reliable, authenticated broadcast to a closed group of machines, over UDP on a local network.

:class:`Group` is what programs use. Below it lie a protocol without input or output (:mod:`~minga.broadcast.endpoint`,
made of :mod:`~minga.broadcast.root` and :mod:`~minga.broadcast.member`) and a thin driver that binds it to sockets
(:mod:`~minga.broadcast.driver`). Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minga.broadcast.driver import Driver
    from minga.broadcast.endpoint import Endpoint
    from minga.broadcast.group import Group
    from minga.broadcast.keys import Session
    from minga.broadcast.lost import MembersLost
    from minga.broadcast.member import Aborted, Message
    from minga.broadcast.secret import make_key_file, read_key
    from minga.broadcast.settings import Settings
    from minga.broadcast.sockets import Sockets

__all__ = [
    "Aborted",
    "Driver",
    "Endpoint",
    "Group",
    "MembersLost",
    "Message",
    "Session",
    "Settings",
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
    "Settings": "settings",
    "Sockets": "sockets",
    "make_key_file": "secret",
    "read_key": "secret",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
