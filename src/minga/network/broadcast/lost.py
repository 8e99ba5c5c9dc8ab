"""Error of a broadcast that lost members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from minga.errors import RunError

__all__ = ["MembersLost"]


class MembersLost(RunError):
    """Error raised when members of a group no longer respond, as receivers of a message or as its root.

    ``members`` are their numbers, ``names`` their names if known, and ``why`` is the observed reason.

    Parameters
    ----------
    members
        Numbers of the members.
    names
        Names of the members, if known.
    while_
        The operation during which they were lost.
    why
        The observation.
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
            remedy="check that the machine is up and its program is still running; "
            'a group created with on_loss="exclude" continues without it',
        )

    def named(self, names: Sequence[str]) -> Self:
        """Return the same error with the names of its members; ``names`` lists those of all members of the group.

        Parameters
        ----------
        names
            Names of all members of the group.

        Returns
        -------
        MembersLost
            The error.
        """
        mine = [names[number] for number in self.members if number < len(names)]
        return type(self)(self.members, mine, while_=self.while_, why=self.why)
