"""`@block_rule`: a rule for blocks of two cells along every axis (Margolus' neighbourhood), as an ordinary kernel.

The grid is cut into blocks of 2 x 2 x ... cells, each of which is replaced by another block, and the cuts move by one
cell along every axis from step to step: at even steps (the first is step 0) blocks begin at even indices, at odd steps
at odd ones. Every cell computes the new state of its whole block and keeps its own part, so blocks may lie across
ranks; random numbers are drawn for the block's first cell, so that all its cells see the same ones. If a block extends
beyond the grid, its outer cells have the values of the boundary condition, and the new values for them are lost.

Source: T. Toffoli, N. Margolus, Cellular Automata Machines, MIT Press 1987, chapter 12.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, MappingProxyType
from typing import Any, Final, overload

import numpy as np

from minga.errors import KernelError
from minga.lang.cell import CellReader
from minga.lang.expr import Node, author_error, binary, cast, compare, const, where
from minga.lang.kernel import Kernel
from minga.lang.logic import network
from minga.lang.result import checked_state
from minga.lang.rule import rule_colours, rule_parameters
from minga.lang.rule_context import STATES_OF_A_BYTE
from minga.lang.table import lookup
from minga.lang.trace import current_trace
from minga.lang.types import DType

__all__ = ["Block", "BlockRule", "block_rule", "block_table"]

MOST_BLOCKS: Final = 1 << 16
"""Largest number of different blocks that a table may list."""

MOST_INPUTS: Final = 6
"""Number of cells of a block plus axes up to which a table of two states is computed by operations on bits."""

Function = Callable[..., object]
Place = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BlockRule:
    """A rule that replaces each block of two cells along every axis by another block.

    Parameters
    ----------
    name
        Name of the rule.
    states
        Number of states; cells hold 0 .. states - 1.
    phase
        0 if blocks begin at even indices at even steps, 1 if at odd steps.
    ndim
        The only number of dimensions that the rule is for, or None for any.
    table
        The code of each block's successor, by the block's code; None for a rule given as a function.
    parameters
        Default values of the rule's keyword parameters.
    required
        Names of the keyword parameters without a default.
    kernel
        The kernel. It takes the field `cell` twice (old and new values), `step`, `wrap_0`, ... (for each axis its
        number of cells if it is periodic, otherwise 0), and the parameters.
    colours
        Colour of each state as "#rrggbb"; if empty, pictures choose the colours.
    """

    name: str
    states: int
    phase: int
    ndim: int | None
    table: tuple[int, ...] | None
    parameters: Mapping[str, bool | int | float]
    required: tuple[str, ...]
    kernel: Kernel
    colours: tuple[str, ...] = ()

    @property
    def fields(self) -> Mapping[str, DType]:
        """Cell type of the rule's only field, by name."""
        return MappingProxyType({"cell": "u1"})

    def __repr__(self) -> str:
        given = [f"{name}={value!r}" for name, value in self.parameters.items()]
        parameters = f", parameters {', '.join([*given, *self.required])}" if given or self.required else ""
        return f"<block rule {self.name} of {self.states} states{parameters}>"


class Block:
    """The cells of a block as a rule sees them.

    Cells have their old values and are ordered with the first axis slowest (north-west, north-east, south-west,
    south-east). A block can be unpacked, `nw, ne, sw, se = block`; `block[0, 1]` is a single cell.
    """

    __slots__ = ("_cells", "_states")

    def __init__(self, cells: Mapping[Place, Node], states: int) -> None:
        self._cells, self._states = cells, states

    def __iter__(self) -> Iterator[Node]:
        return iter(self._cells.values())

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, place: object) -> Node:
        key = place if isinstance(place, tuple) else (place,)
        if key not in self._cells:
            first = next(iter(self._cells))
            raise author_error(
                f"a block has no cell {list(key)}", f"give 0 or 1 for each of {len(first)} axes: block{list(first)}"
            )
        return self._cells[key]

    def count(self, state: int) -> Node:
        """Return the number of cells (u1) that have this state."""
        return _total([cast(compare("eq", cell, state), "u1") for cell in self])

    def sum(self) -> Node:
        """Return the sum of the cells."""
        wide: DType = "u1" if len(self) * (self._states - 1) < STATES_OF_A_BYTE else "i2"
        return _total([cast(cell, wide) for cell in self])


def _total(nodes: Sequence[Node]) -> Node:
    result = nodes[0]
    for node in nodes[1:]:
        result = binary("add", result, node)
    return result


