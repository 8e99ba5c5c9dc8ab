"""The error of a broadcast whose members went away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from minga.errors import RunError

__all__ = ["MembersLost"]


class MembersLost(RunError):
    """Members of a group that did not answer any more; the message did not reach them, or did not come from them.

    ``members`` are their numbers, ``names`` what people call them where that is known, ``why`` what was noticed.
    """

    def __init__(self, members: Sequence[int], names: Sequence[str] = (), *, while_: str = "", why: str = "") -> None:
        self.members = tuple(members)
        self.names = tuple(names)
        self.why = why
        self.while_ = while_
        shown = self.names or tuple(str(number) for number in self.members)
        plural = len(shown) != 1
        super().__init__(
            f"member{'s' if plural else ''} {', '.join(shown)} of the group {'were' if plural else 'was'} lost"
            f"{' while ' + while_ if while_ else ''}{': ' + why if why else ''}",
            remedy="look whether the machine is up and its program still runs; "
            'a group made with on_loss="exclude" goes on without it',
        )

    def named(self, names: Sequence[str]) -> Self:
        """The same error, with the names of its members; ``names`` has those of all members of the group."""
        mine = [names[number] for number in self.members if number < len(names)]
        return type(self)(self.members, mine, while_=self.while_, why=self.why)
