"""The engine: fields in memory, Programs bound to this rank's blocks, input and output of values."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from minga.compile.together import compile_together
from minga.engine import command as cmd
from minga.engine.access import Access
from minga.engine.active import ActiveTiles, Touched, on_all_cells, touched
from minga.engine.backend import Backend, Host, Kernels
from minga.engine.bind import LIMIT, NOT_FINITE, Binder, Binding
from minga.engine.comm import Comm, SerialComm, complaining
from minga.engine.copy_out import Pending, check_target, copy_on_host, page_aligned
from minga.engine.device import Device, open_device
from minga.engine.draws import drawing, repeated_draw
from minga.engine.events import EventLog, Timeline
from minga.engine.helpers import helper_addresses
from minga.engine.infer import infer
from minga.engine.interpret import INTERRUPTED, LEFT, interpret, new_ledger
from minga.engine.interrupt import InterruptPoll
from minga.engine.levels import check_levels
from minga.engine.masks import settle_masks
from minga.engine.native import POLL_NANOSECONDS, NativeLoop, unsupported
from minga.engine.needed import kernels_of
from minga.engine.options import check_counts, checked_layouts, checked_routes, poll_nanoseconds
from minga.engine.outcome import Ledger as Ledger
from minga.engine.outcome import Outcome as Outcome
from minga.engine.panels import BoundMove
from minga.engine.pin import available_cores
from minga.engine.program import REASONS, Apply, Call, Operation, Program, Repeat
from minga.engine.reach import Reach, closed_axes
from minga.engine.relayout import PIECE_BYTES, Moved, move_fields
from minga.engine.routes import Broadcasting, Router
from minga.engine.scatter import scattered
from minga.engine.schedule import Boundaries, Schedule, Valid
from minga.engine.steady import SteadyGhosts, covers_all, is_steady, require_ghosts
from minga.engine.storage import Storage
from minga.engine.switches import is_off
from minga.engine.time_blocks import rounds_of_blocks
from minga.engine.traffic import Traffic, count_sent
from minga.engine.tuner import timed
from minga.engine.values import FieldValue as FieldValue
from minga.engine.values import continue_beyond, gathered, set_values
from minga.engine.workers import Workers
from minga.errors import ProgramError
from minga.lang.types import is_float
from minga.space.box import Box
from minga.space.field import SEED, STEP, Field, Register, Slot
from minga.space.grid import Grid
from minga.space.layout import Layout

if TYPE_CHECKING:
    from minga.engine.device_fields import DeviceFields

TIMES = Register("@times", "i8")
"""Number of times that `Engine.run` repeats a Program."""
_PATIENCE = 20.0
"""Seconds after which a rank reports that it waits for others to bind a Program."""


@dataclass(slots=True)
class _Prepared:
    """A Program ready to run, with the validity of halos after it."""

    binding: Binding
    valid: Valid
    native: NativeLoop | None
    touched: Touched
    first_event: int
    draws: Apply | None
    """The first operation that draws random numbers."""
    filled: int = -1
    """Number of times that ghost cells of constant values were given up when those that it needs were filled."""

    def close(self) -> None:
        """Release its messages; collective."""
        if self.native is not None:
            self.native.close()
        for channel in self.binding.channels:
            channel.close()


class Engine:
    """Runs Programs over a layout.

    Parameters
    ----------
    layouts
        One layout, or one for each grid of the model.
    grid
        The grid of the layout, if that is one layout.
    comm
        The ranks that share the work; by default this process alone.
    threads
        Threads of this rank.
    halo_depth
        Steps of a loop between two exchanges; more than 1 computes some cells twice to save messages, and all tiles
        where a Program asks for active ones.
    overlap
        Whether the shell of a block is sent while its interior is computed.
    native
        Whether bound Programs run in native code where possible; otherwise Python interprets the same commands.
    tune
        Whether loops that run for seconds try which of several ways to execute them is fastest; all have the same bits.
        ``MINGA_TUNE=off`` disables it.
    cpus
        Logical processors of the threads, one for each; by default they are not pinned.
    trace
        The number of recent commands that are kept with their times; see `events`.
    poll
        The time between two polls of messages in flight during computation, so that they make progress: "auto",
        seconds, or "off".
    device
        "cpu", "gpu" (one for each rank of a machine), or "gpu-shared" (ranks may share one).
    route
        The route by which data for all other ranks travel, see `minga.engine.routes`.
    group
        The broadcast group of all ranks for the route "group", or a function that creates one from the communicator.
    """

    def __init__(
        self,
        layouts: Layout | Mapping[Grid, Layout],
        *,
        grid: Grid | None = None,
        comm: Comm | None = None,
        threads: int = 1,
        halo_depth: int = 1,
        overlap: bool = True,
        native: bool = True,
        tune: bool = True,
        cpus: Sequence[int] | None = None,
        trace: int = 0,
        poll: Literal["auto", "off"] | float = "auto",
        device: Literal["cpu", "gpu", "gpu-shared"] | Device = "cpu",
        route: str | Router = "auto",
        group: Broadcasting | Callable[[Comm], Broadcasting] | None = None,
    ) -> None:
        self.comm: Comm = comm or SerialComm()
        check_counts(threads, halo_depth)
        self.threads, self.halo_depth, self.overlap = threads, halo_depth, overlap
        self._poll = poll_nanoseconds(poll)
        self.workers = Workers(threads, cpus=cpus)
        self.native = native and unsupported(self.comm, self.workers) is None
        self._one_node: bool | None = None
        self.tune = tune and not is_off("MINGA_TUNE")
        self.storage = Storage(checked_layouts(layouts, grid, self.comm), self.comm.rank)
        self.device = open_device(device, self.comm) if isinstance(device, str) else device
        self._on_device: DeviceFields | None = None
        if self.device is not None:
            from minga.engine.device_fields import DeviceFields

            self.storage.room, self.storage.settle = self.device.shared, self.device.synchronise
            self._on_device = DeviceFields(self.device, self.storage)
            self.storage.carry = self._on_device.carry
        self.routes = checked_routes(route, group, self.device)
        self.booked = new_ledger()
        self._active = ActiveTiles(threads)
        self._sent: dict[int, Traffic] = {}
        self._events = EventLog(trace, self.workers, native=self.native) if trace else None
        self.stop = np.zeros(1, np.int64)
        self.interrupt = InterruptPoll(self.comm)
        self._kernels: Kernels = {}
        self._programs: dict[str, Program] = {}
        self._prepared: dict[tuple[object, ...], _Prepared] = {}
        self._valid: Valid = {}
        self._tag = 0
        self._generation = 0
        self._steady: SteadyGhosts = {}
        self._given_up = 0
        """Number of times that filled ghost cells of constant values were given up."""
        self._access = Access()
        self._clocks: Grid | None = None
        self._changed: dict[str, None] = {}
        self._drawn: dict[Program, tuple[object, object]] = {}
        self._warned: set[Program] = set()
        self.binding_seconds = 0.0
        """Seconds that this rank spent on binding Programs, including compiling their kernels."""

    # Values --------------------------------------------------------------------------------------------------------
    def set(self, item: Field | Slot, value: FieldValue) -> None:
        """Set the values of a field. Collective.

        All ranks call it together, for the same fields: halos are stale afterwards, and ranks that disagree on which
        halos are stale would wait for each other. Each rank stores the cells that it owns.

        Parameters
        ----------
        item
            A field, meaning its present values, or a slot.
        value
            A number, an array of the field's global shape, a function of the coordinates of all axes in their order
            (`lambda y, x: ...`, with arrays that broadcast), or a function of a box that returns that box's values.

        Raises
        ------
        LayoutError
            If the values do not fit the field's shape or type, or the function fails.
        ProgramError
            If a function that a Program calls sets a field that it does not name in `writes`.
        """
        slot = item if isinstance(item, Slot) else item.now
        self._changes(slot, "set({})")
        if self._on_device is not None:
            self._on_device.check_room({slot: Reach.none(slot.field.grid.ndim)})
        set_values(self.storage, slot, value)

    def write(self, register: Register, value: bool | int | float) -> None:
        """Set the value of a register, the same on every rank.

        Parameters
        ----------
        register
            The register.
        value
            Its value; a whole number for registers of integers.

        Raises
        ------
        ProgramError
            If the value does not fit the type of the register.
        """
        _put(register, self.storage.of(register), value)
        self._active.forget((register,))

    def write_all(self, registers: tuple[Register, ...], values: Sequence[bool | int | float] | np.ndarray) -> None:
        """Set the values of many registers, such as those of receivers; for the same tuple again and again.

        Parameters
        ----------
        registers
            The registers: a tuple that exists as long as the engine.
        values
            Their values, as for `write`.

        Raises
        ------
        ProgramError
            If a value does not fit the type of its register.
        """
        self._active.forget(registers)  # first: values before one that is refused are stored
        memories = self.storage.of_all(registers)
        if isinstance(memories, np.ndarray):
            memories[...] = np.asarray(values, np.float64).reshape(memories.shape)
        else:
            for register, memory, value in zip(registers, memories, values, strict=True):
                _put(register, memory, value)

    def reset_registers(self) -> None:
        """Reset all registers to their declared initial values."""
        self._access.between_runs("resets all registers", "write those that are meant: engine.write(register, value)")
        self.storage.reset_registers()
        self._drawn.clear()
        self._active.forget()

    def read(self, register: Register) -> Any:
        """Return the value of a register.

        Parameters
        ----------
        register
            The register.

        Returns
        -------
        bool, int or float
            The value as a Python number.
        """
        return self.storage.of(register)[0].item()

    def blocks(self, item: Field | Slot, *, write: bool = False) -> list[tuple[Box, np.ndarray]]:
        """Return this rank's owned boxes of a field with views of their values.

        In a function that a Program calls, views of the slots that it names in `writes` are writable until it ends. All
        others are read-only; between runs `write=True`, on all ranks, gives views that are writable until the next
        Program is prepared or run. Request new views after that: a Program that reads farther moves the arrays.

        Parameters
        ----------
        item
            A field, meaning its present values, or a slot.
        write
            Whether the views are writable.

        Returns
        -------
        list of (Box, ndarray)
            Boxes in global indices and views of their values.
        """
        slot = item if isinstance(item, Slot) else item.now
        call = self._access.call
        if call is not None and not write:
            self._access.check_read(slot)
        elif write:
            self._changes(slot, "blocks({}, write=True)")
        return self._access.lend(slot, self.storage.pieces(slot), write or (call is not None and slot in call.writes))

    def touch(self, item: Field | Slot) -> None:
        """Declare, on all ranks, that a field was changed other than by `set` and `blocks`, so that its halo is stale.

        Parameters
        ----------
        item
            A field, meaning its present values, or a slot.
        """
        slot = item if isinstance(item, Slot) else item.now
        self._changes(slot, "touch({})")
        if slot.field.replicated:
            continue_beyond(self.storage.stored(slot.field).blocks[0], slot)

    def _changes(self, slot: Slot, how: str) -> None:
        """Record that Python changes a slot, now or soon, by the function that ``how`` names."""
        self._access.check_write(slot)
        if self._access.call is None:
            self._changed[how.format(repr(slot))] = None
        self._valid.pop(slot, None)
        self._active.forget()

    def gather(self, item: Field | Slot) -> np.ndarray | None:
        """Return a whole field on rank 0. Collective.

        Parameters
        ----------
        item
            A field, meaning its present values, or a slot.

        Returns
        -------
        ndarray or None
            The values on rank 0, None on the others.
        """
        slot = item if isinstance(item, Slot) else item.now
        self._access.check_read(slot)
        self.storage.check_known(slot.field)
        return gathered(self.storage, self.comm, slot)

    def scatter(self, item: Field | Slot, value: np.ndarray | None) -> None:
        """Set a whole field from an array on rank 0, the reverse of `gather`. Collective.

        Parameters
        ----------
        item
            A field, meaning its present values, or a slot.
        value
            On rank 0 an array of the field's global shape, of which each rank gets its cells; not read on the others.

        Raises
        ------
        LayoutError
            If the values do not fit the field's shape or type; on the other ranks that is a RunError.
        ProgramError
            If a function that a Program calls sets a field that it does not name in `writes`.
        """
        slot = item if isinstance(item, Slot) else item.now
        self.storage.check_known(slot.field)
        self.set(slot, scattered(self.storage, self.comm, slot, value))

    def copy_out(self, item: Field | Slot, box: Box, target: np.ndarray) -> Pending:
        """Start copying this rank's cells of a box into `target`; `.wait()` returns when the copy is complete.

        `target` is contiguous, with the box's shape and the field's dtype; cells owned by other ranks keep their
        values. Programs may run meanwhile. On a CPU the copy is complete at once; on a GPU it runs concurrently with
        computing if `target` is an array of `buffer`. Raise LayoutError for an array that does not fit.

        Parameters
        ----------
        item
            A field, meaning its present values, or a slot.
        box
            A box whose cells this rank owns at least in part.
        target
            A contiguous array of the box's shape and the field's dtype.

        Returns
        -------
        Pending
            The copy in progress.
        """
        slot = item if isinstance(item, Slot) else item.now
        self._access.check_read(slot)
        self.storage.check_known(slot.field)
        check_target(slot, box, target)
        if self._on_device is not None:
            return self._on_device.copy_out(slot, box, target)
        return copy_on_host(self.storage, slot, box, target)

    def buffer(self, size: int) -> np.ndarray:
        """Return memory for `copy_out`: page-aligned, and pinned if a GPU copies to it.

        Parameters
        ----------
        size
            The number of bytes.

        Returns
        -------
        ndarray
            Bytes (u1).
        """
        return self.device.pinned(size) if self.device is not None else page_aligned(size)

    @property
    def ledger(self) -> Ledger:
        """Breakdown of this rank's time."""
        seconds = {c.name.lower(): float(self.booked[0, c]) * 1e-9 for c in cmd.Category}
        seconds["compute"] += sum(self.block_seconds.values())
        traffic = self.traffic
        return Ledger(
            seconds, sum(t.messages for t in traffic.values()), sum(t.bytes for t in traffic.values()), traffic
        )

    @property
    def busy(self) -> float:
        """Seconds that this rank has worked, rather than waited, since the engine was created.

        They count kernels, boundaries, packing and the model's own Python functions.
        """
        worked = cmd.Category.COMPUTE, cmd.Category.BOUNDARY, cmd.Category.PACK, cmd.Category.CALL
        return float(self.booked[0, worked].sum()) * 1e-9 + sum(self.block_seconds.values())

    @property
    def spent(self) -> float:
        """Seconds that this rank has worked or waited since the engine was created."""
        return float(self.booked[0, : len(cmd.Category)].sum()) * 1e-9 + sum(self.block_seconds.values())

    @property
    def block_seconds(self) -> dict[int, float]:
        """Seconds of kernels on each block of this rank, by its number, since `time_blocks` or the last `relayout`."""
        if self._clocks is None:
            return {}
        blocks = self.storage.layout(self._clocks).blocks_of(self.comm.rank)
        return dict(zip(blocks, (self.booked[0, len(cmd.Category) :] * 1e-9).tolist(), strict=True))

    @property
    def skipped(self) -> tuple[int, int]:
        """Cell updates that this rank has skipped since the engine was created, and those of all examined tiles.

        Updates are skipped in tiles that cannot change.
        """
        return self._active.cells

    @property
    def traffic(self) -> dict[int, Traffic]:
        """Messages and bytes sent to each other rank since the engine was created, counted when messages start."""
        open_channels = (channel for prepared in self._prepared.values() for channel in prepared.binding.channels)
        return count_sent(open_channels, self._sent)

    @property
    def events(self) -> Timeline | None:
        """Recent commands of this rank with their times, limited by `trace`; None without it."""
        return None if self._events is None else self._events.timeline()

    # Running -------------------------------------------------------------------------------------------------------
    def run(self, program: Program, times: int = 1) -> Outcome:
        """Run a Program, or several times in a row in one loop without Python in between.

        Parameters
        ----------
        program
            The Program.
        times
            The number of times.

        Returns
        -------
        Outcome
            The end of the run.
        """
        if times < 0:
            raise ProgramError(f"run {times} times", remedy="give 0 or more")
        prepared = self.prepare(program, looped=times != 1)  # raises an error in a call, whose own loop counts by TIMES
        if prepared.draws is not None:
            self._draws_again(program, prepared.draws)
        self.write(TIMES, times)
        self.workers.reserve(prepared.binding.scratch_bytes)
        self._valid = {}
        self._changed.clear()
        self._active.enter(prepared.touched)
        ended = False
        try:
            if self._on_device is not None:
                self._on_device.send_back()
            if prepared.filled != self._given_up:
                self._fill_steady(prepared.binding.steady)
                prepared.filled = self._given_up
            with timed(prepared.binding.tuners):
                code = self._do(prepared)
            ended = code not in (INTERRUPTED, LEFT, NOT_FINITE)
        finally:
            if self.device is not None:
                self.device.synchronise()
            for item in prepared.binding.spoiled:
                self._given_up += self._steady.pop(item, None) is not None
            if not ended:
                self._active.forget()  # in the middle of a step it is unknown which tiles changed
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        if code == LEFT:
            return Outcome(False, "stop")
        if code == NOT_FINITE:
            place = prepared.binding.places[int(prepared.binding.place[0])]
            return Outcome(False, "not finite", place)
        self._valid = dict(prepared.valid)
        if prepared.binding.reason[0] == LIMIT:
            return Outcome(False, "limit")
        return Outcome(True, "converged" if prepared.binding.converges else REASONS[0])

    def _give_up_steady(self) -> None:
        """Record that no ghost cells of constant values are filled."""
        self._steady.clear()
        self._given_up += 1

    def _fill_steady(self, required: SteadyGhosts) -> None:
        """Fill ghost cells of constant values in all slots of their fields, unless they are."""
        if covers_all(self._steady, required):
            return
        binder = self._binder()
        for item, wanted in required.items():
            for ghosts in wanted:
                for index in range(item.slots):
                    binder.ghosts(Boundaries(Slot(item, index), ghosts), is_steady)
                require_ghosts(self._steady, item, ghosts)
        self.workers.reserve(binder.backend.scratch)
        commands = [*(make() for make in binder.pending), *binder.backend.settled(), cmd.End(0)]
        interpret(commands, self.comm, self.workers, self.booked, device=self.device)

    def _binder(self) -> Binder:
        return Binder(
            self.storage, self.comm, self._backend(), self._python, self._next_tag, self._active,
            polled=self._poll is not None, clocks=self._clocks, routes=self.routes,
            seconds=self._computing if self._tunes else None,
        )  # fmt: skip

    @property
    def tuned(self) -> bool:
        """True if nothing is left to try in the loops that this rank has bound."""
        return all(tuner.tuned for prepared in self._prepared.values() for tuner in prepared.binding.tuners)

    @property
    def _tunes(self) -> bool:
        return self.tune and self.native and self.device is None

    def _computing(self) -> float:
        """Return the seconds that kernels of this rank have taken."""
        columns = self.booked[0, cmd.KERNELS].sum()
        return 1e-9 * float(columns + self.booked[0, len(cmd.Category) :].sum())

    def _draws_again(self, program: Program, apply: Apply) -> None:
        """Warn if a Program is run again at the same mg.STEP, so that it draws the same random numbers."""
        present = self.read(STEP), self.read(SEED)
        if self._drawn.get(program) == present:
            self._warn(
                program,
                f"{apply.label!r} draws random numbers, and mg.STEP is what it was in the run before, so that both "
                "draw the same",
                "change it in between, program.let(mg.STEP, mg.STEP + 1) or engine.write(mg.STEP, ...)",
            )
        self._drawn[program] = present

    def _warn(self, program: Program, text: str, remedy: str) -> None:
        """Warn about a Program, once and on rank 0 only."""
        if program not in self._warned and self.comm.rank == 0:
            warnings.warn(f"Program {program.name!r}: {text}; {remedy}", RuntimeWarning, stacklevel=4)
        self._warned.add(program)

    def _do(self, prepared: _Prepared) -> int:
        """Execute all commands; return the reason why they ended."""
        if prepared.native is not None:
            return prepared.native.run()
        return interpret(
            prepared.binding.commands,
            self.comm,
            self.workers,
            self.booked,
            self.stop,
            self._events,
            prepared.first_event,
            self.device,
            self.interrupt,
        )

    def prepare(self, program: Program, *, looped: bool = True) -> _Prepared:
        """Compile and bind a Program ahead of its run. Collective.

        Parameters
        ----------
        program
            The Program.
        looped
            Whether it will run a number of times other than once.

        Returns
        -------
        object
            The bound Program, which `run` uses.
        """
        self._access.between_runs(
            f"runs Program {program.name!r}",
            "record its operations in the Program that calls, or run it when that one is over",
        )
        self._take_back()
        if program.hidden and self._programs.setdefault(program.name, program) is not program:
            raise ProgramError(
                f"two Programs are called {program.name!r}, so the results of one would overwrite those of the other",
                remedy='give each a name of its own: mg.Program("step")',
            )
        operations: list[Operation] = program.operations
        if looped:
            check_levels(operations)
            operations = [Repeat(program.operations, TIMES, None)]
        prepared = self._known(program, looped)
        if prepared is None:
            if (again := repeated_draw(program.operations, looped=looped)) is not None:
                self._warn(program, again.text, again.remedy)
            self._agree(program)
            prepared = self._prepare(program, operations, looped)
        return prepared

    def _key(self, program: Program, looped: bool) -> tuple[object, ...]:
        return program, len(program.operations), looped, frozenset(self._valid.items()), self._generation

    def _known(self, program: Program, looped: bool) -> _Prepared | None:
        """Return the Program as bound before for fields with the same validity of halos as now, or None."""
        return self._prepared.get(self._key(program, looped))

    def _agree(self, program: Program) -> None:
        """Check that all ranks bind the same Program, with halos that are stale in the same fields.

        Ranks that differ would wait for messages that never arrive. A rank that waits here because it alone has changed
        a field cannot distinguish this from slow ranks, so it reports after some time what it waits for.
        """
        if self.comm.size == 1:
            return
        changes = ", ".join(self._changed) or "nothing"
        text = (
            f"minga: rank {self.comm.rank} of {self.comm.size} has waited {_PATIENCE:g} s for the others to run "
            f"Program {program.name!r}. It has changed fields since the last run: {changes}. If they have not done "
            "the same, they wait for each other forever: all ranks call these functions together.\n"
        )
        with complaining(_PATIENCE, text if self._changed else ""):
            known = sorted(f"{slot!r} {reach}" for slot, reach in self._valid.items())
            answers = self.comm.bcast(self.comm.gather((len(program.operations), known, program.name, changes)))
        *first, program_here, ours = answers[0]
        for rank, (*other, program_there, theirs) in enumerate(answers):
            if other != first:  # names of Programs may differ: some contain addresses
                raise ProgramError(
                    f"rank 0 runs Program {program_here!r} and has changed by Python since the last run: {ours}; rank "
                    f"{rank} runs {program_there!r} and has changed: {theirs}",
                    remedy="call Engine.run, set, touch and blocks(write=True) on all ranks together, with the same "
                    "fields: give values of other ranks' cells, too, or a function of a box",
                )

    def _prepare(self, program: Program, operations: Sequence[Operation], looped: bool) -> _Prepared:
        key = self._key(program, looped)
        began = time.perf_counter()
        if self.halo_depth > 1 or self.device is not None:
            # Cells of a deep halo are computed on every rank that holds them, and their changes are not tracked. On a
            # GPU finding active tiles costs more than computing all.
            operations = on_all_cells(operations)
        operations = settle_masks(operations, possible=self.device is None)
        schedule = infer(
            operations,
            depth=self.halo_depth,
            overlap=self.overlap and self.comm.size > 1,
            valid=self._valid,
            closed={grid: closed_axes(grid, layout) for grid, layout in self.storage.layouts.items()},
            rounds=partial(self._rounds, alone=len(operations) == 1),
        )
        if self._on_device is not None:
            self._on_device.check_room(schedule.widest)
        before = {item: stored.halo for item, stored in self.storage.fields.items()}
        for slot, reach in schedule.widest.items():
            self.storage.stored(slot.field, reach)
        if any(self.storage.fields[item].halo != halo for item, halo in before.items()):
            # Arrays moved: all bindings hold old addresses, and new halo cells are not valid.
            self.close_bindings()
            self._give_up_steady()
            return self._prepare_again(program, operations, looped)
        if not self.comm.leads_node:
            if self.device is None:
                helper_addresses()  # compiled here, while the rank that leads the node compiles the kernels
            self.comm.barrier()
        if self.device is None and self.comm.leads_node:
            self._compile(schedule)
        binding = self._binder().bind(schedule)
        if self.comm.leads_node:
            self.comm.barrier()
        self.routes.ready(self.comm)
        native = None
        if self.native:
            self.workers.reserve(binding.scratch_bytes)
            native = NativeLoop(
                binding.commands, self.comm, self.workers, self.booked, self.stop, self._events,
                self._poll or POLL_NANOSECONDS, self.device, self.interrupt,
            )  # fmt: skip
        interpreted = self._events if native is None else None
        first_event = interpreted.register(binding.commands) if interpreted is not None else 0
        read = frozenset(slot.field for slot, reach in schedule.widest.items() if not reach.empty)
        changes = touched(operations, read)
        draws = drawing(operations)
        prepared = self._prepared[key] = _Prepared(binding, schedule.valid, native, changes, first_event, draws)
        self.binding_seconds += time.perf_counter() - began
        return prepared

    def _compile(self, schedule: Schedule) -> None:
        """Compile the kernels of a schedule that this engine has not used yet, side by side if they are many.

        They come before the engine's own kernels, which another rank of the node compiles meanwhile.
        """
        needed = {(graph.code_digest(), own): (graph, own) for graph, own in kernels_of(schedule.items)}
        new = needed.keys() - self._kernels.keys()
        if new:
            compile_together([needed[key] for key in new], len(available_cores()))
            host = Host(self.threads, self._kernels)
            for key in sorted(new):
                host.compiled(*needed[key])

    def _rounds(self, loop: Repeat, *, alone: bool) -> int:
        """Return the number of rounds of a loop that one exchange is to last, for blocks of so many rounds. Collective.

        Blocks that need farther caches than L2 must be tried, which is done if a Program is a loop `alone`.

        Ranks on several nodes keep to `halo_depth` and `overlap`, which planning chooses for their network.
        """
        if self.device is not None or self.halo_depth > 1:
            return 1
        if self._one_node is None:
            self._one_node = len(set(self.comm.bcast(self.comm.gather(self.comm.node)))) == 1
        if not self._one_node:
            return 1
        tried = self._tunes and alone
        rounds = np.array([-rounds_of_blocks(loop, self.storage, self.comm.rank, self.threads, tried=tried)])
        self.comm.allreduce(rounds, "max")
        return -int(rounds[0])

    def _backend(self) -> Backend:
        if self.device is None:
            return Host(self.threads, self._kernels)
        from minga.engine.gpu import Gpu

        return Gpu(self.device, timed=self._clocks is not None)

    def _prepare_again(self, program: Program, operations: Sequence[Operation], looped: bool) -> _Prepared:
        self._generation += 1
        self._active.forget()
        self._valid = {}
        return self._prepare(program, operations, looped)

    def progress(self) -> bool:
        """Let messages of moves in flight progress; a long `call` calls this often.

        Returns
        -------
        bool
            True when all messages have arrived.
        """
        return sum(not move.test() for move in self._access.moving) == 0  # tests all of them

    # Layouts -------------------------------------------------------------------------------------------------------
    def time_blocks(self, grid: Grid | None) -> None:
        """Attribute the time of kernels to the blocks of a grid from now on. Collective.

        It costs nothing while Programs run. Operations on other grids are included if those have as many blocks.

        Parameters
        ----------
        grid
            The grid; None ends the accounting.
        """
        self.close_bindings()
        self._clocks = grid
        self._new_columns()

    def relayout(
        self, layouts: Mapping[Grid, Layout], *, dead: Collection[Slot] = (), piece_bytes: int = PIECE_BYTES
    ) -> Moved:
        """Move all fields of some grids to other layouts. Collective; all ranks give the same layouts.

        Values, registers and counters are preserved; Programs are bound again when they run. Views returned by `blocks`
        become invalid.

        Parameters
        ----------
        layouts
            The new layout of each grid that changes.
        dead
            Slots that are overwritten before they are read (:func:`minga.engine.live.dead_slots`); they become 0.
        piece_bytes
            The maximum number of bytes of messages in flight at once to or from this rank.

        Returns
        -------
        Moved
            What was moved.

        Raises
        ------
        LayoutError
            If ranks request different layouts, or a layout does not fit its grid.
        """
        self._access.between_runs("asks for another layout", "call Engine.relayout between runs of Programs")
        self._take_back()
        began = time.perf_counter_ns()
        self.close_bindings()
        if self.storage.settle is not None:
            self.storage.settle()
        moved, traffic, self._tag = move_fields(self.storage, self.comm, layouts, self._tag, dead, piece_bytes)
        for peer, sent in traffic.items():
            self._sent[peer] = self._sent.get(peer, Traffic()) + sent
        self._valid = {}
        self._give_up_steady()
        self._active.restart()
        self._new_columns()
        self.booked[0, cmd.Category.BALANCE] += time.perf_counter_ns() - began
        self.booked[1, cmd.Category.BALANCE] += 1
        return moved

    def _new_columns(self) -> None:
        """Create a ledger with a column for each timed block; the time recorded by block so far becomes computing."""
        before = self.booked
        blocks = 0 if self._clocks is None else len(self.storage.layout(self._clocks).blocks_of(self.comm.rank))
        self.booked = new_ledger(blocks)
        self.booked[:, : len(cmd.Category)] = before[:, : len(cmd.Category)]
        self.booked[:, cmd.Category.COMPUTE] += before[:, len(cmd.Category) :].sum(axis=1)

    def _python(self, call: Call, moving: tuple[BoundMove, ...]) -> Callable[[], None]:
        def function() -> None:
            with self._access.during(call, moving):
                call.function(self)
                if self._on_device is not None:
                    self._on_device.send_back()

        return function

    def _take_back(self) -> None:
        """End writing through views, and extend replicated fields that were written beyond their ends."""
        for slot in self._access.take_back():
            if slot.field.replicated:
                continue_beyond(self.storage.stored(slot.field).blocks[0], slot)

    def _next_tag(self) -> int:
        self._tag += 1
        return self._tag

    # Ending --------------------------------------------------------------------------------------------------------
    def close_bindings(self) -> None:
        """Release all bound Programs; they are bound again when they run."""
        self._access.between_runs("releases the Program that runs", "do so between runs of Programs")
        self._sent = self.traffic
        for prepared in self._prepared.values():
            prepared.close()
        self._prepared.clear()

    def release(self, *programs: Program) -> None:
        """Release what was prepared for Programs that will not run again; collective.

        Parameters
        ----------
        programs
            The Programs.
        """
        self._access.between_runs("releases a Program", "do so between runs of Programs")
        for key in [key for key in self._prepared if any(key[0] is program for program in programs)]:
            prepared = self._prepared.pop(key)
            self._sent = count_sent(prepared.binding.channels, self._sent)
            prepared.close()

    def close(self) -> None:
        """Release messages and threads; the fields stay readable."""
        self.close_bindings()
        self.routes.close()
        self.workers.close()
        if self.device is not None:
            self.device.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        layouts = "; ".join(f"{grid!r}: {layout!r}" for grid, layout in self.storage.layouts.items())
        where = f"{self.threads} threads" if self.device is None else repr(self.device)
        return f"Engine(rank {self.comm.rank} of {self.comm.size}, {where}, {layouts})"


def _put(register: Register, memory: np.ndarray, value: bool | int | float) -> None:
    """Store the value of a register."""
    if not is_float(register.dtype) and int(value) != value:
        raise ProgramError(
            f"register {register.name!r} is {register.dtype}, the value {value}",
            remedy="declare it as f8, or round",
        )
    memory[0] = value
