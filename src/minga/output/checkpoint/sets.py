"""The choice of a checkpoint to resume from: what each host has, and which checkpoints are complete.

A file of blocks counts if the description of its checkpoint lies beside it. A checkpoint is complete if every file of
it counts somewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from minga.engine.comm import Comm
from minga.output.checkpoint.head import Head, heads_of
from minga.output.checkpoint.places import Places

__all__ = ["CheckpointSet", "Key", "Offer", "block_file", "offers", "sets_of"]

Key = tuple[int, int, str, str]
"""Epoch, step, mark and folder of a checkpoint: equal on all hosts, and greater for newer ones."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A checkpoint of which a folder has files.

    Attributes
    ----------
    leader
        Leader of the folder.
    key
        Identity of the checkpoint.
    wanted
        Numbers of all its files.
    files
        Numbers of those in the folder.
    hosts
        Hosts that have kept each file when it was written.
    """

    leader: int
    key: Key
    wanted: frozenset[int]
    files: frozenset[int]
    hosts: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class CheckpointSet:
    """A checkpoint with the folders that its files can be read from.

    Attributes
    ----------
    key
        Its identity.
    leaders
        Leaders of the folders that have its description.
    sources
        Leaders of the folders that have a file, by the number of the file.
    hosts
        Hosts that have kept each file when it was written.
    """

    key: Key
    leaders: tuple[int, ...]
    sources: Mapping[int, tuple[int, ...]]
    hosts: Mapping[int, tuple[str, ...]]

    @property
    def step(self) -> int:
        """Its number of steps."""
        return self.key[1]

    @property
    def slot(self) -> str:
        """Name of its folder."""
        return self.key[3]

    @property
    def missing(self) -> tuple[int, ...]:
        """Numbers of the files that no folder has."""
        return tuple(sorted(number for number, leaders in self.sources.items() if not leaders))

    @property
    def thin(self) -> bool:
        """True if a file is in fewer folders than hosts have kept it."""
        return any(len(leaders) < len(self.hosts.get(number, ())) for number, leaders in self.sources.items())

    @property
    def lack(self) -> str:
        """Description of what is missing, with the hosts that have kept it."""
        lines: dict[str, list[str]] = {}
        for number in self.missing:
            lines.setdefault(" and ".join(self.hosts.get(number, ())), []).append(str(number))
        parts = [
            f"{'ranks' if len(ranks) > 1 else 'rank'} {', '.join(ranks)}" + (f" (kept on {names})" if names else "")
            for names, ranks in lines.items()
        ]
        return f"{self.slot}, of step {self.step}, lacks the parts of {', '.join(parts)}"

    def without(self, parts: Collection[tuple[int, int]]) -> CheckpointSet:
        """Return the set without some files, given by their number and the leader of the folder."""
        sources = {
            number: tuple(leader for leader in leaders if (number, leader) not in parts)
            for number, leaders in self.sources.items()
        }
        return replace(self, sources=sources)


def sets_of(offered: Iterable[Offer]) -> list[CheckpointSet]:
    """Return all checkpoints of which folders have files, the newest first, whether they are complete or not."""
    found: dict[Key, list[Offer]] = {}
    for offer in offered:
        found.setdefault(offer.key, []).append(offer)
    return [
        CheckpointSet(
            key,
            tuple(offer.leader for offer in several),
            {
                number: tuple(offer.leader for offer in several if number in offer.files)
                for number in sorted(several[0].wanted)
            },
            several[0].hosts,
        )
        for key, several in sorted(found.items(), reverse=True)
    ]


def offers(path: Path, comm: Comm, places: Places) -> tuple[list[CheckpointSet], list[str], dict[Key, Head]]:
    """Return the checkpoints of a run in the folders of all places, and the faults of others; collective.

    The descriptions in this rank's folder are returned, too, on leaders.
    """
    mine: dict[Key, Head] = {}
    faults: list[str] = []
    if comm.rank == places.homes[comm.rank] and comm.rank not in places.blind:
        heads, found = heads_of(path)
        mine = {_key(head): head for head in heads}
        where = f" on {places.hosts[comm.rank]}" if len(places.leaders) > 1 else ""
        faults = [f"{fault}{where}" for fault in found]
    offered = [Offer(comm.rank, key, head.files, _held(path, head), head.hosts) for key, head in mine.items()]
    everyone = comm.bcast(comm.gather((offered, faults)))
    sets = sets_of(offer for several, _ in everyone for offer in several)
    return sets, [fault for _, several in everyone for fault in several], mine


def block_file(folder: Path, rank: int) -> Path:
    """Return the file of blocks that a rank writes."""
    return folder / f"blocks-{rank:06d}.bin"


def _key(head: Head) -> Key:
    return head.epoch, head.step, head.mark, head.slot


def _held(path: Path, head: Head) -> frozenset[int]:
    return frozenset(number for number in head.files if block_file(path / head.slot, number).is_file())