# Constructors of block rules -----------------------------------------------------------------------------------------
@overload
def block_rule(function: Function, /) -> BlockRule: ...
@overload
def block_rule(
    *, states: int = ..., name: str | None = ..., phase: int = ..., colours: Sequence[str] = ...
) -> Callable[[Function], BlockRule]: ...
def block_rule(
    function: Function | None = None,
    /,
    *,
    states: int = 2,
    name: str | None = None,
    phase: int = 0,
    colours: Sequence[str] = (),
) -> BlockRule | Callable[[Function], BlockRule]:
    """Make a block rule from a function of a block and keyword-only scalar parameters.

    Parameters
    ----------
    function
        Returns the cells of the next block in the order in which it receives them, flat or as nested rows.
        `mg.random()` gives a random number of the block, equal for all its cells.
    states
        Number of states, at most 256; cells are bytes 0 .. states - 1. With two states, a result is 1 where it is true
        (not zero).
    name
        Name of the rule; by default, the function's name.
    phase
        0 if blocks begin at even indices at the first step, 1 if at odd ones.
    colours
        The colour of each state in pictures, as "#rrggbb".

    Returns
    -------
    BlockRule or callable
        The rule or, if `function` is not given, a decorator that makes one.

    Raises
    ------
    KernelError
        If an argument is invalid.

    Examples
    --------
    ::

        @mg.block_rule(states=2)
        def swap_on_diagonal(block):
            nw, ne, sw, se = block
            return se, sw, ne, nw
    """
    _check(states, phase)

    def make(function: Function) -> BlockRule:
        called = name or str(getattr(function, "__name__", "block_rule"))
        parameters, required = rule_parameters(function, called, {"block": "u1"}, ("block",))
        body = _FunctionBody(called, states, phase, function, (*parameters, *required), parameters)
        code = getattr(function, "__code__", None)
        shown = rule_colours(colours, states, f"{code.co_filename}:{code.co_firstlineno}" if code else "?")
        return BlockRule(
            called, states, phase, None, None, MappingProxyType(parameters), required, Kernel(body, name=called), shown
        )

    return make if function is None else make(function)


def block_table(
    table: Sequence[int], states: int = 2, ndim: int = 2, *, name: str = "block_table", phase: int = 0
) -> BlockRule:
    """Make a block rule from a table: the block with number `code` becomes the block with number `table[code]`.

    Parameters
    ----------
    table
        The code of each block's successor. The code of a block has one digit for each cell in base `states`, the first
        cell's digit being the lowest: in two dimensions nw + states * ne + states² * sw + states³ * se.
    states
        Number of states of a cell.
    ndim
        Number of dimensions, 1 to 4.
    name
        Name of the rule.
    phase
        0 if blocks begin at even indices at the first step, 1 if at odd ones.

    Returns
    -------
    BlockRule
        The rule.

    Raises
    ------
    KernelError
        If the table does not have states ** (2 ** ndim) entries, at most 65536, or an entry is not a code.
    """
    _check(states, phase)
    if isinstance(ndim, bool) or ndim not in (1, 2, 3, 4):
        raise author_error(f"a block table of {ndim!r} dimensions", "give ndim=1, 2, 3 or 4")
    codes = states ** (2**ndim)
    if codes > MOST_BLOCKS:
        raise author_error(
            f"{states} states and {2**ndim} cells make more than {MOST_BLOCKS} blocks", "write it with @mg.block_rule"
        )
    entries = tuple(table)
    if len(entries) != codes:
        raise author_error(f"a table of {len(entries)} entries", f"give {codes}, one for each block of {2**ndim} cells")
    for code, entry in enumerate(entries):
        if isinstance(entry, bool) or not isinstance(entry, int | np.integer) or not 0 <= entry < codes:
            raise author_error(f"block {code} becomes {entry!r}", f"entries are codes of blocks, 0 .. {codes - 1}")
    body = _TableBody(name, states, phase, ndim, entries)
    return BlockRule(
        name, states, phase, ndim, tuple(map(int, entries)), MappingProxyType({}), (), Kernel(body, name=name)
    )


def _check(states: object, phase: object) -> None:
    if isinstance(states, bool) or not isinstance(states, int) or not 2 <= states <= STATES_OF_A_BYTE:
        raise author_error(f"states={states!r}: a cell has 2 .. 256 states", "leave it out for two")
    if isinstance(phase, bool) or phase not in (0, 1):
        raise author_error(f"phase={phase!r}", "0: blocks begin at even indices at the first step, 1: at odd ones")


# Kernels of block rules ----------------------------------------------------------------------------------------------
class _Body:
    """Common part of the kernels of block rules: a cell's block, and the cell's place in it."""

    def __init__(self, name: str, states: int, phase: int, scalars: Sequence[str], defaults: Mapping[str, Any]) -> None:
        self.states, self.phase = states, phase
        self.__name__ = name
        self.__kwdefaults__ = {**dict.fromkeys(_WRAPS, 0), **defaults}
        parameter, kind = inspect.Parameter, inspect.Parameter.KEYWORD_ONLY
        fields = [parameter(field, parameter.POSITIONAL_OR_KEYWORD) for field in ("cell", "new_cell")]
        given = [parameter(scalar, kind) for scalar in ("step", *_WRAPS, *scalars)]
        self.__signature__ = inspect.Signature([*fields, *given])

    def __call__(self, old: CellReader, new: CellReader, *, step: Node, **scalars: Node) -> None:
        ndim = len(old.axes)
        self._check_ndim(ndim)
        trace = current_trace("a block rule")
        index = [Node("index", "i8", data=axis) for axis in range(ndim)]
        parity = cast(step, "u1") + self.phase
        later = [((cast(i, "u1") + parity) & 1) == 1 for i in index]
        places = list(itertools.product((0, 1), repeat=ndim))
        cells = {place: _of_block(old, place, later) for place in places}
        wraps = [scalars.pop(name) for name in _WRAPS]
        trace.place = [_first(i, second, wrap) for i, second, wrap in zip(index, later, wraps)]
        new[(0,) * ndim] = self._own(cells, later, scalars)

    def _check_ndim(self, ndim: int) -> None:
        """Raise KernelError if the rule is not for grids of this number of dimensions."""

    def _own(self, cells: Mapping[Place, Node], later: Sequence[Node], scalars: Mapping[str, Node]) -> Node:
        raise AssertionError("each kind of block rule defines its own")


