"""`@rule`: a cellular automaton's rule as a function of a cell and its neighbours; it makes an ordinary kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, MappingProxyType
from typing import Any, overload

from minga.errors import KernelError
from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node, cast
from minga.lang.kernel import Kernel
from minga.lang.near import STATES_OF_A_BYTE, Cell, Context, Near
from minga.lang.neighbourhood import Neighbourhood, moore
from minga.lang.states import states_of
from minga.lang.trace import current_trace
from minga.lang.types import DType, as_dtype, is_float, is_integer

__all__ = ["Rule", "rule"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rule:
    """How a cell's next value follows from its own and its neighbours'.

    name           the function's
    fields         cell type of each field, by name; one field is called "cell" unless it was named
    states         cells hold 0 .. states - 1; None for floats and wide integers
    neighbourhood  the cells that `near` offers
    parameters     default values of the rule's keyword parameters; `required` names those without one
    kernel         takes the fields (old values), then the fields again (new values), and the parameters
    """

    name: str
    fields: Mapping[str, DType]
    states: int | None
    neighbourhood: Neighbourhood
    parameters: Mapping[str, bool | int | float]
    required: tuple[str, ...]
    kernel: Kernel

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {dtype}" for name, dtype in self.fields.items())
        states = f", {self.states} states" if self.states else ""
        given = [f"{name}={value!r}" for name, value in self.parameters.items()]
        parameters = f", parameters {', '.join([*given, *self.required])}" if given or self.required else ""
        return f"<rule {self.name} of {fields}{states}, {self.neighbourhood}{parameters}>"


# Making rules --------------------------------------------------------------------------------------------------------
Function = Callable[..., object]


@overload
def rule(function: Function, /) -> Rule: ...
@overload
def rule(
    *,
    neighbourhood: Neighbourhood = ...,
    states: int | None = ...,
    dtype: object = ...,
    fields: Mapping[str, object] | Sequence[str] | None = ...,
    name: str | None = ...,
) -> Callable[[Function], Rule]: ...
def rule(
    function: Function | None = None,
    /,
    *,
    neighbourhood: Neighbourhood | None = None,
    states: int | None = None,
    dtype: object = None,
    fields: Mapping[str, object] | Sequence[str] | None = None,
    name: str | None = None,
) -> Rule | Callable[[Function], Rule]:
    """Make a rule of a function of a cell, its neighbours, and keyword-only scalar parameters.

        @mg.rule(neighbourhood=mg.moore(1))
        def life(cell, near):
            n = near.count(1)
            return (n == 3) | ((cell == 1) & (n == 2))

    The function returns the cell's next value; with several fields a dict with a value for each. `mg.random()` gives
    a random number, other functions and operators are those of kernels.

    neighbourhood  mg.moore(1) unless given; also von_neumann, circular, hex, offsets
    states         cells are bytes 0 .. states - 1, at most 256. Two unless a dtype or fields are given. The next value
                   in a rule of two states is 1 where the function's result is true (not zero); with more states it
                   must be seen from the function that the result is one of them: `% states`, mg.where, mg.min
    dtype          cell type of fields that have no own one: "f8" where fields are named
    fields         names of the fields, or a mapping of names to cell types. `cell` is the value itself where there is
                   one field; with several the values are cell.u, cell.v, ... and methods of `near` take the name
    """
    chosen = neighbourhood or moore(1)

    def make(function: Function) -> Rule:
        where = _place(function)
        kinds = _kinds(fields, dtype, states, where)
        count = states if states is not None or fields is not None or dtype is not None else 2
        return _make(function, name or str(getattr(function, "__name__", "rule")), kinds, count, chosen, where)

    return make if function is None else make(function)


def _place(function: Function) -> str:
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else "?"


def _kinds(
    fields: Mapping[str, object] | Sequence[str] | None, dtype: object, states: int | None, where: str
) -> dict[str, DType]:
    """The cell type of each field."""
    if states is not None and not (isinstance(states, int) and 2 <= states <= STATES_OF_A_BYTE):
        raise KernelError(f"states={states!r}: a cell has 2 .. 256 states", where=where, remedy="use dtype= for more")
    default = dtype if dtype is not None else "u1" if fields is None or states is not None else "f8"
    if isinstance(fields, str):
        fields = (fields,)
    names = ("cell",) if fields is None else fields
    named = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names, default)
    if not named:
        raise KernelError("the rule has no fields", where=where, remedy='name them: fields=("u", "v")')
    kinds: dict[str, DType] = {}
    for name, kind in named.items():
        if not (isinstance(name, str) and name.isidentifier()) or name.startswith("_"):
            raise KernelError(f"{name!r} cannot be a field's name", where=where, remedy="use a word, such as u")
        try:
            kinds[name] = as_dtype(kind)
        except ValueError as error:
            raise KernelError(f"field {name!r}: {error}", where=where, remedy='e.g. fields={"u": "f8"}') from error
        if states is not None and kinds[name] != "u1":
            raise KernelError(
                f"field {name!r} is {kinds[name]}, but states={states} declares bytes",
                where=where,
                remedy="leave out states= or dtype=",
            )
    return kinds


def _make(
    function: Function,
    name: str,
    fields: dict[str, DType],
    states: int | None,
    neighbourhood: Neighbourhood,
    where: str,
) -> Rule:
    parameters, required = _parameters(function, name, fields, where)
    body = _Body(function, name, tuple(fields), parameters, required, neighbourhood, states)
    return Rule(
        name, MappingProxyType(fields), states, neighbourhood, MappingProxyType(parameters), required,
        Kernel(body, name=name),
    )  # fmt: skip


def _parameters(
    function: Function, name: str, fields: Mapping[str, DType], where: str
) -> tuple[dict[str, bool | int | float], tuple[str, ...]]:
    """Defaults of the keyword parameters, and the names of those without one."""
    defaults: dict[str, bool | int | float] = {}
    required = []
    positional = 0
    for item in inspect.signature(function).parameters.values():
        if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD) and item.default is item.empty:
            positional += 1
        elif item.kind is not item.KEYWORD_ONLY:
            raise KernelError(
                f"rule {name!r}: parameter {item.name!r} is neither the cell, nor its neighbours, nor keyword-only",
                where=where,
                remedy=f"put parameters after a star: def {name}(cell, near, *, {item.name}=...)",
            )
        elif item.name in fields or item.name.startswith("new_"):
            raise KernelError(
                f"rule {name!r}: parameter {item.name!r} has a field's name", where=where, remedy="rename the parameter"
            )
        elif item.default is item.empty:
            required.append(item.name)
        elif isinstance(item.default, bool | int | float):
            defaults[item.name] = item.default
        else:
            raise KernelError(
                f"rule {name!r}: parameter {item.name}={item.default!r} is no number",
                where=where,
                remedy="parameters are numbers; let the function use other values from outside",
            )
    if positional != 2:
        raise KernelError(
            f"rule {name!r} has {positional} positional parameters, a rule has two",
            where=where,
            remedy=f"write def {name}(cell, near): ...",
        )
    return defaults, tuple(required)


class _Body:
    """The function of a rule's kernel: makes `cell` and `near`, calls the author's function, stores what it returns."""

    def __init__(
        self,
        function: Function,
        name: str,
        fields: tuple[str, ...],
        parameters: Mapping[str, bool | int | float],
        required: tuple[str, ...],
        neighbourhood: Neighbourhood,
        states: int | None,
    ) -> None:
        self.function, self.fields, self.neighbourhood, self.states = function, fields, neighbourhood, states
        self.__name__ = name
        self.__doc__ = function.__doc__
        self.__code__: CodeType | None = getattr(function, "__code__", None)  # errors point at the author's function
        parameter, kind = inspect.Parameter, inspect.Parameter.KEYWORD_ONLY
        both = [parameter(f, parameter.POSITIONAL_OR_KEYWORD) for f in (*fields, *(f"new_{f}" for f in fields))]
        self.__signature__ = inspect.Signature([*both, *(parameter(s, kind) for s in (*parameters, *required))])
        self.__kwdefaults__ = dict(parameters)

    def __call__(self, *readers: CellReader, **scalars: Node) -> None:
        count = len(self.fields)
        old = dict(zip(self.fields, readers[:count]))
        ndim = len(readers[0].axes)
        if self.neighbourhood.ndim not in (None, ndim):
            raise self._error(
                f"looks at {self.neighbourhood} in {self.neighbourhood.ndim} dimensions, the grid has {ndim}",
                f"use a grid of {self.neighbourhood.ndim} dimensions, or mg.moore(r), which fits any",
            )
        around = self.neighbourhood.around(ndim)
        context = Context(self.__name__, old, around, str(self.neighbourhood), self.states)
        cell: Any = context.here(readers[0]) if count == 1 else Cell(context)
        result = self.function(cell, Near(context), **scalars)
        for (name, value), reader in zip(self._values(result), readers[count:]):
            reader[(0,) * ndim] = self._state(name, value)

    def _values(self, result: object) -> list[tuple[str, object]]:
        """The next value of each field, in the order of the fields."""
        if len(self.fields) == 1 and not isinstance(result, Mapping):
            result = {self.fields[0]: result}
        shape = "{" + ", ".join(f'"{f}": ...' for f in self.fields) + "}"
        if not isinstance(result, Mapping):
            raise self._error(f"returns {type(result).__name__}", f"return a value for each field: return {shape}")
        if set(result) != set(self.fields):
            raise self._error(
                f"returns values for {', '.join(map(repr, result)) or 'nothing'}; "
                f"its fields are {', '.join(map(repr, self.fields))}",
                f"return {shape}; a field that stays keeps cell.{self.fields[0]}",
            )
        return [(name, result[name]) for name in self.fields]

    def _state(self, name: str, value: object) -> Node:
        """The value to store: checked against the states where that can be told."""
        if value is None:
            raise self._error(f"returns nothing for {name!r}", "end it with `return` and the next value")
        try:
            node = as_node(value)
        except KernelError as error:
            raise KernelError(error.message, where=_place(self.function), remedy=error.remedy) from error
        if self.states is None:
            return node
        if self.states == 2:
            return self._true_or_false(node)
        if is_float(node.dtype):
            raise self._error(f"returns {node.dtype}; its states are whole numbers", 'write mg.cast(value, "u1")')
        trace = current_trace("a rule")
        low, high = states_of(node, self.states, range(len(self.fields)), trace.locals)
        if low < 0 or high >= self.states:
            raise self._out_of_range(low if low < 0 else high)
        return node

    def _true_or_false(self, node: Node) -> Node:
        """The result in a rule of two states: 1 where it is not zero, but no other number written out."""
        values = written(node)
        if values is None:
            return cast(node, "bool")
        if wrong := [value for value in values if value not in (0, 1)]:
            raise self._out_of_range(wrong[0])
        return node

    def _out_of_range(self, value: int) -> KernelError:
        last = (self.states or STATES_OF_A_BYTE) - 1
        declared = f"declare them: @mg.rule(states={value + 1}); or " if last < value < STATES_OF_A_BYTE - 1 else ""
        return self._error(
            f"can return {value}; its states are 0 .. {last}"
            if 0 <= value < STATES_OF_A_BYTE - 1
            else f"is not seen to return states 0 .. {last} only",
            f"{declared}keep the result among the states: value % {last + 1}, mg.min(value, {last}) or mg.where",
        )

    def _error(self, message: str, remedy: str) -> KernelError:
        return KernelError(f"rule {self.__name__!r} {message}", where=_place(self.function), remedy=remedy)


def written(node: Node) -> frozenset[int] | None:
    """The values of a node of a rule of two states that only chooses among cells and numbers; None for others."""
    match node.op:
        case "const" if not is_float(node.dtype):
            return frozenset([int(node.data)])
        case "select":
            branches = [written(arg) for arg in node.args[1:]]
            return None if None in branches else frozenset().union(*(b for b in branches if b is not None))
        case "cast" if is_integer(node.dtype) and not is_float(node.args[0].dtype):
            return written(node.args[0])
        case _:
            return frozenset([0, 1]) if node.dtype == "bool" or (node.op == "read" and node.dtype == "u1") else None
