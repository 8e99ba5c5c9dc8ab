"""Schedule of a run's checkpoints, and the start of a run from one."""

from __future__ import annotations

import importlib.metadata
import math
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minga.engine.clock import Interval
from minga.engine.comm import Comm
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.state import BEGINNING, Position, State
from minga.engine.stop import Ended, Stop, duration
from minga.errors import CaseError, DiskFullError, RunError
from minga.lang.types import itemsize
from minga.output.checkpoint.copies import copy_parts
from minga.output.checkpoint.head import SLOTS, Head, Session
from minga.output.checkpoint.identity import INITIAL, changed_entries, identity_of
from minga.output.checkpoint.places import Places, places_of
from minga.output.checkpoint.restore import DamagedParts, restore
from minga.output.checkpoint.sets import CheckpointSet, offers
from minga.output.checkpoint.slots import begin, beginning_of, complete, digests, write_slots
from minga.output.directory import RunDirectory

if TYPE_CHECKING:
    from minga.options import RunOptions

__all__ = ["UNFINISHED", "Checkpointing", "Keeper", "checkpointing_of"]

UNFINISHED = ("asked", "time limit")
"""Reasons of an end after which a run may be resumed: a last checkpoint is written."""

_SHARE = 50
"""Largest share of the time that checkpoints by the clock take: one in so many seconds."""
_BYTES_A_SECOND = 200e6
"""Assumed speed of the disk until a checkpoint was written."""
_RESERVE = 1.0
"""Seconds before a time limit in which nothing is left to do."""


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """The schedule of checkpoints: by steps or by seconds, or only the last one if neither is given.

    Parameters
    ----------
    steps
        Steps from one checkpoint to the next; a number with a decimal point, or a text with a unit, is a model time.
    seconds
        Seconds from one checkpoint to the next; more if writing one takes more than 2 % of that. Where losses show how
        long the run lasts without one, writing and repeating steps take the least time together.
    time_limit
        Seconds that the process may take: a last checkpoint is written in time, and the run ends.
    at_end
        Whether a complete run leaves a checkpoint, so that it can be made longer.
    off
        Whether no checkpoints are written at all.
    """

    steps: Interval | None = None
    seconds: float | None = None
    time_limit: float | None = None
    at_end: bool = False
    off: bool = False


def checkpointing_of(options: RunOptions) -> Checkpointing:
    """Return the schedule of a run's checkpoints.

    Raises
    ------
    CaseError
        If its settings exclude each other or are invalid.
    """
    said, wall_time = options.checkpoint, options.run.wall_time
    if said.directory is not None and not Path(said.directory).is_absolute():
        raise CaseError(
            f"found {said.directory!r}, which may be another place on each host",
            key="checkpoint.directory",
            remedy="write an absolute path, beginning with /",
        )
    limit = None if wall_time is None else duration(wall_time, "run.wall_time")
    if said.every == "off":
        if limit is not None:
            raise CaseError(
                'a run that ends when its time is up has to write a checkpoint, but checkpoint.every is "off"',
                key="run.wall_time",
                remedy="leave one of them out; stop.wall_time ends a run for good",
            )
        return Checkpointing(off=True)
    seconds = said.seconds if said.every is None else None
    return Checkpointing(steps=said.every, seconds=seconds, time_limit=limit, at_end=said.at_end)


def _nothing(step: int) -> DiskFullError | None:
    return None


def _no_check() -> None:
    return None


def _no_rewind(step: int, time: float) -> None:
    return None


