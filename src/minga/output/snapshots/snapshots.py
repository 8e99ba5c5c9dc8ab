"""Frames of a run, taken while the solver continues.

All ranks take a frame together: its values go from the blocks into the buffers of the ranks that write, and the solver
is free again. A thread of each writer compresses and writes chunks; the first writer makes complete frames visible. If
several ranks write, they tell each other which chunks are complete at the next frame, and at the end.
"""

from __future__ import annotations

import datetime
import threading
import time
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np

from minga.engine.comm import Comm
from minga.engine.copy_out import Pending
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.errors import CaseError, MingaError, RunError
from minga.options import OutputSettings
from minga.output.directory import disk_errors
from minga.output.snapshots.archive import Archive
from minga.output.snapshots.chunks import Chunk, chunks_of, writer_of
from minga.output.snapshots.codec import encoder
from minga.output.snapshots.counters import Counters
from minga.output.snapshots.files import Disk, Throttle, bytes_of
from minga.output.snapshots.manifest import FrameRecord, Receipt, receipt_of
from minga.output.snapshots.selection import selections_of
from minga.output.snapshots.staging import Staging, arrays_of
from minga.output.snapshots.writer import Job, WriterThread
from minga.output.variables import variables_of
from minga.space.field import Field

__all__ = ["Snapshots"]

_A_WRITER: Final = 64 << 20
"""Bytes of a frame for each rank that writes, if ranks that compute write as well."""
_LOOKED_AT_MEANWHILE: Final = 1 << 20
"""Bytes of a chunk from which its checksum is computed while it is written."""
_SHARE: Final = 50
"""Largest share of the writer's time for making frames visible: one in so many seconds."""
_GROUP_SECONDS: Final = 0.25
"""Seconds after which waiting frames become visible together."""
_LAST_WORDS: Final = 2.0
"""Seconds that the first writer waits for the others' records after an error: they may have none, or have ended."""
_MOMENT: Final = 0.02


