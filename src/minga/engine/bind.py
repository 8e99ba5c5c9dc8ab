"""Binding: conversion of a schedule into the commands and messages of this rank's blocks.

It is repeated whenever layouts or halo widths change and takes milliseconds, since kernels are compiled once per
engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import numpy as np

from minga.compile.abi import offsets
from minga.engine import command as cmd
from minga.engine.active import ActiveTiles, Activity
from minga.engine.active_bind import bind_active, bind_begin
from minga.engine.backend import Backend, Host, KernelCall
from minga.engine.comm import Channel, Comm
from minga.engine.compiled_call import CompiledCall
from minga.engine.exchange import BoundExchange, bind_exchange, continuation
from minga.engine.masks import Masks, Remaining
from minga.engine.matching import check_layouts
from minga.engine.panels import BoundMove, Buffers, bind_move, finish_move, start_move
from minga.engine.pieces import in_pieces
from minga.engine.program import REASONS, Apply, Call, Let, Move, Rotate, ScalarValue
from minga.engine.reach import Reach
from minga.engine.reduction import BoundReductions, bind_reductions
from minga.engine.regions import Part, every_nth, ghost_parts, inner_box, merged, select, stage_parts
from minga.engine.routes import Routes
from minga.engine.schedule import (
    Begin,
    Boundaries,
    Branch,
    Finish,
    FinishMove,
    HaloExchange,
    Item,
    Loop,
    Schedule,
    Stage,
    StartMove,
    sets_register,
)
from minga.engine.steady import SteadyGhosts, is_steady, require_ghosts, spoiled_fields
from minga.engine.storage import Storage
from minga.engine.sweep import bind_sweep
from minga.engine.tiles import tile_shape
from minga.engine.time_blocks import Block, Cut, Levels, bind_blocks
from minga.engine.tuner import Tuner
from minga.lang.graph import KernelGraph, Scalar
from minga.lang.types import DType
from minga.space.boundary import Fill
from minga.space.field import Constant, Field, Register, RegisterKey, Slot
from minga.space.grid import Grid

BoundOperand = tuple[int, int, tuple[int, ...]]
"""Slot address, element offset of index 0, element strides."""
UNBOUNDED: Final = (1 << 63) - 1
NOT_FINITE: Final = REASONS.index("not finite")
LIMIT: Final = REASONS.index("limit")


@dataclass(slots=True)
class Binding:
    """A bound Program. `keep` holds every array whose address the commands contain.

    `steady` names the ghost cells of constant values that it reads and does not fill, `spoiled` the fields whose ghost
    cells it may overwrite.
    """

    commands: list[cmd.Command]
    channels: list[Channel]
    reason: np.ndarray
    place: np.ndarray
    places: list[str]
    scratch_bytes: int
    keep: list[object]
    converges: bool
    steady: SteadyGhosts
    spoiled: frozenset[Field]
    tuners: list[Tuner]


def _only_loop(items: Sequence[Item]) -> Loop | None:
    """Return the loop in which all kernels of a Program are called; None if there is none."""
    working = [item for item in items if isinstance(item, Loop | Stage | Branch | Call)]
    if len(working) != 1 or not isinstance(working[0], Loop):
        return None
    loop = working[0]
    inner = any(isinstance(item, Loop | Branch) for round_ in loop.rounds for item in round_)
    return None if inner else loop


@dataclass(slots=True)
class Binder:
    """A translator of one schedule into commands.

    Parameters
    ----------
    backend
        Target that executes the commands.
    call
        Returns a function that runs a Python operation, given the moves that are in flight meanwhile.
    polled
        True if kernels poll messages in flight.
    clocks
        Grid whose blocks are timed separately; None for none.
    """

    storage: Storage
    comm: Comm
    backend: Backend
    call: Callable[[Call, tuple[BoundMove, ...]], Callable[[], None]]
    next_tag: Callable[[], int]
    active: ActiveTiles
    polled: bool = True
    clocks: Grid | None = None
    noting: dict[Field, Activity] = field(default_factory=dict)
    pending: list[Callable[[], cmd.Command]] = field(default_factory=list)
    keep: list[object] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    exchanges: dict[int, BoundExchange] = field(default_factory=dict)
    open: list[Channel] = field(default_factory=list)
    stubs: list[tuple[cmd.Label, int, list[Channel], list[BoundReductions]]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    reason: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    place: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    reductions: dict[int, BoundReductions] = field(default_factory=dict)
    begun: list[BoundReductions] = field(default_factory=list)
    converges: bool = False
    timed: int = -1
    masks: Masks = field(default_factory=Masks)
    routes: Routes = field(default_factory=Routes)
    moving: dict[int, BoundMove] = field(default_factory=dict)
    buffers: dict[Slot, Buffers] = field(default_factory=dict)
    steady: SteadyGhosts = field(default_factory=dict)
    """Ghost cells of constant values that this Program reads and leaves to `minga.engine.steady`."""
    spoiled: frozenset[Field] = frozenset()
    seconds: Callable[[], float] | None = None
    """Returns the seconds of this rank's kernels so far, by which loops are tuned; None: they are not."""
    tuners: list[Tuner] = field(default_factory=list)
    only_loop: Loop | None = None
    """The loop that does all the work of the Program, and contains no other."""
    levels: Levels | None = None
    """While a round of a block is bound: the names that slots and registers have in it."""

    def bind(self, schedule: Schedule) -> Binding:
        """Allocate the fields that the schedule needs and emit all commands."""
        widest: dict[object, Reach] = {}
        for slot, reach in schedule.widest.items():
            self.storage.stored(slot.field, reach)
            widest[slot.field] = reach
        self.spoiled = spoiled_fields(schedule.items)
        for apply in schedule.active:
            activity = self.active.of(apply, self.storage)
            self.noting |= dict.fromkeys(activity.fields, activity)
        self.only_loop = _only_loop(schedule.items)
        self.emit(cmd.Set(self.control(self.reason), 0))
        self.masks = Masks.of(self, schedule.masked)
        self.items(schedule.items)
        self.masks.close(self)
        self.emit(*self.backend.settled(), cmd.End(0))
        for label, number, channels, begun in self.stubs:
            self.mark(label)
            self.emit(cmd.Set(self.control(self.place), number))
            for channel in channels:
                self.emit(cmd.Wait(channel))
            for reductions in begun:
                self.emit(reductions.combine)
            self.emit(*self.backend.settled(), cmd.End(NOT_FINITE))
        commands = [make() for make in self.pending]
        return Binding(
            commands,
            self.channels,
            self.reason,
            self.place,
            self.places,
            self.backend.scratch,
            [self.keep, self.backend],
            self.converges,
            self.steady,
            self.spoiled,
            self.tuners,
        )

    @property
    def polls(self) -> tuple[Channel, ...]:
        """Channels in flight that a kernel polls."""
        return tuple(self.open) if self.polled else ()

    # Emitting ------------------------------------------------------------------------------------------------------
    def emit(self, *commands: cmd.Command) -> None:
        """Append commands."""
        self.pending += [lambda command=command: command for command in commands]  # type: ignore[misc]

    def mark(self, label: cmd.Label) -> None:
        """Set the position of a label to the next command."""
        label.position = len(self.pending)

    def jump(self, label: cmd.Label) -> None:
        """Append a jump to a label."""
        self.pending.append(lambda: cmd.Jump(label.position))

    def jump_if(self, memory: np.ndarray, when: bool, label: cmd.Label) -> None:
        """Append a jump to a label that depends on the truth of a word in memory."""
        commands, address = self.backend.on_host(memory)
        self.emit(*commands)
        self.pending.append(lambda: cmd.JumpIf(address, when, label.position))

    def address(self, array: np.ndarray) -> int:
        """Return the address at which kernels find an array's first element, valid as long as the binding."""
        return self.backend.address(array)

    def control(self, array: np.ndarray) -> int:
        """Return the address of words that only commands use, not kernels."""
        self.keep.append(array)
        return int(array.__array_interface__["data"][0])

    # Items ---------------------------------------------------------------------------------------------------------
    def items(self, items: Sequence[Item]) -> None:
        """Emit the commands of items in order."""
        for item in items:
            _BINDERS[type(item)](self, item)
            self.masks.after(self, item)

    def operation(self, call: Call) -> None:
        """Emit an operation that Python executes, or native code in its place."""
        if self.levels is not None:
            self.levels.call(self, call)
        elif isinstance(call.function, CompiledCall) and isinstance(self.backend, Host) and not self.noting:
            self.emit(*call.function.commands(self))
        else:
            function = self.call(call, tuple(self.moving.values()))
            self.emit(*self.backend.settled(), cmd.Call(function, call.label))
        self.continued(slot for slot in call.writes if slot.field.replicated)

    def exchange(self, exchange: HaloExchange) -> BoundExchange:
        """Return a bound exchange, binding it at first use."""
        bound = self.exchanges.get(id(exchange))
        if bound is None:
            bound = bind_exchange(exchange, self.storage, self.comm, self.next_tag(), self.backend, self.noting)
            self.exchanges[id(exchange)] = bound
            self.keep.append(exchange)
            self.channels.append(bound.channel)
        return bound

    def begin(self, exchange: HaloExchange) -> None:
        """Emit packing and sending of an exchange."""
        bound = self.exchange(exchange)
        self.emit(*bound.pack)
        if bound.remote:
            self.emit(*self.backend.settled(), cmd.Start(bound.channel))
            self.open.append(bound.channel)

    def finish(self, exchange: HaloExchange) -> None:
        """Emit the local copies of an exchange, waiting for its messages, and unpacking."""
        bound = self.exchange(exchange)
        self.emit(*bound.local)
        if bound.remote:
            self.emit(cmd.Wait(bound.channel))
            self.open.remove(bound.channel)
        self.emit(*bound.unpack)

    def rotate(self, rotation: Rotate) -> None:
        """Emit the rotation of slots, and of the flags that rotate with them."""
        for item in rotation.fields:
            tables = tuple(self.address(b.table) for b in self.storage.stored(item).blocks.values())
            if item in self.noting and self.noting[item].rotated is item:
                tables += tuple(self.address(flags.table) for flags in self.noting[item].blocks.values())
            if tables:
                self.emit(self.backend.rotate(tables, item.slots))

    def let(self, let: Let) -> None:
        """Emit the evaluation of a register's expression."""
        memory = self.storage.of(let.register)
        if self.levels is not None:
            memory = np.zeros(1, np.int64).view(memory.dtype)
        slot = np.array([self.address(memory)], np.int64)
        self.kernel(
            let.graph, Part((0,), (1,), (0,)), [(self.address(slot), 0, (1,))], {}, cmd.Category.OTHER, let.label
        )
        if self.levels is not None:
            self.levels.versions[let.register.key] = memory

    def loop(self, loop: Loop) -> None:
        """Emit a loop: for each of its rounds a head, the body, and the exits."""
        counter = self.control(np.zeros(1, np.int64))
        fetched, limit = self.limit(loop)
        heads = [cmd.Label() for _ in loop.rounds]
        after = cmd.Label()
        restore = cmd.Label() if loop.restore else after
        self.emit(*fetched, cmd.Set(counter, -1))
        leaves = []
        first = len(self.backend.sites)
        cuts = bind_blocks(self, loop)
        tuner = self.tuner(loop, cuts)
        if tuner is None:
            cuts = [cut for cut in cuts if cut.usual]
        blocks = [[(cmd.Label(), block) for block in cut.blocks] for cut in cuts]
        for number, items in enumerate(loop.rounds):
            body, out = cmd.Label(), cmd.Label()
            target = restore if number else after
            self.mark(heads[number])
            if number == 0:  # after other rounds, cells of a deep halo are no longer valid
                self.choose(tuner, blocks, counter, limit)
            if loop.until is not None:
                self.let(loop.until)
                self.jump_if(self.storage.of(loop.until.register).view(np.uint8), True, target)
                self.converges = True
            if isinstance(loop.limit, Register) and sets_register(loop, loop.limit):
                self.emit(*fetched)
            # Ranks that execute rounds in blocks look for interrupts after as many rounds as those that do not.
            looks = 0 if number else len(loop.rounds)
            self.pending.append(lambda label=body, n=looks: cmd.Count(counter, limit, label.position, 1, n))  # type: ignore[misc]
            if loop.until is not None:
                leaves.append((out, target))
                self.jump(out)
            else:
                self.jump(target)
            self.mark(body)
            self.count(tuner, 1)
            self.items(items)
        self.jump(heads[0])
        for label, block in chain.from_iterable(blocks):
            self.mark(label)
            self.count(tuner, block.rounds)
            self.emit(*block.commands)
            self.jump(heads[0])
        if tuner is not None:
            tuner.begin(self.backend.sites[first:])
        for out, target in leaves:
            self.mark(out)
            self.emit(cmd.Set(self.control(self.reason), LIMIT))
            self.jump(target)
        if loop.restore:
            self.mark(restore)
            self.items(loop.restore)
        self.mark(after)

    def tuner(self, loop: Loop, cuts: Sequence[Cut]) -> Tuner | None:
        """Return a tuner of a loop; None if other parts of the Program compute, too, or none is wanted."""
        if self.seconds is None or loop is not self.only_loop:
            return None
        usual = next((number for number, cut in enumerate(cuts) if cut.usual), -1)
        tuner = Tuner([cut.shape for cut in cuts], usual, self.seconds, self.backend.workers)
        self.tuners.append(tuner)
        return tuner

    def choose(
        self, tuner: Tuner | None, blocks: Sequence[Sequence[tuple[cmd.Label, Block]]], counter: int, limit: int
    ) -> None:
        """Emit the head of a round: a turn of the tuner, if one is due, and a block, if as many rounds are left."""
        if tuner is not None:
            skip = cmd.Label()
            rounds, due = self.control(tuner.rounds), self.control(tuner.due)
            self.pending.append(lambda: cmd.Count(rounds, due, skip.position, 0, 0))
            self.emit(cmd.Call(tuner.turn, "tune", cmd.Category.OTHER))
            self.mark(skip)
        single = cmd.Label()
        starts = [cmd.Label() for _ in blocks]
        if tuner is not None and blocks:
            cut = self.control(tuner.cut)
            self.pending.append(lambda: cmd.Switch(cut, tuple(start.position for start in starts)))
            self.jump(single)
        for start, given in zip(starts, blocks, strict=True):
            self.mark(start)
            for label, block in given:
                self.pending.append(
                    lambda label=label, n=block.rounds: cmd.Count(counter, limit, label.position, n, n)  # type: ignore[misc]
                )
            self.jump(single)
        self.mark(single)

    def count(self, tuner: Tuner | None, rounds: int) -> None:
        """Emit the counting of rounds for a tuner."""
        if tuner is not None:
            after = cmd.Label()
            counter, unbounded = self.control(tuner.rounds), self.control(np.array([UNBOUNDED], np.int64))
            self.pending.append(lambda: cmd.Count(counter, unbounded, after.position, rounds, 0))
            self.mark(after)

    def limit(self, loop: Loop) -> tuple[Sequence[cmd.Command], int]:
        """Return the commands that fetch a loop's limit, and the address of the word its counter is compared with."""
        if isinstance(loop.limit, Register):
            return self.backend.on_host(self.storage.of(loop.limit))
        return (), self.control(np.array([UNBOUNDED if loop.limit is None else loop.limit], np.int64))

    def branch(self, branch: Branch) -> None:
        """Emit operations that are executed only if a condition holds."""
        after = cmd.Label()
        self.let(branch.condition)
        self.jump_if(self.storage.of(branch.condition.register).view(np.uint8), False, after)
        self.items(branch.body)
        self.mark(after)

    # Kernels -------------------------------------------------------------------------------------------------------
    def stage(self, stage: Stage) -> None:
        """Emit the kernel calls of a stage on all blocks, and its reductions after the last part."""
        apply = stage.apply
        check_layouts(apply, self.storage)
        order = apply.graph.order
        if order is not None and order.kind != "red-black" and order.across == "exact" and not apply.replicated:
            bind_sweep(self, apply)
            return
        last = stage.part != "shell"
        reductions = bind_reductions(self, apply) if apply.graph.reductions else None
        addresses = reductions.accumulators if reductions else ()
        exchange = self.exchange(stage.exchange) if stage.exchange is not None else None
        if apply.replicated:
            for part in select(Part.of(apply.region), apply.cells):
                self.part(apply, None, part, addresses)
            self.continued(map(apply.slot, sorted(apply.graph.written)))
        else:
            if apply.cells.active is not None and stage.part != "interior":
                bind_begin(self, apply, self.active.of(apply, self.storage))
            for block in self.blocks(apply):
                inner = inner_box(apply, block, self.storage, exchange)
                for part in stage_parts(apply, block, self.storage, stage, inner):
                    # Shells are thin, and start before a mask that is stored along with them is complete.
                    remaining = self.masks.of_part(apply, block, part) if last else None
                    self.part(apply, block, part, addresses, remaining)
        if reductions is not None and last and apply.done:
            self.finish_reductions(apply, reductions)
        elif reductions is not None and reductions not in self.begun:
            self.begun.append(reductions)

    def continued(self, slots: Iterable[Slot]) -> None:
        """Emit the extension of fields that every rank holds completely beyond their ends, after they were stored."""
        for slot in slots:
            self.emit(*continuation(slot, self.storage, self.backend))

    def finish_reductions(self, apply: Apply, reductions: BoundReductions) -> None:
        """Emit totals over workers and ranks, the values of registers, and the exit if one is not finite."""
        self.emit(*reductions.commands)
        self.begun = [other for other in self.begun if other is not reductions]
        if not apply.checked:
            return
        label = cmd.Label()
        self.stubs.append((label, len(self.places), list(self.open), self.begun))
        self.places.append(f"{apply.label}: {', '.join(r.name for r in apply.graph.reductions)}")
        self.jump_if(reductions.not_finite, True, label)

    def blocks(self, apply: Apply) -> list[int]:
        """Return the blocks of the operation's grid that this rank owns."""
        return self.storage.layout(apply.grid).blocks_of(self.comm.rank)

    def clock_of(self, apply: Apply, block: int | None) -> int:
        """Return a block's number among the timed blocks of this rank, or -1 if its grid is cut differently."""
        if self.clocks is None or block is None:
            return -1
        layout, timed = self.storage.layout(apply.grid), self.storage.layout(self.clocks)
        if layout is not timed and not np.array_equal(layout.owner, timed.owner):
            return -1
        return timed.blocks_of(self.comm.rank).index(block)

    def part(
        self, apply: Apply, block: int | None, part: Part, accumulators: Sequence[int], rest: Remaining | None = None
    ) -> None:
        """Emit one kernel call over one box of one block, or over the cells of it that a mask leaves."""
        self.timed = self.clock_of(apply, block)
        operands = [self.operand(operand, block, part.shift) for operand in apply.operands]
        graph = apply.graph if part.stride is None else every_nth(apply.graph, part.stride, part.phase, part.shift)
        scalars = {name: self.scalar(value, kind) for name, kind, value in _given(apply)}
        if apply.cells.active is not None:
            assert block is not None
            bind_active(self, apply, self.active.of(apply, self.storage), block, part, operands, scalars)
            return
        for piece in in_pieces(graph, part) if self.polls and rest is None else (part,):
            self.kernel(
                graph, piece, operands, scalars, cmd.Category.COMPUTE, apply.label, accumulators,
                extent=apply.extent, colour=apply.colour, remaining=rest,
            )  # fmt: skip

    def operand(
        self, operand: Slot | Constant, block: int | None, shift: Sequence[int]
    ) -> tuple[int, int, tuple[int, ...]]:
        """Return the slot address, the element offset of index 0, and the element strides of a parameter."""
        if isinstance(operand, Constant):
            array, origin = operand.array, operand.origin
            slot = self.address(np.array([self.address(array)], np.int64))
            axes: Sequence[int] = operand.axes
        else:
            stored = self.storage.stored(operand.field)
            arrays = stored.blocks[0 if operand.field.replicated else (block or 0)]
            array, origin = arrays.arrays[0], arrays.box.lo
            index = operand.index if self.levels is None else self.levels.index(operand.field, operand.index)
            slot = self.address(arrays.table) + 8 * index
            axes = operand.field.axes if operand.field.replicated else ()
        strides = tuple(s // array.itemsize for s in array.strides)
        start = -sum(o * s for o, s in zip(origin, strides, strict=True))
        if axes and len(shift) > max(axes):
            # Complete copies are indexed by true indices: a periodic image reads where the original cell reads.
            start += sum(shift[a] * s for a, s in zip(axes, strides, strict=True))
        return slot, start, strides

    def scalar(self, value: ScalarValue, kind: DType) -> int:
        """Return the address of a scalar argument."""
        if isinstance(value, Register):
            return self.address(self.present(value.key, self.storage.of(value)))
        memory = np.zeros(8, np.uint8)
        memory[: np.dtype(kind).itemsize] = np.frombuffer(np.asarray(value, kind).tobytes(), np.uint8)
        return self.address(memory)

    def kernel(
        self,
        graph: KernelGraph,
        part: Part,
        operands: Sequence[tuple[int, int, tuple[int, ...]]],
        scalars: dict[str, int],
        category: cmd.Category,
        label: str,
        accumulators: Sequence[int] = (),
        *,
        extent: Sequence[int] = (0,),
        colour: int = 0,
        remaining: Remaining | None = None,
    ) -> None:
        """Emit one kernel call: fill its argument words and choose its tiles."""
        shape = tuple(b - a for a, b in zip(part.lo, part.hi, strict=True))
        if min(shape) <= 0:
            return
        reductions = part.reductions and bool(graph.reductions)
        tile = tile_shape(graph, shape, self.backend.workers)
        args = self.arguments(graph, part, tile, operands, scalars, extent, colour)
        words = offsets(graph)
        if reductions:
            for word, address in zip(words.reductions, accumulators, strict=True):
                args[word] = address
        block = self.timed if category is cmd.Category.COMPUTE else -1
        call = KernelCall(graph, reductions, part.lo, part.hi, tile, args, category, label, self.polls, block)
        commands = self.backend.kernel(call)
        if self.levels is not None and category is not cmd.Category.OTHER:
            self.levels.calls += [(call, command) for command in commands if isinstance(command, cmd.Kernel)]
            return
        self.emit(*(commands if remaining is None else remaining.around(self, call, *commands)))

    def arguments(
        self,
        graph: KernelGraph,
        part: Part,
        tile: Sequence[int],
        operands: Sequence[BoundOperand],
        scalars: Mapping[str, int],
        extent: Sequence[int],
        colour: int = 0,
    ) -> np.ndarray:
        """Return the argument words of a kernel for a box in tiles of a shape; those of reductions are left 0."""
        words, n = offsets(graph), graph.ndim
        args = np.zeros(words.words, np.int64)
        tiles = [-(-(high - low) // size) for low, high, size in zip(part.lo, part.hi, tile, strict=True)]
        for word, values in (
            (words.lo, part.lo), (words.hi, part.hi), (words.tile, tile), (words.tiles, tiles),
            (words.shift, part.shift), (words.extent, extent),
        ):  # fmt: skip
            args[word : word + n] = values
        args[words.colour] = colour
        for word, (slot, origin, strides) in zip(words.fields, operands, strict=True):
            args[word], args[word + 1] = slot, origin
            args[word + 2 : word + 2 + len(strides)] = strides
        for word, scalar in zip(words.scalars, graph.scalars, strict=True):
            args[word] = scalars[scalar.name] if scalar.name in scalars else self.captured(graph, scalar, extent)
        return args

    def captured(self, graph: KernelGraph, scalar: Scalar, extent: Sequence[int]) -> int:
        """Return the address of a value that a graph names: a register in an expression, or the grid's extent."""
        if scalar.name.startswith("@extent"):
            return self.scalar(extent[int(scalar.name[7:])], scalar.dtype)
        keys = (n.data for n in graph.nodes() if isinstance(n.data, RegisterKey))
        initial = next((key.initial for key in keys if key == scalar.name), 0)
        return self.address(self.present(scalar.name, self.storage.register(scalar.name, scalar.dtype, initial)))

    def present(self, key: str, memory: np.ndarray) -> np.ndarray:
        """Return where a register, which has `memory` outside blocks, is found."""
        return memory if self.levels is None else self.levels.versions.get(key, memory)

    # Boundaries ----------------------------------------------------------------------------------------------------
    def boundaries(self, item: Boundaries) -> None:
        """Fill ghost cells beyond the domain, except those that keep constant values from one run to the next."""
        target = item.slot.field
        if target in self.spoiled:
            self.ghosts(item, lambda fill: True)
            return
        if self.ghosts(item, lambda fill: not is_steady(fill)):
            require_ghosts(self.steady, target, item.ghosts)

    def ghosts(self, item: Boundaries, chosen: Callable[[Fill], bool]) -> list[Fill]:
        """Fill ghost cells axis by axis, so that corners follow from cells already filled; return what was not chosen.

        Parameters
        ----------
        item
            The slot, and its ghost cells.
        chosen
            Tells of each condition whether its cells are filled.
        """
        target = item.slot.field
        stored = self.storage.stored(target)
        assert stored.ownership is not None
        left = []
        for number, arrays in stored.blocks.items():
            parts = ghost_parts(target, stored.ownership.position(number), arrays.box, item.ghosts)
            for fill, part, nearest in merged(parts):
                if not chosen(fill):
                    left.append(fill)
                    continue
                operands = []
                for operand in fill.operands:
                    if operand is target:
                        operands.append(self.operand(item.slot, number, part.shift))
                    elif isinstance(operand, Constant):
                        operands.append(self.operand(operand, number, part.shift))
                    elif isinstance(operand, Field):
                        operands.append(_nearest(self.operand(operand.now, number, part.shift), nearest))
                label = f"{fill.graph.name} of {target.name}"
                self.kernel(fill.graph, part, operands, {}, cmd.Category.BOUNDARY, label, extent=target.grid.shape)
        return left


def _given(apply: Apply) -> list[tuple[str, DType, ScalarValue]]:
    """Return the scalars given to an operation: name, type, value."""
    return [(s.name, s.dtype, apply.scalars[s.name]) for s in apply.graph.scalars if s.name in apply.scalars]


def _nearest(operand: BoundOperand, index: Mapping[int, int]) -> BoundOperand:
    """Return an operand that is read at one index along some axes."""
    slot, start, strides = operand
    start += sum(at * strides[axis] for axis, at in index.items())
    return slot, start, tuple(0 if axis in index else stride for axis, stride in enumerate(strides))


_BINDERS: Final[dict[type, Callable[[Binder, Any], None]]] = {
    Stage: Binder.stage,
    Begin: lambda binder, begin: binder.begin(begin.exchange),
    Finish: lambda binder, finish: binder.finish(finish.exchange),
    Boundaries: Binder.boundaries,
    Let: Binder.let,
    Rotate: Binder.rotate,
    Move: bind_move,
    StartMove: lambda binder, start: start_move(binder, start.move),
    FinishMove: lambda binder, finish: finish_move(binder, finish.move),
    Call: Binder.operation,
    Loop: Binder.loop,
    Branch: Binder.branch,
}
"""Functions that emit the commands of each kind of item."""
