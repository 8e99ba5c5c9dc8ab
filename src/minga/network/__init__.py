"""Networks of machines: measuring their performance, and broadcasting over them.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minga.lazy import attach

if TYPE_CHECKING:
    from minga.network.broadcast.group import Group
    from minga.network.broadcast.lost import MembersLost
    from minga.network.broadcast.secret import make_key_file

__all__ = [
    "Group",
    "MembersLost",
    "make_key_file",
]

__getattr__, __dir__ = attach(__name__, __file__)