class Snapshots:
    """Frames of one run; made and used alike by all ranks.

    Attributes
    ----------
    counters
        Cost of output on this rank.
    settings
        Settings of the frames.
    gone
        Whether the store that was to be resumed is missing.
    """

    def __init__(
        self,
        path: Path,
        model: Model,
        fields: Sequence[Field],
        settings: OutputSettings,
        comm: Comm,
        *,
        attributes: Mapping[str, Any] | None = None,
        resume: bool = False,
        cpus: Collection[int] | None = None,
        throttle: Throttle | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Make the store, or with ``resume`` open the existing one; collective.

        Parameters
        ----------
        path
            The store, ``fields.zarr``, which every rank that writes can reach.
        model, fields
            The model and those of its fields that are kept.
        settings
            Settings of the frames.
        comm
            Communicator of the run.
        attributes
            Attributes of the whole store.
        resume
            Whether to resume a store that a run has left. :meth:`truncate` gives the step after which it is resumed;
            without it, that is the step before the first frame that is taken.
        cpus
            The logical processors that the writer thread may use; by default those of this thread.
        throttle
            Called in the writer thread with the bytes it is about to write: for experiments with slow disks.
        check
            Called before frames become visible, on the rank that makes them so; it raises an error if they must not.

        Raises
        ------
        CaseError
            On every rank for invalid settings.
        RunError
            If the disk refuses.
        """
        self.settings, self.counters, self._comm = settings, Counters(), comm
        self._check = check
        self._kept = selections_of(fields, settings, model.presentation)
        variables = variables_of(fields, f"model {model.name!r}", model.presentation)
        assert len(variables) == len(self._kept)
        self._chunks = [chunks_of(kept.variable, settings.chunk_bytes) for kept in self._kept]
        self._encoders = {kept.field.name: encoder(settings, np.dtype(kept.field.dtype)) for kept in self._kept}
        every = [chunk for several in self._chunks for chunk in several]
        self.frame_bytes = sum(chunk.nbytes for chunk in every)
        owners = writer_of(len(every), _writers(settings, comm, self.frame_bytes, len(every)))
        ends = np.cumsum([len(several) for several in self._chunks])[:-1]
        self._writers: list[int] = sorted(set(owners.tolist()))
        self._staging = Staging(model, self._kept, self._chunks, np.split(owners, ends))
        self._mine = self._staging.mine(comm.rank)
        self._disk = Disk(
            self.counters,
            durable=settings.lasting(self.frame_bytes),
            direct=settings.past_the_cache(self.frame_bytes),
            throttle=throttle,
        )
        self._lock = threading.Lock()
        self._receipts: dict[int, tuple[int, list[Receipt]]] = {}
        self._clock, self._times = model.clock, dict[int, float]()
        self._published_at = self._publishing = 0.0
        self._last: int | None = None
        self.path, self._count = path, 0
        self._archive = Archive(path, self._chunks, settings, self._disk, self._clock)
        self.gone = False
        self._begin(attributes or {}, resume)
        self._later = resume
        self._thread: WriterThread | None = None
        self._helper: ThreadPoolExecutor | None = None
        self._cpus = cpus

    @property
    def publisher(self) -> int:
        """Rank that makes frames visible."""
        return self._writers[0]

    @property
    def frames(self) -> int:
        """Number of frames so far, including those of the resumed run."""
        return self._count

    @property
    def written(self) -> dict[str, Any]:
        """Counters of the output so far, for the ledger."""
        return self.counters.as_dict()

    def take(self, step: int, engine: Engine) -> None:
        """Keep the present state, after ``step`` steps; collective. The solver may continue when it returns.

        A step that was kept last is not kept twice.

        Raises
        ------
        RunError
            On every rank if a writer has failed since, or the queue is full and the policy is "raise".
        """
        if self._later:
            self.truncate(step - 1)
        if step == self._last:
            return
        thread = self._started(engine)
        failed, full = self._agreed(thread.error is not None, thread.full)
        if failed:
            self._raise()
        if full and self.settings.policy != "block":
            if self.settings.policy == "raise":
                raise RunError(
                    f"the queue of frames is full at step {step}: writing takes longer than computing",
                    remedy='write fewer frames, more buffers, or policy = "block" or "drop" in [output]',
                )
            self.counters.dropped += 1
            return
        buffer = thread.acquire() if self._mine else None
        with self.counters.time("stall"):
            self._staging.settle()
        with self.counters.time("stage"):
            arrays = [] if buffer is None else arrays_of(self._mine, buffer)
            pending = self._staging.fill(engine, arrays)
        if self._clock is not None and self._comm.rank == self.publisher:
            self._times[self._count] = self._clock.read(step, engine)
        if buffer is not None:
            thread.submit(Job(self._count, step, buffer, _awaiting(pending)))
        self._count, self._last = self._count + 1, step
        self.counters.frames += 1
        self._exchange()

    def drain(self, *, lasting: bool = False) -> None:
        """Return when all frames so far are written and visible; collective.

        With ``lasting`` they also survive a power failure, whatever the settings say.

        Raises
        ------
        RunError
            If a frame failed.
        """
        self._gather_written()
        if self._agreed(self._failed)[0]:
            self._raise()
        if lasting:
            with disk_errors(self.path):
                for disk in (self._disk, self._archive.disk):
                    disk.catch_up()

    def close(self) -> None:
        """Drain, and release the resources of frames; collective.

        Raises
        ------
        RunError
            If a frame failed.
        """
        try:
            self.drain()
        except BaseException:
            self.abandon()
            raise
        self._release()

    def abandon(self) -> None:
        """Write the frames so far, and release everything; for one rank alone, after an error."""
        if self._release() and len(self._writers) > 1 and self._comm.rank in self._writers:
            self._part()

    def _release(self) -> bool:
        """Write the frames so far, and release everything; return whether there was something."""
        if self._thread is None:
            return False
        self._thread.submit(Job(-1, -1, None, self._publish))
        self._thread.close()
        self._thread = None
        if self._helper is not None:
            self._helper.shutdown()
            self._helper = None
        self._staging.close()
        return True

    def _part(self) -> None:
        """Tell the publishing rank which chunks were written and not reported yet: in files, as ranks may be gone."""
        if self._comm.rank != self.publisher:
            told = [FrameRecord(index, step, "", tuple(several)) for index, (step, several) in self._receipts.items()]
            self._archive.leave_word(self._comm.rank, told)
            return
        missing, end = set(self._writers) - {self.publisher}, time.monotonic() + _LAST_WORDS
        while self._receipts and missing and time.monotonic() < end:
            time.sleep(_MOMENT)
            for rank, parts in self._archive.last_words().items():
                missing.discard(rank)
                for part in parts:
                    self._receipts.setdefault(part.index, (part.step, []))[1].extend(part.chunks)
        self._publish()

    def truncate(self, step: int) -> tuple[int, ...]:
        """Remove the frames after ``step`` steps; collective, with all frames drained.

        Returns
        -------
        damaged
            Numbers of the frames with missing or damaged parts: they read as NaN, or 0.
        """
        self._later = False
        damaged: tuple[int, ...] = ()
        failure: MingaError | None = None
        if self._comm.rank == self.publisher:
            try:
                damaged = self._archive.truncate(step)
            except MingaError as error:
                failure = error
            self._count = len(self._archive.frames)
            self._last = self._archive.frames[-1].step if self._count else None
        damaged, self._count, self._last, failure = self._from_publisher((damaged, self._count, self._last, failure))
        if failure is not None:
            raise failure
        return damaged

    # In the thread -------------------------------------------------------------------------------------------------
    def _write(self, job: Job) -> None:
        """Write this rank's chunks of a frame."""
        assert job.buffer is not None
        receipts = []
        at = 0
        for chunk, values in zip(self._mine, arrays_of(self._mine, job.buffer), strict=True):
            raw = job.buffer[at : at + chunk.padded]
            at += chunk.padded
            receipts.append(self._write_chunk(chunk, job.index, values, raw))
        with disk_errors(self.path):
            self._disk.settle()
        with self._lock:  # the part of other writers may be there already
            self._receipts.setdefault(job.index, (job.step, []))[1].extend(receipts)

    def _write_chunk(self, chunk: Chunk, frame: int, values: np.ndarray, raw: np.ndarray) -> Receipt:
        encode, path = self._encoders[chunk.variable.name], self._archive.chunk_path(chunk, frame)
        with self.counters.time("encode"):
            held = values[: chunk.box.shape[0]]
            values[chunk.box.shape[0] :] = np.nan if values.dtype.kind == "f" else 0
            content: bytes | np.ndarray = raw if encode is None else encode(values)
            size = chunk.nbytes if encode is None else len(content)
        about = (chunk.variable.name, chunk.number, held, bytes_of(content)[:size])
        # Checksums of large chunks are computed while the disk is busy with them.
        later = self._beside().submit(receipt_of, *about) if size >= _LOOKED_AT_MEANWHILE else None
        try:
            with disk_errors(self.path):
                self._disk.write(path, content, size)
        finally:
            with self.counters.time("encode"):
                receipt = receipt_of(*about) if later is None else later.result()
        self.counters.bytes += size
        self.counters.raw_bytes += chunk.nbytes
        return receipt

    def _beside(self) -> ThreadPoolExecutor:
        """Return a thread beside the writer's, on the same processors, as the writer makes it."""
        if self._helper is None:
            self._helper = ThreadPoolExecutor(1, "minga checksums")
        return self._helper

    def _rest(self, idle: bool) -> bool:
        """Make a frame visible, if no other rank writes; return whether that is still to be done."""
        if len(self._writers) > 1 or self._comm.rank != self.publisher:
            return False
        since = time.monotonic() - self._published_at
        if since > max(0.0 if idle else _GROUP_SECONDS, _SHARE * self._publishing):
            self._publish()
            return False
        return True

    def _publish(self) -> None:
        """Make complete frames visible, on the publishing rank."""
        if self._comm.rank != self.publisher:
            return
        frames, began = self._complete(), time.monotonic()
        if frames:
            self._check()
            with self.counters.time("publish"):
                self._archive.publish(frames)
            self._published_at = time.monotonic()
            self._publishing = self._published_at - began

    def _complete(self) -> list[FrameRecord]:
        """Return the complete frames that follow the visible ones."""
        wanted, frames = sum(len(several) for several in self._chunks), []
        with self._lock:
            index = len(self._archive.frames)
            while index in self._receipts and len(self._receipts[index][1]) == wanted:
                step, receipts = self._receipts.pop(index)
                order = {name: place for place, name in enumerate(self._encoders)}
                receipts.sort(key=lambda receipt: (order[receipt.variable], receipt.number))
                now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
                frames.append(FrameRecord(index, step, now, tuple(receipts), self._times.pop(index, None)))
                index += 1
        return frames

    # Between ranks -------------------------------------------------------------------------------------------------
    def _begin(self, attributes: Mapping[str, Any], resume: bool) -> None:
        """Make or open the store on the publishing rank; errors are raised on all ranks."""
        failure: MingaError | None = None
        quick = Disk(self.counters, durable=self._disk.durable)
        about = (self.path, self._chunks, self.settings, quick, attributes, self._clock)
        if self._comm.rank == self.publisher:
            try:
                self.gone = resume and not (self.path / "zarr.json").exists()
                if resume and not self.gone:
                    self._archive = Archive.open(*about)
                else:
                    self._archive = Archive.create(*about)
            except MingaError as error:
                failure = error
        failure, self.gone = self._from_publisher((failure, self.gone))
        if failure is not None:
            raise failure
        blind = self._comm.rank in self._writers and not (self.path / "zarr.json").exists()
        if self._agreed(blind)[0]:
            raise CaseError(
                f"not every rank that writes can reach {self.path}",
                key="output.writers",
                remedy="name a directory that all machines share, with --out, or leave output.writers out",
            )

    def _exchange(self) -> None:
        """Tell the publishing rank which chunks the other writers have written."""
        if len(self._writers) == 1:
            return
        with self._lock:
            mine = self._receipts if self._comm.rank != self.publisher else {}
            told = dict(mine)
            if mine:
                self._receipts = {}
        everyone = self._from_rank_0(self._comm.gather(told))
        if self._comm.rank == self.publisher:
            with self._lock:
                for receipts in everyone:
                    for index, (step, several) in receipts.items():
                        self._receipts.setdefault(index, (step, []))[1].extend(several)
            if self._thread is not None:
                self._thread.submit(Job(-1, -1, None, self._publish))

    def _gather_written(self) -> None:
        """Write all frames that were taken, and make complete ones visible; collective."""
        if self._thread is not None:
            self._staging.settle()
            self._thread.drain()
        self._exchange()
        if self._thread is not None:
            self._thread.submit(Job(-1, -1, None, self._publish))
            self._thread.drain()

    def _agreed(self, *wishes: bool) -> list[bool]:
        """Return for each wish whether any rank has it."""
        buffer = np.array(wishes, np.int64)
        self._comm.allreduce(buffer, "max")
        return [bool(word) for word in buffer]

    @property
    def _failed(self) -> bool:
        return self._thread is not None and self._thread.error is not None

    def _raise(self) -> None:
        """Raise the error of the first rank whose writer failed, on every rank."""
        error = self._thread.error if self._thread is not None else None
        errors = self._from_rank_0(self._comm.gather(_as_run_error(error)))
        raise next(found for found in errors if found is not None)

    def _from_publisher(self, value: Any) -> Any:
        """Return the publishing rank's value, on every rank."""
        if self._comm.size == 1:
            return value
        values = self._comm.gather(value)
        return self._comm.bcast(None if values is None else values[self.publisher])

    def _from_rank_0(self, values: Any) -> Any:
        return values if self._comm.size == 1 else self._comm.bcast(values)

    def _started(self, engine: Engine) -> WriterThread:
        """Return the thread that writes, which is made at the first frame."""
        if self._thread is None:
            total = sum(chunk.padded for chunk in self._mine)
            receiving = self._comm.size > 1 and bool(self._mine)
            depth = max(1, self.settings.buffers - 1) if receiving else self.settings.buffers
            self._thread = WriterThread(
                self._write, self._rest, self.counters, depth, total, allocate=engine.buffer, cpus=self._cpus
            )
        return self._thread


def _writers(settings: OutputSettings, comm: Comm, frame_bytes: int, chunks: int) -> list[int]:
    """Return the ranks that write: the last ones if some are reserved for it, else the first of rank 0's machine."""
    if settings.writers:
        if settings.writers >= comm.size:
            raise CaseError(
                f"{settings.writers} of {comm.size} ranks would only write, and none would compute",
                key="output.writers",
                remedy="start more ranks, or leave output.writers out: then ranks that compute write as well",
            )
        return list(range(comm.size - settings.writers, comm.size))
    nodes = comm.bcast(comm.gather(comm.node)) if comm.size > 1 else [comm.node]
    near = [rank for rank, node in enumerate(nodes) if node == nodes[0]]
    return near[: max(1, min(chunks, frame_bytes // _A_WRITER))]


def _awaiting(pending: Sequence[Pending]) -> Any:
    def ready() -> None:
        for copy in pending:
            copy.wait()

    return ready


def _as_run_error(error: BaseException | None) -> MingaError | None:
    """Return an error in a form that ranks can send to each other."""
    if error is None or isinstance(error, MingaError):
        return error
    *_, last = traceback.extract_tb(error.__traceback__)
    return RunError(
        f"a frame could not be written because of an unexpected error: {type(error).__name__}: {error}",
        where=f"{Path(last.filename).name}:{last.lineno} in {last.name}",
        remedy="the frames before it are kept; please report this with the case and the line above",
    )