@dataclass(slots=True)
class Keeper:
    """Keeper of the checkpoints of a run in `path`, which begins with the newest one if `resumes` is set.

    It is made alike on all ranks; only rank 0 reads the clock.

    Attributes
    ----------
    stop
        Stop condition of the run, which must be that of the checkpoint.
    case
        Case of the run (:func:`minga.output.checkpoint.identity.case_of`); rank 0's counts.
    flush
        Called on all ranks with the step before a checkpoint counts: output up to there must be on the disk. It returns
        the error if there is no room for it, on any rank: then the checkpoint does not count, and the run continues.
    rewind
        Called on all ranks with the step and the model time when a state was restored: later output must be removed.
    note
        Called on rank 0 with messages for the user.
    check
        Called on every rank before it writes a part of a checkpoint, and on rank 0 before the checkpoint counts; it
        raises an error if another process has taken over the run.
    """

    path: Path
    comm: Comm
    schedule: Checkpointing
    resumes: bool = False
    stop: Stop | None = None
    case: Mapping[str, Any] = field(default_factory=dict)
    flush: Callable[[int], DiskFullError | None] = _nothing
    rewind: Callable[[int, float], None] = _no_rewind
    note: Callable[[str], None] | None = None
    check: Callable[[], None] = _no_check
    remembers: bool = False
    """True if the initial values are part of the run's identity, because no case says how they are made."""
    clock: Callable[[], float] = time.monotonic
    """Clock of the schedule, in seconds."""
    began: float = field(default_factory=time.monotonic)
    """Time of that clock at which the process began."""
    seconds: float = 0.0
    """Seconds of writing on this rank, in this process."""
    written: int = 0
    bytes: int = 0
    """Bytes of one checkpoint, on this rank."""
    sessions: tuple[Session, ...] = ()
    """Earlier sessions of the run."""
    observers: Mapping[str, Any] = field(default_factory=dict)
    """Data of observers in the checkpoint that was restored, by name."""
    own: bool = False
    """True if this rank's host may have a folder of its own in place of rank 0's, which it does not see."""
    place: str = "gathered"
    """Setting ``checkpoint.place``."""
    switch: str = ""
    """Name of the switch that leads to this host, if it is known."""
    epoch: int = 0
    """Number of the epoch of the run."""
    losses: int = 0
    """Number of hosts and ranks that the run has lost since `began`."""
    _known: Places | None = None
    _home: Path | None = None
    """The folder to which a link in `path` leads; it is not this rank's alone, and may be gone in the end."""
    _state: State | None = None
    _identity: Mapping[str, str] = field(default_factory=dict)
    _constants: dict[str, str] | None = None
    _start: Position = BEGINNING
    _slot: int = 0
    _last: float = 0.0
    _cost: float = 0.0
    _kept: int | None = None
    _thin: bool = False
    """True if parts of the checkpoint that was restored have fewer copies than they had, and no other was written."""

    @property
    def interval(self) -> Interval | None:
        """Steps or model time from one checkpoint to the next; None if the wall time decides."""
        return None if self.schedule.off else self.schedule.steps

    def resume(self, model: Model, engine: Engine, state: State) -> Position | None:
        """Restore the newest checkpoint that is whole; return None if none was ever complete, or none is wanted.

        Raises
        ------
        RunError
            On all ranks if there are some but none is whole.
        CaseError
            On all ranks if they belong to another model.
        """
        self._state, self._identity = state, identity_of(model, state, self.stop)
        if self.remembers:
            self._constants = digests(engine, state.constant)
            self._identity = {**self._identity, INITIAL: beginning_of(engine, model, state)}
        size = sum(slot.field.points.size * itemsize(slot.field.dtype) for slot in state.changing.values())
        self._cost = size / _BYTES_A_SECOND
        self._last = self.clock()
        if not self.schedule.off:
            self._places()  # a disk without any room is told before the first step
        if not self.resumes:
            return None
        sets, faults, mine = offers(self.path, self.comm, self._places())
        for each in sets:
            head = self._restored(each, mine.get(each.key), engine, state, faults)
            if head is None:
                continue
            self._say_faults(faults, f"the checkpoint of step {head.step} is used")
            if self.note is not None and self.comm.rank == 0 and each.key not in mine:
                self.note(f"minga: resuming after step {head.step}, from what other hosts have kept")
            self._start = Position(head.step, head.seconds)
            self._kept, self._thin = head.step, each.thin
            self.sessions, self.observers = head.sessions, head.observers
            self._slot = 1 - SLOTS.index(each.slot)
            self.rewind(head.step, head.step if model.clock is None else model.clock.read(head.step, engine))
            self._last = self.clock()
            return self._start
        if faults:
            hosts = {name for each in sets for names in each.hosts.values() for name in names}
            raise RunError(
                f"no checkpoint in {self.path} can be used:\n  " + "\n  ".join(faults),
                remedy="resume it with the hosts that have the missing parts, or do it again as a new run"
                if len(hosts) > 1
                else f"to do the run again from its first step, remove {self.path} and resume it",
            )
        return None

    def _restored(
        self, chosen: CheckpointSet, mine: Head | None, engine: Engine, state: State, faults: list[str]
    ) -> Head | None:
        """Restore a checkpoint from any of its copies, and return its description; None if it is not complete.

        ``mine`` is the description in this rank's folder. Faults are added to those so far.
        """
        if chosen.missing:
            faults.append(chosen.lack)
            return None
        known = self.comm.gather(mine if self.comm.rank == chosen.leaders[0] else None)
        head: Head = self.comm.bcast(None if known is None else known[chosen.leaders[0]])
        self._check(head, engine)
        while not chosen.missing:
            try:
                restore(self.path / chosen.slot, head, engine, state, self._places(), chosen.sources)
            except DamagedParts as error:
                faults.extend(error.faults)
                if not error.parts:
                    return None
                chosen = chosen.without(error.parts)
            else:
                return head
        return None

    def _places(self) -> Places:
        """Return the places of all ranks; collective for the first time."""
        if self._known is None:
            self._home = self.path.resolve()
            self._known = places_of(self.comm, self.path, own=self.own, switch=self.switch)
        return self._known

    def _written_places(self) -> Places:
        """Return the places in which checkpoints are written; collective for the first time."""
        places = self._places()
        if self.place == "gathered":
            return places.gathered()
        return places.alone() if self.place == "local" else places

    @property
    def identity(self) -> dict[str, str]:
        """Identity of the run, part by part, with the values that nothing changes."""
        return {**self._identity, **{f"values of {name!r}": digest for name, digest in (self._constants or {}).items()}}

    def wishes(self, elapsed: float) -> tuple[bool, bool]:
        """Return whether a checkpoint is due by the clock, and whether time is up if steps take `elapsed` seconds."""
        if self.comm.rank != 0:
            return False, False
        now, schedule = self.clock(), self.schedule
        by_clock = schedule.seconds is not None and now - self._last >= self._pause(schedule.seconds, now)
        due = not schedule.off and (self._thin or by_clock)
        reserve = _RESERVE + 2 * elapsed + 2 * self._cost
        up = schedule.time_limit is not None and now - self.began + reserve >= schedule.time_limit
        return due, up

    def _pause(self, wanted: float, now: float) -> float:
        """Return the seconds from one checkpoint to the next.

        Without losses, they are those `wanted`, or more if a checkpoint takes more than 2 % of them. With losses, the
        time for checkpoints and for repeated steps is least at sqrt(2 * seconds of a checkpoint * seconds between
        losses), which holds if it is shorter: J. W. Young, "A first order approximation to the optimum checkpoint
        interval", Communications of the ACM 17 (1974) 530.
        """
        cost = self._cost if self.written else 0.0
        usual = max(wanted, _SHARE * cost)
        if not self.losses:
            return usual
        return min(usual, math.sqrt(2 * self._cost * (now - self.began) / self.losses))

    def keeps(self, position: Position, ended: Ended | None) -> bool:
        """Return whether a checkpoint is written at a position: not at one that has it, nor at a complete end."""
        wanted = ended is None or ended.reason in UNFINISHED or self.schedule.at_end
        return wanted and not self.schedule.off and self._kept != position.step

    def keep(
        self, engine: Engine, position: Position, ended: Ended | None, observers: Mapping[str, Any] | None = None
    ) -> None:
        """Write a checkpoint, unless the run is complete and keeps none of its end; rank 0's `observers` count."""
        if not self.keeps(position, ended):
            return
        started = self.clock()
        counts = self._write(engine, position, observers or {})
        self._last = self.clock()
        self._cost = self._last - started
        self.seconds += self._cost
        if counts:
            self.written += 1
            self._thin = False
            self._kept = position.step

    @property
    def apart(self) -> bool:
        """True on all ranks if checkpoints may lie in several places."""
        return self._known is not None and len(self._known.leaders) > 1

    def discard(self) -> None:
        """Remove the checkpoints of a complete run in this rank's place; on the leaders of places."""
        if not self.schedule.at_end and (self._known is None or self.comm.rank in self._known.leaders):
            RunDirectory(self.path.parent).discard_checkpoints(self._home)

    def _write(self, engine: Engine, position: Position, observers: Mapping[str, Any]) -> bool:
        """Write a checkpoint; return whether it counts: not if a disk is full, and the one before stays."""
        assert self._state is not None, "resume comes before keep"
        state, folder = self._state, self.path / SLOTS[self._slot]
        if self._constants is None:
            self._constants = digests(engine, state.constant)
        places, rank = self._written_places(), self.comm.rank
        leads, several = rank in places.leaders, len(places.leaders) > 1
        self.check()
        refused = None
        if leads:
            try:
                begin(folder)
            except DiskFullError as error:
                refused = error
        unwritten = self.flush(position.step)
        refused = self._first(refused or unwritten)  # the folder may not exist before this point
        if refused is not None:
            self._say_no_room(position, refused)
            return False
        try:
            blocks = write_slots(folder, engine, state, places)
        except DiskFullError as error:  # on all ranks
            self._say_no_room(position, error)
            return False
        self._say_lost_copies(position, copy_parts(folder, self.comm, places))
        head = self._head(engine, position, blocks, observers, places) if rank == 0 else None
        if several:
            head = self.comm.bcast(head)
            if head is not None and leads and rank != 0:
                self.check()
                refused = _completed(folder, head, places.kept_at(rank))
            refused = self._first(refused)  # the description that rank 0 writes is the last one
            if refused is not None:
                self._say_no_room(position, refused)
                return False
        if head is not None and rank == 0:
            self.check()
            refused = _completed(folder, head, places.kept_at(0))
        refused = self.comm.bcast(refused)
        if refused is not None:
            self._say_no_room(position, refused)
            return False
        self._slot = 1 - self._slot
        return True

    def _first(self, error: DiskFullError | None) -> DiskFullError | None:
        """Return the error of the first rank that has one, on all ranks."""
        everyone = self.comm.bcast(self.comm.gather(error))
        return next((each for each in everyone if each is not None), None)

    def _say_no_room(self, position: Position, error: DiskFullError) -> None:
        """Say that a checkpoint could not be written: the run continues, with the one before."""
        if self.note is None or self.comm.rank != 0:
            return
        kept = "there is none yet" if self._kept is None else f"that of step {self._kept} stays"
        self.note(
            f"minga: the checkpoint of step {position.step} was not written, and {kept}: {error.message}; the run "
            "continues, and the next one is tried when it is due"
        )

    def _say_lost_copies(self, position: Position, faults: list[str]) -> None:
        """Say that copies of a checkpoint could not be stored: it counts without them."""
        if faults and self.note is not None and self.comm.rank == 0:
            more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
            self.note(
                f"minga: the checkpoint of step {position.step} has no second copy of all parts: {faults[0]}{more}; "
                "it is lost if the host with the first one is"
            )

    def _head(
        self, engine: Engine, position: Position, blocks: Any, observers: Mapping[str, Any], places: Places
    ) -> Head:
        assert self._state is not None
        return Head(
            step=position.step,
            seconds=position.seconds,
            sessions=(*self.sessions, self._session(engine, position)),
            registers=self._state.registers(engine),
            dtypes={name: slot.field.dtype for name, slot in self._state.changing.items()},
            blocks=blocks,
            constants=self._constants or {},
            identity=self._identity,
            case=self.case,
            observers=observers,
            version=_version(),
            epoch=self.epoch,
            mark=secrets.token_hex(8),
            hosts={block.file: places.keepers(block.file) for block in blocks},
        )

    def sessions_of(self, engine: Engine, position: Position) -> list[dict[str, Any]]:
        """Return the sessions in which the run was done up to a position, for JSON."""
        return [session.as_dict() for session in (*self.sessions, self._session(engine, position))]

    def _session(self, engine: Engine, position: Position) -> Session:
        """Return this process's part of the run."""
        return Session(
            first=self._start.step,
            last=position.step,
            ranks=self.comm.size,
            threads=engine.threads,
            seconds=position.seconds - self._start.seconds,
            checkpoints=self.seconds,
        )

    def _check(self, head: Head, engine: Engine) -> None:
        """Raise CaseError on all ranks if a checkpoint belongs to another run than this one."""
        assert self._state is not None
        changed = [f"the {part} of the model" for part in changed_parts(head.identity, self._identity)]
        changed = self.comm.bcast(changed_entries(head.case, self.case) or changed)
        if not changed:
            self._constants = self._constants or digests(engine, self._state.constant)
            slots = changed_parts(head.constants, self._constants)
            changed = [f"the values of {name.split('/')[0]!r}" for name in slots]
        if changed:
            raise CaseError(
                f"the checkpoint of step {head.step} in {self.path} is of another run; what differs:\n  "
                + "\n  ".join(changed),
                remedy="resume it as it was, or do what has changed as a run of its own",
            )

    def _say_faults(self, faults: list[str], comfort: str) -> None:
        if self.note is not None and self.comm.rank == 0:
            for fault in faults:
                self.note(f"minga: checkpoint {fault}; {comfort}")


def _completed(folder: Path, head: Head, kept: Collection[int]) -> DiskFullError | None:
    """Make a checkpoint count in a place; return the error if its disk is full."""
    try:
        complete(folder, head, kept)
    except DiskFullError as error:
        return error
    return None


def _version() -> str:
    try:
        return importlib.metadata.version("minga")
    except importlib.metadata.PackageNotFoundError:  # a copy of the sources that was not installed
        return "unknown"


def changed_parts(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the names of the parts that have changed; initial values count if both have them."""
    names = [name for name in dict.fromkeys((*before, *now)) if before.get(name) != now.get(name)]
    return [name for name in names if name != INITIAL or (name in before and name in now)]