_WRAPS: Final = tuple(f"wrap_{axis}" for axis in range(4))


def _of_block(old: CellReader, place: Place, later: Sequence[Node]) -> Node:
    """Return the cell at `place` of a cell's block; the cell itself is the second one along axes with true `later`."""

    def chosen(offsets: Place) -> Node:
        axis = len(offsets)
        if axis == len(place):
            return old[offsets]
        return where(later[axis], chosen((*offsets, place[axis] - 1)), chosen((*offsets, place[axis])))

    return chosen(())


def _first(index: Node, later: Node, wrap: Node) -> Node:
    """Return the index (u4) of the block's first cell along an axis; at the low end of an open axis it is -1."""
    number = cast(index, "u4") - cast(later, "u4")
    return number + where(later & (index == 0), cast(wrap, "u4"), const(0, "u4"))


class _FunctionBody(_Body):
    """The kernel of a block rule given as a function: it computes the whole block and keeps the cell."""

    def __init__(
        self,
        name: str,
        states: int,
        phase: int,
        function: Function,
        scalars: Sequence[str],
        defaults: Mapping[str, Any],
    ) -> None:
        super().__init__(name, states, phase, scalars, defaults)
        self.function = function
        self.__doc__ = function.__doc__
        self.__code__: CodeType | None = getattr(function, "__code__", None)

    def _own(self, cells: Mapping[Place, Node], later: Sequence[Node], scalars: Mapping[str, Node]) -> Node:
        result = list(_flat(self.function(Block(cells, self.states), **scalars)))
        if len(result) != len(cells):
            raise self._error(f"returns {len(result)} cells", f"return the {len(cells)} cells of the next block")
        values = dict(zip(cells, (self._state(value) for value in result)))

        def chosen(place: Place) -> Node:
            axis = len(place)
            if axis == len(later):
                return values[place]
            return where(later[axis], chosen((*place, 1)), chosen((*place, 0)))

        return chosen(())

    def _state(self, value: object) -> Node:
        return cast(checked_state(value, "a cell", self.states, 1, self._error), "u1")

    def _error(self, message: str, remedy: str) -> KernelError:
        code = self.__code__
        where_ = f"{code.co_filename}:{code.co_firstlineno}" if code else "?"
        return KernelError(f"block rule {self.__name__!r} {message}", where=where_, remedy=remedy)


def _flat(result: object) -> Iterator[object]:
    """Yield the cells of a returned block, in order."""
    if isinstance(result, Block | Sequence | np.ndarray) and not isinstance(result, str):
        for item in result:
            yield from _flat(item)
    else:
        yield result


class _TableBody(_Body):
    """The kernel of a block rule given as a table.

    It evaluates the table at the block's code and the cell's place in it, with few operations on bits if possible,
    otherwise with a lookup.
    """

    def __init__(self, name: str, states: int, phase: int, ndim: int, table: Sequence[int]) -> None:
        super().__init__(name, states, phase, (), {})
        codes = np.asarray(table, np.int64)
        self.ndim = ndim
        self.digits = np.concatenate([codes // states**digit % states for digit in range(2**ndim)]).astype(np.uint8)

    def _check_ndim(self, ndim: int) -> None:
        if ndim != self.ndim:
            raise author_error(
                f"block rule {self.__name__!r} is for {self.ndim} dimensions, the grid has {ndim}",
                f"give grid.shape {self.ndim} numbers",
            )

    def _own(self, cells: Mapping[Place, Node], later: Sequence[Node], scalars: Mapping[str, Node]) -> Node:
        inputs = len(cells) + len(later)
        if self.states == 2 and inputs <= MOST_INPUTS:
            bits = [*cells.values(), *(cast(second, "u1") for second in reversed(later))]
            own: Node = network([self.digits], inputs)(bits)[0]
            return own & 1
        blocks = self.states ** len(cells)
        kind: DType = "u1" if self.digits.size <= STATES_OF_A_BYTE else "i4"
        code = _total([cast(cell, kind) * self.states**digit for digit, cell in enumerate(cells.values())])
        weights = [blocks << (len(later) - 1 - axis) for axis in range(len(later))]
        place = _total([cast(second, kind) * weight for second, weight in zip(later, weights)])
        return lookup(self.digits, code + place)
