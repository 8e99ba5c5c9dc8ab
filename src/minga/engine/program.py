"""Recording of Programs: a step as a list of eight operations - apply, let, repeat, when, rotate, move, call, refresh.

A Program is independent of layouts and ranks. The necessary exchanges and their times are inferred from it later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Integral
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from minga.engine.active_check import check_active
from minga.engine.call_global import Item, global_call
from minga.engine.check import (
    Operand,
    check_aliases,
    check_colours,
    check_mask,
    check_reach,
    check_resolution,
    field_type,
    in_region,
    iterated_axes,
    iteration_grid,
    iteration_points,
    moved_boxes,
    written_field,
)
from minga.engine.levels import CopyPoint, keep, kept_cells
from minga.engine.operations import Apply as Apply
from minga.engine.operations import Call as Call
from minga.engine.operations import Let as Let
from minga.engine.operations import Move as Move
from minga.engine.operations import Operation as Operation
from minga.engine.operations import Refresh as Refresh
from minga.engine.operations import Repeat as Repeat
from minga.engine.operations import Rotate as Rotate
from minga.engine.operations import ScalarValue as ScalarValue
from minga.engine.operations import When as When
from minga.engine.operations import flat as flat
from minga.errors import ProgramError, shown, suggest
from minga.lang.analysis import reads
from minga.lang.expr import Arithmetic, as_node, cast
from minga.lang.graph import Interner, Param, Store, topological
from minga.lang.kernel import Kernel, ScalarType, Signature
from minga.lang.trace import Trace, assemble
from minga.lang.types import as_dtype, is_float
from minga.markup import block, details
from minga.space.box import Box
from minga.space.field import MARGIN, Constant, Field, Register, Slot
from minga.space.metric import metric_of, supplied_constant, supplied_scalar
from minga.space.region import Region

REASONS: Final = ("finished", "converged", "limit", "not finite", "stop")
"""Reasons why a Program ended, by number."""


@dataclass(eq=False)
class Program:
    """A recorded sequence of operations; see :mod:`minga.engine.program`.

    Parameters
    ----------
    name
        Name for messages and explanations.
    operations
        Operations, which the methods record.
    """

    name: str = "program"
    operations: list[Operation] = field(default_factory=list)
    _stack: list[list[Operation]] = field(default_factory=list, repr=False)
    _hidden: int = field(default=0, repr=False)
    _checked: bool = field(default=True, repr=False)
    _mask: Slot | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._stack = [self.operations]

    @property
    def hidden(self) -> int:
        """Number of registers that the Program created itself: results, conditions, expressions."""
        return self._hidden

    def __repr__(self) -> str:
        return "\n".join([f"Program {self.name!r}", *_outline(self.operations, "  ")])

    def _repr_html_(self) -> str:
        count = len(self.operations)
        title = f"{count} operation{'' if count == 1 else 's'}"
        return block(f"Program {self.name!r}", details(title, "\n".join(_outline(self.operations, ""))))

    def _add(self, operation: Operation) -> None:
        self._stack[-1].append(operation)

    def _register(self, dtype: str, name: str) -> Register:
        self._hidden += 1
        return Register(f"{self.name}.{self._hidden}.{name}", as_dtype(dtype))

    # The eight operations ------------------------------------------------------------------------------------------
    def apply(
        self,
        kernel: Kernel | object,
        *fields: Field | Slot | Sequence[Field | Slot],
        region: Box | Region | None = None,
        into: Register | Mapping[str, Register] | None = None,
        **scalars: object,
    ) -> Register | SimpleNamespace | None:
        """Apply a kernel to every cell of a region.

        Scalars are numbers, registers, or expressions of registers.

        Parameters
        ----------
        kernel
            The kernel.
        fields
            A field, slot, or sequence of these for each positional parameter of the kernel.
        region
            The region; by default all points of the fields that the kernel stores.
        into
            Registers that reductions write; by default new ones.
        **scalars
            A value for each keyword-only parameter of the kernel.

        Returns
        -------
        None, Register or SimpleNamespace
            The kernel's reductions: one register, or a namespace of registers.
        """
        if not isinstance(kernel, Kernel):
            found = getattr(kernel, "__name__", shown(kernel))
            raise ProgramError(
                f"apply expects a kernel first, found {found}", remedy="decorate the function with @mg.kernel"
            )
        arguments = [self._operand(kernel, number, item) for number, item in enumerate(fields)]
        flat = [slot for item in arguments for slot in (item if isinstance(item, tuple) else (item,))]
        grid = iteration_grid(kernel, flat)
        values, types = self._scalars(kernel, scalars)
        iterated = iterated_axes(flat)
        kinds = tuple(
            tuple(field_type(s, iterated) for s in item) if isinstance(item, tuple) else field_type(item, iterated)
            for item in arguments
        )
        names = tuple(grid.axes[a] for a in iterated)
        graph = kernel.graph(Signature(len(iterated), kinds, tuple(types), names, metric_of(grid, iterated)))
        for scalar in graph.scalars:
            number = supplied_scalar(grid, iterated, scalar.name)
            if number is not None:
                values[scalar.name] = number
        operands: list[Operand] = list(flat)
        lead = written_field(graph, flat) or next((slot.field for slot in flat if not slot.field.replicated), None)
        for param, kind in enumerate(graph.params[len(flat) :], len(flat)):
            axis = iterated[kind.axes[0]]
            centre = lead.centre[axis] if lead else 0
            far = max((abs(o) for _, offsets in reads(graph).get(param, ()) for o in offsets), default=0)
            constant = supplied_constant(grid, axis, kind.name, centre, max(MARGIN, far))
            operands.append(Constant(constant.name, kind.axes, constant.origin, constant.array))
        space = iteration_points(kernel, graph, flat, grid, iterated)
        if not isinstance(region, Box | Region | None):
            raise ProgramError(
                f"apply({kernel.name}): region is {type(region).__name__}",
                remedy="pass mg.Box(lo, hi) or mg.Region(...)",
            )
        cells = (region if isinstance(region, Region) else Region(region)).within(space)
        where = cells.box
        assert where is not None
        if not space.contains(where):
            raise ProgramError(
                f"apply({kernel.name}): region {where} reaches beyond the points {space}",
                remedy="choose a region inside the points of the stored field",
            )
        check_resolution(kernel, graph, flat, grid)
        check_reach(kernel, graph, flat, where)
        results = tuple(self._result(kernel, r.name, r.dtype, into) for r in graph.reductions)
        graph, colours = in_region(kernel, graph, cells)
        check_aliases(kernel, graph, operands, cells)
        if cells.active is not None:
            cells = check_active(kernel, graph, operands, cells, space)
        if graph.order is not None and graph.order.kind == "red-black":
            check_colours(kernel, flat, graph)
        for colour in colours:
            done = colour == colours[-1]
            self._add(
                Apply(
                    graph, tuple(operands), values, where, grid, results, colour, done, cells, self._checked, self._mask
                )
            )  # fmt: skip
        if not results:
            return None
        if len(results) == 1 and graph.reductions[0].name == "value":
            return results[0]
        return SimpleNamespace(**{r.name: register for r, register in zip(graph.reductions, results, strict=True)})

    def let(self, register: Register, value: object) -> Register:
        """Give a register the value of an expression of registers and numbers.

        Parameters
        ----------
        register
            The register.
        value
            A number, or an expression of registers and numbers.

        Returns
        -------
        Register
            The register.
        """
        if not isinstance(register, Register):
            raise ProgramError(
                f"let expects a register first, found {shown(register)}", remedy='make one: mg.Register("dt")'
            )
        self._add(_let(register, value))
        return register

    @contextmanager
    def unchecked(self) -> Iterator[None]:
        """Return a context in which reductions may be NaN or infinite without ending the run.

        Later operations examine them.

        It is meant for attempts that may fail and are then abandoned, such as a time step that proves too long.

        Returns
        -------
        context manager
            A ``with`` block records into it.
        """
        before, self._checked = self._checked, False
        try:
            yield
        finally:
            self._checked = before

    @contextmanager
    def masked(self, mask: Field | Slot | None) -> Iterator[None]:
        """Return a context whose operations may skip cells where a mask is not 0, such as solid cells.

        The values that they store in such cells must not change while the mask does not change, nothing else may store
        other values there, and sums and extremes must equal those over the other cells; then results are the same as
        without skipping, and skipped cells cost nothing. A face may be skipped if the mask is not 0 on both sides of
        it, including outside the grid. Whole segments of rows are skipped. Nothing is skipped by operations on other
        grids, with mg.local, with an order along several axes, with argmax or argmin, or that store fields which the
        Program rotates.

        Parameters
        ----------
        mask
            A field of u1 or bool with one value per cell; None: no cell is skipped.

        Returns
        -------
        context manager
            A ``with`` block records into it.
        """
        before, self._mask = self._mask, None if mask is None else check_mask(_as_slot(mask))
        try:
            yield
        finally:
            self._mask = before

    @contextmanager
    def repeat(
        self, count: int | Register | None = None, *, until: object = None, limit: int | Register | None = None,
        expected: int | None = None,
    ) -> Iterator[None]:  # fmt: skip
        """Return a context whose operations are repeated `count` times, or until a condition holds before an iteration.

        Parameters
        ----------
        count
            The number of iterations.
        until
            A condition of registers.
        limit
            The maximum number of iterations, for `until`.
        expected
            The usual number of iterations, for `until`, with which work is planned; by default 16, or the limit if that
            is lower.

        Returns
        -------
        context manager
            A ``with`` block records into it.
        """
        if (count is None) == (until is None):
            raise ProgramError(
                "repeat needs either a count or until=", remedy="e.g. P.repeat(10), P.repeat(until=r < 1e-8, limit=100)"
            )
        if count is not None and limit is not None:
            raise ProgramError("repeat(count, limit=...): a count is its own limit", remedy="drop limit=")
        bound = count if until is None else limit
        if isinstance(bound, Register) and bound.dtype not in ("i8", "u8"):
            raise ProgramError(f"{bound!r} cannot count rounds", remedy='declare it as mg.Register(name, "i8")')
        if bound is not None and not isinstance(bound, Register):
            bound = _rounds(bound)
        condition = None if until is None else self._condition(until)
        body: list[Operation] = []
        self._add(Repeat(body, bound, condition, expected))
        with self._inside(body):
            yield

    @contextmanager
    def when(self, condition: object) -> Iterator[None]:
        """Return a context whose operations are executed only if a condition of registers holds.

        Parameters
        ----------
        condition
            The condition.

        Returns
        -------
        context manager
            A ``with`` block records into it.
        """
        body: list[Operation] = []
        self._add(When(body, self._condition(condition)))
        with self._inside(body):
            yield

    def rotate(self, *fields: Field) -> None:
        """Advance time levels: next becomes now, now becomes previous (without copying).

        If operations of this Program stored only part of `next` from other levels of the field, the other cells keep
        their values: a copy from `now` is recorded before the first of these operations.

        Parameters
        ----------
        fields
            Fields with two or more slots.
        """
        for item in fields:
            if not isinstance(item, Field):
                raise ProgramError(f"rotate takes fields, found {shown(item)}", remedy="name the field: step.rotate(u)")
            if item.slots < 2:
                raise ProgramError(
                    f"rotate: field {item.name!r} has a single slot, so there is no next level to become the present "
                    "one",
                    remedy=f"declare it with two time levels, mg.Field({item.name!r}, ..., slots=2), or three if "
                    f"{item.name}.previous is needed",
                )
            if fields.count(item) > 1:
                raise ProgramError(f"rotate: {item.name!r} is named twice", remedy="rotate each field once a step")
        self._keep_levels(fields)
        self._add(Rotate(tuple(fields)))

    def move(
        self, source: Field | Slot, target: Field | Slot, box: Box | Sequence[Box] | None = None, number: object = None
    ) -> None:
        """Copy a field to one with the same points on a grid that, by its label, has another layout.

        With `box`, only these points of the source are copied, to the first points of a target on any grid. Of several
        boxes the one selected by `number`, a register or an expression of registers, is copied, or none if the number
        is out of range. Messages travel while operations proceed that do not access the moved data.

        Parameters
        ----------
        source
            The field or slot that is copied.
        target
            The field or slot that is written.
        box
            The points of the source that are copied, or several boxes of them; by default all.
        number
            Of several boxes, the number of the one that is copied: a register or an expression of registers.
        """
        a, b = _as_slot(source), _as_slot(target)
        boxes = moved_boxes(a, b, box, number)
        chosen = None if number is None else self.let(self._register("i8", "number"), number)
        self._add(Move(a, b, boxes, chosen))

    def call(
        self,
        function: Callable[..., None],
        *,
        reads: Sequence[Field | Slot] = (),
        writes: Sequence[Field | Slot] = (),
        fills: Sequence[Field | Slot] = (),
    ) -> None:
        """Run `function(engine)` in Python between operations.

        The function may read owned cells of the fields named in `reads`, and read and change those named in `writes`;
        access to other fields raises ProgramError. It may read and write all registers.

        Parameters
        ----------
        function
            A function of the engine.
        reads, writes
            The fields or slots that it reads and changes.
        fills
            Those of `writes` whose former values neither the function nor anything after it needs: checkpoints at the
            end of a step leave them out.

        Raises
        ------
        ProgramError
            If a slot of `fills` is not among `writes`, or is read.
        """
        label = getattr(function, "__name__", "call")
        read, written, filled = (tuple(map(_as_slot, items)) for items in (reads, writes, fills))
        for slot in filled:
            if slot not in written or slot in read:
                raise ProgramError(
                    f"call({label}): fills={slot!r} is {'read' if slot in read else 'not among writes'}",
                    remedy="name slots of writes that the function stores as a whole and does not read",
                )
        self._add(Call(function, read, written, label, filled))

    def call_global(
        self, function: Callable[..., Any], *, reads: Sequence[Item] = (), writes: Sequence[Item] = ()
    ) -> None:
        """Run `function(*arrays)` in Python on rank 0 with whole fields, for instance a function of SciPy.

        The fields are gathered on rank 0, which sends each rank the results for the cells that it owns: the same bits
        on any number of ranks, as far as the function itself always returns the same. The whole fields must fit into
        the memory of rank 0.

        Parameters
        ----------
        function
            A function of one NumPy array for each field, or number for each register, in `reads`. It returns an array
            of the field's shape, or a number, for the only entry of `writes`, or a tuple of one for each entry.
        reads, writes
            The fields, slots and registers that it gets and returns.

        Raises
        ------
        ProgramError
            For arguments of other kinds, and when the Program runs if the function returns something else.
        """
        self._add(global_call(function, reads, writes))

    def refresh(self, item: Field | Slot, width: int = 1) -> None:
        """Make the halo of a field valid to a width of `width` cells, boundaries included, for a call that reads it.

        Parameters
        ----------
        item
            The field or slot.
        width
            The number of cells.
        """
        if width < 1:
            raise ProgramError(f"refresh: width {width}", remedy="give 1 or more")
        self._add(Refresh(_as_slot(item), width))

    def include(self, other: Program) -> None:
        """Record the operations of another Program here, as if they were recorded again.

        Parameters
        ----------
        other
            The Program.
        """
        for operation in list(other.operations):
            if isinstance(operation, Rotate):
                self._keep_levels(operation.fields)
            self._add(operation)

    # Helpers -------------------------------------------------------------------------------------------------------
    def _keep_levels(self, fields: Sequence[Field]) -> None:
        """Record the copies that must precede the rotation of some fields."""
        for item in fields:
            place = kept_cells(item, self._stack)
            if place is not None:
                self._keep(item, place)

    def _keep(self, item: Field, place: CopyPoint) -> None:
        """Record a copy of cells from `now` to `next` at the position where it belongs."""
        copies: list[Operation] = []
        before, self._mask = self._mask, None
        with self._inside(copies):
            for box in place.boxes:
                self.apply(keep(len(item.axes)), item.now, item.next, region=box)
        self._mask = before
        place.operations[place.number : place.number] = copies

    @contextmanager
    def _inside(self, body: list[Operation]) -> Iterator[None]:
        self._stack.append(body)
        try:
            yield
        finally:
            self._stack.pop()

    def _condition(self, condition: object) -> Let:
        if isinstance(condition, bool | np.bool_):
            raise ProgramError(
                f"a condition is {condition}, which Python found while the Program was recorded",
                remedy="compare registers: P.repeat(until=residual < 1e-6); for values known now use Python's if",
            )
        node = as_node(condition)
        return _let(self._register("bool", "condition"), cast(node, "bool"))

    def _operand(self, kernel: Kernel, number: int, item: object) -> Slot | tuple[Slot, ...]:
        name = kernel.fields[number] if number < len(kernel.fields) else f"argument {number}"
        if isinstance(item, Field | Slot):
            return _as_slot(item)
        if isinstance(item, Sequence) and not isinstance(item, str) and all(isinstance(i, Field | Slot) for i in item):
            return tuple(_as_slot(i) for i in item)
        raise ProgramError(
            f"apply({kernel.name}): {name!r} expects a field (or a list of fields), found {type(item).__name__}",
            remedy="numbers and registers go by keyword, to the kernel's keyword-only parameters",
        )

    def _scalars(
        self, kernel: Kernel, given: Mapping[str, object]
    ) -> tuple[dict[str, ScalarValue], list[tuple[str, ScalarType]]]:
        for name in given:
            if name not in kernel.scalars:
                close = suggest(name, kernel.scalars)
                raise ProgramError(
                    f"apply({kernel.name}): no scalar parameter {name!r}",
                    remedy=f"did you mean {close!r}?" if close else f"it has {', '.join(kernel.scalars) or 'none'}",
                )
        values: dict[str, ScalarValue] = {}
        types = []
        for name in kernel.scalars:
            if name not in given and name not in kernel.defaults:
                raise ProgramError(
                    f"apply({kernel.name}): scalar {name!r} is missing", remedy=f"pass {name}=..., or give it a default"
                )
            value = given.get(name, kernel.defaults.get(name))
            if isinstance(value, Arithmetic) and not isinstance(value, Register):
                node = as_node(value)
                value = self.let(self._register(node.dtype, name), node)
            values[name], kind = _scalar(kernel, name, value)
            types.append((name, kind))
        return values, types

    def _result(
        self, kernel: Kernel, name: str, dtype: str, into: Register | Mapping[str, Register] | None
    ) -> Register:
        if into is None:
            return self._register(dtype, f"{kernel.name}.{name}")
        register = into.get(name) if isinstance(into, Mapping) else into
        if not isinstance(register, Register) or register.dtype != dtype:
            raise ProgramError(
                f"apply({kernel.name}): reduction {name!r} is {dtype}, into= gives {shown(register)}",
                remedy=f"pass a Register of dtype {dtype}, or a dict of them by name",
            )
        return register


def _rounds(given: object) -> int:
    """Return the number of iterations of a loop. Raise ProgramError if it is not a whole number."""
    if isinstance(given, bool) or not isinstance(given, Integral):
        raise ProgramError(f"repeat: {shown(given)} rounds", remedy="give a whole number, or a register of i8")
    if int(given) < 0:
        raise ProgramError(f"repeat: {given} rounds", remedy="give 0 or more")
    return int(given)


def _as_slot(item: Field | Slot) -> Slot:
    if not isinstance(item, Field | Slot):
        raise ProgramError(f"expected a field, found {shown(item)}", remedy="pass a Field, or one of its slots: u.next")
    return item.now if isinstance(item, Field) else item


def _scalar(kernel: Kernel, name: str, value: object) -> tuple[ScalarValue, ScalarType]:
    if isinstance(value, Register):
        return value, ScalarType(value.dtype, False)
    if isinstance(value, np.generic):
        return value, ScalarType(as_dtype(value.dtype), False)
    if isinstance(value, bool | int | float):
        return value, ScalarType("bool" if isinstance(value, bool) else "i8" if isinstance(value, int) else "f8", True)
    raise ProgramError(
        f"apply({kernel.name}): scalar {name!r} is {type(value).__name__}",
        remedy="pass a number, a register, or an expression of registers; fields go by position",
    )


def _let(register: Register, value: object) -> Let:
    given = as_node(value)
    whole = given.op == "const" and float(given.data).is_integer()
    if is_float(given.dtype) and register.dtype not in ("f4", "f8", "bool") and not whole:
        raise ProgramError(
            f"let({register.name}): the register is {register.dtype}, the value {given.dtype}",
            remedy=f'declare it as f8, mg.Register("{register.name}"), or write mg.cast(value, "{register.dtype}")',
        )
    node = Interner()(cast(given, register.dtype))
    for item in topological([node]):
        if item.op in ("read", "local", "index"):
            raise ProgramError(
                f"let({register.name}): the value depends on cells", remedy="reduce the field in a kernel first"
            )
    trace = Trace(1, ("register",), False, 0)
    trace.params.append(Param("register", register.dtype, (0,)))
    return Let(register, assemble("let", trace, (Store(0, (1,), (0,), node),)), f"let {register.name}")


def _outline(operations: Sequence[Operation], indent: str) -> Iterator[str]:
    for operation in operations:
        match operation:
            case Apply():
                names = ", ".join(o.name if isinstance(o, Constant) else repr(o) for o in operation.operands)
                order = operation.graph.order
                colour = ("red cells", "black cells")[operation.colour] if order and order.kind == "red-black" else ""
                yield f"{indent}apply {operation.label}({names}) on {colour and colour + ' of '}{operation.region}"
            case Let():
                yield f"{indent}{operation.label}"
            case Rotate():
                yield f"{indent}rotate {', '.join(f.name for f in operation.fields)}"
            case Move():
                places = operation.boxes if operation.number is None else (f"one of {len(operation.boxes)} boxes",)
                part = "".join(f"{place} of " for place in places)
                yield f"{indent}move {part}{operation.source!r} -> {operation.target!r}"
            case Call():
                yield f"{indent}call {operation.label}"
            case Refresh():
                yield f"{indent}refresh {operation.slot!r} to width {operation.width}"
            case Repeat():
                bound = "" if operation.limit is None else f" at most {operation.limit}"
                yield f"{indent}repeat{bound}{' until a condition' if operation.until else ''}:"
                yield from _outline(operation.body, indent + "  ")
            case When():
                yield f"{indent}when a condition:"
                yield from _outline(operation.body, indent + "  ")
