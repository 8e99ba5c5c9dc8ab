"""The places of a run's checkpoints: which ranks see the same folder, and whose parts are copied where.

Hosts that share no files have a folder each, for the parts of their own ranks. A copy of each part lies in the folder
of another host: those of all hosts form a ring, in which neighbours are behind different switches if possible.
"""

from __future__ import annotations

import contextlib
import platform
import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from minga.engine.comm import Comm
from minga.output.directory import disk_errors

__all__ = ["Places", "places_of", "ring"]

_TOKEN = ".token-"
"""Beginning of the names of files that tell ranks whether they see the same folder."""


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of a run's checkpoints, known by their leaders: the first ranks that see them.

    Attributes
    ----------
    homes
        Leader of the folder of each rank.
    blind
        Ranks without a folder: rank 0 writes their parts.
    hosts
        Names of the hosts of the folders, by leader.
    partners
        Leader of the folder that gets the copies of a folder's parts, by leader; empty if there are no copies.
    """

    homes: tuple[int, ...]
    blind: frozenset[int] = frozenset()
    hosts: Mapping[int, str] = field(default_factory=dict)
    partners: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def one(cls, ranks: int) -> Places:
        """Return the place of ranks that all see the same folder."""
        return cls((0,) * ranks)

    @property
    def leaders(self) -> tuple[int, ...]:
        """The leaders of all folders, in order."""
        return tuple(sorted(set(self.homes)))

    def gathered(self) -> Places:
        """Return the same ranks with one folder, that of rank 0."""
        blind = frozenset(rank for rank, home in enumerate(self.homes) if home != 0) | self.blind
        return replace(self, homes=(0,) * len(self.homes), blind=blind, partners={})

    def alone(self) -> Places:
        """Return the same folders without copies."""
        return replace(self, partners={})

    def sees(self, rank: int, leaders: Sequence[int]) -> bool:
        """Return whether a rank sees the folder of one of some leaders."""
        return rank not in self.blind and self.homes[rank] in leaders

    def copier(self, rank: int) -> int | None:
        """Return the rank that stores the copy of a rank's part; None if there is no copy."""
        if rank in self.blind or self.homes[rank] not in self.partners:
            return None
        mates, others = self._members(self.homes[rank]), self._members(self.partners[self.homes[rank]])
        return others[mates.index(rank) % len(others)]

    def kept_at(self, leader: int) -> frozenset[int]:
        """Return the numbers of the ranks whose parts, or copies of them, lie in the folder of a leader."""
        own = self._members(leader)
        copied = [rank for home, partner in self.partners.items() if partner == leader for rank in self._members(home)]
        return frozenset((*own, *copied))

    def keepers(self, rank: int) -> tuple[str, ...]:
        """Return the hosts that keep the part of a rank, first the one that writes it."""
        home = self.homes[rank]
        partner = [self.partners[home]] if home in self.partners else []
        return tuple(self.hosts[leader] for leader in (home, *partner) if leader in self.hosts)

    def _members(self, leader: int) -> list[int]:
        return [rank for rank, home in enumerate(self.homes) if home == leader and rank not in self.blind]


def places_of(comm: Comm, path: Path, *, own: bool, switch: str = "") -> Places:
    """Return the places of checkpoints; collective, equal on all ranks.

    Parameters
    ----------
    comm
        The ranks.
    path
        The folder, which is made if its parent exists.
    own
        Whether this rank's host may have a folder of its own there. Otherwise a folder that rank 0 does not see is not
        used, as it may be that of another run.
    switch
        Name of the switch that this host is connected to, if it is known.
    """
    leads = comm.rank == 0 or (own and comm.leads_node)
    token = path / f"{_TOKEN}{comm.rank}"
    text = _mark(token, must=comm.rank == 0) if leads else None
    try:
        said = comm.bcast(comm.gather((text, platform.node(), switch)))
        marks = {rank: text for rank, (text, _, _) in enumerate(said) if text is not None}
        seen = next((rank for rank, mark in marks.items() if _content(path / f"{_TOKEN}{rank}") == mark), None)
        homes = comm.bcast(comm.gather(seen))
    finally:
        if text is not None:
            token.unlink(missing_ok=True)
    blind = frozenset(rank for rank, home in enumerate(homes) if home is None)
    homes = tuple(home or 0 for home in homes)
    leaders = sorted(set(homes))
    partners = ring(leaders, {leader: said[leader][2] for leader in leaders})
    return Places(homes, blind, {leader: said[leader][1] for leader in leaders}, partners)


def ring(leaders: Sequence[int], switches: Mapping[int, str]) -> dict[int, int]:
    """Return the partner of each leader: a ring in which neighbours are behind different switches if possible."""
    if len(leaders) < 2:
        return {}
    behind: dict[str, list[int]] = defaultdict(list)
    for leader in leaders:
        behind[switches[leader]].append(leader)
    groups = sorted(behind.values(), key=len, reverse=True)
    order = [group[turn] for turn in range(len(groups[0])) for group in groups if turn < len(group)]
    return dict(zip(order, [*order[1:], order[0]], strict=True))


def _mark(token: Path, *, must: bool) -> str | None:
    """Write random text to a file, and return it; None if that is not possible, which is an error if it ``must``."""
    text = secrets.token_hex()
    if must:
        with disk_errors(token):
            token.parent.mkdir(exist_ok=True)  # not the run's directory: if that is gone, so is the run
            token.write_text(text)
        return text
    with contextlib.suppress(OSError):
        token.parent.mkdir(exist_ok=True)
        token.write_text(text)
        return text
    return None


def _content(file: Path) -> str | None:
    try:
        return file.read_text()
    except OSError:
        return None
